// CRC-32 (zlib's), by several threads where there is much to sum.
#pragma once

#include <functional>
#include <span>

#include "core/views.hpp"
#include "io/file.hpp"

namespace td::io {

/// Checksums a range of a source. `also`, if given, is called by the threads with each block of bytes, and where in the
/// range it begins, just after it was summed: what was summed is what it is given. Blocks begin at multiples of 64.
using EachBlock = std::function<void(i64 begin, std::span<const char> block)>;
std::uint32_t checksum(const Source &source, Range range, int threads, const EachBlock &also = {});
std::uint32_t checksum(std::span<const char> bytes, int threads);

/// The checksum of two ranges of bytes joined; `size` is that of the second.
std::uint32_t join_checksums(std::uint32_t first, std::uint32_t second, i64 size) noexcept;

} // namespace td::io
