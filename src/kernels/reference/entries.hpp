// How the reference reads tensors and matrices: one entry at a time, as the format's definition says.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <variant>

#include "kernels/memory_order.hpp"

namespace td::kernels::reference {

inline i64 field(u128 key, const KeyLayout &layout, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  if (layout.bits[m] == 0)
    return 0;
  return static_cast<i64>(key >> layout.shift[m] & ((u128{1} << layout.bits[m]) - 1));
}

/// The part k belongs to, of consecutive parts that begin at begin[0 .. parts].
inline i64 part_holding(const i64 *begin, i64 parts, i64 k) {
  return std::upper_bound(begin, begin + parts + 1, k) - begin - 1;
}

inline void coordinates(const CooView &x, i64 k, std::span<i64> c) {
  for (std::size_t m = 0; m < c.size(); ++m)
    c[m] = x.indices[m][k];
}

inline void coordinates(const BlcoView &x, i64 k, std::span<i64> c) {
  const auto order = static_cast<int>(c.size());
  const i64 block = part_holding(x.block_begin, x.blocks, k);
  for (int m = 0; m < order; ++m)
    c[static_cast<std::size_t>(m)] = field(x.keys[k], x.layout, m) + x.block_base[block * order + m];
}

inline u128 key_at(const SortedView &x, i64 k) {
  if (x.key_bytes == 4)
    return static_cast<const std::uint32_t *>(x.keys)[k];
  return x.key_bytes == 8 ? static_cast<const u64 *>(x.keys)[k] : static_cast<const u128 *>(x.keys)[k];
}

inline void coordinates(const SortedView &x, i64 k, std::span<i64> c) {
  const u128 key = key_at(x, k);
  const i64 row = part_holding(x.row_begin, x.rows, k);
  const i64 *base = x.tile_base + part_holding(x.tile_begin, x.tiles, row) * static_cast<i64>(c.size());
  for (int m = 0; m < static_cast<int>(c.size()); ++m)
    c[static_cast<std::size_t>(m)] = field(key, x.layout, m) + base[m];
  c[static_cast<std::size_t>(x.mode)] = x.row_index[row];
}

/// Gives the coordinates of entries of a view.
template <class View> class Coordinates {
public:
  explicit Coordinates(const View &x) : x_(x) {}
  void operator()(i64 k, std::span<i64> c) const { coordinates(x_, k, c); }

private:
  const View &x_;
};

/// Elements are numbered in the order of memory, which is found once.
template <> class Coordinates<DenseView> {
public:
  explicit Coordinates(const DenseView &x) : dims_(x.dims), modes_(modes_in_memory(x)) {}
  void operator()(i64 k, std::span<i64> c) const {
    for (std::size_t place = 0; place < c.size(); ++place) {
      const auto m = static_cast<std::size_t>(modes_[place]);
      c[m] = k % dims_[m];
      k /= dims_[m];
    }
  }

private:
  std::span<const i64> dims_;
  std::array<int, max_order> modes_;
};

/// Where the value of entry k lies, whose coordinates are c.
template <class View> i64 place_of(const View &, i64 k, std::span<const i64>) { return k; }
inline i64 place_of(const DenseView &x, i64 k, std::span<const i64> c) {
  if (x.strides.empty())
    return k;
  i64 place = 0;
  for (std::size_t m = 0; m < c.size(); ++m)
    place += x.dims[m] == 1 ? 0 : c[m] * x.strides[m];
  return place;
}

inline double number(const void *values, ValueType type, i64 k) {
  return type == ValueType::f32 ? static_cast<const float *>(values)[k] : static_cast<const double *>(values)[k];
}

/// Calls f(coordinates, value) for the stored entries in `entries`, in stored order.
template <class F> void for_each_entry(const TensorView &x, Range entries, F &&f) {
  std::visit(
      [&](const auto &view) {
        std::array<i64, max_order> storage{};
        const std::span c(storage.data(), view.dims.size());
        const Coordinates<std::decay_t<decltype(view)>> coordinates_of(view);
        for (i64 k = entries.begin; k < entries.end; ++k) {
          coordinates_of(k, c);
          f(std::span<const i64>(c), number(view.values, view.type, place_of(view, k, c)));
        }
      },
      x);
}

inline double element(const ConstMatrix &a, i64 i, i64 r) { return number(a.data, a.type, i * a.ld + r); }

inline void set_element(const Matrix &a, i64 i, i64 r, double value) {
  if (a.type == ValueType::f32)
    a.row<float>(i)[r] = static_cast<float>(value);
  else
    a.row<double>(i)[r] = value;
}

} // namespace td::kernels::reference
