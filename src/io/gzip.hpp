// gzip in memory.
#pragma once

#include <span>
#include <string>

#include "io/file.hpp"

namespace td::io {

bool is_gzip(std::span<const char> bytes) noexcept;

struct Inflated {
  Buffer<char> buffer; // at least `size` bytes, never empty
  i64 size = 0;
};

/// All members of a gzip file, one after the other.
Inflated inflate_all(const Source &source, const RequireRoom &require_room = {});

/// `text` as one gzip member. Members may be joined, so that blocks can be compressed by several threads.
std::string gzip_member(std::string_view text);

} // namespace td::io
