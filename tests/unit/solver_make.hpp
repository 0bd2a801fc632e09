// Tensors, backends and runs for tests of the solvers.
#pragma once

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/relayout.hpp"
#include "kernels/loader.hpp"
#include "kernels/reference/backend.hpp"
#include "solvers/cpals.hpp"
#include "solvers/mttkrp.hpp"
#include "tensor/export.hpp"
#include "tensor/tensor.hpp"
#include "unit/ktensor_make.hpp"

namespace td::test {

using TensorPointer = std::shared_ptr<const tensor::Tensor>;
using Backends = std::vector<std::shared_ptr<kernels::Backend>>;

/// MTTKRP as a caller asks for it, with column-major arrays on the host; out := the result.
inline void mttkrp_of_columns(const Backends &backends, const tensor::Tensor &x, int mode,
                              std::span<const ConstMatrix> factors, Matrix out) {
  std::vector<Buffer<double>> arrays; // room for either type
  const auto columns = [&](i64 rows) {
    arrays.push_back(Buffer<double>::zeros(rows * out.cols, "a test"));
    return Matrix{arrays.back().data(), out.type, out.cols, rows, rows};
  };
  solvers::CallerFactors given{std::vector<ConstMatrix>(factors.size()), false};
  for (std::size_t m = 0; m < factors.size(); ++m) {
    if (static_cast<int>(m) == mode)
      continue;
    const Matrix a = columns(factors[m].rows);
    scatter_transposed(factors[m], nullptr, a, {0, factors[m].rows});
    given.columns[m] = a;
  }
  const Matrix result = columns(out.rows);
  solvers::mttkrp(backends, x, mode, given, {result, false});
  gather_transposed(result, nullptr, out, {0, out.rows});
}

inline Backends reference_backends(int workers) {
  Backends backends;
  for (int k = 0; k < workers; ++k)
    backends.push_back(kernels::reference::make_backend());
  return backends;
}

/// First index fastest.
template <class T>
TensorPointer dense_tensor(const std::vector<i64> &dims, const std::vector<T> &values, const char *groups = "auto") {
  Options options;
  options.set_text("groups", groups);
  return tensor::Tensor::make_dense({dims, {}, value_type_of<T>, values.data()}, options, 1, "");
}

inline TensorPointer dense_tensor(const Ktensor &k) {
  return dense_tensor(std::vector<i64>(k.dims().begin(), k.dims().end()), full_array(k));
}

/// The nonzeros of a dense array.
template <class T>
TensorPointer sparse_tensor(const std::vector<i64> &dims, const std::vector<T> &values, const char *format = "auto",
                            const char *groups = "auto", const char *sharding = "auto",
                            const char *conflicts = "auto") {
  std::vector<std::vector<i64>> indices(dims.size());
  std::vector<T> kept;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k] == 0)
      continue;
    kept.push_back(values[k]);
    auto rest = static_cast<i64>(k);
    for (std::size_t m = 0; m < dims.size(); ++m) {
      indices[m].push_back(rest % dims[m]);
      rest /= dims[m];
    }
  }
  std::vector<const void *> columns;
  for (const auto &column : indices)
    columns.push_back(column.data());
  Options options;
  options.set_text("format", format);
  options.set_text("groups", groups);
  options.set_text("sharding", sharding);
  options.set_text("conflicts", conflicts);
  return tensor::Tensor::make_sparse(
      {dims, static_cast<i64>(kept.size()), IndexType::i64, columns.data(), 0, value_type_of<T>, kept.data()}, options,
      1, "");
}

/// A request to be completed by the test; x must live as long.
inline solvers::RunRequest request_for(const tensor::Tensor &x, i64 rank, int workers = 1) {
  solvers::RunRequest request;
  request.tensor = &x;
  request.rank = rank;
  request.backends = reference_backends(workers);
  request.devices = "reference";
  return request;
}

inline void set(solvers::RunRequest &request, std::initializer_list<std::pair<const char *, const char *>> options) {
  for (const auto &[name, value] : options)
    request.options.set_text(name, value);
}

/// Status and text of the error that f throws.
template <class F> std::string refusal(Status expected, F &&f) {
  try {
    f();
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), expected) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_sound(const solvers::RunResult &result) {
  for (double f : result.report.fit) {
    EXPECT_FALSE(std::isnan(f));
    EXPECT_LE(f, 1);
  }
  for (double w : result.model.weights())
    EXPECT_TRUE(std::isfinite(w)) << w;
  for (int m = 0; m < result.model.order(); ++m) {
    for (i64 r = 0; r < result.model.rank(); ++r) {
      for (double v : column(result.model, m, r))
        EXPECT_TRUE(std::isfinite(v)) << "mode " << m << ", column " << r;
    }
  }
}

} // namespace td::test
