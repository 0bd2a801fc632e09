// Stable least-significant-digit radix sort of (key, payload) pairs held in two arrays.
#pragma once

#include <vector>

#include "core/buffer.hpp"
#include "core/parallel.hpp"

namespace td::formats {

/// Pairs that one thread should have before another is worth starting: below this a pass costs less than a fork.
inline constexpr i64 sort_grain = i64{1} << 14;

/// Widest digit: 2^11 counters and write positions (16 KiB) leave half of a 32 KiB first-level cache to the data.
inline constexpr int max_digit_bits = 11;

struct Digit {
  int shift = 0;
  int bits = 0;
};

template <class Key, class Payload> struct Pairs {
  Key *keys = nullptr;
  Payload *payload = nullptr;
};

/// Number of parts that n items are worth dividing into.
inline int parts_for(i64 n, int threads) noexcept {
  const i64 useful = n / sort_grain + 1;
  return useful < threads ? static_cast<int>(useful) : (threads < 1 ? 1 : threads);
}

/// Calls body(part, range) for `parts` fixed parts of [0, n), however many threads there are.
template <class Body> void for_parts(i64 n, int parts, Body &&body) {
  parallel(parts, [&](int thread, int count) {
    for (int part = thread; part < parts; part += count)
      body(part, part_of({0, n}, part, parts));
  });
}

namespace detail {

template <class Key> std::vector<Digit> cut_digits(Key varying, int width) {
  std::vector<Digit> digits;
  const int key_bits = static_cast<int>(8 * sizeof(Key));
  for (int bit = 0; bit < key_bits; ++bit) {
    if (((varying >> bit) & 1) == 0)
      continue;
    const int bits = width < key_bits - bit ? width : key_bits - bit;
    digits.push_back({bit, bits});
    bit += bits - 1;
  }
  return digits;
}

} // namespace detail

/// The digits by which keys must be sorted when only the bits in `mask` count: those where all keys agree are left out.
template <class Key> std::vector<Digit> varying_digits(const Key *keys, i64 n, Key mask, int threads) {
  if (n == 0)
    return {};
  const int parts = parts_for(n, threads);
  std::vector<Key> differing(static_cast<std::size_t>(parts), Key{0});
  for_parts(n, parts, [&](int part, Range r) {
    const Key first = keys[0];
    Key d = 0;
    for (i64 k = r.begin; k < r.end; ++k)
      d |= keys[k] ^ first;
    differing[static_cast<std::size_t>(part)] = d;
  });
  Key varying = 0;
  for (const Key d : differing)
    varying |= d & mask;
  auto digits = detail::cut_digits(varying, max_digit_bits);
  // Narrower digits that need no more passes have fewer write positions at once.
  for (int width = max_digit_bits - 1; width > 0; --width) {
    auto narrower = detail::cut_digits(varying, width);
    if (narrower.size() > digits.size())
      break;
    digits = std::move(narrower);
  }
  for (Digit &d : digits) // bits that do not count must not enter a digit
    while (d.bits > 1 && ((mask >> (d.shift + d.bits - 1)) & 1) == 0)
      --d.bits;
  return digits;
}

/// One stable pass: to := from ordered by one digit.
template <class Key, class Payload>
void radix_pass(Digit digit, Pairs<const Key, const Payload> from, Pairs<Key, Payload> to, i64 n, int threads) {
  const int parts = parts_for(n, threads);
  const i64 bins = i64{1} << digit.bits;
  const auto bin_mask = static_cast<u64>(bins - 1);
  auto place = Buffer<i64>::zeros(parts * bins, "radix sort counters");
  const auto bin_of = [&](Key key) { return static_cast<i64>(static_cast<u64>(key >> digit.shift) & bin_mask); };

  for_parts(n, parts, [&](int part, Range r) {
    i64 *count = place.data() + part * bins;
    for (i64 k = r.begin; k < r.end; ++k)
      ++count[bin_of(from.keys[k])];
  });
  i64 next = 0;
  for (i64 bin = 0; bin < bins; ++bin)
    for (int part = 0; part < parts; ++part)
      next += std::exchange(place[part * bins + bin], next);
  for_parts(n, parts, [&](int part, Range r) {
    i64 *at = place.data() + part * bins;
    for (i64 k = r.begin; k < r.end; ++k) {
      const Key key = from.keys[k];
      const i64 to_k = at[bin_of(key)]++;
      to.keys[to_k] = key;
      to.payload[to_k] = from.payload[k];
    }
  });
}

/// Sorts `in` by digits from low to high through a, b, a, b, ...: the result is in `a` after an odd number of digits
/// and in `b` after an even one; with no digits `in` is sorted as it is and nothing is written. b may be in's memory.
template <class Key, class Payload>
void radix_sort(const std::vector<Digit> &digits, Pairs<const Key, const Payload> in, Pairs<Key, Payload> a,
                Pairs<Key, Payload> b, i64 n, int threads) {
  Pairs<const Key, const Payload> from = in;
  for (std::size_t pass = 0; pass < digits.size(); ++pass) {
    const auto to = pass % 2 == 0 ? a : b;
    radix_pass<Key, Payload>(digits[pass], from, to, n, threads);
    from = {to.keys, to.payload};
  }
}

} // namespace td::formats
