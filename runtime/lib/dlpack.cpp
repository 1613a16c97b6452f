// Checks of DLPack tensors given to kernels.
#include <fmt/format.h>

#include <tessera/runtime/dlpack.h>

namespace tessera::detail {
namespace {

// Values fixed by the DLPack format.
enum dl_device {
  dl_cpu = 1,
  dl_cuda = 2,
  dl_cuda_host = 3,
  dl_rocm = 10,
  dl_rocm_host = 11,
  dl_cuda_managed = 13
};
enum dl_code {
  dl_int = 0,
  dl_uint = 1,
  dl_float = 2,
  dl_bfloat = 4,
  dl_bool = 6,
  dl_e4m3 = 10,
  dl_e4m3fnuz = 11,
  dl_e5m2 = 12,
  dl_e5m2fnuz = 13
};

int code_of(dtype t) {
  if (t == dtype::i1)
    return dl_bool;
  if (t == dtype::bf16)
    return dl_bfloat;
  if (is_float8(t))
    return t == dtype::f8e4m3       ? dl_e4m3
           : t == dtype::f8e5m2     ? dl_e5m2
           : t == dtype::f8e4m3fnuz ? dl_e4m3fnuz
                                    : dl_e5m2fnuz;
  return is_float(t) ? dl_float : is_signed(t) ? dl_int : dl_uint;
}

std::string name_of(int code, int bits, int lanes) {
  const char *kind = code == dl_int        ? "i"
                     : code == dl_uint     ? "u"
                     : code == dl_float    ? "f"
                     : code == dl_bfloat   ? "bf"
                     : code == dl_bool     ? "bool"
                     : code == dl_e4m3     ? "f8e4m3"
                     : code == dl_e5m2     ? "f8e5m2"
                     : code == dl_e4m3fnuz ? "f8e4m3fnuz"
                     : code == dl_e5m2fnuz ? "f8e5m2fnuz"
                                           : "type code ";
  const bool known = code <= dl_bool && code != 3 && code != 5, fp8 = code >= dl_e4m3 && code <= dl_e5m2fnuz;
  std::string text = code == dl_bool || fp8 ? kind
                     : known                ? fmt::format("{}{}", kind, bits)
                             : fmt::format("{}{} of {} bits", kind, code, bits);
  return lanes == 1 ? text : fmt::format("{} x {}", text, lanes);
}

bool is_contiguous(const dlpack_view &t) {
  if (!t.strides)
    return true;
  std::int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 0)
      return true;
    if (t.shape[i] != 1 && t.strides[i] != expected)
      return false;
    expected *= t.shape[i];
  }
  return true;
}

bool is_empty(const dlpack_view &t) {
  for (int i = 0; i < t.ndim; ++i)
    if (t.shape[i] == 0)
      return true;
  return false;
}

} // namespace

std::uint64_t dlpack_address(const dlpack_view &t, dtype element, const stream &s, bool contiguous, bool written,
                             std::string &why) {
  if (t.version != 1) {
    why = fmt::format("is a DLPack tensor of version {}; version 1 is known here", t.version);
    return 0;
  }
  if (written && t.flags & 1) {
    why = "is a read-only DLPack tensor, but the kernel may write it: make the parameter tl::ptr<const T>, or pass a copy";
    return 0;
  }
  // Some libraries hand bool out as 8-bit integers.
  const bool as_bool = element == dtype::i1 && t.bits == 8 && (t.code == dl_bool || t.code == dl_uint);
  if (!as_bool && (t.code != code_of(element) || std::size_t(t.bits) != 8 * size_of(element) || t.lanes != 1)) {
    why = fmt::format("is a DLPack tensor of {}, the kernel's parameter is a pointer to {}",
                      name_of(t.code, t.bits, t.lanes), name(element));
    return 0;
  }
  const tessera::device d = s.device();
  const int number = d.properties().index;
  bool usable = false;
  switch (t.device_type) { // pinned and managed memory are the host's as well as the vendor's
  case dl_cpu: usable = d.is_cpu(); break;
  case dl_cuda: usable = d.target().kind == target_kind::cuda && t.device_id == number; break;
  case dl_rocm: usable = d.target().kind == target_kind::hip && t.device_id == number; break;
  case dl_cuda_host:
  case dl_cuda_managed: usable = d.target().kind != target_kind::hip; break;
  case dl_rocm_host: usable = d.target().kind != target_kind::cuda; break;
  }
  if (!usable) {
    why = fmt::format("is a DLPack tensor on device type {}, number {}; the launch is on {}", t.device_type,
                      t.device_id,
                      d.is_cpu() ? std::string("the CPU")
                                 : fmt::format("{}:{}", d.target().kind == target_kind::cuda ? "cuda" : "hip", number));
    return 0;
  }
  if (contiguous && !is_contiguous(t)) {
    why = "is a DLPack tensor that is not contiguous: make it contiguous, or give the kernel its strides and pass "
          "tessera::strided(tensor)";
    return 0;
  }
  if (!t.data && !is_empty(t)) {
    why = "is a DLPack tensor without data";
    return 0;
  }
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(t.data) + t.byte_offset;
  if (address % size_of(element) && !is_empty(t)) {
    why = fmt::format("is a DLPack tensor at address {:#x}, not a multiple of its elements' {} bytes", address,
                      size_of(element));
    return 0;
  }
  return address;
}

} // namespace tessera::detail
