// Linearized indices. There are two ways to put the bits of all modes' indices into one number: packed (each mode's
// bits are neighbours: cheap to take apart) and interleaved (ALTO, Helal et al., ICS 2021: near in the tensor is near
// in the order). Entries are sorted by the interleaved key and stored with the packed one.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "core/checked.hpp"
#include "kernels/views.hpp"

namespace td::formats {

/// Fields of the modes' indices, mode 0 lowest. A mode without bits has shift 0, so that no shift reaches the key's
/// width. `bits[m]` bits of mode m are kept.
inline kernels::KeyLayout packed_layout(std::span<const int> bits) {
  kernels::KeyLayout layout;
  layout.order = static_cast<int>(bits.size());
  int next = 0;
  for (std::size_t m = 0; m < bits.size(); ++m) {
    layout.bits[m] = static_cast<std::uint8_t>(bits[m]);
    layout.shift[m] = static_cast<std::uint8_t>(bits[m] > 0 ? next : 0);
    next += bits[m];
  }
  return layout;
}

inline std::vector<int> bits_of(std::span<const i64> dims) {
  std::vector<int> bits;
  for (const i64 d : dims)
    bits.push_back(index_bits(d));
  return bits;
}

inline int total_bits(const kernels::KeyLayout &layout) noexcept {
  int bits = 0;
  for (int m = 0; m < layout.order; ++m)
    bits += layout.bits[static_cast<std::size_t>(m)];
  return bits;
}

/// Bytes of the keys that hold so many bits.
constexpr int key_bytes_for(int bits) noexcept { return bits <= 64 ? 8 : 16; }

/// Calls f with a key type: `dispatch_key(8, [&](auto zero) { using Key = decltype(zero); ... })`.
template <class F> decltype(auto) dispatch_key(int key_bytes, F &&f) {
  if (key_bytes == 8)
    return f(u64{});
  return f(u128{});
}

template <class Key> Key low_bits(int bits) noexcept {
  return bits >= static_cast<int>(8 * sizeof(Key)) ? ~Key{0} : (Key{1} << bits) - 1;
}

template <class Key> Key field_mask(const kernels::KeyLayout &layout, int mode) noexcept {
  const auto m = static_cast<std::size_t>(mode);
  return low_bits<Key>(layout.bits[m]) << layout.shift[m];
}

template <class Key> i64 field(const kernels::KeyLayout &layout, int mode, Key key) noexcept {
  const auto m = static_cast<std::size_t>(mode);
  return static_cast<i64>((key >> layout.shift[m]) & low_bits<Key>(layout.bits[m]));
}

/// One bit of an interleaved key: bit `level` of the index in `mode`.
struct InterleavedBit {
  int mode = 0;
  int level = 0;
};

/// The bits of the interleaved key from the lowest: level by level, at each level the modes that have a bit there,
/// shortest mode first and equal ones by number. So the long modes alone make the highest bits, as in ALTO, and the
/// first cut of the order is across the longest mode.
std::vector<InterleavedBit> interleaved_bits(std::span<const i64> dims);

/// Bits of each mode among the lowest 64 of the interleaved key: what a BLCO key keeps.
std::vector<int> blco_bits(std::span<const i64> dims);

/// A permutation of bits, or any map that is an OR over the bytes of its argument, by one table for each byte.
template <class Key> class ByteTables {
public:
  explicit ByteTables(int bytes) : tables_(static_cast<std::size_t>(bytes)) {}

  /// Bit `from` of the argument sets bit `to` of the result.
  void add_bit(int from, int to) {
    auto &table = tables_[static_cast<std::size_t>(from / 8)];
    for (std::size_t v = 0; v < 256; ++v)
      if ((v >> (from % 8)) & 1)
        table[v] |= Key{1} << to;
  }

  /// The bits of the result from `shift` on. Low bytes of the argument that set none are passed over.
  template <class Part> ByteTables<Part> above(int shift) const {
    ByteTables<Part> part(0);
    for (const auto &table : tables_) {
      if (part.tables_.empty() && std::all_of(table.begin(), table.end(), [&](Key k) { return k >> shift == 0; })) {
        part.skipped_bits_ += 8;
        continue;
      }
      auto &kept = part.tables_.emplace_back();
      std::transform(table.begin(), table.end(), kept.begin(), [&](Key k) { return static_cast<Part>(k >> shift); });
    }
    return part;
  }

  template <class Argument> Key operator()(Argument a) const noexcept {
    Key result = 0;
    add_to(&a, 1, &result);
    return result;
  }

  /// Sets in out[k] the bits that arguments[k] stands for. Table after table: then one is in use at a time.
  template <class Argument> void add_to(const Argument *arguments, i64 count, Key *out) const noexcept {
    int shift = skipped_bits_;
    for (const auto &table : tables_) {
      for (i64 k = 0; k < count; ++k)
        out[k] = static_cast<Key>(out[k] | table[static_cast<std::size_t>((arguments[k] >> shift) & 0xff)]);
      shift += 8;
    }
  }

private:
  template <class> friend class ByteTables;
  int skipped_bits_ = 0;
  std::vector<std::array<Key, 256>> tables_;
};

/// Maps that make an interleaved key and turn it into a packed one.
template <class Key> struct Interleaving {
  std::vector<ByteTables<Key>> spread; // [order] index -> its bits in the interleaved key
  ByteTables<Key> pack;                // interleaved key -> packed key

  Interleaving(std::span<const i64> dims, const kernels::KeyLayout &layout) : pack((total_bits(layout) + 7) / 8) {
    for (const i64 d : dims)
      spread.emplace_back((index_bits(d) + 7) / 8);
    int position = 0;
    for (const auto [mode, level] : interleaved_bits(dims)) {
      const auto m = static_cast<std::size_t>(mode);
      spread[m].add_bit(level, position);
      pack.add_bit(position, layout.shift[m] + level);
      ++position;
    }
  }
};

} // namespace td::formats
