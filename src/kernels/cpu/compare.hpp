// What Backend::compare adds up.
#pragma once

#include "kernels/views.hpp"

namespace td::kernels::cpu {

/// Adds sum of (x - m)^2, of m^2 and of x m to sum[0 .. 3).
template <class T> void add_differences(const T *values, const double *model, i64 count, double *sum) {
  for (i64 k = 0; k < count; ++k) {
    const auto x = static_cast<double>(values[k]);
    const double difference = x - model[k];
    sum[0] += difference * difference;
    sum[1] += model[k] * model[k];
    sum[2] += x * model[k];
  }
}

void compare_dense(const DenseView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                   int threads, double *out);

/// How many parts so many entries make.
i64 compare_parts(i64 entries);

} // namespace td::kernels::cpu
