#include "io/gzip.hpp"

#include <algorithm>
#include <array>

#define ZLIB_CONST
#include <zlib.h>

namespace td::io {

namespace {

constexpr int gzip_window = 15 + 16; // zlib: largest window, gzip wrapping
constexpr i64 first_capacity = i64{1} << 16;
constexpr i64 largest_ratio = 1032; // deflate cannot expand by more (zlib's technical notes)
constexpr i64 feed = i64{1} << 30;  // zlib counts in 32 bits

class InflateStream {
public:
  InflateStream() {
    if (::inflateInit2(&z, gzip_window) != Z_OK)
      throw_error(Status::host_memory, "out of host memory: zlib's window for reading gzip");
  }
  InflateStream(const InflateStream &) = delete;
  InflateStream &operator=(const InflateStream &) = delete;
  ~InflateStream() { ::inflateEnd(&z); }
  z_stream z = {};
};

class DeflateStream {
public:
  DeflateStream() {
    constexpr int memory_level = 8; // zlib's default
    if (::deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
      throw_error(Status::host_memory, "out of host memory: zlib's window for writing gzip");
  }
  DeflateStream(const DeflateStream &) = delete;
  DeflateStream &operator=(const DeflateStream &) = delete;
  ~DeflateStream() { ::deflateEnd(&z); }
  z_stream z = {};
};

/// The size that the last member states (modulo 2^32), as far as the compressed size makes it possible.
i64 likely_size(std::span<const char> bytes) {
  constexpr std::size_t trailer = 4;
  const auto given = static_cast<i64>(bytes.size());
  if (bytes.size() < trailer)
    return first_capacity;
  u64 stated = 0;
  for (std::size_t i = 0; i < trailer; ++i)
    stated |= u64{static_cast<unsigned char>(bytes[bytes.size() - trailer + i])} << (8 * i);
  const i64 possible = given > (i64{1} << 40) ? given : given * largest_ratio;
  return std::max(first_capacity, std::min(static_cast<i64>(stated), possible) + 1);
}

bool only_zeros(std::span<const char> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

/// Room for inflated text, besides `old`.
Buffer<char> room_for(const Input &input, i64 size, i64 old, const MemoryBudget &budget) {
  MemoryNeed need;
  need.add("what it inflates to", static_cast<double>(size));
  budget.beside(old).require(fmt::format("{}: reading a gzip file of {} bytes", input.name, input.bytes.size()), need);
  return {size, "the inflated text of a gzip file"};
}

Buffer<char> grown(const Input &input, const Buffer<char> &old, i64 used, const MemoryBudget &budget) {
  Buffer<char> larger = room_for(input, old.size() * 2, old.size(), budget);
  std::memcpy(larger.data(), old.data(), static_cast<std::size_t>(used));
  return larger;
}

} // namespace

bool is_gzip(std::span<const char> bytes) noexcept {
  return bytes.size() >= 2 && static_cast<unsigned char>(bytes[0]) == 0x1f &&
         static_cast<unsigned char>(bytes[1]) == 0x8b;
}

Inflated inflate_all(const Input &input, const MemoryBudget &budget) {
  InflateStream stream;
  z_stream &z = stream.z;
  std::span<const char> rest = input.bytes;
  Buffer<char> out = room_for(input, likely_size(rest), 0, budget);
  i64 used = 0;
  for (;;) {
    if (used == out.size())
      out = grown(input, out, used, budget);
    const i64 in = std::min(feed, static_cast<i64>(rest.size()));
    const i64 room = std::min(feed, out.size() - used);
    z.next_in = reinterpret_cast<const Bytef *>(rest.data());
    z.avail_in = static_cast<uInt>(in);
    z.next_out = reinterpret_cast<Bytef *>(out.data() + used);
    z.avail_out = static_cast<uInt>(room);
    const int code = ::inflate(&z, Z_NO_FLUSH);
    rest = rest.subspan(static_cast<std::size_t>(in - z.avail_in));
    used += room - z.avail_out;
    if (code == Z_STREAM_END) {
      if (only_zeros(rest)) // some archivers pad
        return {std::move(out), used};
      if (!is_gzip(rest))
        throw_error(Status::io, "{}: {} bytes after the end of the gzip data are not gzip", input.name, rest.size());
      ::inflateReset(&z);
    } else if (code == Z_MEM_ERROR) {
      throw_error(Status::host_memory, "out of host memory: zlib's window for reading gzip");
    } else if (code == Z_BUF_ERROR) {
      throw_error(Status::io, "{}: the gzip data end early, after {} inflated bytes", input.name, used);
    } else if (code != Z_OK) {
      throw_error(Status::io, "{}: corrupt gzip data after {} inflated bytes: {}", input.name, used,
                  z.msg != nullptr ? z.msg : "no reason given");
    }
  }
}

std::string gzip_member(std::string_view text) {
  DeflateStream stream;
  z_stream &z = stream.z;
  std::string out(::deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  z.next_in = reinterpret_cast<const Bytef *>(text.data());
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef *>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&z, Z_FINISH) != Z_STREAM_END)
    throw_error(Status::internal, "zlib did not finish a block of {} bytes", text.size());
  out.resize(out.size() - z.avail_out);
  return out;
}

} // namespace td::io
