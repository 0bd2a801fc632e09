#include <algorithm>
#include <array>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 grain = 4096; // entries that are worth a part
constexpr i64 most_parts = 256;

template <class T> void add_differences(const T *values, const double *model, i64 count, double *sum) {
  for (i64 k = 0; k < count; ++k) {
    const auto x = static_cast<double>(values[k]);
    const double difference = x - model[k];
    sum[0] += difference * difference;
    sum[1] += model[k] * model[k];
    sum[2] += x * model[k];
  }
}

template <class T, class View>
void compare_part(const View &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                  double *sum) {
  Batch<T> batch(factors, -1, factors[0].cols);
  std::array<double, batch_size> model;
  for (i64 k = entries.begin; k < entries.end; k += batch_size) {
    const Range some{k, std::min(k + batch_size, entries.end)};
    batch.load(x, some);
    simd::model_values(batch.products(), weights, some.size(), model.data());
    add_differences(batch.products().values, model.data(), some.size(), sum);
  }
}

} // namespace

void CpuBackend::compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
                         Range entries, double *out) {
  const i64 parts = parts_of(entries.size(), grain, most_parts);
  std::visit(
      [&](const auto &view) {
        sum_parts(threads_, parts, 3, out, [&](i64 part, double *sum) {
          dispatch(view.type, [&](auto zero) {
            compare_part<decltype(zero)>(view, weights, factors, part_of(entries, part, parts), sum);
          });
        });
      },
      x);
}

} // namespace td::kernels::cpu
