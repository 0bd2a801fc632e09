// The backend of one GPU. Each function makes the GPU current for its own time. backend.cpp has the device and tuning,
// the files of the kernels have theirs.
#pragma once

#include "kernels/cuda/direct.hpp"
#include "kernels/cuda/nccl.hpp"
#include "kernels/cuda/prediction.hpp"
#include "kernels/cuda/staging.hpp"
#include "kernels/cuda_library.hpp"

namespace td::kernels::cuda {

class CudaBackend final : public Backend {
public:
  CudaBackend(int ordinal, int repeat, const DeviceSpec &spec)
      : device_(Memory::of(ordinal, repeat), spec.memory_limit), host_threads_(spec.host_threads),
        staging_(device_, host_threads_) {
    set_exchange(spec.exchange);
  }

  std::string describe() const override;
  int threads() const noexcept override { return host_threads_; }
  Gpu &gpu() noexcept { return device_; }

  void *allocate(i64 bytes, const char *what) override;
  void *try_allocate(i64 bytes, const char *what) override;
  void release(void *memory) noexcept override;
  void upload(void *to, const void *from_host, i64 bytes) override;
  void download(void *to_host, const void *from, i64 bytes) override;
  void begin_download(void *to_host, const void *from, i64 bytes) override;
  void end_download() override;
  void wait() override;
  void mark(std::size_t moment) override;
  double seconds_between(std::size_t first, std::size_t second) override;
  const void *memory() const noexcept override { return &device_.memory(); }
  std::shared_ptr<void> keep(i64 bytes, const char *what) override;
  i64 room() const override;
  void may_evict(std::weak_ptr<Evictable> evictable) override { device_.memory().add_evictable(std::move(evictable)); }
  void make_room(i64 bytes) override;
  std::shared_ptr<const void> pin(const void *host, i64 bytes) override;
  void fetch(int buffer, void *to, const void *from_host, i64 bytes) override;
  void fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch) override;
  void await(int buffer) noexcept override;
  void done(int buffer) override;

  void borrow(const void *array, std::string_view name) override;
  bool holds(const void *array) const override;
  void follow(void *stream) override;
  std::shared_ptr<const DeviceArrays> lend(const DenseView &array, std::string_view name) override;
  void sum_elements(const DenseView &x, double scale, i64 block, ElementSums *sums) override;
  void find_rows(const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
                 std::span<RowPlace> found) override;
  bool reach(Device &other) override;
  void copy_from(Device &other, void *to, const void *from, i64 bytes) override;
  void raise(Signal signal) override;
  void wait_for(Device &other, Signal signal) override;
  void begin_beside() override;
  void end_beside() noexcept override { device_.end_beside(); }
  void join_beside() noexcept override;
  std::vector<std::unique_ptr<Link>> link(std::span<Device *const> devices, std::string &why) override;
  std::vector<std::unique_ptr<DirectLink>> link_directly(std::span<Device *const> devices) override;
  std::unique_ptr<Link> link_peers(Peers &peers, std::string &why) override;
  std::unique_ptr<DeviceBuilding> begin_building(const EntriesView &entries, bool together,
                                                 const KeyMoves *keys) override;
  i64 room_to_build(const EntriesView &entries, bool together) const override;

  Chip chip() const override { return device_.chip(); }
  Rates rates() const override;
  Prediction predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates) const override;
  Prediction predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates) const override;
  Prediction predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates) const override;
  Rates nominal_rates() const override;
  Prediction predict_update(i64 rows, i64 rank, ValueType type, const Rates &rates) const override;

  bool gathers_f32(const TensorView &x) const override;
  void to_f32(ConstMatrix a, Matrix to, double *exponents) override;
  void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) override;
  void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) override;
  void gather_rows(ConstMatrix from, const i64 *rows, Matrix to) override;
  void add_rows(ConstMatrix from, const i64 *rows, Matrix to) override;
  void set_zero(Matrix a) override;
  void first_not_finite(ConstMatrix a, i64 *at) override;
  void mttkrp(const TensorView &x, const MttkrpArgs &args) override;
  void mttkrp_cells(const CellsView &x, const MttkrpArgs &args) override;
  void mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) override;
  void unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) override;
  void gram(ConstMatrix a, double *g) override;
  void hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) override;
  void factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) override;
  void solve_scales(const SolveColumns &columns, const SolveScalesOut &out) override;
  void prepare_solve(const SolveColumns &columns, double ridge, double cutoff, const PreparedSolve &out) override;
  void solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) override;
  void solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                     const ColumnSums &sums) override;
  void finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                      double *gram) override;
  void multiply(ConstMatrix m, const double *p, Matrix a) override;
  void column_norms(ConstMatrix a, NormKind kind, double *out) override;
  void weights_from_norms(NormKind kind, i64 rank, double *norms) override;
  void divide_columns(Matrix a, const double *d) override;
  void column_dots(ConstMatrix a, ConstMatrix b, double *out) override;
  void combine_rows(ConstMatrix parts, Combine how, void *out) override;
  void combine_all(std::span<const Combined> all) override;
  void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) override;
  void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
               double *out) override;

private:
  CurrentDevice enter() const { return device_.memory().enter(); }
  void evict_others(i64 bytes, bool temporary);

  Gpu device_;
  int host_threads_; // for sorting a tensor, say
  Staging staging_;
  std::shared_ptr<DirectClique> direct_; // of the GPUs of which this is the first, as the next
  std::shared_ptr<NcclClique> clique_;   // of the GPUs of which this is the first; made when first asked for
  std::shared_ptr<NcclEnd> end_;         // among those of other processes; made when first asked for
  std::string no_end_;                   // why there is none, once that is known
};

} // namespace td::kernels::cuda
