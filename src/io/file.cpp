#include "io/file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/gzip.hpp"

namespace td::io {

namespace {

class Descriptor {
public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const noexcept { return fd_; }

private:
  int fd_;
};

} // namespace

std::string system_reason(int code) { return std::generic_category().message(code); }

File::File(const std::string &path) : path_(path) {
  // Without O_NONBLOCK opening a pipe that nobody writes to would wait for ever.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0)
    throw_error(Status::io, "{}: cannot be opened: {}", path, system_reason(errno));
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0)
    throw_error(Status::io, "{}: {}", path, system_reason(errno));
  if (S_ISDIR(facts.st_mode))
    throw_error(Status::io, "{}: is a directory, expected a file", path);
  if (!S_ISREG(facts.st_mode))
    throw_error(Status::io, "{}: is not a regular file", path);
  if (facts.st_size == 0)
    return; // mmap refuses a length of 0
  const auto size = static_cast<std::size_t>(facts.st_size);
  void *map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (map == MAP_FAILED)
    throw_error(Status::io, "{}: cannot be mapped: {}", path, system_reason(errno));
  map_ = map;
  map_size_ = size;
  bytes_ = {static_cast<const char *>(map), size};
  ::madvise(map, size, MADV_WILLNEED); // a hint; that it may fail does not matter
}

File::~File() {
  if (map_ != nullptr)
    ::munmap(map_, map_size_);
}

Plain::Plain(const Input &input, const MemoryBudget &budget) : input_(input) {
  if (!is_gzip(input.bytes))
    return;
  auto [buffer, size] = inflate_all(input, budget);
  inflated_ = std::move(buffer);
  input_.bytes = {inflated_.data(), static_cast<std::size_t>(size)};
}

} // namespace td::io
