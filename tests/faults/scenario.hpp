// A small tensor, what is made from it, and products: what both tests of failing allocations begin with. It allocates
// nothing itself.
#pragma once

#include <algorithm>

#include <td/td.hpp>

namespace tdtest {

#define TRY(call)                                                                                                      \
  if (const td_status status_of_call = (call); status_of_call < 0)                                                     \
  return status_of_call

struct Handles {
  tdpp::Context context;
  tdpp::Options options{nullptr};
  tdpp::Tensor x, y;
  tdpp::Ktensor k, k2;
  tdpp::Report report;
};

inline constexpr int64_t dims[3] = {6, 5, 4};
inline constexpr int64_t nnz = 40;

inline td_status make_sparse(const Handles &h, td_tensor **out) {
  static int64_t i[nnz], j[nnz], l[nnz];
  static double values[nnz];
  for (int64_t n = 0; n < nnz; ++n) {
    i[n] = n % 6;
    j[n] = n / 6 % 5;
    l[n] = (7 * n + 1) % 4;
    values[n] = static_cast<double>(n % 7) - 2.5;
  }
  const void *indices[3] = {i, j, l};
  return td_tensor_create(h.context, 3, dims, nnz, TD_I64, indices, 0, TD_F64, values, TD_HOST, h.options, out);
}

inline td_status make_dense(const Handles &h, td_tensor **out) {
  static double cells[6 * 5 * 4];
  for (int n = 0; n < 120; ++n)
    cells[n] = n % 11 - 4.25;
  return td_tensor_create_dense(h.context, 3, dims, nullptr, TD_F64, cells, TD_HOST, h.options, out);
}

/// Products, mode after mode, into an array on the stack.
inline td_status multiply(td_context *context, const td_tensor *x, int times) {
  double a[6 * 3], out[6 * 3];
  std::fill_n(a, 18, 0.5);
  const void *factors[3] = {a, a, a};
  for (int32_t k = 0; k < times; ++k)
    TRY(td_mttkrp(context, x, k % 3, 3, factors, dims, out, 6, TD_HOST));
  return TD_OK;
}

} // namespace tdtest
