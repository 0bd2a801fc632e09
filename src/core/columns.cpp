#include "core/columns.hpp"

#include <algorithm>
#include <cmath>

namespace td {

namespace {

// 2^1000 is the largest scale; a column of subnormals is then at least 2^-74.
constexpr int smallest_exponent = -1000;

constexpr i64 tile_rows = 64;

/// Rows [begin, end) of a, scaled, into a tile of a.cols columns.
void load(ConstMatrix a, const ColumnScales &scales, i64 begin, i64 end, std::vector<double> &tile) {
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    double *to = tile.data();
    for (i64 i = begin; i < end; ++i, to += a.cols) {
      const T *from = a.row<T>(i);
      for (i64 r = 0; r < a.cols; ++r)
        to[r] = static_cast<double>(from[r]) * scales.factor[static_cast<std::size_t>(r)];
    }
  });
}

std::vector<double> make_tile(ConstMatrix a) {
  return std::vector<double>(static_cast<std::size_t>(tile_rows * a.cols));
}

} // namespace

ColumnScales column_scales(ConstMatrix a, int plain, const Meeting &others) {
  const auto cols = static_cast<std::size_t>(a.cols);
  std::vector<double> largest(cols, 0.0);
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < a.rows; ++i) {
      const T *row = a.row<T>(i);
      for (std::size_t r = 0; r < cols; ++r)
        largest[r] = std::max(largest[r], std::abs(static_cast<double>(row[r])));
    }
  });
  if (others.max)
    others.max(largest);
  ColumnScales scales{std::vector<i64>(cols, 0), std::vector<double>(cols, 1.0)};
  for (std::size_t r = 0; r < cols; ++r) {
    if (largest[r] == 0) {
      scales.factor[r] = 0;
      continue;
    }
    const int e = std::ilogb(largest[r]);
    if (std::abs(e) > plain) {
      scales.exponent[r] = std::max(e, smallest_exponent);
      scales.factor[r] = std::ldexp(1.0, -static_cast<int>(scales.exponent[r]));
    }
  }
  return scales;
}

std::vector<double> scaled_squares(ConstMatrix a, const ColumnScales &scales, const Meeting &others) {
  std::vector<double> squares(static_cast<std::size_t>(a.cols), 0.0);
  std::vector<double> tile = make_tile(a);
  for (i64 begin = 0; begin < a.rows; begin += tile_rows) {
    const i64 end = std::min(begin + tile_rows, a.rows);
    load(a, scales, begin, end, tile);
    const double *row = tile.data();
    for (i64 i = begin; i < end; ++i, row += a.cols) {
      for (std::size_t r = 0; r < squares.size(); ++r)
        squares[r] += row[r] * row[r];
    }
  }
  if (others.sum)
    others.sum(squares);
  return squares;
}

std::vector<double> scaled_norms(ConstMatrix a, const ColumnScales &scales, const Meeting &others) {
  std::vector<double> norms = scaled_squares(a, scales, others);
  for (double &s : norms)
    s = std::sqrt(s);
  return norms;
}

std::vector<double> scaled_gram(ConstMatrix a, const ColumnScales &sa, ConstMatrix b, const ColumnScales &sb,
                                const Meeting &others) {
  std::vector<double> gram(static_cast<std::size_t>(a.cols * b.cols), 0.0);
  std::vector<double> tile_a = make_tile(a);
  std::vector<double> tile_b = make_tile(b);
  for (i64 begin = 0; begin < a.rows; begin += tile_rows) {
    const i64 end = std::min(begin + tile_rows, a.rows);
    load(a, sa, begin, end, tile_a);
    load(b, sb, begin, end, tile_b);
    for (i64 r = 0; r < a.cols; ++r) {
      double *g = gram.data() + r * b.cols;
      for (i64 i = 0; i < end - begin; ++i) {
        const double x = tile_a[static_cast<std::size_t>(i * a.cols + r)];
        const double *y = tile_b.data() + i * b.cols;
        for (i64 s = 0; s < b.cols; ++s)
          g[s] += x * y[s];
      }
    }
  }
  if (others.sum)
    others.sum(gram);
  return gram;
}

} // namespace td
