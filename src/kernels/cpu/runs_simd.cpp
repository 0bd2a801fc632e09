// Sums over runs of nonzeros: the inner loop of MTTKRP on sorted copies. The columns of a block stay in registers while
// a run is walked.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/runs_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/registers-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

struct SetRuns {
  template <class R, int F, class T>
  static void run(const RowProducts<T> &x, i64 column, i64 tail, std::span<const Run<T>> runs) {
    if (x.far > 0)
      sum<R, F, true>(x, column, tail, runs);
    else
      sum<R, F, false>(x, column, tail, runs);
  }

private:
  template <class R, int F, bool Far, class T>
  static HWY_INLINE void sum(const RowProducts<T> &x, i64 column, i64 tail, std::span<const Run<T>> runs) {
    for (const Run<T> &run : runs) {
      R sum;
      R product;
      sum.clear();
      for (i64 k = run.begin; k < run.end; ++k) {
        if constexpr (Far)
          prefetch_rows<R>(x, column, k);
        product.template set_product<F>(x, column, k, tail);
        sum.add_scaled(x.values[k], product);
      }
      sum.store(run.out + column, tail);
    }
  }
};

void set_runs_f32(const RowProducts<float> &x, std::span<const Run<float>> runs) {
  Blocks<SetRuns, float>::run(x, runs);
}
void set_runs_f64(const RowProducts<double> &x, std::span<const Run<double>> runs) {
  Blocks<SetRuns, double>::run(x, runs);
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(set_runs_f32);
HWY_EXPORT(set_runs_f64);

void set_runs(const RowProducts<float> &x, std::span<const Run<float>> runs) {
  HWY_DYNAMIC_DISPATCH(set_runs_f32)(x, runs);
}
void set_runs(const RowProducts<double> &x, std::span<const Run<double>> runs) {
  HWY_DYNAMIC_DISPATCH(set_runs_f64)(x, runs);
}

} // namespace td::kernels::cpu::simd
#endif
