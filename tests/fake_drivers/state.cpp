#include "state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

namespace fake_gpu {

namespace {

using guard = std::lock_guard<std::recursive_mutex>;

void log(const nlohmann::ordered_json &line) {
  static std::FILE *file = [] {
    const char *path = std::getenv("FAKE_GPU_LOG");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  if (!file)
    return;
  std::fprintf(file, "%s\n", line.dump().c_str());
  std::fflush(file);
}

} // namespace

std::vector<launch> state::launches() { return guard(lock), launch_log; }
std::map<std::string, int> state::calls() { return guard(lock), call_counts; }
std::vector<std::string> state::refusals() { return guard(lock), refusal_log; }
int state::modules_alive() { return guard(lock), modules; }
int state::allocations_alive() { return guard(lock), int(allocations.size()); }
std::vector<std::string> state::nvtx_log() { return guard(lock), ranges; }
int state::dynamic_shared_limit() { return guard(lock), shared_limit; }

void state::fail_next(const std::string &function, int result, bool sticky) {
  guard g(lock);
  failures[function] = {result, sticky};
}
void state::begin_capture(void *stream) {
  guard g(lock);
  captured = stream, graph.clear();
}
std::vector<launch> state::end_capture() {
  guard g(lock);
  captured = nullptr;
  return std::exchange(graph, {});
}
void state::replay(const std::vector<launch> &recorded) {
  guard g(lock);
  launch_log.insert(launch_log.end(), recorded.begin(), recorded.end());
}
void state::reset() {
  guard g(lock);
  call_counts.clear(), failures.clear(), launch_log.clear(), refusal_log.clear(), ranges.clear();
  captured = nullptr;
  sticky_failure = 0;
}

int state::enter(const char *function) {
  ++call_counts[function];
  if (sticky_failure)
    return sticky_failure;
  if (auto f = failures.find(function); f != failures.end()) {
    auto [r, sticky] = f->second;
    failures.erase(f);
    if (sticky)
      sticky_failure = r;
    return r;
  }
  if (captured && std::ranges::find(forbidden_in_capture, function) != forbidden_in_capture.end())
    return capture_unsupported;
  return 0;
}

int state::refuse(const char *function, int result, const std::string &why) {
  refusal_log.push_back(std::string(function) + ": " + why);
  log({{"driver", vendor}, {"refused", refusal_log.back()}});
  return result;
}

void state::record(launch l) {
  nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
  for (auto &p : l.params)
    sizes.push_back(p.size());
  log({{"driver", vendor},
       {"kernel", l.kernel},
       {"device", l.device},
       {"grid", l.grid},
       {"threads", l.threads},
       {"shared_bytes", l.shared_bytes},
       {"arguments", std::move(sizes)}});
  (captured && l.stream == captured ? graph : launch_log).push_back(std::move(l));
}

std::uint64_t state::memory_of(int ordinal, std::size_t bytes) {
  guard g(lock);
  auto p = reinterpret_cast<std::uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(reinterpret_cast<void *>(p), 0xcd, bytes);
  allocations[p] = {bytes, ordinal};
  return p;
}
std::uint64_t state::mapped_memory(std::size_t bytes, std::uint64_t shift) {
  guard g(lock);
  const std::uint64_t p = memory_of(0, bytes);
  allocations[p] = {bytes, 0, true, shift};
  return p;
}

std::uint64_t state::allocate(std::size_t bytes, int ordinal) {
  if (bytes > memory_bytes - allocated[ordinal])
    return 0;
  allocated[ordinal] += bytes;
  return memory_of(ordinal, bytes);
}
bool state::free(std::uint64_t address) {
  auto a = allocations.find(address);
  if (a == allocations.end())
    return false;
  allocated[a->second.ordinal] -= a->second.bytes;
  allocations.erase(a);
  std::free(reinterpret_cast<void *>(address));
  return true;
}

allocation *state::find(std::uint64_t p, std::uint64_t *base) {
  auto it = allocations.upper_bound(p);
  if (it == allocations.begin())
    return nullptr;
  --it;
  if (p >= it->first + it->second.bytes)
    return nullptr;
  if (base)
    *base = it->first;
  return &it->second;
}
bool state::inside(std::uint64_t p, std::size_t bytes) {
  std::uint64_t base;
  allocation *a = find(p, &base);
  return a && p + bytes <= base + a->bytes;
}

std::string state::wrong_pointer(std::uint64_t p, int device) {
  char text[64];
  std::snprintf(text, sizeof text, "is %#llx, ", static_cast<unsigned long long>(p));
  for (auto &[begin, a] : allocations)
    if (p - begin - a.shift < a.bytes)
      return a.on_host || a.ordinal == device ? "" : text + ("memory of device " + std::to_string(a.ordinal));
  return p ? std::string(text) + "no memory of the device" : "";
}

} // namespace fake_gpu
