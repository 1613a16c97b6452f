#pragma once
// The operations on files that the cache is made of, as an interface: tests put a layer in between that fails, damages
// or ends the process where they like.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/export.h>

namespace tessera::detail {

/// What is known of a file without reading it.
struct file_info {
  std::uint64_t bytes = 0;
  std::int64_t written = 0; ///< or touched last: nanoseconds since 1970
  bool folder = false;
};

/// The system's files. No member throws: each gives a count, a descriptor or 0, or a negative errno. Calls that a
/// signal interrupts are repeated.
class TESSERA_API file_layer {
public:
  virtual ~file_layer() = default;
  /// `flags` as for open(2); close-on-exec is added. New files get the permissions that umask leaves of 0666.
  virtual int open(const std::string &path, int flags);
  virtual long read(int file, void *to, std::size_t bytes);
  virtual long write(int file, const void *from, std::size_t bytes);
  virtual int close(int file);
  virtual int info(int file, file_info &out);
  virtual int info(const std::string &path, file_info &out);
  virtual int rename(const std::string &from, const std::string &to);
  virtual int remove(const std::string &path);      ///< a file
  virtual int make_folder(const std::string &path); ///< one level; -EEXIST where there is one
  virtual int list(const std::string &path, std::vector<std::string> &names);
  /// Sets the time of the last write to now. (Times of reading are kept by few systems, and changed by every backup.)
  virtual int touch(int file);
  /// Takes the file's lock if nobody has it (-EWOULDBLOCK). It is given back by close, and by the end of the process.
  virtual int try_lock(int file);
};

/// The layer that does what it says.
TESSERA_API file_layer &system_files();

} // namespace tessera::detail
