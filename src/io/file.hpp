// A file's bytes: read when they are asked for, and inflated if they are gzip.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/buffer.hpp"
#include "core/views.hpp"

namespace td::io {

/// Bytes in memory, and the name that error texts begin with.
struct Input {
  std::string name;
  std::span<const char> bytes;
};

/// The operating system's words for an errno.
std::string system_reason(int code);

/// Asked before much memory is taken: throws if there is no room for `reading` bytes, and, where that is known, for
/// `stored` bytes more of what is made of them. Empty: anything goes.
using RequireRoom = std::function<void(i64 reading, i64 stored)>;

/// What tells a file that others have changed meanwhile.
struct FileState {
  i64 size = 0;
  i64 seconds = 0; // when it was last written
  i64 nanoseconds = 0;
  bool operator==(const FileState &) const = default;
};

/// What a reader is given: bytes of memory, or of a file. Files are not mapped: one that others shorten would end the
/// process by a signal, and one that they rewrite would hold another number when it is looked at again.
class Source {
public:
  Source(const Input &memory) : Source(memory.name, memory.bytes) {} // NOLINT: memory is a source
  Source(std::string name, std::span<const char> memory)
      : name_(std::move(name)), memory_(memory), size_(static_cast<i64>(memory.size())) {}
  Source(std::string name, int descriptor, const FileState &opened)
      : name_(std::move(name)), size_(opened.size), descriptor_(descriptor), opened_(opened) {}

  const std::string &name() const noexcept { return name_; }
  i64 size() const noexcept { return size_; }
  /// Throws if the file has become shorter. May be called by several threads.
  void read(i64 offset, std::span<char> out) const;
  /// The bytes of a range: memory's where they are, a file's in `room`, which grows as needed.
  std::span<const char> bytes(Range r, Buffer<char> &room) const;
  /// The first bytes, at most `most`.
  std::string beginning(i64 most) const;
  /// Throws if others have written to the file since it was opened.
  void require_unchanged() const;
  [[noreturn]] void refuse_change() const;

private:
  std::string name_;
  std::span<const char> memory_;
  i64 size_ = 0;
  int descriptor_ = -1;
  FileState opened_;
};

class Descriptor {
public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor();
  int get() const noexcept { return fd_; }

private:
  int fd_;
};

/// A regular file, open for reading.
class File {
public:
  explicit File(const std::string &path);
  Source source() const { return {path_, descriptor_.get(), opened_}; }

private:
  std::string path_;
  Descriptor descriptor_;
  FileState opened_;
};

/// Either the source itself or, where it begins with gzip's magic, what it inflates to.
class Plain {
public:
  explicit Plain(const Source &source, const RequireRoom &require_room = {});
  const Source &source() const noexcept { return source_; }
  bool was_gzip() const noexcept { return inflated_.size() > 0; }

private:
  Buffer<char> inflated_;
  Source source_;
};

/// All of a source in memory.
class Whole {
public:
  explicit Whole(const Source &source) : input_{source.name(), source.bytes({0, source.size()}, room_)} {}
  Whole(const Whole &) = delete;
  Whole &operator=(const Whole &) = delete;
  const Input &input() const noexcept { return input_; }

private:
  Buffer<char> room_;
  Input input_;
};

} // namespace td::io
