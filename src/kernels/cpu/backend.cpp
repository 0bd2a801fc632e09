#include "kernels/cpu/backend.hpp"

#include <fmt/core.h>

#include "kernels/cpu/cpu.hpp"
#include "kernels/cpu/mttkrp.hpp"
#include "kernels/cpu/simd.hpp"

namespace td::kernels::cpu {

std::string CpuBackend::describe() const {
  return fmt::format("cpu, {} thread{}, {}", threads_, threads_ == 1 ? "" : "s", simd::target_name());
}

void CpuBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  std::visit([&](const auto &view) { cpu::mttkrp(view, args, threads_); }, x);
}

std::shared_ptr<Backend> make_backend(int threads) { return std::make_shared<CpuBackend>(threads); }

} // namespace td::kernels::cpu
