#include "vector_loops.hpp"

// Vectors of unknown size cannot stand in arrays, which is how the loops hold their accumulators.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cli::loops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A multiply-add takes 4 or 5 cycles and two start in each: 10 chains keep both units busy, 12 are divisible by more
// and fit 16 registers.
constexpr int chains = 12;

double sum_here(const double *HWY_RESTRICT a, std::size_t n) {
  const hn::ScalableTag<double> d;
  const std::size_t width = hn::Lanes(d);
  hn::Vec<decltype(d)> part[8];
  for (auto &p : part)
    p = hn::Zero(d);
  std::size_t k = 0;
  for (; k + 8 * width <= n; k += 8 * width) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j)
      part[j] = hn::Add(part[j], hn::LoadU(d, a + k + j * width));
  }
  for (int j = 1; j < 8; ++j)
    part[0] = hn::Add(part[0], part[j]);
  double total = hn::GetLane(hn::SumOfLanes(d, part[0]));
  for (; k < n; ++k)
    total += a[k];
  return total;
}

void fill_here(double *HWY_RESTRICT a, std::size_t n, double value) {
  const hn::ScalableTag<double> d;
  const std::size_t width = hn::Lanes(d);
  const auto v = hn::Set(d, value);
  std::size_t k = 0;
  for (; k + width <= n; k += width)
    hn::StoreU(v, d, a + k);
  for (; k < n; ++k)
    a[k] = value;
}

template <class T> T multiply_add(std::int64_t steps) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> chain[chains];
  for (int j = 0; j < chains; ++j)
    chain[j] = hn::Set(d, static_cast<T>(j));
  // x := x / 2 + 1 tends to 2: no overflow, no subnormal numbers.
  const auto half = hn::Set(d, T{0.5}), one = hn::Set(d, T{1});
  for (std::int64_t k = 0; k < steps; ++k) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j)
      chain[j] = hn::MulAdd(chain[j], half, one);
  }
  for (int j = 1; j < chains; ++j)
    chain[0] = hn::Add(chain[0], chain[j]);
  return hn::GetLane(hn::SumOfLanes(d, chain[0]));
}

double multiply_add_f64_here(std::int64_t steps) { return multiply_add<double>(steps); }
float multiply_add_f32_here(std::int64_t steps) { return multiply_add<float>(steps); }

template <class T> std::int64_t operations() {
  return 2 * chains * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
std::int64_t operations_f64_here() { return operations<double>(); }
std::int64_t operations_f32_here() { return operations<float>(); }

const char *instructions_here() { return hwy::TargetName(HWY_TARGET); }

} // namespace
} // namespace cli::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cli::loops {

HWY_EXPORT(sum_here);
HWY_EXPORT(fill_here);
HWY_EXPORT(multiply_add_f64_here);
HWY_EXPORT(multiply_add_f32_here);
HWY_EXPORT(operations_f64_here);
HWY_EXPORT(operations_f32_here);
HWY_EXPORT(instructions_here);

double sum(const double *a, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_here)(a, n); }
void fill(double *a, std::size_t n, double value) { HWY_DYNAMIC_DISPATCH(fill_here)(a, n, value); }
double multiply_add_f64(std::int64_t steps) { return HWY_DYNAMIC_DISPATCH(multiply_add_f64_here)(steps); }
float multiply_add_f32(std::int64_t steps) { return HWY_DYNAMIC_DISPATCH(multiply_add_f32_here)(steps); }
std::int64_t operations_f64() { return HWY_DYNAMIC_DISPATCH(operations_f64_here)(); }
std::int64_t operations_f32() { return HWY_DYNAMIC_DISPATCH(operations_f32_here)(); }
const char *instructions() { return HWY_DYNAMIC_DISPATCH(instructions_here)(); }

} // namespace cli::loops
#endif
