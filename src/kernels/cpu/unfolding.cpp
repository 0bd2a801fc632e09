// y := X_(n) X_(n)^T omega, a few columns of the unfolding at a time: z = x^T omega, then y += x z.
#include <algorithm>
#include <array>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/dense.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 most_fiber_parts = 16;
constexpr i64 part_numbers = i64{1} << 22; // of all parts' sums together, unless one part has more: 32 MiB
constexpr i64 fiber_grain = 4096;          // nonzeros that are worth a part
constexpr i64 fiber_tile_numbers = 32768;  // 256 KiB of X in f64

i64 most_parts_of(const Matrix &y, i64 width) {
  return std::clamp<i64>(part_numbers / (y.rows * width), 1, most_fiber_parts);
}

/// Whether entries k - 1 and k differ in no other mode than `mode`.
bool same_fiber(const CooView &x, int mode, i64 k) {
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m)
    if (m != mode && x.indices[m][k] != x.indices[m][k - 1])
      return false;
  return true;
}

/// Fibers that begin in `entries`, with f64 omega and y of `width` columns each.
template <class T>
void add_fibers(const CooView &x, int mode, Range entries, const double *omega, i64 width, double *z, double *y) {
  const i64 *index = x.indices[mode];
  const T *values = static_cast<const T *>(x.values);
  i64 k = entries.begin;
  while (k > 0 && k < entries.end && same_fiber(x, mode, k)) // began in the part before
    ++k;
  while (k < entries.end) {
    const i64 begin = k;
    std::fill_n(z, width, 0.0);
    do {
      for (i64 s = 0; s < width; ++s)
        z[s] += static_cast<double>(values[k]) * omega[index[k] * width + s];
      ++k;
    } while (k < x.nnz && same_fiber(x, mode, k));
    for (i64 j = begin; j < k; ++j)
      for (i64 s = 0; s < width; ++s)
        y[index[j] * width + s] += static_cast<double>(values[j]) * z[s];
  }
}

/// to[i * count + c] := columns [first, first + count) of the unfolding, in f64.
template <class T>
void pack_columns(const T *x, const Unfolding &shape, const UnfoldingPlaces &places, Range columns, double *to) {
  for (i64 c = columns.begin; c < columns.end; ++c) {
    const T *from = x + places.left.offset(c % shape.left) + places.right.offset(c / shape.left);
    for (i64 i = 0; i < shape.n; ++i)
      to[i * columns.size() + (c - columns.begin)] = static_cast<double>(from[i * places.row]);
  }
}

template <class T>
void add_columns(const T *x, const Unfolding &shape, const UnfoldingPlaces &places, Range columns, const double *omega,
                 i64 width, double *y) {
  const i64 step = std::clamp<i64>(fiber_tile_numbers / shape.n, 8, 256);
  Buffer<double> tile(step * shape.n, "columns of an unfolding");
  Buffer<double> z(step * width, "a product with columns of an unfolding");
  for (i64 c = columns.begin; c < columns.end; c += step) {
    const Range some{c, std::min(c + step, columns.end)};
    const i64 count = some.size();
    pack_columns(x, shape, places, some, tile.data());
    std::fill_n(z.data(), count * width, 0.0);
    simd::add_product(
        simd::Product<double>{tile.data(), 1, count, omega, width, z.data(), width, count, shape.n, width, nullptr});
    simd::add_product(
        simd::Product<double>{tile.data(), count, 1, z.data(), width, y, width, shape.n, count, width, nullptr});
  }
}

} // namespace

void CpuBackend::unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) {
  const i64 width = simd::padded(y.cols, ValueType::f64);
  auto right = Buffer<double>::zeros(y.rows * width, "omega");
  for (i64 i = 0; i < y.rows; ++i)
    std::copy_n(omega.row<double>(i), y.cols, right.data() + i * width);
  Buffer<double> sum(y.rows * width, "the sums of X X^T omega");

  if (const auto *dense = std::get_if<DenseView>(&x)) {
    const InMemoryOrder ordered(*dense);
    const int place = ordered.place_of(mode);
    const Unfolding shape(ordered.view().dims, place);
    const UnfoldingPlaces places(ordered.view(), place);
    const i64 parts = parts_of(shape.columns(), 8, most_parts_of(y, width));
    sum_parts(threads_, parts, y.rows * width, sum.data(), [&](i64 part, double *own) {
      dispatch(dense->type, [&](auto zero) {
        add_columns(static_cast<const decltype(zero) *>(dense->values), shape, places,
                    part_of({0, shape.columns()}, part, parts), right.data(), width, own);
      });
    });
  } else if (const auto *coo = std::get_if<CooView>(&x)) {
    const i64 parts = parts_of(coo->nnz, fiber_grain, most_parts_of(y, width));
    sum_parts(threads_, parts, y.rows * width, sum.data(), [&](i64 part, double *own) {
      Buffer<double> z(width, "a product with a fiber");
      dispatch(coo->type, [&](auto zero) {
        add_fibers<decltype(zero)>(*coo, mode, part_of({0, coo->nnz}, part, parts), right.data(), width, z.data(), own);
      });
    });
  } else {
    throw_error(Status::internal, "unfolding_normal takes a dense tensor or coordinates in fibers, not format {}",
                x.index());
  }
  for (i64 i = 0; i < y.rows; ++i)
    for (i64 s = 0; s < y.cols; ++s)
      y.row<double>(i)[s] = sum[i * width + s] + (add ? y.row<double>(i)[s] : 0);
}

} // namespace td::kernels::cpu
