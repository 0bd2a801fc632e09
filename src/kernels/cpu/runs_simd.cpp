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

// A run of this length is summed in two halves, every other nonzero, if the registers allow: else each nonzero waits
// for the addition before it (4 cycles, where reading the rows of R = 16 takes 2 to 6).
constexpr i64 long_run = 8;
constexpr int registers_for_two = 4;

struct SumRuns {
  template <class R, int F, class T>
  static void run(const RowProducts<T> &x, i64 column, i64 tail, std::span<const Run<T>> runs, bool add) {
    if (x.far > 0)
      sum<R, F, true>(x, column, tail, runs, add);
    else
      sum<R, F, false>(x, column, tail, runs, add);
  }

private:
  template <class R, int F, bool Far, class T>
  static HWY_INLINE void sum(const RowProducts<T> &given, i64 column, i64 tail, std::span<const Run<T>> runs,
                             bool add) {
    const Local<F, T> local(given);
    const RowProducts<T> x = local.get();
    for (const Run<T> &run : runs) {
      R total;
      R product;
      total.clear();
      i64 k = run.begin;
      if (R::count <= registers_for_two && run.end - k >= long_run) {
        R other;
        other.clear();
        for (; k + 1 < run.end; k += 2) {
          R second;
          if constexpr (Far) {
            prefetch_rows<R>(x, column, k);
            prefetch_rows<R>(x, column, k + 1);
          }
          product.template set_product<F>(x, column, k, tail);
          second.template set_product<F>(x, column, k + 1, tail);
          total.add_scaled(x.values[k], product);
          other.add_scaled(x.values[k + 1], second);
        }
        total.add(other);
      }
      for (; k < run.end; ++k) {
        if constexpr (Far)
          prefetch_rows<R>(x, column, k);
        product.template set_product<F>(x, column, k, tail);
        total.add_scaled(x.values[k], product);
      }
      if (add) {
        product.set(run.out + column, tail);
        total.add(product);
      }
      total.store(run.out + column, tail);
    }
  }
};

void sum_runs_f32(const RowProducts<float> &x, std::span<const Run<float>> runs, bool add) {
  Blocks<SumRuns, float>::run(x, runs, add);
}
void sum_runs_f64(const RowProducts<double> &x, std::span<const Run<double>> runs, bool add) {
  Blocks<SumRuns, double>::run(x, runs, add);
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(sum_runs_f32);
HWY_EXPORT(sum_runs_f64);

void sum_runs(const RowProducts<float> &x, std::span<const Run<float>> runs, bool add) {
  HWY_DYNAMIC_DISPATCH(sum_runs_f32)(x, runs, add);
}
void sum_runs(const RowProducts<double> &x, std::span<const Run<double>> runs, bool add) {
  HWY_DYNAMIC_DISPATCH(sum_runs_f64)(x, runs, add);
}

} // namespace td::kernels::cpu::simd
#endif
