#pragma once
// What the functions that generated code calls have in common. They run on a warp's stack and may be left by
// worker::stop(): where they can fail they own nothing.
#include <bit>
#include <cstring>

#include "worker.h"

namespace tessera::cpu {

inline warp_state &state(tessera_cpu_context *ctx) { return *static_cast<warp_state *>(ctx); }

/// Ends the program: its failure's reason and numbers are filled in. `unpack`: the other thread is still one number.
[[noreturn]] inline void fail(warp_state &warp, std::uint32_t lane, const tessera_cpu_site *site, bool unpack = false) {
  failure &f = warp.owner->failure_;
  std::memcpy(f.program, warp.program, sizeof f.program);
  f.warp = warp.warp;
  f.lane = lane;
  f.site = site;
  if (unpack) {
    f.other_lane = f.other_warp % 64;
    f.other_warp = f.other_warp == ~0u ? ~0u : f.other_warp / 64;
  }
  warp.owner->stop();
}

/// While it lives, a memory fault is the access's at `site`; before and behind it is the generated code's. Where the
/// access fails nobody destroys it: the next launch begins without a site.
class accessing {
public:
  accessing(const warp_state &warp, const tessera_cpu_site &site) : owner_(*warp.owner) { owner_.last_site = &site; }
  ~accessing() { owner_.last_site = nullptr; }
  accessing(const accessing &) = delete;
  accessing &operator=(const accessing &) = delete;

private:
  worker &owner_;
};

/// Calls `body(lane)` for each active lane.
template <class Body> void each_lane(std::uint64_t mask, Body body) {
  for (; mask; mask &= mask - 1)
    body(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

/// An access of `size` bytes lies in shared memory and is aligned.
inline void check_shared(warp_state &warp, std::uint32_t lane, std::uint32_t offset, std::uint32_t size,
                         std::uint32_t alignment, const tessera_cpu_site *site) {
  failure &f = warp.owner->failure_;
  f.address = offset;
  f.expected = warp.owner->shadow_.size();
  if (std::uint64_t(offset) + size > f.expected) {
    f.why = failure::reason::out_of_bounds;
    f.found = size;
    fail(warp, lane, site);
  }
  if (offset % alignment) {
    f.why = failure::reason::misaligned_shared;
    f.expected = alignment;
    fail(warp, lane, site);
  }
}

/// Lane `lane`'s address in global memory, checked.
inline std::byte *global_address(warp_state &warp, const tessera_cpu_access &access, std::uint32_t lane,
                                 const void *pointers) {
  auto address = access.run ? reinterpret_cast<std::uint64_t>(pointers) + std::uint64_t(access.run) * lane
                            : static_cast<const std::uint64_t *>(pointers)[lane];
  if (address % access.alignment) {
    failure &f = warp.owner->failure_;
    f.why = failure::reason::misaligned_global;
    f.address = address;
    f.expected = access.alignment;
    fail(warp, lane, &access.site);
  }
  return reinterpret_cast<std::byte *>(address);
}

} // namespace tessera::cpu
