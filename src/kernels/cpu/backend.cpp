#include "kernels/cpu/backend.hpp"

#include <fmt/core.h>

#include "core/buffer.hpp"
#include "kernels/cpu/cpu.hpp"
#include "kernels/cpu/mttkrp.hpp"
#include "kernels/cpu/simd.hpp"

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

} // namespace

std::string CpuBackend::describe() const {
  return fmt::format("cpu, {} thread{}, {}", threads_, threads_ == 1 ? "" : "s", simd::target_name());
}

void CpuBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  if (args.add)
    add_mttkrp(*this, x, args);
  else
    std::visit([&](const auto &view) { cpu::mttkrp(view, args, threads_); }, x);
}

std::shared_ptr<Backend> make_backend(int threads) { return std::make_shared<CpuBackend>(threads); }

} // namespace td::kernels::cpu
