#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "plan/tensor.hpp"

namespace td::plan {

namespace {

/// Sums of fixed blocks of values are added in the order of the blocks, so the number of threads changes nothing.
constexpr i64 block = 8192;

struct Sums {
  double sum = 0;
  double squares = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  i64 zeros = 0;
};

template <class T> Sums sums_of_block(const T *values, Range r, double scale) {
  Sums s;
  for (i64 k = r.begin; k < r.end; ++k) {
    const double x = static_cast<double>(values[k]);
    const double y = x * scale;
    s.sum += y;
    s.squares += y * y;
    s.min = std::min(s.min, x);
    s.max = std::max(s.max, x);
    s.zeros += x == 0 ? 1 : 0;
  }
  return s;
}

/// Sums of scale * value; min, max and zeros of the values as they are.
template <class T> Sums sums_of(const T *values, i64 n, double scale, int threads) {
  const i64 blocks = (n + block - 1) / block;
  Buffer<Sums> partial(blocks, "sums of a tensor's values");
  parallel_ranges(threads, blocks, 4, [&](Range r) {
    for (i64 b = r.begin; b < r.end; ++b)
      partial[b] = sums_of_block(values, {b * block, std::min(n, (b + 1) * block)}, scale);
  });
  Sums total;
  for (const Sums &s : partial) {
    total.sum += s.sum;
    total.squares += s.squares;
    total.min = std::min(total.min, s.min);
    total.max = std::max(total.max, s.max);
    total.zeros += s.zeros;
  }
  return total;
}

/// Whether squares have neither overflowed nor lost digits below the smallest normal number: a sum this large is off
/// by at most its rounding, whatever terms have vanished, for any n < 2^60.
bool squares_are_good(double squares) { return std::isfinite(squares) && squares > 0x1p-900; }

} // namespace

Facts facts_of(const ValueBuffer &values, int threads) {
  Facts facts;
  facts.nnz = values.size();
  if (facts.nnz == 0)
    return facts;
  dispatch(values.type(), [&](auto zero) {
    const auto *x = values.as<decltype(zero)>();
    Sums s = sums_of(x, facts.nnz, 1.0, threads);
    facts.min = s.min;
    facts.max = s.max;
    facts.zeros = s.zeros;
    double back = 1;
    const double largest = std::max(std::abs(s.min), std::abs(s.max));
    if (largest > 0 && (!squares_are_good(s.squares) || !std::isfinite(s.sum))) {
      // A power of two, so that scaling rounds nothing; clamped so that it and its inverse are normal numbers.
      const int exponent = std::clamp(std::ilogb(largest), -1022, 1022);
      back = std::ldexp(1.0, exponent);
      s = sums_of(x, facts.nnz, 1.0 / back, threads);
    }
    facts.sum = s.sum * back;
    facts.norm = std::sqrt(s.squares) * back;
  });
  return facts;
}

} // namespace td::plan
