// The functions generated code calls (cpu_abi.h). They run on a warp's stack and may be left by worker::stop(): where
// they can fail they own nothing.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "worker.h"

using namespace tessera::cpu;
using reason = failure::reason;

namespace {

warp_state &state(tessera_cpu_context *ctx) { return *static_cast<warp_state *>(ctx); }

// A thread as one number; 64 lanes is the widest warp.
std::uint32_t thread_id(const warp_state &warp, std::uint32_t lane) { return warp.warp * 64 + lane; }

[[noreturn]] void fail(warp_state &warp, std::uint32_t lane, const tessera_cpu_site *site, bool unpack = false) {
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

/// Calls `body(lane)` for each active lane.
template <class Body> void each_lane(std::uint64_t mask, Body body) {
  for (; mask; mask &= mask - 1)
    body(static_cast<std::uint32_t>(__builtin_ctzll(mask)));
}

void check_shared(warp_state &warp, const tessera_cpu_access &access, std::uint32_t lane, std::uint32_t offset) {
  failure &f = warp.owner->failure_;
  std::uint64_t size = std::uint64_t(access.elem_bytes) * access.vec;
  f.address = offset;
  f.expected = warp.owner->shadow_.size();
  if (offset + size > f.expected) {
    f.why = reason::out_of_bounds;
    f.found = static_cast<std::uint32_t>(size);
    fail(warp, lane, &access.site);
  }
  if (offset % access.alignment) {
    f.why = reason::misaligned_shared;
    f.expected = access.alignment;
    fail(warp, lane, &access.site);
  }
}

/// Lane `lane`'s address, checked.
std::byte *global_address(warp_state &warp, const tessera_cpu_access &access, std::uint32_t lane,
                          const void *pointers) {
  auto address = access.run ? reinterpret_cast<std::uint64_t>(pointers) + std::uint64_t(access.run) * lane
                            : static_cast<const std::uint64_t *>(pointers)[lane];
  if (address % access.alignment) {
    failure &f = warp.owner->failure_;
    f.why = reason::misaligned_global;
    f.address = address;
    f.expected = access.alignment;
    fail(warp, lane, &access.site);
  }
  return reinterpret_cast<std::byte *>(address);
}

// Element sizes are 1, 2, 4 and 8 bytes: let the copy be one move.
// The address is the kernel's: a null pointer is to fault here, and the fault becomes the launch's error.
__attribute__((no_sanitize("null"))) void copy_element(void *to, const void *from, std::uint32_t bytes) {
  switch (bytes) {
  case 1: std::memcpy(to, from, 1); break;
  case 2: std::memcpy(to, from, 2); break;
  case 4: std::memcpy(to, from, 4); break;
  case 8: std::memcpy(to, from, 8); break;
  default: std::memcpy(to, from, bytes);
  }
}

} // namespace

extern "C" {

void tessera_cpu_barrier(tessera_cpu_context *ctx) { state(ctx).owner->barrier(state(ctx)); }

void tessera_cpu_assert(tessera_cpu_context *ctx, std::uint64_t failed, const char *message,
                        const tessera_cpu_site *site) {
  if (!failed)
    return;
  failure &f = state(ctx).owner->failure_;
  f.why = reason::assertion;
  f.message = message;
  fail(state(ctx), static_cast<std::uint32_t>(__builtin_ctzll(failed)), site);
}

void tessera_cpu_shared_load(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                             const std::uint32_t *offsets, const std::uint32_t *tags, void *data) {
  warp_state &warp = state(ctx);
  shadow &s = warp.owner->shadow_;
  std::uint32_t bytes = access->elem_bytes, lanes = access->lanes;
  each_lane(mask, [&](std::uint32_t lane) {
    check_shared(warp, *access, lane, offsets[lane]);
    for (std::uint32_t i = 0; i < access->vec; ++i) {
      std::uint32_t offset = offsets[lane] + i * bytes, at = i * lanes + lane;
      if (!s.read(thread_id(warp, lane), offset, bytes, tags ? tags[at] : shadow::no_tag, &access->site,
                  warp.owner->failure_)) {
        warp.owner->failure_.address = offset;
        fail(warp, lane, &access->site, true);
      }
      copy_element(static_cast<std::byte *>(data) + std::size_t(at) * bytes, ctx->shared + offset, bytes);
    }
  });
}

void tessera_cpu_shared_store(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                              const std::uint32_t *offsets, const std::uint32_t *tags, const void *data) {
  warp_state &warp = state(ctx);
  shadow &s = warp.owner->shadow_;
  std::uint32_t bytes = access->elem_bytes, lanes = access->lanes;
  each_lane(mask, [&](std::uint32_t lane) {
    check_shared(warp, *access, lane, offsets[lane]);
    for (std::uint32_t i = 0; i < access->vec; ++i) {
      std::uint32_t offset = offsets[lane] + i * bytes, at = i * lanes + lane;
      const std::byte *value = static_cast<const std::byte *>(data) + std::size_t(at) * bytes;
      bool same = std::memcmp(ctx->shared + offset, value, bytes) == 0;
      if (!s.write(thread_id(warp, lane), offset, bytes, tags ? tags[at] : shadow::no_tag, same, &access->site,
                   warp.owner->failure_)) {
        warp.owner->failure_.address = offset;
        fail(warp, lane, &access->site, true);
      }
      copy_element(ctx->shared + offset, value, bytes);
    }
  });
}

void tessera_cpu_global_load(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                             const void *pointers, void *data) {
  warp_state &warp = state(ctx);
  warp.owner->last_site = &access->site;
  std::uint32_t bytes = access->elem_bytes, lanes = access->lanes;
  each_lane(mask, [&](std::uint32_t lane) {
    const std::byte *from = global_address(warp, *access, lane, pointers);
    for (std::uint32_t i = 0; i < access->vec; ++i)
      copy_element(static_cast<std::byte *>(data) + std::size_t(i * lanes + lane) * bytes,
                   from + std::size_t(i) * bytes, bytes);
  });
}

void tessera_cpu_global_store(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                              const void *pointers, const void *data) {
  warp_state &warp = state(ctx);
  warp.owner->last_site = &access->site;
  std::uint32_t bytes = access->elem_bytes, lanes = access->lanes;
  each_lane(mask, [&](std::uint32_t lane) {
    std::byte *to = global_address(warp, *access, lane, pointers);
    for (std::uint32_t i = 0; i < access->vec; ++i)
      copy_element(to + std::size_t(i) * bytes,
                   static_cast<const std::byte *>(data) + std::size_t(i * lanes + lane) * bytes, bytes);
  });
}

void tessera_cpu_print(tessera_cpu_context *ctx, const char *prefix, std::uint32_t kind, std::uint32_t hex,
                       std::uint32_t reg, const void *values, std::uint32_t elem_bytes, std::uint32_t lanes) {
  // What is not a tile is the program's: one line, not one a warp.
  if (lanes <= 1 && ctx->warp != 0)
    return;
  std::string text;
  char buffer[160];
  auto format = [&](const char *pattern, auto... args) {
    std::snprintf(buffer, sizeof buffer, pattern, args...);
    text += buffer;
  };
  for (std::uint32_t lane = 0; lane < std::max(lanes, 1u); ++lane) {
    format("pid (%u, %u, %u)", ctx->program[0], ctx->program[1], ctx->program[2]);
    if (lanes > 1)
      format(" warp %u lane %u register %u", ctx->warp, lane, reg);
    text.append(": ").append(prefix);
    if (lanes > 0) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const std::byte *>(values) + std::size_t(lane) * elem_bytes, elem_bytes);
      std::uint32_t low = static_cast<std::uint32_t>(bits);
      float f;
      double d;
      std::memcpy(&f, &low, 4);
      std::memcpy(&d, &bits, 8);
      unsigned unused = 64 - 8 * elem_bytes;
      if (kind == tessera_print_float)
        format("%.9g", elem_bytes == 4 ? double(f) : d);
      else if (kind == tessera_print_pointer || hex)
        format("0x%0*llx", int(elem_bytes * 2), static_cast<unsigned long long>(bits));
      else if (kind == tessera_print_signed)
        format("%lld", static_cast<long long>(bits << unused) >> unused);
      else
        format("%llu", static_cast<unsigned long long>(bits));
    }
    text += '\n';
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}
}
