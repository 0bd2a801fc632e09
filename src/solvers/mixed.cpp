#include "solvers/mixed.hpp"

namespace td::solvers {

namespace {

bool gathers_f32(const tensor::Tensor &x, const kernels::Backend &backend) {
  if (!x.precision().f32_rows)
    return false;
  for (int m = 0; m < x.order(); ++m)
    if (x.groups().modes(x.groups().group_of(m)).size() == 1)
      return backend.gathers_f32(x.view(m, tensor::OnHost::sizes));
  return false;
}

} // namespace

MixedMttkrp::MixedMttkrp(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend)
    : x_(x), worker_(worker), backend_(backend), gathers_(gathers_f32(x, backend)),
      copies_(static_cast<std::size_t>(x.order())) {}

void MixedMttkrp::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart *part) {
  if (x_.precision().f64_sums)
    sum_in_f64(mode, factors, out);
  else if (gathers_)
    gather_f32(mode, factors, out, part);
  else
    sum(mode, factors, out, {}, part);
}

void MixedMttkrp::sum(int mode, std::span<const ConstMatrix> factors, Matrix out,
                      std::span<const double *const> exponents, const tensor::LoadPart *part) const {
  if (part != nullptr)
    worker_.mttkrp_part(mode, factors, out, exponents, *part);
  else
    worker_.mttkrp(mode, factors, out, exponents);
}

// What is streamed, cut between workers or added atomically is added in f64 too: nothing is rounded before the end.
void MixedMttkrp::sum_in_f64(int mode, std::span<const ConstMatrix> factors, Matrix out) {
  if (sums_.view().rows < out.rows) {
    sums_ = {};
    sums_ = DeviceMatrix(backend_, out.rows, out.cols, ValueType::f64, "sums of MTTKRP in f64");
  }
  const Matrix sums = sums_.view(out.rows);
  worker_.mttkrp(mode, factors, sums);
  for (const Range &own : worker_.own(mode))
    backend_.to_f32(sums.slice(own.begin, own.end), out.slice(own.begin, own.end), nullptr);
}

void MixedMttkrp::gather_f32(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart *part) {
  std::vector<ConstMatrix> rows(factors.size());
  std::vector<const double *> exponents(factors.size(), nullptr);
  for (std::size_t m = 0; m < factors.size(); ++m) {
    if (static_cast<int>(m) == mode)
      continue;
    Copy &copy = copies_[m];
    const ConstMatrix &a = factors[m];
    if (copy.exponents.count() == 0) {
      copy.rows =
          DeviceMatrix(backend_, a.rows, kernels::gathered_columns(a.cols), ValueType::f32, "a factor's copy in f32");
      copy.exponents = DeviceNumbers(backend_, a.cols, "exponents of a factor's copy in f32");
    }
    if (!copy.current)
      backend_.to_f32(a, copy.rows.view(), copy.exponents.data());
    copy.current = true;
    rows[m] = copy.rows.view().columns(0, a.cols);
    exponents[m] = copy.exponents.data();
  }
  sum(mode, rows, out, exponents, part);
}

} // namespace td::solvers
