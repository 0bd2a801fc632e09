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
  std::vector<double> scales() const override;
  const Times &times() const noexcept override { return times_; }

private:
  using Clock = std::chrono::steady_clock;

  // `k` counts the solves of an iteration.
  void mttkrp(i64 iteration, std::size_t k);
  void begin_next();
  void prepare(i64 iteration, std::size_t k);
  void solve(int mode, std::size_t k);
  void solve_and_sum(int mode, std::size_t k);
  void cut_gathers();
  bool is_cut_whole(int mode, std::size_t k) const; // so that its rows go at once
  void solve_in_chunks(int mode, std::size_t k);
  void mttkrp_part(std::size_t k, std::size_t part);
  void update_in_chunks(int mode, std::size_t k);
  i64 ranges_at_most() const; // of rows, whose sums are added up; 0: sums come in one
  void sum_own_rows(int mode, std::size_t k);
  /// The sums over this worker's rows of an update become those over all rows, and the columns are finished.
  void sum_over_workers(int mode, std::size_t k, bool have_left);
  void solve_by_qr(int mode, std::size_t k);
  const double *weights_before(i64 iteration, std::size_t k) const;
  void divide(int mode, std::size_t k);
  void compute_gram(int mode);
  void compute_start_gram(int mode);
  Replica start_factors() const;
  void start_scales();
  void normalize_start_grams();
  double ridge_of(i64 iteration, std::size_t k) const;
  /// These add to a mode's Gram matrix that of some rows; of this process's block of the start; of the start's rows but
  /// for some.
  void add_gram(int mode, ConstMatrix rows);
  void add_block(int mode);
  void add_rows_but(int mode, std::span<const i64> but);
  bool is_updated(int mode) const;
  void ask_for_fit();
  void require_finite() const;
  double inner_with_tensor() const;
  ResidualSquared exact_residual_squared(const ModelNorm &model);
  bool want_exact(const ResidualSquared &expanded);
  Ranges part(int mode) const; // the rows that Grams and norms are taken over
  /// total := what body(rows, total) gives, over the rows of part(mode).
  template <class Body> void over_own(int mode, std::span<double> total, kernels::Combine combine, Body &&body);
  /// The same over all workers.
  template <class Body> void over_part(int mode, std::span<double> total, kernels::Combine combine, Body &&body);
  [[noreturn]] void overflow(int mode, std::string_view what) const;
  void add_times(double on_host);
  /// Numbers for moments of an iteration, which may begin before those of the one before are asked for.
  std::size_t moment(i64 iteration, std::size_t k) const noexcept {
    return static_cast<std::size_t>(iteration % 2) * marks_ + k;
  }
  std::size_t begin_of_mttkrp(std::size_t k) const noexcept { return 2 * settings_.updated_modes.size() + 2 + k; }
  std::size_t columns() const noexcept { return static_cast<std::size_t>(rank_); }
  double *weights_of(std::size_t k) const noexcept { return tally_.there().weights + k * columns(); }
  double *scales_of(int mode) const noexcept {
    return tally_.there().scales + static_cast<std::size_t>(mode) * columns();
  }
  bool is_last(std::size_t k) const noexcept { return k + 1 == settings_.updated_modes.size(); }
  kernels::NormalEquations equations(std::size_t k) const noexcept {
    return {rank_, normal_.data(), factored_.data(), tally_.there().records + k};
  }
  kernels::SolveScalesOut solve_scales() const noexcept {
    double *at = vectors_.data();
    return {at, at + rank_, at + 2 * rank_};
  }
  double *largest() const noexcept { return vectors_.data() + 3 * rank_; }

  /// Rows that leave some at a time.
  struct Chunks {
    std::vector<std::vector<Ranges>> rows;  // [chunks][workers] whose rows they are
    std::vector<tensor::LoadPart> products; // MTTKRP by chunk, of all but rows that several sum; none: all comes first
    std::size_t marks = 0;                  // the first of the moments at which these begin and end
  };
  bool is_product_cut(std::size_t k) const noexcept { return iteration_ > 0 && !chunks_[k].products.empty(); }

  Problem problem_;
  const CpalsSettings &settings_;
  kernels::Backend &backend_;
  Communicator &others_;
  Worker worker_;
  i64 rank_;
  Products products_;
  i64 iteration_ = 0;
  bool begins_next_ = false; // whether the next one may begin early, as all workers know
  bool has_begun_ = false;   // it has, with its first MTTKRP
  Replica factors_;
  std::optional<QrUpdate> qr_;
  DeviceMatrix scratch_; // MTTKRP of any mode
  std::vector<DeviceNumbers> grams_;
  std::vector<i64> start_exponents_; // [order] of the start's Gram matrices, which are divided by 4 to these
  DeviceNumbers normal_;             // V, the matrix of the normal equations
  DeviceNumbers factored_;           // F with F^T F = V^+
  DeviceNumbers vectors_; // [4][rank]: what a solve's columns are scaled by, and the largest magnitudes that it leaves
  DeviceNumbers parts_;   // of a sum, where a worker's rows are several ranges
  Tally tally_;
  std::vector<Chunks> chunks_; // by solve; without rows where these go at once
  std::size_t marks_ = 0;      // of an iteration
  bool has_inner_ = false;     // products of columns of the last update, beside its Gram matrix
  // The last measure() left these.
  std::vector<double> weights_;        // of the model
  std::vector<double> stored_weights_; // of the factors as they are stored
  Times times_;
};

} // namespace td::solvers
