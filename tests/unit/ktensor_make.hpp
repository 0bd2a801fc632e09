// Ktensors and arrays for tests.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "core/ktensor.hpp"

namespace td::test {

/// A ktensor of these weights and column-major factors.
inline Ktensor make_ktensor(const std::vector<i64> &dims, const std::vector<double> &weights,
                            const std::vector<std::vector<double>> &factors) {
  Ktensor k(dims, static_cast<i64>(weights.size()), ValueType::f64);
  std::copy(weights.begin(), weights.end(), k.weights().begin());
  for (std::size_t m = 0; m < dims.size(); ++m)
    k.set_factor(static_cast<int>(m), factors[m].data(), dims[m]);
  return k;
}

/// Entries uniform in [-1, 1), weights 1.
inline Ktensor random_ktensor(const std::vector<i64> &dims, i64 rank, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::vector<double>> factors;
  for (i64 d : dims) {
    factors.emplace_back(static_cast<std::size_t>(d * rank));
    for (double &x : factors.back())
      x = uniform(random);
  }
  return make_ktensor(dims, std::vector<double>(static_cast<std::size_t>(rank), 1.0), factors);
}

/// First index fastest.
inline std::vector<double> full_array(const Ktensor &k) {
  i64 count = 1;
  for (i64 d : k.dims())
    count *= d;
  std::vector<double> values(static_cast<std::size_t>(count));
  full(k, {}, ValueType::f64, values.data());
  return values;
}

inline std::vector<double> column(const Ktensor &k, int mode, i64 r) {
  const ConstMatrix a = k.factor(mode);
  std::vector<double> out;
  for (i64 i = 0; i < a.rows; ++i)
    out.push_back(a.type == ValueType::f64 ? a.row<double>(i)[r] : static_cast<double>(a.row<float>(i)[r]));
  return out;
}

inline double length(const std::vector<double> &x) {
  double s = 0;
  for (double v : x)
    s += v * v;
  return std::sqrt(s);
}

} // namespace td::test
