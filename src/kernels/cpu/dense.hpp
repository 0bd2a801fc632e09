// A dense tensor as its unfolding in one mode, without a copy, and rows of Khatri-Rao products, made as they are
// needed.
#pragma once

#include <array>

#include "core/buffer.hpp"
#include "core/runs.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu_model.hpp"
#include "kernels/memory_order.hpp"

namespace td::kernels::cpu {

/// X as left x n x right: element (i, c) of the unfolding, c = l + left * q, is at l + left * (i + n * q).
struct Unfolding {
  i64 left = 1;
  i64 n = 1;
  i64 right = 1;

  Unfolding(std::span<const i64> dims, int mode) {
    for (int m = 0; m < static_cast<int>(dims.size()); ++m)
      (m < mode ? left : m == mode ? n : right) *= dims[static_cast<std::size_t>(m)];
  }
  i64 columns() const { return left * right; }
};

/// Neighbouring modes as one, of a view whose modes are in the order of memory.
class MergedModes {
public:
  MergedModes(std::span<const i64> dims, std::span<const i64> strides) : dims_(dims), strides_(strides) {
    if (dims.empty())
      return;
    const auto [modes, length] = leading_run(dims, strides);
    even_ = modes == dims.size();
    step_ = strides[0];
  }
  /// Whether from each index to the next it is one step, and how long that is.
  bool even() const noexcept { return even_; }
  i64 step() const noexcept { return step_; }

  i64 offset(i64 index) const noexcept {
    if (even_)
      return index * step_;
    i64 offset = 0;
    for (std::size_t m = 0; m < dims_.size(); ++m) {
      offset += index % dims_[m] * strides_[m];
      index /= dims_[m];
    }
    return offset;
  }

private:
  std::span<const i64> dims_, strides_;
  bool even_ = true;
  i64 step_ = 1;
};

/// Where the elements of an unfolding lie: (l, i, q) at left.offset(l) + i * row + right.offset(q).
struct UnfoldingPlaces {
  std::array<i64, max_order> strides; // of all modes
  MergedModes left, right;
  i64 row;

  UnfoldingPlaces(const DenseView &x, int mode)
      : strides(strides_of(x)), left(x.dims.first(place(mode)), std::span(strides).first(place(mode))),
        right(x.dims.subspan(place(mode) + 1),
              std::span(strides).subspan(place(mode) + 1, x.dims.size() - place(mode) - 1)),
        row(strides[place(mode)]) {}
  UnfoldingPlaces(const UnfoldingPlaces &) = delete;
  UnfoldingPlaces &operator=(const UnfoldingPlaces &) = delete;

  /// Whether the elements of the modes before are neighbours.
  bool left_is_one() const { return left.even() && left.step() == 1; }

private:
  static std::size_t place(int mode) { return static_cast<std::size_t>(mode); }
};

/// Rows of the Khatri-Rao product of some factors, the first of them running fastest. The products of the slower
/// factors are kept, so that a row costs one multiplication an element.
template <class T> class KhatriRao {
public:
  explicit KhatriRao(i64 rank) : rank_(rank) {}

  void add_factor(const ConstMatrix &a) { factors_[static_cast<std::size_t>(count_++)] = a; }
  bool empty() const { return count_ == 0; }

  /// to[k * to_ld ..] := row begin + k, for rows in [begin, end).
  void write(Range rows, T *to, i64 to_ld) {
    for_each_run(rows, [&](i64 at, const T *run, i64 ld, i64 count, const T *factor) {
      simd::scale_rows(run, ld, count, factor, rank_, to + at * to_ld, to_ld);
    });
  }

  /// The rows as panels.
  void write_panels(Range rows, T *to) {
    const simd::Panels<T> panels{to, rows.size(), rank_,
                                 factors_[0].rows * factors_[0].ld > middle_bytes / static_cast<i64>(sizeof(T))};
    const ConstMatrix &fast = factors_[0];
    if (count_ == 2 && rows.begin % fast.rows == 0 && rows.size() >= fast.rows) { // many short runs at once
      const i64 runs = rows.size() / fast.rows;
      const ConstMatrix &slow = factors_[1];
      simd::write_panels(panels, 0,
                         {fast.row<T>(0), fast.ld, fast.rows, slow.row<T>(rows.begin / fast.rows), slow.ld, runs});
      rows.begin += runs * fast.rows;
    }
    const i64 first = rows.end - panels.rows;
    for_each_run(rows, [&](i64 at, const T *run, i64 ld, i64 count, const T *factor) {
      simd::write_panels(panels, rows.begin - first + at, {run, ld, count, factor});
    });
  }

private:
  /// Calls body(at, run, ld, count, factor) for rows of the fastest factor that have the product of the others,
  /// `factor`, in common; `at` counts from rows.begin.
  template <class Body> void for_each_run(Range rows, Body &&body) {
    if (slow_.size() == 0)
      slow_ = Buffer<T>(max_count() * rank_, "rows of a Khatri-Rao product");
    const ConstMatrix &fast = factors_[0];
    for (i64 k = rows.begin; k < rows.end;) {
      const i64 index = k % fast.rows;
      const i64 count = std::min(fast.rows - index, rows.end - k);
      body(k - rows.begin, fast.row<T>(index), fast.ld, count, slow_product(k / fast.rows));
      k += count;
    }
  }

  i64 max_count() const { return count_ > 1 ? count_ - 1 : 1; }

  /// The product of factors 1 and above at their linearized index; null if there are none.
  const T *slow_product(i64 position) {
    if (count_ == 1)
      return nullptr;
    std::array<i64, max_order> index{};
    int changed = 0; // the slowest factor whose index is not what it was
    for (int f = 1; f < count_; ++f) {
      const auto m = static_cast<std::size_t>(f);
      index[m] = position % factors_[m].rows;
      position /= factors_[m].rows;
      if (!known_ || index[m] != index_[m])
        changed = f;
    }
    for (int f = changed; f >= 1; --f) {
      const auto m = static_cast<std::size_t>(f);
      const T *slower = f + 1 < count_ ? slow_.data() + f * rank_ : nullptr;
      simd::scale_rows(factors_[m].template row<T>(index[m]), 0, 1, slower, rank_, slow_.data() + (f - 1) * rank_, 0);
    }
    index_ = index;
    known_ = true;
    return slow_.data();
  }

  i64 rank_;
  int count_ = 0;
  std::array<ConstMatrix, max_order> factors_;
  std::array<i64, max_order> index_{};
  bool known_ = false;
  Buffer<T> slow_; // [count - 1][rank]: products of factors f + 1 and above
};

} // namespace td::kernels::cpu
