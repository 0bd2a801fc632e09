#include <cmath>

#include "core/buffer.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/reference/entries.hpp"

namespace td::kernels::reference {

// M[i, r] = sum over entries with index i in `mode` of x * product over the other modes m of A_m[i_m, r], in f64,
// times the powers of two by which factors were divided.
void ReferenceBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  const i64 rank = args.out.cols;
  const bool takes_all = std::holds_alternative<DenseView>(x);
  auto sums = Buffer<double>::zeros(args.rows.size() * rank, "the sums of MTTKRP");
  for_each_entry(x, takes_all ? Range{0, entries_of(x)} : args.entries, [&](std::span<const i64> c, double value) {
    const i64 row = c[static_cast<std::size_t>(args.mode)];
    if (row < args.rows.begin || row >= args.rows.end)
      return;
    for (i64 r = 0; r < rank; ++r) {
      double product = value;
      for (std::size_t m = 0; m < c.size(); ++m)
        if (static_cast<int>(m) != args.mode)
          product *= element(args.factors[m], c[m], r);
      sums[(row - args.rows.begin) * rank + r] += product;
    }
  });
  for (i64 i = args.rows.begin; i < args.rows.end; ++i)
    for (i64 r = 0; r < rank; ++r) {
      const double before = args.add ? element(args.out, i, r) : 0;
      int exponent = 0;
      for (std::size_t m = 0; m < args.exponents.size(); ++m)
        if (static_cast<int>(m) != args.mode)
          exponent += static_cast<int>(args.exponents[m][r]);
      set_element(args.out, i, r, before + std::ldexp(sums[(i - args.rows.begin) * rank + r], exponent));
    }
}

// M[i, r] = sum over cells with index i in `mode` of t[cell, r] * product over the other modes m of A_m[i_m, r], in
// f64.
void ReferenceBackend::mttkrp_cells(const CellsView &x, const MttkrpArgs &args) {
  const i64 rank = args.out.cols;
  auto sums = Buffer<double>::zeros(args.rows.size() * rank, "the sums of MTTKRP on a partial product");
  for (i64 cell = args.entries.begin; cell < args.entries.end; ++cell) {
    const auto index = [&](std::size_t mode) {
      i64 rest = cell;
      for (std::size_t m = 0; m < mode; ++m)
        rest /= x.dims[m];
      return rest % x.dims[mode];
    };
    const i64 row = index(static_cast<std::size_t>(args.mode));
    if (row < args.rows.begin || row >= args.rows.end)
      continue;
    for (i64 r = 0; r < rank; ++r) {
      double product = element(x.rows, cell, r);
      for (std::size_t m = 0; m < x.dims.size(); ++m)
        if (static_cast<int>(m) != args.mode)
          product *= element(args.factors[m], index(m), r);
      sums[(row - args.rows.begin) * rank + r] += product;
    }
  }
  for (i64 i = args.rows.begin; i < args.rows.end; ++i)
    for (i64 r = 0; r < rank; ++r)
      set_element(args.out, i, r, sums[(i - args.rows.begin) * rank + r]);
}

} // namespace td::kernels::reference
