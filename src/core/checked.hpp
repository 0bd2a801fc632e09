// Arithmetic on sizes that says when it does not fit.
#pragma once

#include <optional>
#include <span>

#include "core/types.hpp"

namespace td {

inline std::optional<i64> checked_multiply(i64 a, i64 b) noexcept {
  i64 product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// Product of dims, or nothing if it exceeds 2^63 - 1.
inline std::optional<i64> checked_product(std::span<const i64> dims) noexcept {
  i64 product = 1;
  for (i64 d : dims) {
    const auto next = checked_multiply(product, d);
    if (!next)
      return std::nullopt;
    product = *next;
  }
  return product;
}

/// Bits that hold the indices 0 .. dim - 1; 0 for dim = 1.
constexpr int index_bits(i64 dim) noexcept {
  int bits = 0;
  while (bits < 63 && (i64{1} << bits) < dim)
    ++bits;
  return bits;
}

} // namespace td
