#pragma once
// Kernels compiled when a program is built: one source file lists them, tessera_add_kernels (CMake) does the rest.
//
//     #include <tessera/aot/export.h>
//     #include "kernels.h" // the tl::kernel objects
//
//     TESSERA_EXPORT_KERNELS(out) {
//       out.add(softmax.with({.block = 1024}), {.symbol = "softmax_1024", .arguments = "x y ld cols"});
//     }
//
//     tessera_add_kernels(my_kernels SOURCES export.cpp TARGETS cuda:sm_90a cuda:sm_80 hip:gfx942 cpu)
//     target_link_libraries(my_program PRIVATE my_kernels)
//
// The program includes "my_kernels.h": `int softmax_1024(tessera_stream, tessera_grid programs, const float *x, …)`.
#include <functional>
#include <string>
#include <vector>

#include <tessera/runtime/detail/config_text.h>
#include <tessera/runtime/kernel.h>
#include <tessera/tessera.h>

namespace tessera::tl {

struct export_options {
  std::string symbol = {};    ///< the C function's name; the kernel's where empty
  std::string arguments = {}; ///< names for its parameters, separated by spaces or commas; a0, a1, … where empty
  /// The code chosen at run time is the most specialised one that the arguments allow; {} takes any arguments.
  std::vector<specialization> specializations = {specialization::aligned(), {}};
};

/// Collects what is to be compiled. Throws tessera::error (launch) for names that are no C names or given twice.
class TESSERA_API kernel_exporter {
public:
  /// The kernel with its configuration, compile options and launch options.
  template <class F> void add(const kernel<F> &k, export_options o = {}) {
    std::string config;
    if constexpr (kernel_signature<F>::has_config)
      config = tessera::detail::config_text(k.configuration());
    add(k.model_, k.variant(), k.how_, std::move(config), std::move(o));
  }
  /// Writes NAME.h, NAME.c, and an object file for every CPU kernel, listed in NAME.objects, into `folder`.
  void write(const std::string &name, const std::string &folder, const std::vector<target> &targets) const;

private:
  struct entry {
    std::shared_ptr<const tessera::detail::kernel_core> core;
    tessera::detail::kernel_variant *variant;
    launch_options how;
    std::string config;
    export_options options;
    std::vector<std::string> arguments;
  };
  void add(std::shared_ptr<const tessera::detail::kernel_core> core, tessera::detail::kernel_variant &variant,
           const launch_options &how, std::string config, export_options o);
  std::vector<entry> entries_;
};

/// The main function of the program that TESSERA_EXPORT_KERNELS makes: --name, --out, --target.
TESSERA_API int export_kernels(int argc, char **argv, void (*list)(kernel_exporter &));

} // namespace tessera::tl

/// Begins the list of kernels to export; the file that holds it becomes a program, which the build runs.
#define TESSERA_EXPORT_KERNELS(out)                                                                                    \
  static void tessera_list_of_kernels(tessera::tl::kernel_exporter &out);                                              \
  int main(int argc, char **argv) { return tessera::tl::export_kernels(argc, argv, tessera_list_of_kernels); }         \
  static void tessera_list_of_kernels(tessera::tl::kernel_exporter &out)
