#pragma once
// Counts what a thread allocates with operator new, to see that a warm launch allocates nothing. Replaces the operators
// of the whole program: to be included by one file of it. All forms are replaced, since a sanitizer's own do not call
// one another.
#include <cstddef>
#include <cstdlib>
#include <new>

inline thread_local std::size_t allocations = 0; ///< of this thread, so far

namespace counted {
inline void *allocate(std::size_t bytes, std::size_t alignment) noexcept {
  ++allocations;
  bytes = (bytes ? bytes + alignment - 1 : alignment) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, bytes);
}
inline void *allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void *p = allocate(bytes, alignment))
    return p;
  throw std::bad_alloc();
}
} // namespace counted

[[gnu::noinline]] void *operator new(std::size_t n) { return counted::allocate_or_throw(n, 1); }
[[gnu::noinline]] void *operator new(std::size_t n, std::align_val_t a) {
  return counted::allocate_or_throw(n, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return counted::allocate(n, 1); }
[[gnu::noinline]] void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return counted::allocate(n, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void operator delete(void *p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }
