// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11): a
// counter-based generator, so that a number depends on where it stands and on the seed, never on who computes it.
#pragma once

#include <array>

#include "core/types.hpp"

namespace td::kernels {

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64{0xD2511F53} * counter[0];
    const u64 b = u64{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9; // the golden ratio
    key[1] += 0xBB67AE85; // sqrt(3) - 1
  }
  return counter;
}

/// Two numbers of 64 random bits: for columns 2 * pair and 2 * pair + 1 of one row of a factor.
constexpr std::array<u64, 2> random_pair(u64 seed, int mode, i64 row, i64 pair) noexcept {
  const auto i = static_cast<u64>(row);
  const PhiloxBlock block = philox4x32_10({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                                           static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(mode)},
                                          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return {u64{block[0]} << 32 | block[1], u64{block[2]} << 32 | block[3]};
}

/// Uniform in [0, 1). A float gets the leading 24 bits of what a double gets 53 of, so the two agree within 2^-24 and
/// neither rounds up to 1.
template <class T> constexpr T unit_interval(u64 bits) noexcept {
  if constexpr (sizeof(T) == 4)
    return static_cast<T>(bits >> 40) * 0x1p-24F;
  else
    return static_cast<T>(bits >> 11) * 0x1p-53;
}

/// One element of one factor.
template <class T> constexpr T uniform(u64 seed, int mode, i64 row, i64 column) noexcept {
  return unit_interval<T>(random_pair(seed, mode, row, column / 2)[static_cast<std::size_t>(column % 2)]);
}

} // namespace td::kernels
