// The one way to write a file: it appears under its name when it is whole, or not at all.
#pragma once

#include <span>
#include <string>

#include "core/types.hpp"

namespace td::io {

/// Writes to a temporary file in the same folder; commit() makes it durable and gives it its name. If the object, or
/// the process, goes away before that, so does the temporary file, and a file that had the name is as it was: where the
/// file system can, the temporary file has no name while it is written. A file that is replaced hands on its
/// permissions and, where the process may, its owner and group; a symbolic link stays one.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  /// Opens the temporary file of another process, whose it is to give it its name or to remove it.
  AtomicFile(const std::string &path, const std::string &temporary);
  ~AtomicFile();
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::span<const char> bytes);
  /// Overwrites bytes that were written before.
  void rewrite(i64 offset, std::span<const char> bytes);
  /// Bytes that are written later, or by another process.
  void leave_room(i64 bytes) noexcept { size_ += bytes; }
  i64 size() const noexcept { return size_; }
  /// The temporary file's name, by which other processes find it; gives it one where it has none.
  const std::string &temporary();

  /// Everything that can fail for want of space: afterwards only the renaming is left.
  void finish();
  void commit();

private:
  [[noreturn]] void fail(const char *what) const;
  /// Makes the temporary file under a name that is free; make(name) gives -1 and errno where it fails, as this does.
  template <class Make> int take_name(Make &&make);
  void put(i64 offset, std::span<const char> bytes);
  void close() noexcept;

  std::string path_;      // as the caller named it, for error texts
  std::string target_;    // with symbolic links followed
  std::string temporary_; // empty while the file has no name
  int fd_ = -1;
  i64 size_ = 0;
};

} // namespace td::io
