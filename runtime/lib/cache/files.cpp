// The system's files behind file_layer.
#include <tessera/runtime/detail/files.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera::detail {
namespace {

/// Repeats `call` while signals interrupt it; a failure becomes its negative errno.
template <class F> long answer(F call) {
  for (;;) {
    const long r = call();
    if (r >= 0)
      return r;
    if (errno != EINTR)
      return -errno;
  }
}

file_info from(const struct stat &s) {
  return {std::uint64_t(s.st_size), std::int64_t(s.st_mtim.tv_sec) * 1'000'000'000 + s.st_mtim.tv_nsec,
          S_ISDIR(s.st_mode)};
}

} // namespace

int file_layer::open(const std::string &path, int flags) {
  return int(answer([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
}
long file_layer::read(int file, void *to, std::size_t bytes) {
  return answer([&] { return ::read(file, to, bytes); });
}
long file_layer::write(int file, const void *from, std::size_t bytes) {
  return answer([&] { return ::write(file, from, bytes); });
}
int file_layer::close(int file) { return ::close(file) == 0 || errno == EINTR ? 0 : -errno; }
int file_layer::info(int file, file_info &out) {
  struct stat s;
  const int r = int(answer([&] { return ::fstat(file, &s); }));
  if (r == 0)
    out = from(s);
  return r;
}
int file_layer::info(const std::string &path, file_info &out) {
  struct stat s;
  const int r = int(answer([&] { return ::lstat(path.c_str(), &s); }));
  if (r == 0)
    out = from(s);
  return r;
}
int file_layer::rename(const std::string &from, const std::string &to) {
  return int(answer([&] { return ::rename(from.c_str(), to.c_str()); }));
}
int file_layer::remove(const std::string &path) {
  return int(answer([&] { return ::unlink(path.c_str()); }));
}
int file_layer::make_folder(const std::string &path) {
  return int(answer([&] { return ::mkdir(path.c_str(), 0777); }));
}
int file_layer::list(const std::string &path, std::vector<std::string> &names) {
  DIR *folder = ::opendir(path.c_str());
  if (!folder)
    return -errno;
  errno = 0;
  while (const dirent *entry = ::readdir(folder))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  const int failed = errno;
  ::closedir(folder);
  return -failed;
}
int file_layer::touch(int file) {
  return int(answer([&] { return ::futimens(file, nullptr); }));
}
int file_layer::try_lock(int file) {
  return int(answer([&] { return ::flock(file, LOCK_EX | LOCK_NB); }));
}

file_layer &system_files() {
  static file_layer layer;
  return layer;
}

} // namespace tessera::detail
