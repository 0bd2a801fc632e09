#include "kernels/cpu/backend.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "core/runs.hpp"
#include "kernels/cpu/mttkrp.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/memory_order.hpp"

namespace td::kernels::cpu {

namespace {

/// What is added is computed by itself: every kernel writes rows in its own way.
void add_mttkrp(CpuBackend &backend, const TensorView &x, const MttkrpArgs &args) {
  const i64 cols = args.out.cols;
  ValueBuffer sums(args.out.type, args.rows.size() * cols, "what MTTKRP adds to rows");
  MttkrpArgs own = args;
  own.add = false;
  own.out.ld = cols;
  own.out.data = static_cast<char *>(sums.data()) - args.rows.begin * cols * size_of(args.out.type);
  backend.mttkrp(x, own);
  dispatch(args.out.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = args.rows.begin; i < args.rows.end; ++i)
      for (i64 r = 0; r < cols; ++r)
        args.out.row<T>(i)[r] += own.out.row<T>(i)[r];
  });
}

Buffer<double> widened(const float *from, i64 count, int threads, const char *what) {
  Buffer<double> to(count, what);
  parallel_ranges(threads, count, 4096,
                  [&](Range part) { std::copy(from + part.begin, from + part.end, to.data() + part.begin); });
  return to;
}

/// The elements in the order of memory, without gaps.
Buffer<double> widened(const DenseView &x, int threads) {
  const InMemoryOrder ordered(x);
  const auto strides = strides_of(ordered.view());
  const auto *from = static_cast<const float *>(x.values);
  Buffer<double> to(entries_of(x), "the elements of a dense tensor in f64");
  parallel_ranges(threads, to.size(), 4096, [&](Range part) {
    for_each_run(ordered.view().dims, std::span(strides).first(x.dims.size()), part, [&](i64 k, i64 offset, i64 count) {
      for (i64 n = 0; n < count; ++n)
        to[k + n] = from[offset + n * strides[0]];
    });
  });
  return to;
}

/// Sums in f64 of an f32 tensor: the f64 kernels, with copies of the factors and of a dense tensor's elements. The
/// values of a sparse one are widened a batch at a time.
void mttkrp_in_f64(CpuBackend &backend, const TensorView &x, const MttkrpArgs &args) {
  std::vector<Buffer<double>> copies;
  std::vector<ConstMatrix> factors(args.factors.begin(), args.factors.end());
  for (std::size_t m = 0; m < factors.size(); ++m) {
    if (static_cast<int>(m) == args.mode)
      continue;
    ConstMatrix &a = factors[m];
    copies.push_back(
        widened(a.row<float>(0), a.rows == 0 ? 0 : (a.rows - 1) * a.ld + a.cols, backend.threads(), "factors in f64"));
    a = {copies.back().data(), ValueType::f64, a.rows, a.cols, a.ld};
  }
  MttkrpArgs own = args;
  own.factors = factors;
  if (const auto *dense = std::get_if<DenseView>(&x)) {
    copies.push_back(widened(*dense, backend.threads()));
    const InMemoryOrder ordered(*dense, own);
    return cpu::mttkrp(DenseView{ordered.view().dims, ValueType::f64, copies.back().data()}, ordered.args(),
                       backend.threads());
  }
  std::visit([&](const auto &view) { cpu::mttkrp(view, own, backend.threads()); }, x);
}

} // namespace

std::string CpuBackend::describe() const {
  return fmt::format("cpu, {} thread{}, {}", threads_, threads_ == 1 ? "" : "s", simd::target_name());
}

void CpuBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  if (args.add)
    add_mttkrp(*this, x, args);
  else if (type_of(x) != args.out.type)
    mttkrp_in_f64(*this, x, args);
  else
    std::visit([&](const auto &view) { cpu::mttkrp(view, args, threads_); }, x);
}

void CpuBackend::mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) {
  cpu::mttkrp_slabs(x, factors, out, threads_);
}

void CpuBackend::mttkrp_cells(const CellsView &x, const MttkrpArgs &args) { cpu::mttkrp_cells(x, args, threads_); }

} // namespace td::kernels::cpu
