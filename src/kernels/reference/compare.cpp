#include "kernels/reference/backend.hpp"
#include "kernels/reference/entries.hpp"

namespace td::kernels::reference {

void ReferenceBackend::compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
                               Range entries, double *out) {
  double difference = 0;
  double model_square = 0;
  double inner = 0;
  const i64 rank = factors[0].cols;
  for_each_entry(x, entries, [&](std::span<const i64> c, double value) {
    double model = 0;
    for (i64 r = 0; r < rank; ++r) {
      double product = weights[r];
      for (std::size_t m = 0; m < c.size(); ++m)
        product *= element(factors[m], c[m], r);
      model += product;
    }
    difference += (value - model) * (value - model);
    model_square += model * model;
    inner += value * model;
  });
  out[0] = difference;
  out[1] = model_square;
  out[2] = inner;
}

} // namespace td::kernels::reference
