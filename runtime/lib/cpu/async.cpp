// cp.async and wgmma: what is started, committed and waited for.
#include "async.h"

#include <algorithm>

#include "checks.h"
#include "matrix.h"

namespace tessera::cpu {

using reason = failure::reason;

void async_state::begin() {
  copies_.clear();
  products_.clear();
  for (accumulator &a : accumulators_)
    a.ticket = 0;
  registers_fenced_ = false;
  issued_ = 0;
}

const tessera_cpu_site *async_state::forgotten() const {
  return products_.entries.empty() ? nullptr : &products_.entries.front().matrix->site;
}

// ---- cp.async ------------------------------------------------------------------------------------------------------

void async_state::start_copy(warp_state &warp, const tessera_cpu_access &access, std::uint64_t mask,
                             std::uint64_t reads, const std::uint32_t *offsets, const void *pointers,
                             const std::uint32_t *tags) {
  std::uint32_t bytes = access.elem_bytes * access.vec;
  const accessing here(warp, access.site);
  each_lane(mask, [&](std::uint32_t lane) {
    check_shared(warp, lane, offsets[lane], bytes, bytes, &access.site);
    copy c{&access, nullptr, {}, offsets[lane], lane, {}};
    if (reads >> lane & 1) {
      c.from = global_address(warp, access, lane, pointers);
      std::memcpy(c.data, c.from, bytes);
    }
    if (!warp.owner->shadow_.start_copy(shadow::thread(warp.warp, lane), c.to, bytes, &access.site,
                                        warp.owner->failure_))
      fail(warp, lane, &access.site, true);
    for (std::uint32_t i = 0; i < access.vec; ++i)
      c.tags[i] = tags ? tags[i * access.lanes + lane] : shadow::no_tag;
    copies_.entries.push_back(c);
  });
}

void async_state::wait_copies(warp_state &warp, std::uint32_t pending) {
  copies_.wait(pending, [&](const copy &c) {
    std::uint32_t size = c.access->elem_bytes, bytes = size * c.access->vec;
    const accessing here(warp, c.access->site);
    // Which of two values the copy would take is open; a kernel must not depend on it.
    if (c.from && std::memcmp(c.data, c.from, bytes) != 0) {
      warp.owner->failure_.why = reason::source_changed;
      warp.owner->failure_.address = reinterpret_cast<std::uint64_t>(c.from);
      fail(warp, c.lane, &c.access->site);
    }
    std::memcpy(warp.shared + c.to, c.data, bytes);
    for (std::uint32_t i = 0; i < c.access->vec; ++i)
      warp.owner->shadow_.finish_copy(shadow::thread(warp.warp, c.lane), c.to + i * size, size, c.tags[i],
                                      &c.access->site);
  });
}

// ---- wgmma ---------------------------------------------------------------------------------------------------------
// A ticket is a NaN: bits 7 to 20 number the wgmma (from 1 on), bits 0 to 6 the register.

constexpr std::uint32_t ticket_bits = 0x7fe00000, ticket_mask = 0xffe00000, register_mask = 0x7f;
constexpr std::uint32_t tickets = (1u << 14) - 1;

std::uint32_t async_state::find(std::uint32_t ticket) const {
  for (std::uint32_t i = 0; ticket && i < accumulators_.size(); ++i)
    if (accumulators_[i].ticket == ticket)
      return i;
  return ~0u;
}

std::uint32_t async_state::take_accumulator(std::uint32_t n) {
  auto at = std::find_if(accumulators_.begin(), accumulators_.end(), [](auto &a) { return a.ticket == 0; });
  if (at == accumulators_.end())
    at = accumulators_.emplace(at);
  at->n = n;
  at->pending = 0;
  at->sums.assign(16 * n, 0);
  return static_cast<std::uint32_t>(at - accumulators_.begin());
}

/// Whether every register is what a wgmma that was not waited for left there.
static bool holds_ticket(const std::uint32_t *registers, std::uint32_t count) {
  if ((registers[0] & ticket_mask) != ticket_bits || registers[0] & register_mask)
    return false;
  for (std::uint32_t i = 0; i < count * 32; ++i)
    if (registers[i] != registers[0] + i / 32)
      return false;
  return true;
}

/// Calls body(offset of 16 bytes, row or column, k) for each chunk of an operand with `rows` rows that the warp reads.
template <class Body>
static void each_chunk(const shared_matrix &matrix, bool transposed, unsigned first, unsigned rows, unsigned k,
                       unsigned per_chunk, Body body) {
  for (unsigned row = first; row < first + rows; row += transposed ? per_chunk : 1)
    for (unsigned at = 0; at < k; at += transposed ? 1 : per_chunk)
      body(matrix.chunk(row, at), row - first, at);
}

std::uint32_t async_state::start_wgmma(warp_state &warp, const tessera_cpu_matrix &matrix, const std::uint32_t *a,
                                       std::uint64_t a_matrix, std::uint64_t b_matrix, const std::uint32_t *c,
                                       std::uint32_t chained) {
  failure &f = warp.owner->failure_;
  std::uint32_t n = matrix.n, registers = n / 2;
  if (c && holds_ticket(c, registers))
    chained = c[0];
  std::uint32_t target = find(chained);
  // Registers that other instructions wrote need wgmma.fence before a wgmma uses them.
  if ((target == ~0u || a) && !registers_fenced_) {
    f.why = reason::missing_register_fence;
    fail(warp, 0, &matrix.site);
  }
  if (target == ~0u) {
    if (chained && !c) { // the wait put the sum into other registers
      f.why = reason::sum_in_flight;
      fail(warp, 0, &matrix.site);
    }
    for (std::uint32_t i = 0; c && i < registers; ++i)
      read_register(warp, c + i * 32, &matrix.site);
    target = take_accumulator(n);
    for (std::uint32_t i = 0; c && i < registers; ++i)
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        accumulators_[target].sums[accumulator_row(i, lane) * n + accumulator_column(i, lane)] = c[i * 32 + lane];
  }
  product p{&matrix, a_matrix, b_matrix, a != nullptr, {}, target, 0, 0};
  if (a)
    std::memcpy(p.a, a, sizeof p.a);
  auto check = [&](std::uint64_t descriptor, bool transposed, std::uint32_t type, unsigned first, unsigned rows) {
    unsigned per_chunk = 16 / matrix_bytes(type);
    each_chunk({descriptor, transposed, 16 / per_chunk}, transposed, first, rows, matrix.k, per_chunk,
               [&](std::uint32_t offset, unsigned, unsigned) {
                 check_shared(warp, 0, offset, 16, 16, &matrix.site);
                 if (!warp.owner->shadow_.start_read(warp.warp, offset, 16, &matrix.site, f))
                   fail(warp, 0, &matrix.site, true);
               });
  };
  if (!a)
    check(a_matrix, matrix.trans_a, matrix.a, warp.warp % 4 * 16, 16);
  check(b_matrix, matrix.trans_b, matrix.b, 0, n);
  p.started = warp.owner->shadow_.start_time();
  last_ticket_ = last_ticket_ % tickets + 1;
  issued_ = std::min(issued_ + 1, tickets);
  p.ticket = ticket_bits | last_ticket_ << 7;
  products_.entries.push_back(p);
  accumulator &sums = accumulators_[target];
  ++sums.pending;
  return sums.ticket = p.ticket;
}

// A ticket that has been waited for is one still: the wait put the sum into other registers.
void async_state::read_register(warp_state &warp, const std::uint32_t *lanes, const tessera_cpu_site *site) const {
  std::uint32_t ticket = lanes[0] & ~register_mask, number = (ticket & ~ticket_mask) >> 7;
  if ((ticket & ticket_mask) != ticket_bits || !number || (last_ticket_ + tickets - number) % tickets >= issued_ ||
      std::any_of(lanes + 1, lanes + 32, [&](std::uint32_t lane) { return lane != lanes[0]; }))
    return;
  failure &f = warp.owner->failure_;
  f.why = reason::sum_in_flight;
  auto by = std::ranges::find(products_.entries, ticket, &product::ticket);
  f.other_site = by == products_.entries.end() ? nullptr : &by->matrix->site;
  fail(warp, 0, site);
}

void async_state::write_register(warp_state &warp, std::uint32_t number, const tessera_cpu_site *site) const {
  for (const product &p : products_.entries)
    if (p.in_registers && std::ranges::find(p.matrix->registers, number) != std::end(p.matrix->registers)) {
      warp.owner->failure_.why = reason::register_in_flight;
      warp.owner->failure_.other_site = &p.matrix->site;
      fail(warp, 0, site);
    }
}

void async_state::multiply(warp_state &warp, const product &p) {
  const tessera_cpu_matrix &matrix = *p.matrix;
  accumulator &target = accumulators_[p.accumulator];
  unsigned n = matrix.n, k = matrix.k;
  left_.resize(16 * k);
  right_.resize(k * n);
  // Reads an operand so that element (row, k) is at out[row * row_step + k * k_step].
  auto gather = [&](std::uint64_t descriptor, bool transposed, std::uint32_t type, unsigned first, unsigned rows,
                    std::uint32_t *out, unsigned row_step, unsigned k_step) {
    unsigned per_chunk = 16 / matrix_bytes(type), step = transposed ? row_step : k_step;
    std::uint32_t values[16];
    each_chunk(
        {descriptor, transposed, 16 / per_chunk}, transposed, first, rows, k, per_chunk,
        [&](std::uint32_t offset, unsigned row, unsigned at) {
          if (!warp.owner->shadow_.finish_read(warp.warp, offset, 16, p.started, &matrix.site, warp.owner->failure_))
            fail(warp, 0, &matrix.site, true);
          widen(type, warp.shared + offset, values, per_chunk);
          for (unsigned i = 0; i < per_chunk; ++i)
            out[row * row_step + at * k_step + i * step] = values[i];
        });
  };
  if (p.in_registers) {
    alignas(64) std::byte rows[16 * 32];
    unpack_a(matrix_bytes(matrix.a), 16, k, p.a, rows);
    widen(matrix.a, rows, left_.data(), 16 * k);
  } else {
    gather(p.a_matrix, matrix.trans_a, matrix.a, warp.warp % 4 * 16, 16, left_.data(), k, 1);
  }
  gather(p.b_matrix, matrix.trans_b, matrix.b, 0, n, right_.data(), 1, n);
  multiply_add(is_integer(matrix.a), 16, n, k, left_.data(), right_.data(), target.sums.data());
  --target.pending;
}

void async_state::wait_wgmma(warp_state &warp, std::uint32_t pending, std::uint32_t count, std::uint32_t *registers) {
  products_.wait(pending, [&](const product &p) { multiply(warp, p); });
  registers_fenced_ = false;
  for (std::uint32_t i = 0; i < count;) {
    std::uint32_t *first = registers + i * 32, at = find(first[0] & ~register_mask);
    if (at == ~0u || accumulators_[at].pending || i + accumulators_[at].n / 2 > count ||
        !holds_ticket(first, accumulators_[at].n / 2)) {
      ++i;
      continue;
    }
    accumulator &done = accumulators_[at];
    for (std::uint32_t r = 0; r < done.n / 2; ++r)
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        first[r * 32 + lane] = done.sums[accumulator_row(r, lane) * done.n + accumulator_column(r, lane)];
    done.ticket = 0;
    i += done.n / 2;
  }
}

} // namespace tessera::cpu

