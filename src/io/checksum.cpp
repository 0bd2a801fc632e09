#include "io/checksum.hpp"

#include <algorithm>
#include <vector>

#include <zlib.h>

#include "core/parallel.hpp"

namespace td::io {

namespace {
constexpr i64 chunk = i64{1} << 18; // fits a core's L2 cache with room for what is made of it
constexpr i64 grain = i64{1} << 20;
} // namespace

std::uint32_t checksum(const Source &source, Range range, int threads, const EachBlock &also) {
  const i64 size = range.size();
  const i64 chunks = (size + chunk - 1) / chunk;
  const auto parts = static_cast<int>(std::clamp(size / grain, i64{1}, static_cast<i64>(std::max(threads, 1))));
  struct Partial {
    uLong sum = 0;
    i64 size = 0;
  };
  std::vector<Partial> sums(static_cast<std::size_t>(parts));
  parallel(parts, [&](int thread, int count) {
    const Range mine = part_of({0, chunks}, thread, count);
    Partial partial;
    Buffer<char> room;
    for (i64 i = mine.begin; i < mine.end; ++i) {
      const Range r{i * chunk, std::min(size, (i + 1) * chunk)};
      const auto block = source.bytes({range.begin + r.begin, range.begin + r.end}, room);
      partial.sum = ::crc32_z(partial.sum, reinterpret_cast<const Bytef *>(block.data()), block.size());
      partial.size += r.size();
      if (also)
        also(r.begin, block);
    }
    sums[static_cast<std::size_t>(thread)] = partial;
  });
  std::uint32_t sum = 0;
  for (const Partial &partial : sums) // threads that were not granted left 0 of size 0, which changes nothing
    sum = join_checksums(sum, static_cast<std::uint32_t>(partial.sum), partial.size);
  return sum;
}

std::uint32_t checksum(std::span<const char> bytes, int threads) {
  return checksum(Source({}, bytes), {0, static_cast<i64>(bytes.size())}, threads);
}

std::uint32_t join_checksums(std::uint32_t first, std::uint32_t second, i64 size) noexcept {
  return static_cast<std::uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(size)));
}

} // namespace td::io
