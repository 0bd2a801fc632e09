// Small matrix products on tiles that are in cache: 8 rows by 3 registers (4 by 3 where there are only 16 registers),
// so that a step of 24 multiply-adds loads 3 registers and 8 broadcasts. An element of c is one chain of multiply-adds
// over depth whatever tile it falls in, so how a product is cut into rows and columns does not change its bits.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr bool many_registers = HWY_MAX_BYTES >= 64;
constexpr int most_rows = many_registers ? 8 : 4;
constexpr int most_product_registers = 3;

template <class T> HWY_INLINE void add_sum(hn::Vec<hn::ScalableTag<T>> sum, double *HWY_RESTRICT c) {
  const hn::ScalableTag<T> d;
  constexpr i64 width = hn::MaxLanes(d);
  if constexpr (sizeof(T) == sizeof(double)) {
    hn::StoreU(hn::Add(hn::LoadU(d, c), sum), d, c);
  } else {
    HWY_ALIGN T lanes_of_sum[width];
    hn::Store(sum, d, lanes_of_sum);
    for (i64 j = 0; j < width; ++j)
      c[j] += static_cast<double>(lanes_of_sum[j]);
  }
}

template <int M, int V, class T> void tile(const Product<T> &p, i64 row, i64 column) {
  const hn::ScalableTag<T> d;
  constexpr i64 width = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sum[M][V];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v)
      sum[i][v] = hn::Zero(d);

  const T *HWY_RESTRICT a = p.a + row * p.a_row;
  const T *HWY_RESTRICT b = p.b + column;
  for (i64 k = 0; k < p.depth; ++k, a += p.a_depth, b += p.b_ld) {
    hn::Vec<decltype(d)> right[V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v)
      right[v] = hn::LoadU(d, b + v * width);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const auto left = hn::Set(d, a[i * p.a_row]);
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v)
        sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  }

  double *c = p.c + row * p.c_ld + column;
#pragma GCC unroll 3
  for (int v = 0; v < V; ++v) {
    const auto scale = p.scale != nullptr ? hn::LoadU(d, p.scale + column + v * width) : hn::Set(d, T{1});
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
      add_sum<T>(hn::Mul(sum[i][v], scale), c + i * p.c_ld + v * width);
  }
}

template <int M, class T> void with_registers(const Product<T> &p, i64 row, i64 column, i64 registers) {
  switch (registers) {
  case 1:
    return tile<M, 1>(p, row, column);
  case 2:
    return tile<M, 2>(p, row, column);
  default:
    return tile<M, most_product_registers>(p, row, column);
  }
}

template <int M, class T> void with_rows(const Product<T> &p, i64 row, i64 rows, i64 column, i64 registers) {
  if constexpr (M > 1)
    if (rows < M)
      return with_rows<M - 1>(p, row, rows, column, registers);
  with_registers<M>(p, row, column, registers);
}

// Rows and columns are divided evenly, so that no tile is a thin remainder.
template <class T> void add_product_of(const Product<T> &p) {
  constexpr i64 width = hn::MaxLanes(hn::ScalableTag<T>());
  const i64 registers = p.columns / width;
  const i64 row_blocks = (p.rows + most_rows - 1) / most_rows;
  const i64 column_blocks = (registers + most_product_registers - 1) / most_product_registers;
  for (i64 i = 0; i < row_blocks; ++i) {
    const Range rows = part_of({0, p.rows}, i, row_blocks);
    for (i64 j = 0; j < column_blocks; ++j) {
      const Range part = part_of({0, registers}, j, column_blocks);
      with_rows<most_rows>(p, rows.begin, rows.size(), part.begin * width, part.size());
    }
  }
}

template <class T>
void scale_rows_of(const T *HWY_RESTRICT rows, i64 ld, i64 count, const T *HWY_RESTRICT factor, i64 columns,
                   T *HWY_RESTRICT to, i64 to_ld) {
  for (i64 k = 0; k < count; ++k) {
    const T *HWY_RESTRICT row = rows + k * ld;
    T *HWY_RESTRICT out = to + k * to_ld;
    if (factor == nullptr) {
      for (i64 r = 0; r < columns; ++r)
        out[r] = row[r];
    } else {
      for (i64 r = 0; r < columns; ++r)
        out[r] = row[r] * factor[r];
    }
  }
}

void scale_rows_f32(const float *rows, i64 ld, i64 count, const float *factor, i64 columns, float *to, i64 to_ld) {
  scale_rows_of(rows, ld, count, factor, columns, to, to_ld);
}
void scale_rows_f64(const double *rows, i64 ld, i64 count, const double *factor, i64 columns, double *to, i64 to_ld) {
  scale_rows_of(rows, ld, count, factor, columns, to, to_ld);
}
void add_product_f32(const Product<float> &p) { add_product_of(p); }
void add_product_f64(const Product<double> &p) { add_product_of(p); }

i64 lanes_of(ValueType type) {
  return dispatch(type, [](auto zero) { return static_cast<i64>(hn::MaxLanes(hn::ScalableTag<decltype(zero)>())); });
}

const char *name() { return hwy::TargetName(HWY_TARGET); }

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <string_view>

#include <hwy/cache_control.h>

namespace td::kernels::cpu::simd {

HWY_EXPORT(add_product_f32);
HWY_EXPORT(add_product_f64);
HWY_EXPORT(scale_rows_f32);
HWY_EXPORT(scale_rows_f64);
HWY_EXPORT(lanes_of);
HWY_EXPORT(name);

void add_product(const Product<float> &p) { HWY_DYNAMIC_DISPATCH(add_product_f32)(p); }
void add_product(const Product<double> &p) { HWY_DYNAMIC_DISPATCH(add_product_f64)(p); }

void scale_rows(const float *rows, i64 ld, i64 count, const float *factor, i64 columns, float *to, i64 to_ld) {
  HWY_DYNAMIC_DISPATCH(scale_rows_f32)(rows, ld, count, factor, columns, to, to_ld);
}
void scale_rows(const double *rows, i64 ld, i64 count, const double *factor, i64 columns, double *to, i64 to_ld) {
  HWY_DYNAMIC_DISPATCH(scale_rows_f64)(rows, ld, count, factor, columns, to, to_ld);
}

void prefetch(const void *from, i64 bytes) {
  const auto *begin = static_cast<const char *>(from);
  for (i64 at = 0; at < bytes; at += 64)
    hwy::Prefetch(begin + at);
}

i64 lanes(ValueType type) { return HWY_DYNAMIC_DISPATCH(lanes_of)(type); }

const char *target_name() {
  const std::string_view name_in_highway = HWY_DYNAMIC_DISPATCH(name)();
  if (name_in_highway == "AVX3")
    return "AVX-512";
  if (name_in_highway == "AVX2")
    return "AVX2";
  return "baseline instructions";
}

} // namespace td::kernels::cpu::simd
#endif
