// Sums over rows of cells: the inner loop of MTTKRP on a partial product. A few registers of columns, or a few cells,
// are summed at a time, so that no addition waits for the one before it.
#include "kernels/cpu/simd.hpp"

#include <algorithm>

#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cells_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr i64 depth_at_once = 64; // cells whose rows stay in the first-level cache while their columns are taken

template <class D, class T> HWY_INLINE hn::Vec<D> load_f64(D d, const T *from) {
  if constexpr (sizeof(T) == sizeof(double))
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), from));
}

/// V registers of columns from `c` on, `Cells` cells at a time.
template <int V, int Cells, class D, class T> void add_columns(D d, const CellTile<T> &x, i64 c) {
  constexpr auto lanes = static_cast<i64>(hn::MaxLanes(d));
  for (i64 i = 0; i < x.rows; ++i) {
    hn::Vec<D> sums[V * Cells];
    for (auto &sum : sums)
      sum = hn::Zero(d);
    const T *HWY_RESTRICT cells = x.cells + i * x.row_cells * x.ld + c;
    const T *HWY_RESTRICT left = x.left + (x.left == nullptr ? 0 : c);
    i64 l = 0;
    for (; x.left != nullptr && l + Cells <= x.depth; l += Cells)
#pragma GCC unroll 8
      for (int k = 0; k < Cells; ++k)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          sums[k * V + v] = hn::MulAdd(load_f64(d, cells + (l + k) * x.ld + v * lanes),
                                       load_f64(d, left + (l + k) * x.rank + v * lanes), sums[k * V + v]);
    for (; l < x.depth; ++l)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const auto cell = load_f64(d, cells + l * x.ld + v * lanes);
        sums[v] = x.left == nullptr ? hn::Add(sums[v], cell)
                                    : hn::MulAdd(cell, load_f64(d, left + l * x.rank + v * lanes), sums[v]);
      }
    double *to = x.sums + i * x.rank + c;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      auto sum = sums[v];
      for (int k = 1; k < Cells; ++k)
        sum = hn::Add(sum, sums[k * V + v]);
      const auto before = hn::LoadU(d, to + v * lanes);
      hn::StoreU(x.right == nullptr ? hn::Add(before, sum)
                                    : hn::MulAdd(sum, load_f64(d, x.right + c + v * lanes), before),
                 d, to + v * lanes);
    }
  }
}

/// Columns from `c` on, which are fewer than 2 * Width, by registers of Width columns and narrower ones.
template <i64 Width, class T> void add_rest(const CellTile<T> &x, i64 c) {
  if constexpr (Width > 0) {
    if (x.rank - c >= Width) {
      add_columns<1, 4>(hn::CappedTag<double, static_cast<std::size_t>(Width)>(), x, c);
      c += Width;
    }
    add_rest<Width / 2>(x, c);
  }
}

template <class T> void add_depth(const CellTile<T> &x) {
  constexpr hn::ScalableTag<double> d;
  constexpr auto lanes = static_cast<i64>(hn::MaxLanes(d));
  i64 c = 0;
  for (; c + 4 * lanes <= x.rank; c += 4 * lanes)
    add_columns<4, 2>(d, x, c);
  for (; c + 2 * lanes <= x.rank; c += 2 * lanes)
    add_columns<2, 2>(d, x, c);
  add_rest<lanes>(x, c);
}

template <class T> void add_all(CellTile<T> x) {
  const i64 depth = x.depth;
  for (i64 l = 0; l < depth; l += depth_at_once) {
    x.depth = std::min(depth_at_once, depth - l);
    add_depth(x);
    x.cells += x.depth * x.ld;
    x.left += x.left == nullptr ? 0 : x.depth * x.rank;
  }
}

void add_cells_f32(const CellTile<float> &x) { add_all(x); }
void add_cells_f64(const CellTile<double> &x) { add_all(x); }

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(add_cells_f32);
HWY_EXPORT(add_cells_f64);

void add_cells(const CellTile<float> &x) { HWY_DYNAMIC_DISPATCH(add_cells_f32)(x); }
void add_cells(const CellTile<double> &x) { HWY_DYNAMIC_DISPATCH(add_cells_f64)(x); }

} // namespace td::kernels::cpu::simd
#endif
