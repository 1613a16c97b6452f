// Runs the warps of a program on fibers and gets out of them when something goes wrong.
#include "worker.h"

#include <boost/context/detail/fcontext.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tessera::cpu {

namespace ctx = boost::context::detail;

// Reserved, not used: pages are touched as deep as a kernel's frames go.
constexpr std::size_t stack_bytes = std::size_t(8) << 20;
constexpr std::size_t guard_bytes = std::size_t(64) << 10;
constexpr std::size_t signal_stack_bytes = std::size_t(64) << 10;

/// The worker whose generated code this thread is running. Read in a signal handler: must not allocate.
static thread_local worker *active __attribute__((tls_model("initial-exec"))) = nullptr;

static std::byte *map_memory(std::size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  return static_cast<std::byte *>(memory);
}

// ---- switching ----------------------------------------------------------------------------------------------------

struct fiber {
  /// First code on a fiber's stack.
  static void main(ctx::transfer_t from) {
    auto &warp = *static_cast<warp_state *>(from.data);
    worker &owner = *warp.owner;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &owner.thread_stack_, &owner.thread_stack_bytes_);
#endif
    owner.scheduler_ = from.fctx;
    if (owner.code_.has_barriers) {
      owner.code_.entry(owner.args_, &warp);
      owner.finish(warp);
    } else {
      for (std::uint32_t w = 0; w < owner.code_.num_warps; ++w) {
        owner.running = owner.warps_[w].get();
        owner.code_.entry(owner.args_, owner.running);
        owner.finish(*owner.running);
      }
    }
    warp.state = warp_state::status::done;
    owner.yield(warp, true);
  }
};

bool worker::resume(warp_state &warp) {
  running = &warp;
  active = this;
#if defined(__SANITIZE_ADDRESS__)
  void *own = nullptr;
  __sanitizer_start_switch_fiber(&own, warp.stack, stack_bytes);
#endif
  ctx::transfer_t back = ctx::jump_fcontext(warp.resume, &warp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  active = nullptr;
  running = nullptr;
  warp.resume = back.fctx;
  return !failed_;
}

void worker::yield(warp_state &warp, bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &warp.sanitizer_stack, thread_stack_, thread_stack_bytes_);
#endif
  ctx::transfer_t back = ctx::jump_fcontext(scheduler_, nullptr);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(warp.sanitizer_stack, &thread_stack_, &thread_stack_bytes_);
#endif
  scheduler_ = back.fctx;
}

void worker::barrier(warp_state &warp) {
  if (code_.num_warps == 1) {
    shadow_.next_epoch();
    return;
  }
  warp.state = warp_state::status::waiting;
  yield(warp, false);
}

void worker::finish(warp_state &warp) {
  if (const tessera_cpu_site *site = code_.emulated ? warp.async.forgotten() : nullptr) {
    failure_.why = failure::reason::never_waited;
    std::memcpy(failure_.program, warp.program, sizeof failure_.program);
    failure_.warp = warp.warp;
    failure_.site = site;
    stop();
  }
}

void worker::stop() {
  failed_ = true;
  // Nothing on the fiber's stack owns anything: generated code has no destructors, helpers hold nothing here.
  yield(*warps_[code_.has_barriers ? running->warp : 0], true);
  __builtin_unreachable();
}

#if defined(__SANITIZE_ADDRESS__)
/// Written to the shadow memory itself: __asan_unpoison_memory_region does nothing under allow_user_poisoning=0, which
/// a program needs whose own code is instrumented and whose LLVM is not.
__attribute__((no_sanitize("address", "undefined"))) static void unpoison(std::byte *begin, std::size_t bytes) {
  std::size_t scale = 0, offset = 0;
  __asan_get_shadow_mapping(&scale, &offset);
  auto *shadow =
      reinterpret_cast<volatile std::uint64_t *>((reinterpret_cast<std::uintptr_t>(begin) >> scale) + offset);
  for (std::size_t i = 0; i < (bytes >> scale) / sizeof *shadow; ++i)
    shadow[i] = 0;
}
#endif

void worker::leave_fibers() {
#if defined(__SANITIZE_ADDRESS__)
  // Frames that were never returned from still count as live variables with red zones around them.
  for (auto &left : warps_)
    if (left->stack)
      unpoison(left->stack, stack_bytes);
#endif
}

// ---- programs -----------------------------------------------------------------------------------------------------

worker &worker::current() {
  static thread_local worker own;
  return own;
}

worker::worker() {
  stack_t old{};
  if (sigaltstack(nullptr, &old) == 0 && (old.ss_flags & SS_DISABLE)) {
    signal_stack_ = map_memory(signal_stack_bytes);
    stack_t mine{};
    mine.ss_sp = signal_stack_;
    mine.ss_size = signal_stack_bytes;
    sigaltstack(&mine, nullptr);
  }
}

worker::~worker() {
  for (auto &warp : warps_)
    if (warp->stack)
      munmap(warp->stack - guard_bytes, stack_bytes + guard_bytes);
  std::free(memory_);
  if (signal_stack_) {
    stack_t off{};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
    munmap(signal_stack_, signal_stack_bytes);
  }
}

