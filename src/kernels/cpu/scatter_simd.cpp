// Nonzeros added to rows that stand in no order: the inner loop of MTTKRP on coordinates and BLCO. In f64 whatever the
// tensor's type, as a row may get any number of them.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scatter_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/registers-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

// Where neighbours in one row come in segments of this length on average, they are summed in registers; where
// segments are shorter, finding their ends costs more (a mispredicted branch each) than writing the row every time.
constexpr i64 long_segment = 4;

struct AddRows {
  template <class R, int F, class T> static void run(const RowProducts<T> &x, i64 column, i64 tail, const Rows &rows) {
    if (rows.changes * long_segment < rows.count)
      segments<R, F>(x, column, tail, rows);
    else if (x.far > 0 || rows.far)
      each<R, F, true>(x, column, tail, rows);
    else
      each<R, F, false>(x, column, tail, rows);
  }

private:
  template <class R, int F, bool Far, class T>
  static HWY_INLINE void each(const RowProducts<T> &x, i64 column, i64 tail, const Rows &rows) {
    double *HWY_RESTRICT out = rows.out + column;
    for (i64 k = 0; k < rows.count; ++k) {
      R product;
      R sum;
      if constexpr (Far) {
        prefetch_rows<R>(x, column, k);
        if (rows.far)
          prefetch_row<R>(out + rows.offset[k + prefetch_distance]);
      }
      product.template set_product<F>(x, column, k, tail);
      sum.set(out + rows.offset[k], tail);
      sum.add_scaled(static_cast<double>(x.values[k]), product);
      sum.store(out + rows.offset[k], tail);
    }
  }

  template <class R, int F, class T>
  static HWY_INLINE void segments(const RowProducts<T> &x, i64 column, i64 tail, const Rows &rows) {
    double *HWY_RESTRICT out = rows.out + column;
    for (i64 k = 0; k < rows.count;) {
      const i64 offset = rows.offset[k];
      R product;
      R sum;
      sum.set(out + offset, tail);
      do {
        prefetch_rows<R>(x, column, k);
        product.template set_product<F>(x, column, k, tail);
        sum.add_scaled(static_cast<double>(x.values[k]), product);
        ++k;
      } while (k < rows.count && rows.offset[k] == offset);
      sum.store(out + offset, tail);
    }
  }
};

i64 changes_of(const i64 *HWY_RESTRICT offset, i64 count) {
  i64 changes = 0;
  for (i64 k = 1; k < count; ++k)
    changes += offset[k] != offset[k - 1] ? 1 : 0;
  return changes;
}

void add_rows_f32(const RowProducts<float> &x, const Rows &rows) { Blocks<AddRows, double>::run(x, rows); }
void add_rows_f64(const RowProducts<double> &x, const Rows &rows) { Blocks<AddRows, double>::run(x, rows); }

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(changes_of);
HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_f64);

Rows::Rows(double *to, const i64 *offsets, i64 nonzeros, bool prefetch)
    : out(to), offset(offsets), count(nonzeros), far(prefetch),
      changes(HWY_DYNAMIC_DISPATCH(changes_of)(offsets, nonzeros)) {}

void add_rows(const RowProducts<float> &x, const Rows &rows) { HWY_DYNAMIC_DISPATCH(add_rows_f32)(x, rows); }
void add_rows(const RowProducts<double> &x, const Rows &rows) { HWY_DYNAMIC_DISPATCH(add_rows_f64)(x, rows); }

} // namespace td::kernels::cpu::simd
#endif
