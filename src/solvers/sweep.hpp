// One worker's part of the iterations of CP-ALS.
#pragma once

#include <chrono>
#include <optional>

#include "core/communicator.hpp"
#include "solvers/fit.hpp"
#include "solvers/products.hpp"
#include "solvers/qr_update.hpp"
#include "solvers/replica.hpp"
#include "solvers/residual.hpp"
#include "solvers/settings.hpp"
#include "solvers/share.hpp"
#include "solvers/tally.hpp"

namespace td::solvers {

class Sweep {
public:
  /// Everything that workers share, and that outlives them.
  struct Problem {
    const plan::Tensor &x;
    const Settings &settings;
    const Ktensor &start; // its weights are those of the iteration that it was left by, if there was one
    Cells &cells;
    const plan::Sharding &sharding;
  };

  struct Outcome {
    double residual_squared = 0; // not below 0
    bool exact = false;
    double fit_error = 0;                          // how far rounding may have moved the fit
    std::vector<double> effective_rank, condition; // one a solve
  };

  /// Seconds by the device's clock, where it has one.
  struct Times {
    double mttkrp = 0, solve = 0, fit = 0;
    std::vector<double> mttkrp_of_mode; // in the last iteration; 0 for fixed modes
  };

  Sweep(const Problem &problem, kernels::Backend &backend, Communicator &others);

  /// Updates every factor that is not fixed. `iteration` counts from 0 at the start. On a device this only asks for the
  /// work: measure() waits for it and says what went wrong.
  void update(i64 iteration);

  /// How well the factors fit now; the same on every worker.
  Outcome measure();

  /// Writes factors and weights as they are into what the start was or an earlier call made.
  void download(Ktensor &to) const;

  const Times &times() const noexcept { return times_; }

private:
  using Clock = std::chrono::steady_clock;

  // `k` counts the solves of an iteration.
  void solve(int mode, std::size_t k);
  void solve_by_qr(int mode, std::size_t k);
  const double *weights_before(std::size_t k) const;
  void normalize(int mode, std::size_t k);
  void compute_gram(int mode);
  void add_empty_rows(int mode);
  bool is_updated(int mode) const;
  void ask_for_fit();
  void require_finite() const;
  double inner_with_tensor() const;
  ResidualSquared exact_residual_squared(const ModelNorm &model);
  bool want_exact(const ResidualSquared &expanded);
  Ranges part(int mode) const; // the rows that Grams and norms are taken over
  enum class Combine { sum, max };
  /// total := what body(rows, total) gives, over the rows of part(mode) and over workers.
  template <class Body> void over_part(int mode, std::span<double> total, Combine combine, Body &&body);
  [[noreturn]] void overflow(int mode, std::string_view what) const;
  void add_times(double on_host);
  std::size_t columns() const noexcept { return static_cast<std::size_t>(rank_); }
  double *weights_of(std::size_t k) const noexcept { return tally_.there().weights + k * columns(); }

  Problem problem_;
  kernels::Backend &backend_;
  Communicator &others_;
  Share share_;
  i64 rank_;
  Products products_;
  i64 iteration_ = 0;
  Replica factors_;
  std::optional<QrUpdate> qr_;
  DeviceMatrix scratch_; // MTTKRP of any mode
  std::vector<DeviceNumbers> grams_;
  DeviceNumbers normal_;   // V, the matrix of the normal equations
  DeviceNumbers factored_; // F with F^T F = V^+
  Tally tally_;
  std::vector<double> weights_; // as of the last measure()
  Times times_;
};

} // namespace td::solvers
