#pragma once
// What the drivers of all vendors have in common: a table of functions opened at run time, whose results become errors.
// A table (`Driver`) brings the types result, stream, event, module, function, address, place and scope, the results that
// the code here tells apart, and
//     std::string describe(result) const;             "CUDA_ERROR_INVALID_VALUE (invalid argument)"
//     static std::string_view explain(result);        what a kernel did wrong, for results of one that ran; else empty
// A scope makes a place (a context, an ordinal) the calling thread's current one while it lives.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <tessera/error.h>

namespace tessera::gpu {

/// True once the process is ending: drivers may be gone, and what they held goes with the process.
bool shutting_down() noexcept;
/// To be called after a driver was opened: its own handlers of the process's end then run later than this library's.
void watch_shutdown();

/// Why devices that a vendor's driver lists are not used: one that is broken, or that no code is made for, must not take the
/// others with it.
class left_out {
public:
  void add(std::string_view vendor, int ordinal, std::string_view why) {
    text_ += fmt::format("{}{}:{} is not used: {}", text_.empty() ? "" : "; ", vendor, ordinal, why);
  }
  const std::string &text() const { return text_; }

private:
  std::string text_;
};

/// Throws what `r` means: an error of stage execute for faults of a kernel that ran earlier, of stage driver otherwise.
template <class Driver>
[[noreturn]] void fail(const Driver &driver, typename Driver::result r, std::string_view doing) {
  if (auto why = Driver::explain(r); !why.empty())
    throw error(stage::execute, fmt::format("{}: {}, found while {}. The device's context is lost: every later call on "
                                            "this device fails until the process is started again.",
                                            why, driver.describe(r), doing));
  const bool capturing = r >= Driver::capture_unsupported && r <= Driver::capture_implicit;
  throw error(stage::driver, fmt::format("{} failed: {}{}", doing, driver.describe(r),
                                         capturing ? ". A stream is being captured into a graph: compile and load with "
                                                     "kernel.prepare(…) before, and do not wait or allocate meanwhile"
                                                   : ""));
}
template <class Driver> void check(const Driver &driver, typename Driver::result r, std::string_view doing) {
  if (r != Driver::success) [[unlikely]]
    fail(driver, r, doing);
}

} // namespace tessera::gpu
