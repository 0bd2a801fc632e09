// A file's bytes in memory: mapped, and inflated if they are gzip.
#pragma once

#include <span>
#include <string>

#include "core/buffer.hpp"
#include "core/memory.hpp"

namespace td::io {

/// What a reader is given: bytes, and the name that error texts begin with.
struct Input {
  std::string name;
  std::span<const char> bytes;
};

/// The operating system's words for an errno.
std::string system_reason(int code);

/// Read-only bytes of a regular file. The file must not be shortened by others while it is mapped.
class File {
public:
  explicit File(const std::string &path);
  ~File();
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  Input input() const { return {path_, bytes_}; }

private:
  std::string path_;
  std::span<const char> bytes_;
  void *map_ = nullptr;
  std::size_t map_size_ = 0;
};

/// Either the input itself or, where it begins with gzip's magic, what it inflates to.
class Plain {
public:
  /// What it inflates to stays within the budget.
  explicit Plain(const Input &input, const MemoryBudget &budget = {});
  i64 bytes() const noexcept { return inflated_.bytes(); }
  const Input &input() const noexcept { return input_; }
  bool was_gzip() const noexcept { return inflated_.size() > 0; }

private:
  Input input_;
  Buffer<char> inflated_;
};

} // namespace td::io
