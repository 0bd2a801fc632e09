#include "core/columns.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/parallel.hpp"

namespace td {

namespace {

// 2^1000 is the largest scale; a column of subnormals is then at least 2^-74.
constexpr int smallest_exponent = -1000;

constexpr i64 tile_rows = 64;
// Sums of so many rows are added up in their order, however many threads take them.
constexpr i64 block_rows = i64{1} << 16;

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
  std::mutex mutex;
  parallel_ranges(others.threads, a.rows, rows_worth_a_thread(a.cols), [&](Range rows) {
    std::vector<double> own(cols, 0.0);
    dispatch(a.type, [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = rows.begin; i < rows.end; ++i) {
        const T *row = a.row<T>(i);
        for (std::size_t r = 0; r < cols; ++r)
          own[r] = std::max(own[r], std::abs(static_cast<double>(row[r])));
      }
    });
    const std::lock_guard lock(mutex);
    for (std::size_t r = 0; r < cols; ++r)
      largest[r] = std::max(largest[r], own[r]);
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
  const auto cols = static_cast<std::size_t>(a.cols);
  const i64 blocks = (a.rows + block_rows - 1) / block_rows;
  std::vector<double> sums(static_cast<std::size_t>(blocks) * cols, 0.0); // of each block
  parallel_ranges(others.threads, blocks, 1, [&](Range some) {
    std::vector<double> tile = make_tile(a);
    for (i64 block = some.begin; block < some.end; ++block) {
      double *const of_block = sums.data() + static_cast<std::size_t>(block) * cols;
      const i64 last = std::min((block + 1) * block_rows, a.rows);
      for (i64 begin = block * block_rows; begin < last; begin += tile_rows) {
        const i64 end = std::min(begin + tile_rows, last);
        load(a, scales, begin, end, tile);
        const double *row = tile.data();
        for (i64 i = begin; i < end; ++i, row += a.cols)
          for (std::size_t r = 0; r < cols; ++r)
            of_block[r] += row[r] * row[r];
      }
    }
  });
  std::vector<double> squares(cols, 0.0);
  for (std::size_t k = 0; k < sums.size(); ++k)
    squares[k % cols] += sums[k];
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
  std::vector<double> more(a.rows > block_rows ? gram.size() : 0); // of a block after the first
  std::vector<double> tile_a = make_tile(a);
  std::vector<double> tile_b = make_tile(b);
  for (i64 begin = 0; begin < a.rows; begin += tile_rows) {
    const i64 end = std::min(begin + tile_rows, a.rows);
    load(a, sa, begin, end, tile_a);
    load(b, sb, begin, end, tile_b);
    std::vector<double> &sums = begin < block_rows ? gram : more;
    for (i64 r = 0; r < a.cols; ++r) {
      double *g = sums.data() + r * b.cols;
      for (i64 i = 0; i < end - begin; ++i) {
        const double x = tile_a[static_cast<std::size_t>(i * a.cols + r)];
        const double *y = tile_b.data() + i * b.cols;
        for (i64 s = 0; s < b.cols; ++s)
          g[s] += x * y[s];
      }
    }
    if (begin >= block_rows && (end == a.rows || end % block_rows == 0)) {
      std::transform(gram.begin(), gram.end(), more.begin(), gram.begin(), std::plus<>());
      std::fill(more.begin(), more.end(), 0.0);
    }
  }
  if (others.sum)
    others.sum(gram);
  return gram;
}

} // namespace td
