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

/// The fibers of mode 0 that hold some of these entries.
Range fibers_of(Range entries, i64 length) { return {entries.begin / length, (entries.end + length - 1) / length}; }

/// It copies only the rows of factors that these entries need: a tensor is compared in many calls, and a factor may be
/// longer than what one of them compares.
template <class T> class DenseCompare {
public:
  DenseCompare(const DenseView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries)
      : x_(static_cast<const T *>(x.values)), places_(x, 0), length_(x.dims[0]), rank_(factors[0].cols),
        columns_(columns_of(entries, length_)), width_(simd::padded(columns_.size(), ValueType::f64)),
        first_(Buffer<double>::zeros(rank_ * width_, "a transposed factor")) {
    for (i64 i = columns_.begin; i < columns_.end; ++i)
      for (i64 r = 0; r < rank_; ++r)
        first_[r * width_ + i - columns_.begin] = weights[r] * static_cast<double>(factors[0].row<T>(i)[r]);
    take_others(factors, fibers_of(entries, length_));
  }

  void add(Range entries, double *sum) const {
    KhatriRao<double> others(rank_);
    for (const ConstMatrix &factor : others_)
      others.add_factor(factor);
    Buffer<double> rows(tile_fibers * rank_, "rows of a Khatri-Rao product");
    Buffer<double> model(tile_fibers * tile_columns, "a tile of the model");
    const Range all = fibers_of(entries, length_);
    for (i64 fiber = all.begin; fiber < all.end; fiber += tile_fibers) {
      const Range fibers{fiber, std::min(fiber + tile_fibers, all.end)};
      others.write({fibers.begin - base_, fibers.end - base_}, rows.data(), rank_);
      for (i64 column = columns_.begin; column < columns_.end; column += tile_columns)
        add_tile(fibers, {column, std::min(column + tile_columns, columns_.end)}, rows.data(), entries, model.data(),
                 sum);
    }
  }

private:
  /// What fibers have of the entries: all of them, or a part of one.
  static Range columns_of(Range entries, i64 length) {
    const Range fibers = fibers_of(entries, length);
    if (fibers.size() != 1)
      return {0, length};
    return {entries.begin - fibers.begin * length, entries.end - fibers.begin * length};
  }

  /// The rows of modes 1 and above that some fibers meet, in f64. Slow modes may have one index there, of the mode
  /// below these there may be a range, of those below that all.
  void take_others(std::span<const ConstMatrix> factors, Range fibers) {
    std::vector<Range> rows(factors.size());
    i64 step = 1; // fibers from one index of a mode to the next
    for (const ConstMatrix &factor : factors.subspan(1))
      step *= factor.rows;
    bool one = true; // index of each mode above
    for (std::size_t m = factors.size() - 1; m > 0; --m) {
      step /= factors[m].rows;
      rows[m] = {0, factors[m].rows};
      if (!one)
        continue;
      rows[m] = {(fibers.begin - base_) / step, (fibers.end - 1 - base_) / step + 1};
      base_ += rows[m].begin * step;
      one = rows[m].size() == 1;
    }
    for (std::size_t m = 1; m < factors.size(); ++m) {
      const ConstMatrix some = factors[m].slice(rows[m].begin, rows[m].end);
      if constexpr (std::is_same_v<T, double>) {
        others_.push_back(some);
        continue;
      }
      memory_.emplace_back(some.rows * rank_, "a factor in f64");
      double *to = memory_.back().data();
      for (i64 i = 0; i < some.rows; ++i)
        to = std::copy_n(some.row<T>(i), rank_, to);
      others_.emplace_back(memory_.back().data(), ValueType::f64, some.rows, rank_, rank_);
    }
  }

  void add_tile(Range fibers, Range columns, const double *rows, Range entries, double *model, double *sum) const {
    const i64 at = columns.begin - columns_.begin;
    const i64 width = std::min(tile_columns, width_ - at);
    std::fill_n(model, fibers.size() * width, 0.0);
    simd::add_product(simd::Product<double>{rows, rank_, 1, first_.data() + at, width_, model, width, fibers.size(),
                                            rank_, width, nullptr});
    for (i64 f = fibers.begin; f < fibers.end; ++f) {
      const Range wanted{std::max(f * length_ + columns.begin, entries.begin),
                         std::min(f * length_ + columns.end, entries.end)};
      if (wanted.size() <= 0) // the first or the last fiber has only some of its entries here
        continue;
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
  Range columns_;        // of the fibers
  i64 width_;            // of these, up to whole registers
  Buffer<double> first_; // rank x width: weights and factor 0, transposed
  std::vector<Buffer<double>> memory_;
  std::vector<ConstMatrix> others_;
  i64 base_ = 0; // the fiber with the first rows of others_
};

void compare_dense(const DenseView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                   int threads, double *out) {
  const InMemoryOrder ordered(x);
  const i64 length = ordered.view().dims[0];
  // The end of a long fiber and the beginning of the next one would need all columns.
  const i64 boundary = entries.begin / length * length + length;
  if (entries.size() < length && boundary < entries.end) {
    double rest[3];
    compare_dense(x, weights, factors, {boundary, entries.end}, threads, rest);
    compare_dense(x, weights, factors, {entries.begin, boundary}, threads, out);
    for (int k = 0; k < 3; ++k)
      out[k] += rest[k];
    return;
  }
  dispatch(x.type, [&](auto zero) {
    const DenseCompare<decltype(zero)> work(ordered.view(), weights, ordered.ordered(factors), entries);
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
