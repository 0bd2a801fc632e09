// The exact residual. The model of a dense tensor is made where it is compared: a tile of it is the product of rows of
// the Khatri-Rao product of modes 1 and above with the transposed factor of mode 0, all in f64.
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/dense.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 compared_grain = 4096; // entries that are worth a part
constexpr i64 most_compared_parts = 256;
// 64 KiB of the model at a time: it stays in the second-level cache until it is compared.
constexpr i64 tile_fibers = 32;
constexpr i64 tile_columns = 256;

i64 compare_parts(i64 entries) { return parts_of(entries, compared_grain, most_compared_parts); }

/// Adds sum of (x - m)^2, of m^2 and of x m to sum[0 .. 3).
template <class T> void add_differences(const T *values, const double *model, i64 count, double *sum) {
  for (i64 k = 0; k < count; ++k) {
    const auto x = static_cast<double>(values[k]);
    const double difference = x - model[k];
    sum[0] += difference * difference;
    sum[1] += model[k] * model[k];
    sum[2] += x * model[k];
  }
}

template <class T, class View>
void compare_part(const View &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                  double *sum) {
  Batch<T> batch(factors, -1, factors[0].cols);
  std::array<double, batch_size> model;
  for (i64 k = entries.begin; k < entries.end; k += batch_size) {
    const Range some{k, std::min(k + batch_size, entries.end)};
    batch.load(x, some);
    simd::model_values(batch.products(), weights, some.size(), model.data());
    add_differences(batch.products().values, model.data(), some.size(), sum);
  }
}

template <class View>
void compare_sparse(const View &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                    int threads, double *out) {
  const i64 parts = compare_parts(entries.size());
  sum_parts(threads, parts, 3, out, [&](i64 part, double *sum) {
    dispatch(x.type,
             [&](auto zero) { compare_part<decltype(zero)>(x, weights, factors, part_of(entries, part, parts), sum); });
  });
}

template <class T> class DenseCompare {
public:
  DenseCompare(const DenseView &x, const double *weights, std::span<const ConstMatrix> factors)
      : x_(static_cast<const T *>(x.values)), places_(x, 0), length_(x.dims[0]), rank_(factors[0].cols),
        width_(simd::padded(length_, ValueType::f64)),
        first_(Buffer<double>::zeros(rank_ * width_, "a transposed factor")) {
    for (i64 i = 0; i < length_; ++i)
      for (i64 r = 0; r < rank_; ++r)
        first_[r * width_ + i] = weights[r] * static_cast<double>(factors[0].row<T>(i)[r]);
    for (const ConstMatrix &factor : factors.subspan(1)) {
      memory_.emplace_back(factor.rows * rank_, "a factor in f64");
      double *to = memory_.back().data();
      for (i64 i = 0; i < factor.rows; ++i)
        to = std::copy_n(factor.row<T>(i), rank_, to);
      others_.emplace_back(memory_.back().data(), ValueType::f64, factor.rows, rank_, rank_);
    }
  }

  void add(Range entries, double *sum) const {
    KhatriRao<double> others(rank_);
    for (const ConstMatrix &factor : others_)
      others.add_factor(factor);
    Buffer<double> rows(tile_fibers * rank_, "rows of a Khatri-Rao product");
    Buffer<double> model(tile_fibers * tile_columns, "a tile of the model");
    const i64 end = (entries.end + length_ - 1) / length_;
    for (i64 fiber = entries.begin / length_; fiber < end; fiber += tile_fibers) {
      const Range fibers{fiber, std::min(fiber + tile_fibers, end)};
      others.write(fibers, rows.data(), rank_);
      for (i64 column = 0; column < length_; column += tile_columns)
        add_tile(fibers, {column, std::min(column + tile_columns, length_)}, rows.data(), entries, model.data(), sum);
    }
  }

private:
  void add_tile(Range fibers, Range columns, const double *rows, Range entries, double *model, double *sum) const {
    const i64 width = std::min(tile_columns, width_ - columns.begin);
    std::fill_n(model, fibers.size() * width, 0.0);
    simd::add_product(simd::Product<double>{rows, rank_, 1, first_.data() + columns.begin, width_, model, width,
                                            fibers.size(), rank_, width, nullptr});
    for (i64 f = fibers.begin; f < fibers.end; ++f) {
      const Range wanted{std::max(f * length_ + columns.begin, entries.begin),
                         std::min(f * length_ + columns.end, entries.end)};
      const i64 skipped = wanted.begin - (f * length_ + columns.begin);
      const T *values = x_ + places_.right.offset(f) + (wanted.begin - f * length_) * places_.row;
      std::array<T, tile_columns> near;
      if (places_.row > 1) {
        for (i64 k = 0; k < wanted.size(); ++k)
          near[static_cast<std::size_t>(k)] = values[k * places_.row];
        values = near.data();
      }
      add_differences(values, model + (f - fibers.begin) * width + skipped, wanted.size(), sum);
    }
  }

  const T *x_;
  UnfoldingPlaces places_; // of mode 0
  i64 length_;             // of a fiber of mode 0
  i64 rank_;
  i64 width_;
  Buffer<double> first_; // rank x width: weights and factor 0, transposed
  std::vector<Buffer<double>> memory_;
  std::vector<ConstMatrix> others_;
};

void compare_dense(const DenseView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                   int threads, double *out) {
  const InMemoryOrder ordered(x);
  dispatch(x.type, [&](auto zero) {
    const DenseCompare<decltype(zero)> work(ordered.view(), weights, ordered.ordered(factors));
    const i64 parts = compare_parts(entries.size());
    sum_parts(threads, parts, 3, out, [&](i64 part, double *sum) { work.add(part_of(entries, part, parts), sum); });
  });
}

} // namespace

void CpuBackend::compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
                         Range entries, double *out) {
  std::visit(
      [&](const auto &view) {
        if constexpr (std::is_same_v<decltype(view), const DenseView &>)
          compare_dense(view, weights, factors, entries, threads_, out);
        else
          compare_sparse(view, weights, factors, entries, threads_, out);
      },
      x);
}

} // namespace td::kernels::cpu
