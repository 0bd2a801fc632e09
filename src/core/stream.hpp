// Writes to memory that pass the caches by: a cache line that is overwritten whole is not read first, and drives out
// nothing that will be needed.
#pragma once

namespace td {

inline constexpr int line_bytes = 64;

/// Copies a line; both addresses are multiples of line_bytes.
void stream_line(void *to, const void *from) noexcept;

/// The writer calls this before another thread reads what stream_line has written.
void finish_streams() noexcept;

} // namespace td
