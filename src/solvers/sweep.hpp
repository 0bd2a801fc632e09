// One worker's part of the iterations of CP-ALS.
#pragma once

#include <chrono>
#include <optional>

#include "comm/communicator.hpp"
#include "solvers/driver.hpp"
#include "solvers/fit.hpp"
#include "solvers/products.hpp"
#include "solvers/qr_update.hpp"
#include "solvers/replica.hpp"
#include "solvers/residual.hpp"
#include "solvers/tally.hpp"
#include "solvers/worker.hpp"

namespace td::solvers {

/// One worker's part of the iterations of CP-ALS.
class Sweep final : public Iteration {
public:
  /// References must live as long.
  Sweep(const Problem &problem, const CpalsSettings &settings, kernels::Backend &backend, Communicator &others);

  void update(i64 iteration) override; // of every factor that is not fixed
  Outcome measure() override;
  void download(Ktensor &to) const override;
  const Times &times() const noexcept override { return times_; }

private:
  using Clock = std::chrono::steady_clock;

  // `k` counts the solves of an iteration.
  void solve(int mode, std::size_t k);
  void solve_by_qr(int mode, std::size_t k);
  const double *weights_before(std::size_t k) const;
  void normalize(int mode, std::size_t k);
  void compute_gram(int mode);
  void compute_start_gram(int mode);
  /// Adds the Gram matrix of a range of the start's rows but for some.
  void add_start_rows(int mode, Range range, std::span<const i64> but);
  bool is_updated(int mode) const;
  void ask_for_fit();
  void require_finite() const;
  double inner_with_tensor() const;
  ResidualSquared exact_residual_squared(const ModelNorm &model);
  bool want_exact(const ResidualSquared &expanded);
  Ranges part(int mode) const; // the rows that Grams and norms are taken over
  /// total := what body(rows, total) gives, over the rows of part(mode) and over workers.
  template <class Body> void over_part(int mode, std::span<double> total, kernels::Combine combine, Body &&body);
  [[noreturn]] void overflow(int mode, std::string_view what) const;
  void add_times(double on_host);
  std::size_t columns() const noexcept { return static_cast<std::size_t>(rank_); }
  double *weights_of(std::size_t k) const noexcept { return tally_.there().weights + k * columns(); }

  Problem problem_;
  const CpalsSettings &settings_;
  kernels::Backend &backend_;
  Communicator &others_;
  Worker worker_;
  i64 rank_;
  Products products_;
  i64 iteration_ = 0;
  Replica factors_;
  std::optional<QrUpdate> qr_;
  DeviceMatrix scratch_; // MTTKRP of any mode
  std::vector<DeviceNumbers> grams_;
  DeviceNumbers normal_;   // V, the matrix of the normal equations
  DeviceNumbers factored_; // F with F^T F = V^+
  DeviceNumbers parts_;    // of a sum, where a worker's rows are several ranges
  Tally tally_;
  std::vector<double> weights_; // as of the last measure()
  Times times_;
};

} // namespace td::solvers
