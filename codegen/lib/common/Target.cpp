// Targets by name, and the facts about them that need no LLVM.
#include "../cpu/HostCpu.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

#include <tessera/codegen/target.h>
#include <tessera/error.h>

namespace tessera {

namespace {

struct ArchFacts {
  std::string_view name;
  unsigned warpSize, sharedBytes;
};
constexpr unsigned KiB = 1024;
constexpr ArchFacts nvidiaArchs[] = {{"sm_80", 32, 163 * KiB},  {"sm_86", 32, 99 * KiB},    {"sm_87", 32, 163 * KiB},
                                     {"sm_89", 32, 99 * KiB},   {"sm_90", 32, 227 * KiB},   {"sm_90a", 32, 227 * KiB},
                                     {"sm_100", 32, 227 * KiB}, {"sm_100a", 32, 227 * KiB}, {"sm_103a", 32, 227 * KiB},
                                     {"sm_120", 32, 99 * KiB},  {"sm_120a", 32, 99 * KiB},  {"sm_121a", 32, 99 * KiB}};
constexpr ArchFacts amdArchs[] = {{"gfx90a", 64, 64 * KiB},  {"gfx942", 64, 64 * KiB},  {"gfx950", 64, 160 * KiB},
                                  {"gfx1100", 32, 64 * KiB}, {"gfx1201", 32, 64 * KiB}, {"gfx1250", 32, 320 * KiB}};

const ArchFacts *find(std::string_view name) {
  for (auto list : {std::span<const ArchFacts>(nvidiaArchs), std::span<const ArchFacts>(amdArchs)})
    for (auto &arch : list)
      if (arch.name == name)
        return &arch;
  return nullptr;
}

std::string names(std::span<const ArchFacts> archs) {
  std::string list;
  for (auto &arch : archs)
    list += (list.empty() ? "" : ", ") + std::string(arch.name);
  return list;
}

bool knows(std::span<const ArchFacts> archs, std::string_view name) {
  return std::ranges::any_of(archs, [&](auto &arch) { return arch.name == name; });
}

} // namespace

unsigned target::warp_size() const {
  if (const ArchFacts *facts = find(arch))
    return facts->warpSize;
  return kind == target_kind::cpu ? codegen::hostCpu().lanes() : 32;
}

unsigned target::max_shared_bytes() const {
  if (const ArchFacts *facts = find(arch))
    return facts->sharedBytes;
  return kind == target_kind::cpu ? 1024 * KiB : 48 * KiB;
}

int target::default_num_stages() const {
  if (kind == target_kind::cpu && arch.empty())
    return 1; // no copies run by themselves
  return kind == target_kind::cuda || knows(nvidiaArchs, arch) ? 3 : 2;
}

std::string target::str() const {
  switch (kind) {
  case target_kind::cpu: return arch.empty() ? "cpu" : "cpu:emulate=" + arch;
  case target_kind::cuda: return arch.empty() ? "cuda" : "cuda:" + arch;
  case target_kind::hip: return arch.empty() ? "hip" : "hip:" + arch;
  }
  return "unknown";
}

target parse_target(std::string_view text) {
  auto refuse = [&](std::string_view why) -> target {
    throw error(stage::launch,
                fmt::format("target '{}' {}. Targets are cpu, cpu:emulate=ARCH, cuda[:ARCH] and hip[:ARCH]; "
                            "NVIDIA architectures: {}; AMD: {}",
                            text, why, names(nvidiaArchs), names(amdArchs)));
  };
  std::string_view head = text.substr(0, text.find(':')), tail;
  if (head.size() < text.size())
    tail = text.substr(head.size() + 1);
  bool hasTail = head.size() < text.size();
  if (head == "cpu") {
    constexpr std::string_view emulate = "emulate=";
    if (!hasTail)
      return {target_kind::cpu, {}};
    if (!tail.starts_with(emulate))
      return refuse("is not known");
    tail.remove_prefix(emulate.size());
    if (!find(tail))
      return refuse("names an unknown architecture");
    return {target_kind::cpu, std::string(tail)};
  }
  if (head != "cuda" && head != "hip")
    return refuse("is not known");
  bool cuda = head == "cuda";
  if (hasTail && !knows(cuda ? std::span<const ArchFacts>(nvidiaArchs) : std::span<const ArchFacts>(amdArchs), tail))
    return refuse("names an unknown architecture");
  return {cuda ? target_kind::cuda : target_kind::hip, std::string(tail)};
}

} // namespace tessera
