// gzip in memory.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/file.hpp"

namespace td::io {

bool is_gzip(std::span<const char> bytes) noexcept;

/// What a gzip file holds, from begin to end: all members one after the other.
class Inflater {
public:
  explicit Inflater(const Source &source);
  ~Inflater();
  /// Fills `out`, or as much of it as there is left, and gives the number of bytes.
  i64 read(std::span<char> out);

private:
  struct State;
  void end_member();

  std::unique_ptr<State> state_;
};

/// The bytes of a source from begin to end, inflated where it is gzip.
class PlainBytes {
public:
  explicit PlainBytes(const Source &source);
  /// It reads as Inflater::read does.
  i64 read(std::span<char> out);
  bool was_gzip() const noexcept { return inflater_ != nullptr; }

private:
  Source source_;
  i64 at_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

struct Inflated {
  Buffer<char> buffer; // at least `size` bytes, never empty
  i64 size = 0;
};

/// All members of a gzip file, one after the other.
Inflated inflate_all(const Source &source, const MemoryBudget &budget = {});

/// `text` as one gzip member. Members may be joined, so that blocks can be compressed by several threads.
std::string gzip_member(std::string_view text);

} // namespace td::io
