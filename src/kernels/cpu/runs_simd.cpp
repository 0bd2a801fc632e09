// Sums over runs of nonzeros: the inner loop of every sparse MTTKRP. Columns are taken in blocks of up to eight
// registers that hold the sums while the run is walked. Where the rank is no multiple of the register, the last
// register of a row overlaps the one before it: its first lanes repeat what that one holds, bit for bit, so no loop has
// a remainder and no load leaves the row.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/runs_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int most_registers = 8; // half of what AVX2 has, a quarter of AVX-512: the rest holds rows and products

/// A block of columns: register v begins at column v * lanes, the last one at column `last`.
struct Columns {
  i64 begin;
  i64 last; // counted from begin
};

template <class D, int V> constexpr i64 column_of(int v, i64 last) {
  return v == V - 1 ? last : v * static_cast<i64>(hn::MaxLanes(D()));
}

// F factor matrices; 0: as many as x says.
template <class D, int V, int F, class T = hn::TFromD<D>>
HWY_INLINE void sum_run(D d, const RowProducts<T> &x, Columns columns, int begin, int end,
                        hn::Vec<D> *HWY_RESTRICT sum) {
  const int factors = F > 0 ? F : x.factors;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v)
    sum[v] = hn::Zero(d);
  for (int k = begin; k < end; ++k) {
    const auto value = hn::Set(d, x.values[k]);
    const T *HWY_RESTRICT first = x.factor[0] + x.offset[0][k] + columns.begin;
    hn::Vec<D> product[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      product[v] = hn::LoadU(d, first + column_of<D, V>(v, columns.last));
    for (int f = 1; f < factors; ++f) {
      const T *HWY_RESTRICT row = x.factor[f] + x.offset[f][k] + columns.begin;
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        product[v] = hn::Mul(product[v], hn::LoadU(d, row + column_of<D, V>(v, columns.last)));
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sum[v] = hn::MulAdd(value, product[v], sum[v]);
  }
}

template <bool Add, class D, int V, class T, class Out>
HWY_INLINE void store_sum(D d, const hn::Vec<D> *HWY_RESTRICT sum, Columns columns, Out *out) {
  out += columns.begin;
  if constexpr (!Add) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      hn::StoreU(sum[v], d, out + column_of<D, V>(v, columns.last));
  } else if constexpr (sizeof(T) == sizeof(Out)) {
    hn::Vec<D> total[V]; // all before the first store: registers overlap
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      total[v] = hn::Add(sum[v], hn::LoadU(d, out + column_of<D, V>(v, columns.last)));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      hn::StoreU(total[v], d, out + column_of<D, V>(v, columns.last));
  } else {
    constexpr i64 width = hn::MaxLanes(D());
    HWY_ALIGN T sums[V * width];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      hn::StoreU(sum[v], d, sums + column_of<D, V>(v, columns.last));
    for (i64 c = 0; c < columns.last + width; ++c)
      out[c] += static_cast<Out>(sums[c]);
  }
}

template <bool Add, class D, int V, int F, class T, class Out>
void sum_runs(const RowProducts<T> &x, std::span<const Run<Out>> runs, Columns columns) {
  const D d;
  hn::Vec<D> sum[V];
  for (const Run<Out> &run : runs) {
    sum_run<D, V, F>(d, x, columns, run.begin, run.end, sum);
    store_sum<Add, D, V, T>(d, sum, columns, run.out);
  }
}

template <bool Add, class D, int V, class T, class Out>
void with_factors(const RowProducts<T> &x, std::span<const Run<Out>> runs, Columns columns) {
  switch (x.factors) {
  case 1:
    return sum_runs<Add, D, V, 1>(x, runs, columns);
  case 2:
    return sum_runs<Add, D, V, 2>(x, runs, columns);
  case 3:
    return sum_runs<Add, D, V, 3>(x, runs, columns);
  default:
    return sum_runs<Add, D, V, 0>(x, runs, columns);
  }
}

template <bool Add, class D, class T, class Out>
void with_registers(const RowProducts<T> &x, std::span<const Run<Out>> runs, int registers, Columns columns) {
  switch (registers) {
  case 1:
    return with_factors<Add, D, 1>(x, runs, columns);
  case 2:
    return with_factors<Add, D, 2>(x, runs, columns);
  case 3:
    return with_factors<Add, D, 3>(x, runs, columns);
  case 4:
    return with_factors<Add, D, 4>(x, runs, columns);
  case 5:
    return with_factors<Add, D, 5>(x, runs, columns);
  case 6:
    return with_factors<Add, D, 6>(x, runs, columns);
  case 7:
    return with_factors<Add, D, 7>(x, runs, columns);
  default:
    return with_factors<Add, D, most_registers>(x, runs, columns);
  }
}

// Ranks below a full register take a narrower one, at most half empty.
template <bool Add, i64 Width, class T, class Out>
void narrow(const RowProducts<T> &x, std::span<const Run<Out>> runs) {
  if constexpr (Width > 1)
    if (x.rank < Width)
      return narrow<Add, Width / 2>(x, runs);
  using D = hn::CappedTag<T, Width>;
  if (x.rank == Width)
    sum_runs<Add, D, 1, 0>(x, runs, {0, 0});
  else
    sum_runs<Add, D, 2, 0>(x, runs, {0, x.rank - Width});
}

template <bool Add, class T, class Out> void all_columns(const RowProducts<T> &x, std::span<const Run<Out>> runs) {
  using D = hn::ScalableTag<T>;
  constexpr i64 width = hn::MaxLanes(D());
  if (x.rank < width) {
    if constexpr (width > 1)
      narrow<Add, width / 2>(x, runs);
    return;
  }
  const i64 registers = (x.rank + width - 1) / width;
  const i64 blocks = (registers + most_registers - 1) / most_registers;
  for (i64 block = 0; block < blocks; ++block) {
    const Range part = part_of({0, registers}, block, blocks);
    const i64 end = part.end * width < x.rank ? part.end * width : x.rank;
    const i64 begin = part.begin * width;
    with_registers<Add, D>(x, runs, static_cast<int>(part.size()), {begin, end - width - begin});
  }
}

void set_runs_f32(const RowProducts<float> &x, std::span<const Run<float>> runs) { all_columns<false>(x, runs); }
void set_runs_f64(const RowProducts<double> &x, std::span<const Run<double>> runs) { all_columns<false>(x, runs); }
void add_runs_f32(const RowProducts<float> &x, std::span<const Run<double>> runs) { all_columns<true>(x, runs); }
void add_runs_f64(const RowProducts<double> &x, std::span<const Run<double>> runs) { all_columns<true>(x, runs); }

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(set_runs_f32);
HWY_EXPORT(set_runs_f64);
HWY_EXPORT(add_runs_f32);
HWY_EXPORT(add_runs_f64);

void set_runs(const RowProducts<float> &x, std::span<const Run<float>> runs) {
  HWY_DYNAMIC_DISPATCH(set_runs_f32)(x, runs);
}
void set_runs(const RowProducts<double> &x, std::span<const Run<double>> runs) {
  HWY_DYNAMIC_DISPATCH(set_runs_f64)(x, runs);
}
void add_runs(const RowProducts<float> &x, std::span<const Run<double>> runs) {
  HWY_DYNAMIC_DISPATCH(add_runs_f32)(x, runs);
}
void add_runs(const RowProducts<double> &x, std::span<const Run<double>> runs) {
  HWY_DYNAMIC_DISPATCH(add_runs_f64)(x, runs);
}

} // namespace td::kernels::cpu::simd
#endif
