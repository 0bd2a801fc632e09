// Numbers that look random and depend only on a seed and their place, so that what is generated is the same everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>
#include <numeric>

namespace cli {

/// The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
inline std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline std::uint64_t draw_bits(std::uint64_t seed, std::initializer_list<std::uint64_t> place) {
  std::uint64_t h = mix(seed);
  for (const auto p : place)
    h = mix(h ^ p);
  return h;
}

/// Uniform in [0, 1): 53 bits.
inline double draw(std::uint64_t seed, std::initializer_list<std::uint64_t> place) {
  return static_cast<double>(draw_bits(seed, place) >> 11) * 0x1p-53;
}

/// Standard normal (Box and Muller 1958).
inline double draw_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t k) {
  const double u = 1 - draw(seed, {stream, k, 0}); // in (0, 1]
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * draw(seed, {stream, k, 1}));
}

/// A fixed permutation of 0 .. d-1 that takes neighbours far apart: i -> a i mod d with a near d over the golden ratio.
/// Needs d < 2^32, so that the product fits.
class Scatter {
public:
  explicit Scatter(std::int64_t d) : d_(static_cast<std::uint64_t>(d)) {
    a_ = static_cast<std::uint64_t>(static_cast<double>(d) / std::numbers::phi);
    while (std::gcd(a_, d_) != 1)
      ++a_;
  }
  std::int64_t operator()(std::int64_t i) const {
    return static_cast<std::int64_t>(a_ * static_cast<std::uint64_t>(i) % d_);
  }

private:
  std::uint64_t d_, a_;
};

} // namespace cli
