// The functions generated code calls on every CPU target, and the checked memory accesses of the emulated ones
// (cpu_abi.h).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "checks.h"

using namespace tessera::cpu;
using reason = failure::reason;

namespace {

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
    check_shared(warp, lane, offsets[lane], bytes * access->vec, access->alignment, &access->site);
    for (std::uint32_t i = 0; i < access->vec; ++i) {
      std::uint32_t offset = offsets[lane] + i * bytes, at = i * lanes + lane;
      if (!s.read(shadow::thread(warp.warp, lane), offset, bytes, tags ? tags[at] : shadow::no_tag, &access->site,
                  warp.owner->failure_))
        fail(warp, lane, &access->site, true);
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
    check_shared(warp, lane, offsets[lane], bytes * access->vec, access->alignment, &access->site);
    for (std::uint32_t i = 0; i < access->vec; ++i) {
      std::uint32_t offset = offsets[lane] + i * bytes, at = i * lanes + lane;
      const std::byte *value = static_cast<const std::byte *>(data) + std::size_t(at) * bytes;
      bool same = std::memcmp(ctx->shared + offset, value, bytes) == 0;
      if (!s.write(shadow::thread(warp.warp, lane), offset, bytes, tags ? tags[at] : shadow::no_tag, same,
                   &access->site, warp.owner->failure_))
        fail(warp, lane, &access->site, true);
      copy_element(ctx->shared + offset, value, bytes);
    }
  });
}

void tessera_cpu_global_load(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                             const void *pointers, void *data) {
  warp_state &warp = state(ctx);
  const accessing here(warp, access->site);
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
  const accessing here(warp, access->site);
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
