// CRC-32 (zlib's) of memory, by several threads where there is much of it.
#pragma once

#include <functional>
#include <span>

#include "core/views.hpp"

namespace td::io {

/// `also`, if given, is called by the threads with each range of bytes just after it was summed, while it is still in
/// the cache. Ranges begin at multiples of 64.
std::uint32_t checksum(std::span<const char> bytes, int threads, const std::function<void(Range)> &also = {});

/// The checksum of two stretches joined; `size` is that of the second.
std::uint32_t join_checksums(std::uint32_t first, std::uint32_t second, i64 size) noexcept;

} // namespace td::io
