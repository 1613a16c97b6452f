#pragma once
// What an AMD code object (an ELF file, version 5 of LLVM's "User Guide for AMDGPU Backend") says of its kernels.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_gpu {

struct kernel_argument {
  std::uint64_t offset, bytes;
  bool pointer, hidden; ///< hidden: the runtime fills it in, not the launch
};
struct kernel_info {
  std::vector<kernel_argument> arguments;
  std::uint64_t kernarg_bytes = 0, shared_bytes = 0, private_bytes = 0;
  unsigned max_threads = 0, warp_size = 0, registers = 0;
  unsigned required_threads = 0; ///< 0: any number up to max_threads
};
struct code_object {
  std::string arch; ///< "gfx942"
  std::map<std::string, kernel_info> kernels;
};

/// Reads `image` as a loader would, and compares the metadata of every kernel with its descriptor, which is what the
/// hardware is started with. Throws std::runtime_error saying what does not fit together.
code_object read_code_object(const void *image);

} // namespace fake_gpu