void worker::make_warps(std::uint32_t count, std::uint32_t stacks) {
  while (warps_.size() < count)
    warps_.push_back(std::make_unique<warp_state>());
  for (std::uint32_t w = 0; w < stacks; ++w) {
    if (warps_[w]->stack)
      continue;
    std::byte *memory = map_memory(stack_bytes + guard_bytes);
    mprotect(memory, guard_bytes, PROT_NONE);
    warps_[w]->stack = memory + guard_bytes;
  }
}

void worker::begin(const program_code &code, const void *const *args, const std::uint32_t grid[3]) {
  code_ = code;
  args_ = args;
  make_warps(code.num_warps, code.has_barriers ? code.num_warps : 1);
  if (memory_bytes_ < code.shared_bytes) {
    std::free(memory_);
    memory_bytes_ = (code.shared_bytes + 127) / 128 * 128;
    memory_ = static_cast<std::byte *>(std::aligned_alloc(128, memory_bytes_));
    if (!memory_) {
      memory_bytes_ = 0;
      throw std::bad_alloc();
    }
  }
  for (std::uint32_t w = 0; w < code.num_warps; ++w) {
    warp_state &warp = *warps_[w];
    static_cast<tessera_cpu_context &>(warp) = {};
    std::memcpy(warp.grid, grid, sizeof warp.grid);
    warp.warp = w;
    warp.num_warps = code.num_warps;
    warp.shared = memory_;
    warp.owner = this;
  }
  failure_ = {};
  failed_ = false;
  last_site = nullptr;
}

bool worker::run(const std::uint32_t program[3]) {
  std::uint32_t count = code_.num_warps;
  for (std::uint32_t w = 0; w < count; ++w) {
    std::memcpy(warps_[w]->program, program, sizeof warps_[w]->program);
    warps_[w]->state = warp_state::status::ready;
  }
  if (code_.emulated) {
    shadow_.begin_program(code_.shared_bytes);
    for (std::uint32_t w = 0; w < count; ++w)
      warps_[w]->async.begin();
  }
  std::uint32_t fibers = code_.has_barriers ? count : 1;
  for (std::uint32_t w = 0; w < fibers; ++w)
    warps_[w]->resume = ctx::make_fcontext(warps_[w]->stack + stack_bytes, stack_bytes, fiber::main);

  // Each round takes every warp to its next barrier, or all of them to the end.
  for (;;) {
    std::uint32_t done = 0;
    warp_state *finished = nullptr, *waiting = nullptr;
    for (std::uint32_t w = 0; w < fibers; ++w) {
      warp_state &warp = *warps_[w];
      if (!resume(warp)) {
        leave_fibers();
        return false;
      }
      (warp.state == warp_state::status::done ? finished : waiting) = &warp;
      done += warp.state == warp_state::status::done;
    }
    if (!waiting)
      return true;
    if (finished) {
      failure_.why = failure::reason::barrier_divergence;
      std::memcpy(failure_.program, program, sizeof failure_.program);
      failure_.warp = waiting->warp;
      failure_.other_warp = finished->warp;
      leave_fibers();
      return false;
    }
    shadow_.next_epoch();
  }
}

void worker::collect(std::uint64_t &loaded, std::uint64_t &stored, std::uint64_t &flops) const {
  for (std::uint32_t w = 0; w < code_.num_warps; ++w) {
    loaded += warps_[w]->bytes_loaded;
    stored += warps_[w]->bytes_stored;
    flops += warps_[w]->flops;
  }
}

// ---- faults -------------------------------------------------------------------------------------------------------

void worker::on_fault(std::uint64_t address, std::uint64_t instruction) {
  worker *w = active;
  if (!w || !w->running)
    return;
  warp_state &warp = *w->running;
  auto guard = reinterpret_cast<std::uint64_t>(w->warps_[w->code_.has_barriers ? warp.warp : 0]->stack);
  failure &f = w->failure_;
  bool overflow = address < guard && address >= guard - guard_bytes;
  f.why = overflow ? failure::reason::stack_overflow : failure::reason::memory_fault;
  std::memcpy(f.program, warp.program, sizeof f.program);
  f.warp = warp.warp;
  f.address = address;
  f.instruction = instruction;
  f.site = w->last_site;
  w->stop();
}

namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS};
struct sigaction previous[std::size(signals)];
std::mutex guard_mutex;
unsigned guards = 0;

std::uint64_t instruction_of(const void *context) {
  [[maybe_unused]] auto &machine = static_cast<const ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

void handle_fault(int signal, siginfo_t *info, void *context) {
  // Only faults that an instruction raised; kill() is somebody's wish.
  if (info->si_code > 0)
    worker::on_fault(reinterpret_cast<std::uint64_t>(info->si_addr), instruction_of(context));
  const struct sigaction &before = previous[signal == SIGBUS];
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
    // Returning repeats the fault, now with the default action.
    std::signal(signal, SIG_DFL);
    if (info->si_code <= 0)
      raise(signal);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

} // namespace

fault_guard::fault_guard() {
  std::lock_guard lock(guard_mutex);
  if (guards++)
    return;
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  // NODEFER: a fault is left by switching to another stack, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &action, &previous[i]);
}

fault_guard::~fault_guard() {
  std::lock_guard lock(guard_mutex);
  if (--guards)
    return;
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    struct sigaction now {};
    sigaction(signals[i], nullptr, &now);
    if (now.sa_sigaction == handle_fault) // else somebody else took over meanwhile
      sigaction(signals[i], &previous[i], nullptr);
  }
}

} // namespace tessera::cpu
