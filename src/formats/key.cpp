#include "formats/key.hpp"

#include <algorithm>
#include <numeric>

#include "formats/formats.hpp"

namespace td::formats {

int linear_bits(std::span<const i64> dims) {
  int bits = 0;
  for (const i64 d : dims)
    bits += index_bits(d);
  return bits;
}

std::vector<InterleavedBit> interleaved_bits(std::span<const i64> dims) {
  const std::vector<int> bits = bits_of(dims);
  std::vector<int> modes(dims.size());
  std::iota(modes.begin(), modes.end(), 0);
  const auto bits_in = [&](int m) { return bits[static_cast<std::size_t>(m)]; };
  std::stable_sort(modes.begin(), modes.end(),
                   [&](int a, int b) { return dims[static_cast<std::size_t>(a)] < dims[static_cast<std::size_t>(b)]; });
  std::vector<InterleavedBit> order;
  const int levels = modes.empty() ? 0 : bits_in(modes.back());
  for (int level = 0; level < levels; ++level)
    for (const int m : modes)
      if (level < bits_in(m))
        order.push_back({m, level});
  return order;
}

std::vector<int> blco_bits(std::span<const i64> dims) {
  std::vector<int> bits(dims.size(), 0);
  const auto all = interleaved_bits(dims);
  for (std::size_t position = 0; position < all.size() && position < 64; ++position)
    ++bits[static_cast<std::size_t>(all[position].mode)];
  return bits;
}

} // namespace td::formats
