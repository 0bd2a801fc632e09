// A few hundred nonzeros at a time, with the place of each one's row in some factors: what the inner loops work on. The
// arrays stay in the first-level cache.
#pragma once

#include <array>

#include "core/buffer.hpp"
#include "kernels/cpu/decode.hpp"

namespace td::kernels::cpu {

/// Nonzeros of a batch at most.
inline constexpr i64 batch_size = 512;

/// A factor of more than this is not expected to stay in the second-level cache.
inline constexpr i64 near_bytes = i64{1} << 20;

/// The rows of every factor but that of `without` (-1: of every factor).
template <class T> class Batch {
public:
  Batch(std::span<const ConstMatrix> factors, int without, i64 rank)
      : storage_(Buffer<i64>::zeros(static_cast<i64>(factors.size()) * row_length, "a batch of nonzeros")) {
    for (int m = 0; m < static_cast<int>(factors.size()); ++m) {
      if (m == without)
        continue;
      const auto f = static_cast<std::size_t>(count_);
      const ConstMatrix &factor = factors[static_cast<std::size_t>(m)];
      mode_[f] = m;
      ld_[f] = factor.ld;
      factor_[f] = static_cast<const T *>(factor.data);
      offset_[f] = storage_.data() + count_ * row_length;
      ++count_;
      if (factor.rows * factor.ld * static_cast<i64>(sizeof(T)) > near_bytes) {
        const auto far = static_cast<std::size_t>(products_.far++);
        far_factor_[far] = factor_[f];
        far_offset_[far] = offset_[f];
      }
    }
    products_.factors = count_;
    products_.factor = factor_.data();
    products_.offset = offset_.data();
    products_.rank = rank;
    products_.far_factor = far_factor_.data();
    products_.far_offset = far_offset_.data();
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  template <class View> void load(const View &x, Range entries) {
    for (std::size_t f = 0; f < static_cast<std::size_t>(count_); ++f)
      decode(x, mode_[f], entries, ld_[f], offset_[f]);
    products_.values = static_cast<const T *>(x.values) + entries.begin;
  }

  /// Keeps the nonzeros kept[0 .. count), in ascending order; their values are `values`.
  void keep(const i64 *kept, i64 count, const T *values) {
    for (std::size_t f = 0; f < static_cast<std::size_t>(count_); ++f)
      for (i64 k = 0; k < count; ++k)
        offset_[f][k] = offset_[f][kept[k]];
    products_.values = values;
  }

  const simd::RowProducts<T> &products() const noexcept { return products_; }

private:
  // What prefetching reads beyond a batch are rows of the batch before, or row 0.
  static constexpr i64 row_length = batch_size + simd::prefetch_distance;

  int count_ = 0;
  std::array<int, max_order> mode_{};
  std::array<i64, max_order> ld_{};
  std::array<const T *, max_order> factor_{};
  std::array<i64 *, max_order> offset_{};
  std::array<const T *, max_order> far_factor_{};
  std::array<const i64 *, max_order> far_offset_{};
  Buffer<i64> storage_;
  simd::RowProducts<T> products_;
};

} // namespace td::kernels::cpu
