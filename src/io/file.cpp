#include "io/file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/gzip.hpp"

namespace td::io {

namespace {

FileState state_of(const struct stat &facts) {
  return {static_cast<i64>(facts.st_size), static_cast<i64>(facts.st_mtim.tv_sec),
          static_cast<i64>(facts.st_mtim.tv_nsec)};
}

} // namespace

std::string system_reason(int code) { return std::generic_category().message(code); }

void Source::read(i64 offset, std::span<char> out) const {
  if (descriptor_ < 0) {
    std::copy_n(memory_.begin() + offset, out.size(), out.begin());
    return;
  }
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw_error(Status::io, "{}: reading failed at byte {}: {}", name_, offset, system_reason(errno));
    if (n == 0)
      refuse_change();
    offset += n;
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::span<const char> Source::bytes(Range r, Buffer<char> &room) const {
  const auto size = static_cast<std::size_t>(r.size());
  if (descriptor_ < 0)
    return memory_.subspan(static_cast<std::size_t>(r.begin), size);
  if (room.size() < r.size())
    room = Buffer<char>(r.size(), "bytes of a file");
  read(r.begin, room.span().first(size));
  return room.span().first(size);
}

std::string Source::beginning(i64 most) const {
  std::string text(static_cast<std::size_t>(std::min(most, size_)), '\0');
  read(0, text);
  return text;
}

void Source::require_unchanged() const {
  struct stat facts = {};
  if (descriptor_ >= 0 && (::fstat(descriptor_, &facts) != 0 || state_of(facts) != opened_))
    refuse_change();
}

void Source::refuse_change() const { throw_error(Status::io, "{}: the file changed while it was read", name_); }

Descriptor::~Descriptor() {
  if (fd_ >= 0)
    ::close(fd_);
}

File::File(const std::string &path)
    : path_(path), // without O_NONBLOCK opening a pipe that nobody writes to would wait for ever
      descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_.get() < 0)
    throw_error(Status::io, "{}: cannot be opened: {}", path, system_reason(errno));
  struct stat facts = {};
  if (::fstat(descriptor_.get(), &facts) != 0)
    throw_error(Status::io, "{}: {}", path, system_reason(errno));
  if (S_ISDIR(facts.st_mode))
    throw_error(Status::io, "{}: is a directory, expected a file", path);
  if (!S_ISREG(facts.st_mode))
    throw_error(Status::io, "{}: is not a regular file", path);
  opened_ = state_of(facts);
  ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_SEQUENTIAL); // a hint; that it may fail does not matter
}

Plain::Plain(const Source &source, const RequireRoom &require_room) : source_(source) {
  if (!is_gzip(source.beginning(2)))
    return;
  auto [buffer, size] = inflate_all(source, require_room);
  inflated_ = std::move(buffer);
  source_ = Source(source.name(), inflated_.span().first(static_cast<std::size_t>(size)));
}

} // namespace td::io
