#include <vector>

#include "core/buffer.hpp"
#include "core/strides.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/reference/entries.hpp"

namespace td::kernels::reference {

namespace {

/// One column of the unfolding: the entries that differ only in `mode`.
struct Fiber {
  std::vector<i64> index; // in `mode`
  std::vector<double> value;
};

// y += x (x^T omega) for the column x that a fiber holds.
void add_fiber(const Fiber &fiber, const ConstMatrix &omega, i64 column, double *y) {
  double z = 0;
  for (std::size_t k = 0; k < fiber.index.size(); ++k)
    z += fiber.value[k] * element(omega, fiber.index[k], column);
  for (std::size_t k = 0; k < fiber.index.size(); ++k)
    y[fiber.index[k]] += fiber.value[k] * z;
}

template <class F> void for_each_fiber(const DenseView &x, int mode, F &&f) {
  const InMemoryOrder ordered(x);
  const DenseView &view = ordered.view();
  const auto strides = strides_of(view);
  const auto at = static_cast<std::size_t>(ordered.place_of(mode));
  std::vector<i64> others(view.dims.begin(), view.dims.end());
  others[at] = 1;
  Fiber fiber;
  for_each_element(others, std::span(strides).first(others.size()), [&](i64, i64 offset, const auto &) {
    fiber = {};
    for (i64 i = 0; i < view.dims[at]; ++i) {
      fiber.index.push_back(i);
      fiber.value.push_back(number(view.values, view.type, offset + i * strides[at]));
    }
    f(fiber);
  });
}

template <class F> void for_each_fiber(const CooView &x, int mode, F &&f) {
  Fiber fiber;
  for (i64 k = 0; k < x.nnz; ++k) {
    for (int m = 0; m < static_cast<int>(x.dims.size()) && k > 0; ++m)
      if (m != mode && x.indices[m][k] != x.indices[m][k - 1]) {
        f(fiber);
        fiber = {};
        break;
      }
    fiber.index.push_back(x.indices[mode][k]);
    fiber.value.push_back(number(x.values, x.type, k));
  }
  f(fiber);
}

} // namespace

void ReferenceBackend::unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) {
  for (i64 column = 0; column < y.cols; ++column) {
    auto sums = Buffer<double>::zeros(y.rows, "the sums of X X^T omega");
    const auto sum = [&](const Fiber &fiber) { add_fiber(fiber, omega, column, sums.data()); };
    if (const auto *dense = std::get_if<DenseView>(&x))
      for_each_fiber(*dense, mode, sum);
    else if (const auto *coo = std::get_if<CooView>(&x))
      for_each_fiber(*coo, mode, sum);
    else
      throw_error(Status::internal, "unfolding_normal takes a dense tensor or coordinates in fibers, not format {}",
                  x.index());
    for (i64 i = 0; i < y.rows; ++i)
      set_element(y, i, column, sums[i] + (add ? element(y, i, column) : 0));
  }
}

} // namespace td::kernels::reference
