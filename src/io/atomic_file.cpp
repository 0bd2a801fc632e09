#include "io/atomic_file.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/sentence.hpp"
#include "io/file.hpp"

namespace td::io {

namespace {

std::atomic<unsigned> next_number{0};

std::string folder_of(const std::string &path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
}

/// Where links lead, also to a file that is not there yet. Links of the proc file system stand for what a process has
/// open, as /dev/stdout does: who follows one wants what is written to go there, not a new file in its place. Plain
/// strings: std::filesystem::path of libstdc++ 12 crashes where memory runs out.
std::string end_of_links(const std::string &given) {
  std::string path = given;
  for (;;) { // stat() has refused links that lead in a circle
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size < 0)
      return path; // no link
    const std::string folder = folder_of(path);
    struct statfs facts = {};
    if (::statfs(folder.c_str(), &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC)
      throw_error(Status::io, "{}: stands for a file that a process has open and will not be replaced by one", given);
    const std::string next(target, static_cast<std::size_t>(size));
    path = next.starts_with('/') ? next : folder + "/" + next;
  }
}

/// Where a file of this name really lives; refuses what must not be replaced by a file.
std::string resolve(const std::string &path) {
  if (path.empty())
    throw_error(Status::io, "the name of the file to write is empty");
  struct stat facts = {};
  const bool there = ::stat(path.c_str(), &facts) == 0;
  if (!there && errno != ENOENT)
    throw_error(Status::io, "{}: cannot be written: {}", path, system_reason(errno));
  if (there && S_ISDIR(facts.st_mode))
    throw_error(Status::io, "{}: is a directory, expected a file", path);
  if (there && !S_ISREG(facts.st_mode))
    throw_error(Status::io, "{}: is not a regular file and will not be replaced by one", path);
  return end_of_links(path);
}

/// Gives a new file what the one that it replaces has. A group that cannot be kept may do no more than both the old
/// group and everybody could: nobody gains by the change.
void keep_access(int fd, const struct stat &old) {
  mode_t mode = old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (::fchown(fd, old.st_uid, old.st_gid) != 0 && ::fchown(fd, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= ~static_cast<mode_t>(S_IRWXG) | (mode & S_IRWXO) << 3;
  ::fchmod(fd, mode); // where a file system knows no permissions, those of a file that nobody else reads stay
}

} // namespace

AtomicFile::AtomicFile(const std::string &path) : path_(path), target_(resolve(path)) {
  struct stat old = {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  const mode_t mode = replaces ? 0600 : 0666; // from 0666 open() takes the process's umask, which mkstemp would not
  // A file without a name goes away with the process, however that ends. Not every file system has such files, and only
  // by /proc do they get a name.
  if (::access("/proc/self/fd", X_OK) == 0)
    fd_ = ::open(folder_of(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (fd_ < 0)
    fd_ = take_name([&](const char *name) { return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
  if (fd_ < 0)
    throw_error(Status::io, "{}: cannot be written: {}", path_, system_reason(errno));
  if (replaces)
    keep_access(fd_, old);
}

AtomicFile::AtomicFile(const std::string &path, const std::string &temporary) : path_(path) {
  fd_ = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0)
    throw_error(Status::io, "{}: the file {} that another process has made for it cannot be opened here: {}", path_,
                temporary, system_reason(errno));
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path_(std::move(other.path_)), target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

AtomicFile::~AtomicFile() {
  close();
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

template <class Make> int AtomicFile::take_name(Make &&make) {
  for (;;) {
    // A short name of its own, because the target's may already be as long as names can be.
    std::string name = fmt::format("{}/.td-{}-{}.tmp", folder_of(target_), ::getpid(), next_number++);
    const int made = make(name.c_str());
    if (made < 0 && errno == EEXIST)
      continue;
    if (made >= 0)
      temporary_ = std::move(name);
    return made;
  }
}

const std::string &AtomicFile::temporary() {
  if (temporary_.empty()) {
    const std::string descriptor = fmt::format("/proc/self/fd/{}", fd_);
    const auto link = [&](const char *name) {
      return ::linkat(AT_FDCWD, descriptor.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    };
    if (take_name(link) < 0)
      fail("naming failed");
  }
  return temporary_;
}

void AtomicFile::fail(const char *what) const {
  throw_error(Status::io, "{}: {} after {}: {}", path_, what, count_text(size_, "byte", "bytes"), system_reason(errno));
}

void AtomicFile::close() noexcept {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
}

void AtomicFile::put(i64 offset, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      fail("writing failed");
    offset += n;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::write(std::span<const char> bytes) {
  put(size_, bytes);
  size_ += static_cast<i64>(bytes.size());
}

void AtomicFile::rewrite(i64 offset, std::span<const char> bytes) { put(offset, bytes); }

void AtomicFile::finish() {
  if (fd_ < 0)
    return;
  if (::fsync(fd_) != 0)
    fail("flushing failed");
  if (!target_.empty()) // not another process's file
    temporary();
  const int fd = fd_;
  fd_ = -1; // the descriptor is gone even if close reports an error
  if (::close(fd) != 0)
    fail("closing failed");
}

void AtomicFile::commit() {
  finish();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail("renaming failed");
  temporary_.clear();
  // The new name lasts through a power failure once the folder is on disk too. Not every file system can do that,
  // and the file is whole either way, so that no error is made of it.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

} // namespace td::io