// ---- what generated code calls --------------------------------------------------------------------------------------

using namespace tessera::cpu;

void tessera_cpu_copy_start(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                            std::uint64_t reads, const std::uint32_t *offsets, const void *pointers,
                            const std::uint32_t *tags) {
  state(ctx).async.start_copy(state(ctx), *access, mask, reads, offsets, pointers, tags);
}
void tessera_cpu_copy_commit(tessera_cpu_context *ctx) { state(ctx).async.commit_copies(); }
void tessera_cpu_copy_wait(tessera_cpu_context *ctx, std::uint32_t pending) {
  state(ctx).async.wait_copies(state(ctx), pending);
}

std::uint32_t tessera_cpu_wgmma_start(tessera_cpu_context *ctx, const tessera_cpu_matrix *matrix,
                                      const std::uint32_t *a, std::uint64_t a_matrix, std::uint64_t b_matrix,
                                      const std::uint32_t *c, std::uint32_t chained) {
  return state(ctx).async.start_wgmma(state(ctx), *matrix, a, a_matrix, b_matrix, c, chained);
}
void tessera_cpu_wgmma_fence(tessera_cpu_context *ctx) { state(ctx).async.fence_registers(); }
void tessera_cpu_wgmma_commit(tessera_cpu_context *ctx) { state(ctx).async.commit_wgmma(); }
void tessera_cpu_wgmma_wait(tessera_cpu_context *ctx, std::uint32_t pending, std::uint32_t count,
                            std::uint32_t *registers) {
  state(ctx).async.wait_wgmma(state(ctx), pending, count, registers);
}

void tessera_cpu_register_written(tessera_cpu_context *ctx, std::uint32_t number, const tessera_cpu_site *site) {
  state(ctx).async.write_register(state(ctx), number, site);
}

void tessera_cpu_register_read(tessera_cpu_context *ctx, const std::uint32_t *lanes, const tessera_cpu_site *site) {
  state(ctx).async.read_register(state(ctx), lanes, site);
}

void tessera_cpu_fence_async(tessera_cpu_context *ctx) { state(ctx).owner->shadow_.fence(ctx->warp); }
