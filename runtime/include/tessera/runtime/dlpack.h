#pragma once
// Tensors of other libraries as kernel arguments, in the DLPack exchange format.
//
// No header of DLPack is needed: DLTensor, DLManagedTensor and DLManagedTensorVersioned are recognised by their
// members.
#include <concepts>
#include <cstdint>
#include <string>

#include <tessera/dsl/dtype.h>
#include <tessera/error.h>
#include <tessera/export.h>
#include <tessera/runtime/stream.h>

namespace tessera {

/// DLTensor, of any version of DLPack.
template <class T>
concept dlpack_tensor = requires(const T &t) {
  { t.data } -> std::convertible_to<const void *>;
  {t.device.device_type};
  { t.device.device_id } -> std::convertible_to<int>;
  { t.ndim } -> std::convertible_to<int>;
  { t.dtype.code } -> std::convertible_to<int>;
  { t.dtype.bits } -> std::convertible_to<int>;
  { t.dtype.lanes } -> std::convertible_to<int>;
  { t.shape } -> std::convertible_to<const std::int64_t *>;
  { t.strides } -> std::convertible_to<const std::int64_t *>;
  { t.byte_offset } -> std::convertible_to<std::uint64_t>;
};
/// DLManagedTensor or DLManagedTensorVersioned.
template <class T>
concept dlpack_managed = requires(const T &t) {
  requires dlpack_tensor<std::remove_cvref_t<decltype(t.dl_tensor)>>;
};

namespace detail {

/// The members of a tensor that a launch looks at.
struct dlpack_view {
  const void *data;
  int device_type, device_id, ndim, code, bits, lanes;
  const std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
  std::uint64_t version = 1, flags = 0; ///< the first number of DLManagedTensorVersioned's version; bit 0 of flags: read-only
};

template <dlpack_tensor T> dlpack_view view_of(const T &t) {
  return {t.data,
          static_cast<int>(t.device.device_type),
          t.device.device_id,
          t.ndim,
          t.dtype.code,
          t.dtype.bits,
          t.dtype.lanes,
          t.shape,
          t.strides,
          t.byte_offset};
}
template <dlpack_managed T> dlpack_view view_of(const T &t) {
  dlpack_view v{};
  if constexpr (requires { t.version.major; }) {
    v.version = t.version.major; // of other versions nothing else can be relied on
    if (v.version != 1)
      return v;
    v = view_of(t.dl_tensor);
    v.flags = t.flags;
    return v;
  } else {
    return view_of(t.dl_tensor);
  }
}
struct strided_tensor {
  dlpack_view view;
};

/// The address of the first element, for a kernel that takes `element` on `s`. On a mismatch the result is 0 and `why`
/// completes the sentence "the argument …".
TESSERA_API std::uint64_t dlpack_address(const dlpack_view &t, dtype element, const stream &s, bool contiguous, bool written,
                                         std::string &why);

} // namespace detail

/// A tensor whose strides the kernel gets as arguments of their own: it need not be contiguous.
template <class T> requires dlpack_tensor<T> || dlpack_managed<T>
detail::strided_tensor strided(const T &t) { return {detail::view_of(t)}; }
template <class T> requires dlpack_tensor<T> || dlpack_managed<T>
detail::strided_tensor strided(const T *t) {
  if (!t)
    throw error(stage::launch, "tessera::strided was given a null pointer to a DLPack tensor");
  return strided(*t);
}

} // namespace tessera
