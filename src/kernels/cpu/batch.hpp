// A few hundred nonzeros at a time, with the place of each one's row in some factors: what the inner loops work on. The
// arrays stay in the first-level cache.
#pragma once

#include <array>

#include "core/buffer.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/views.hpp"

namespace td::kernels::cpu {

// Where each entry of a range stands in one mode, for every sparse format: to[k - entries.begin] = index.
void decode(const CooView &x, int mode, Range entries, simd::Index *to);
void decode(const BlcoView &x, int mode, Range entries, simd::Index *to);
void decode(const SortedView &x, int mode, Range entries, simd::Index *to);

/// The entries are of one tile, the mode is another than the sorted one.
void decode_tile(const SortedView &x, i64 tile, int mode, Range entries, simd::Index *to);

/// The part k belongs to, of consecutive parts that begin at begin[0 .. parts]; parts if k is at or past the end.
i64 part_holding(const i64 *begin, i64 parts, i64 k);

using simd::batch_size;

/// Rows of a factor of more than this come from memory and are prefetched: what out-of-order execution reaches ahead
/// hides a cache's latency, and asking twice for each line costs more than it saves there.
inline constexpr i64 prefetched_bytes = i64{16} << 20;

/// The rows of every factor but that of `without` (-1: of every factor).
template <class T> class Batch {
public:
  Batch(std::span<const ConstMatrix> factors, int without, i64 rank)
      : index_(
            Buffer<simd::Index>::zeros(static_cast<i64>(factors.size()) * simd::index_length, "a batch of nonzeros")) {
    const auto order = static_cast<int>(factors.size());
    for (const bool far : {true, false}) {
      for (int m = 0; m < order; ++m)
        if (m != without && is_far(factors[static_cast<std::size_t>(m)]) == far)
          add(factors[static_cast<std::size_t>(m)], m);
      if (far)
        products_.far = products_.factors;
    }
    products_.factor = factor_.data();
    products_.index = index_.data();
    products_.rank = rank;
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  template <class View> void load(const View &x, Range entries) {
    load_with(x, entries, [&](int mode, simd::Index *to) { decode(x, mode, entries, to); });
  }
  /// The entries are of one tile.
  void load(const SortedView &x, i64 tile, Range entries) {
    // A batch is decoded at the speed of memory unless it was asked for while the one before was worked on.
    const i64 ahead = std::min(entries.end + batch_size, x.nnz);
    const i64 count = std::min(entries.size(), x.nnz - ahead);
    simd::prefetch(static_cast<const std::byte *>(x.keys) + ahead * x.key_bytes, count * x.key_bytes);
    simd::prefetch(static_cast<const std::byte *>(x.values) + ahead * size_of(x.type), count * size_of(x.type));
    load_with(x, entries, [&](int mode, simd::Index *to) { decode_tile(x, tile, mode, entries, to); });
  }

  /// Keeps the nonzeros kept[0 .. count), in ascending order; their values are `values`.
  void keep(const i64 *kept, i64 count, const T *values) {
    for (int f = 0; f < products_.factors; ++f)
      for (i64 k = 0; k < count; ++k)
        index(f)[k] = index(f)[kept[k]];
    products_.values = values;
  }

  const simd::RowProducts<T> &products() const noexcept { return products_; }

private:
  static bool is_far(const ConstMatrix &a) { return a.rows * a.ld * static_cast<i64>(sizeof(T)) > prefetched_bytes; }

  void add(const ConstMatrix &a, int mode) {
    if (products_.factors > 0 && a.ld != products_.ld)
      throw_error(Status::internal, "factors with leading dimensions {} and {}, expected one", products_.ld, a.ld);
    if (a.rows > i64{1} << 32)
      throw_error(Status::unsupported, "a factor of {} rows: the CPU backend takes up to 2^32", a.rows);
    const auto f = static_cast<std::size_t>(products_.factors++);
    mode_[f] = mode;
    factor_[f] = static_cast<const T *>(a.data);
    products_.ld = a.ld;
  }

  // What prefetching reads beyond a batch are rows of the batch before, or row 0.
  simd::Index *index(int f) { return index_.data() + f * simd::index_length; }

  template <class View, class Decode> void load_with(const View &x, Range entries, Decode &&decode_mode) {
    for (int f = 0; f < products_.factors; ++f)
      decode_mode(mode_[static_cast<std::size_t>(f)], index(f));
    products_.values = x.type == value_type_of<T>
                           ? static_cast<const T *>(x.values) + entries.begin
                           : widened(static_cast<const float *>(x.values) + entries.begin, entries.size());
  }

  /// Values of an f32 tensor whose sums are f64.
  const T *widened(const float *values, i64 count) {
    if (wide_.size() == 0)
      wide_ = Buffer<T>(batch_size, "the values of a batch");
    std::copy_n(values, count, wide_.data());
    return wide_.data();
  }

  std::array<int, max_order> mode_{};
  std::array<const T *, max_order> factor_{};
  Buffer<simd::Index> index_; // [factors][index_length]
  Buffer<T> wide_;
  simd::RowProducts<T> products_;
};

} // namespace td::kernels::cpu
