#pragma once
// A folder of a test's own, removed with it.
#include <atomic>
#include <filesystem>
#include <string>
#include <unistd.h>

struct temporary_folder {
  static inline std::atomic<int> count = 0;
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("tessera_test." + std::to_string(getpid()) + "." + std::to_string(count++));
  temporary_folder() { std::filesystem::remove_all(path); }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  temporary_folder(const temporary_folder &) = delete;
  temporary_folder &operator=(const temporary_folder &) = delete;
  std::string operator/(const std::string &name) const { return (path / name).string(); }
};
