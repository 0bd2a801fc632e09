#include "kernels/cpu/compare.hpp"

#include <algorithm>
#include <array>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/batch.hpp"
#include "kernels/cpu/parts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 grain = 4096; // entries that are worth a part
constexpr i64 most_parts = 256;

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

template <class View>
void compare_sparse(const View &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                    int threads, double *out) {
  const i64 parts = compare_parts(entries.size());
  sum_parts(threads, parts, 3, out, [&](i64 part, double *sum) {
    dispatch(x.type,
             [&](auto zero) { compare_part<decltype(zero)>(x, weights, factors, part_of(entries, part, parts), sum); });
  });
}

} // namespace

i64 compare_parts(i64 entries) { return parts_of(entries, grain, most_parts); }

void CpuBackend::compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
                         Range entries, double *out) {
  std::visit(
      [&](const auto &view) {
        if constexpr (std::is_same_v<decltype(view), const DenseView &>)
          compare_dense(view, weights, factors, entries, threads_, out);
        else
          compare_sparse(view, weights, factors, entries, threads_, out);
      },
      x);
}

} // namespace td::kernels::cpu
