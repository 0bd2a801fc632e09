// The model's value at each nonzero of a batch. Where the rank is no multiple of the register, the last one overlaps
// the one before it and the weights of the lanes that came before are 0.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/model_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T> HWY_INLINE hn::Vec<D> load_f64(D d, const T *from) {
  if constexpr (sizeof(T) == sizeof(double))
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), from));
}

template <class D, class T>
void values_with(D d, const RowProducts<T> &x, const double *HWY_RESTRICT weights, i64 count,
                 double *HWY_RESTRICT model) {
  constexpr i64 width = hn::MaxLanes(d);
  const i64 last = x.rank - width;
  alignas(64) double last_weights[static_cast<std::size_t>(width)];
  const i64 repeated = (width - x.rank % width) % width;
  for (i64 c = 0; c < width; ++c)
    last_weights[c] = c < repeated ? 0.0 : weights[last + c];
  for (i64 k = 0; k < count; ++k) {
    auto sum = hn::Zero(d);
    for (i64 c = 0; c < x.rank; c += width) {
      const bool at_end = c >= last;
      const i64 column = at_end ? last : c;
      auto product = hn::LoadU(d, at_end ? last_weights : weights + c);
      for (int f = 0; f < x.factors; ++f)
        product = hn::Mul(product, load_f64(d, x.row(f, k) + column));
      sum = hn::Add(sum, product);
    }
    model[k] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

template <i64 Width, class T>
void fitting_width(const RowProducts<T> &x, const double *weights, i64 count, double *model) {
  if constexpr (Width > 1)
    if (x.rank < Width)
      return fitting_width<Width / 2>(x, weights, count, model);
  values_with(hn::CappedTag<double, Width>(), x, weights, count, model);
}

constexpr i64 full = hn::MaxLanes(hn::ScalableTag<double>());

void model_values_f32(const RowProducts<float> &x, const double *weights, i64 count, double *model) {
  fitting_width<full>(x, weights, count, model);
}
void model_values_f64(const RowProducts<double> &x, const double *weights, i64 count, double *model) {
  fitting_width<full>(x, weights, count, model);
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(model_values_f32);
HWY_EXPORT(model_values_f64);

void model_values(const RowProducts<float> &x, const double *weights, i64 count, double *model) {
  HWY_DYNAMIC_DISPATCH(model_values_f32)(x, weights, count, model);
}
void model_values(const RowProducts<double> &x, const double *weights, i64 count, double *model) {
  HWY_DYNAMIC_DISPATCH(model_values_f64)(x, weights, count, model);
}

} // namespace td::kernels::cpu::simd
#endif
