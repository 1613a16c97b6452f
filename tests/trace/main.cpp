// trace_test GROUP: prints the tile IR of the kernels in GROUP.cpp.
#include <cstdio>
#include <iostream>

#include "print.h"

std::vector<traced_kernel> &traced_kernels() {
  static std::vector<traced_kernel> list;
  return list;
}

int main(int argc, char **argv) {
  const std::string group = argc > 1 ? argv[1] : "";
  int printed = 0;
  for (auto &k : traced_kernels()) {
    if (!k.file.ends_with("/" + group + ".cpp"))
      continue;
    try {
      std::cout << k.print() << "\n";
      ++printed;
    } catch (const std::exception &e) {
      std::cout << k.name << ": " << e.what() << "\n";
      return 1;
    }
  }
  return printed ? 0 : 2;
}
