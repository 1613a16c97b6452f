// Numbers and length-prefixed texts, one after the other.
#include "serialize.h"

#include <cstring>

#include <tessera/runtime/detail/config.h>

namespace tessera::detail {
namespace {

// A new field has to be written and read below, or a cached kernel would differ from a compiled one.
static_assert(field_count<compiled_kernel>() == 8 && field_count<kernel_metadata>() == 6 &&
              field_count<kernel_param>() == 2 && field_count<compile_options>() == 9 &&
              field_count<stage_time>() == 2 && field_count<target>() == 2);

class writer {
public:
  template <class T> void plain(const T &v) { out.append(reinterpret_cast<const char *>(&v), sizeof v); }
  void text(const std::string &s) {
    plain(std::uint64_t(s.size()));
    out += s;
  }
  void enumeration(target_kind k) { plain(k); }
  void flag(bool b) { out += b ? '\1' : '\0'; }
  template <class V, class F> void list(const V &v, F each) {
    plain(std::uint64_t(v.size()));
    for (auto &x : v)
      each(x);
  }
  std::string out;
};

class reader {
public:
  explicit reader(std::string_view bytes) : left(bytes) {}
  template <class T> void plain(T &v) {
    if (left.size() < sizeof v)
      return fail();
    std::memcpy(&v, left.data(), sizeof v);
    left.remove_prefix(sizeof v);
  }
  void text(std::string &s) {
    std::uint64_t n = 0;
    plain(n);
    if (n > left.size())
      return fail();
    s.assign(left.substr(0, n));
    left.remove_prefix(n);
  }
  void enumeration(target_kind &k) {
    std::uint8_t byte = 0;
    plain(byte);
    if (byte > std::uint8_t(target_kind::hip))
      return fail();
    k = target_kind(byte);
  }
  void flag(bool &b) {
    unsigned char byte = 0;
    plain(byte);
    if (byte > 1) // no value of bool has other bits
      return fail();
    b = byte;
  }
  template <class V, class F> void list(V &v, F each) {
    std::uint64_t n = 0;
    plain(n);
    if (n > left.size()) // every element takes a byte at least
      return fail();
    v.resize(n);
    for (auto &x : v)
      each(x);
  }
  void fail() { good = false, left = {}; }
  std::string_view left;
  bool good = true;
};

/// Visits every field of `k` in one order for both directions.
template <class Stream, class Kernel> void visit(Stream &s, Kernel &k) {
  s.enumeration(k.compiled_for.kind), s.text(k.compiled_for.arch);
  auto &o = k.options;
  for (auto *number : {&o.num_warps, &o.num_stages, &o.num_ctas, &o.maxnreg})
    s.plain(*number);
  for (auto *flag : {&o.precise_math, &o.enable_fp_fusion, &o.line_info, &o.debug, &o.count_traffic})
    s.flag(*flag);
  auto &m = k.metadata;
  s.text(m.name), s.plain(m.num_warps), s.plain(m.warp_size), s.plain(m.num_ctas), s.plain(m.shared_bytes);
  s.list(m.params, [&](auto &p) { s.plain(p.size), s.flag(p.pointer); });
  s.plain(k.registers), s.plain(k.spills);
  s.list(k.times, [&](auto &t) { s.text(t.name), s.plain(t.milliseconds); });
  s.list(k.stages, [&](auto &stage) { s.text(stage.first), s.text(stage.second); });
}

} // namespace

std::string serialize(const compiled_kernel &k) {
  writer w;
  visit(w, k);
  return std::move(w.out);
}

std::optional<compiled_kernel> deserialize(std::string_view bytes) {
  reader r(bytes);
  compiled_kernel k;
  visit(r, k);
  if (!r.good || !r.left.empty())
    return std::nullopt;
  return k;
}

} // namespace tessera::detail
