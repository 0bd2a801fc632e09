#include "kernels/cuda/backend.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/cuda/building.hpp"
#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/matrix.hpp"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/pinned.hpp"
#include "kernels/cuda/rates.hpp"
#include "kernels/cuda/sums.hpp"

namespace td::kernels::cuda {

std::string CudaBackend::describe() const {
  return fmt::format("cuda:{}, {}, {} multiprocessors, {:.0f} GB, compute capability {}.{}", device_.ordinal(),
                     device_.name(), device_.multiprocessors(), static_cast<double>(device_.memory_bytes()) / 1e9,
                     device_.capability() / 10, device_.capability() % 10);
}

void *CudaBackend::allocate(i64 bytes, const char *what) {
  const CurrentDevice current = device_.memory().enter();
  return device_.allocate(bytes, what);
}

void *CudaBackend::try_allocate(i64 bytes, const char *what) {
  const CurrentDevice current = device_.memory().enter();
  return device_.memory().try_allocate(bytes, what, device_.stream());
}

void CudaBackend::release(void *memory) noexcept { device_.release(memory); }

void CudaBackend::upload(void *to, const void *from_host, i64 bytes) {
  const CurrentDevice current = device_.memory().enter();
  staging_.upload(to, from_host, bytes);
}

void CudaBackend::download(void *to_host, const void *from, i64 bytes) {
  const CurrentDevice current = device_.memory().enter();
  staging_.download(to_host, from, bytes);
}

void CudaBackend::wait() {
  const CurrentDevice current = device_.memory().enter();
  device_.wait();
}

void CudaBackend::mark(std::size_t moment) {
  const CurrentDevice current = device_.memory().enter();
  device_.mark(moment);
}

double CudaBackend::seconds_between(std::size_t first, std::size_t second) {
  const CurrentDevice current = device_.memory().enter();
  return device_.seconds_between(first, second);
}

std::shared_ptr<const void> CudaBackend::keep(const void *host, i64 bytes, const char *what) {
  const CurrentDevice current = device_.memory().enter();
  auto copy = device_.keep(bytes, what);
  if (copy != nullptr)
    staging_.upload(copy.get(), host, bytes);
  return copy;
}

i64 CudaBackend::room() const {
  const CurrentDevice current = device_.memory().enter();
  return device_.room();
}

void CudaBackend::make_room(i64 bytes) {
  const CurrentDevice current = device_.memory().enter();
  evict_others(bytes, false);
}

void CudaBackend::evict_others(i64 bytes, bool for_a_while) {
  for (const auto &evictable : device_.memory().evictables())
    if (device_.room() < bytes)
      evictable->evict(&device_.memory(), bytes, for_a_while);
}

std::shared_ptr<const void> CudaBackend::pin(const void *host, i64 bytes) {
  const CurrentDevice current = device_.memory().enter();
  return cuda::pin(device_.memory(), host, bytes);
}

void CudaBackend::fetch(int buffer, void *to, const void *from_host, i64 bytes) {
  const CurrentDevice current = device_.memory().enter();
  device_.fetch(buffer, to, from_host, bytes);
}

void CudaBackend::done(int buffer) {
  const CurrentDevice current = device_.memory().enter();
  device_.done(buffer);
}

void CudaBackend::borrow(const void *array, std::string_view name) {
  const CurrentDevice current = device_.memory().enter();
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, array), "asking where a caller's array is");
  if (found.type == cudaMemoryTypeDevice ? found.device != device_.ordinal() : found.type != cudaMemoryTypeManaged)
    throw_error(Status::argument, "{}: expected an array in the memory of cuda:{}, as space = TD_DEVICE says", name,
                device_.ordinal());
  device_.wait_for_caller();
}

void CudaBackend::follow(void *stream) {
  const CurrentDevice current = device_.memory().enter();
  device_.follow(static_cast<cudaStream_t>(stream));
}

std::unique_ptr<Building> CudaBackend::begin_building(const EntriesView &entries) {
  const CurrentDevice current = device_.memory().enter();
  if (entries.nnz == 0 || entries.nnz > most_built_entries)
    return nullptr;
  const i64 bytes = bytes_to_build(entries);
  const i64 limit = device_.kept()->limit;
  if (bytes > (limit > 0 ? limit : device_.memory_bytes()))
    return nullptr;
  // Building ends soon, so without a limit it may take what is left free for work in between.
  const auto lacking = [&] { return bytes > (limit > 0 ? device_.room() : device_.free_bytes()); };
  if (lacking())
    evict_others(bytes, true);
  return lacking() ? nullptr : cuda::begin_building(device_, staging_, entries);
}

i64 CudaBackend::room_to_build(const EntriesView &entries) const {
  return device_.kept()->limit > 0 ? bytes_to_build(entries) : 0;
}

Chip CudaBackend::chip() const {
  const auto ask = [&](cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, device_.ordinal()), "asking what GPU it is");
    return static_cast<double>(value);
  };
  return {device_.multiprocessors(), ask(cudaDevAttrMaxSharedMemoryPerBlockOptin), ask(cudaDevAttrL2CacheSize)};
}

Rates CudaBackend::rates() const {
  const CurrentDevice current = device_.memory().enter();
  return measured_rates(device_);
}

Forecast CudaBackend::forecast_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates) const {
  return cuda::forecast_mttkrp(x, args, rates, chip());
}

Forecast CudaBackend::forecast_update(i64 rows, i64 rank, ValueType, const Rates &rates) const {
  return cuda::forecast_update(rows, rank, rates);
}

void CudaBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  const CurrentDevice current = device_.memory().enter();
  if (args.rows.size() == 0)
    return;
  if (const auto *coo = std::get_if<CooView>(&x))
    mttkrp_coo(device_, *coo, args);
  else if (const auto *blco = std::get_if<BlcoView>(&x))
    mttkrp_blco(device_, *blco, args);
  else if (const auto *sorted = std::get_if<SortedView>(&x))
    mttkrp_sorted(device_, *sorted, args);
  else
    mttkrp_dense(device_, std::get<DenseView>(x), args);
}

bool CudaBackend::gathers_f32(const TensorView &x) const {
  if (!std::holds_alternative<SortedView>(x))
    return false;
  return pays_to_gather(dims_of(x), entries_of(x));
}

void CudaBackend::to_f32(ConstMatrix a, Matrix to, double *exponents) {
  const CurrentDevice current = device_.memory().enter();
  cuda::to_f32(device_, a, to, exponents);
}

void CudaBackend::gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = device_.memory().enter();
  cuda::gather_transposed(device_, from, rows, to);
}

void CudaBackend::scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = device_.memory().enter();
  cuda::scatter_transposed(device_, from, rows, to);
}

void CudaBackend::set_zero(Matrix a) {
  const CurrentDevice current = device_.memory().enter();
  cuda::set_zero(device_, a);
}

void CudaBackend::first_not_finite(ConstMatrix a, i64 *at) {
  const CurrentDevice current = device_.memory().enter();
  cuda::first_not_finite(device_, a, at);
}

void CudaBackend::unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) {
  const CurrentDevice current = device_.memory().enter();
  cuda::unfolding_normal(device_, x, mode, omega, y, add);
}

void CudaBackend::gram(ConstMatrix a, double *g) {
  const CurrentDevice current = device_.memory().enter();
  cuda::gram(device_, a, g);
}

void CudaBackend::hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) {
  const CurrentDevice current = device_.memory().enter();
  cuda::hadamard(device_, grams, rank, ridge, v);
}

void CudaBackend::factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) {
  const CurrentDevice current = device_.memory().enter();
  cuda::factor_normal(device_, v, rank, cutoff, f, record);
}

void CudaBackend::solve_normal(const NormalEquations &equations, ConstMatrix m, const double *weights, Matrix a) {
  const CurrentDevice current = device_.memory().enter();
  cuda::solve_normal(device_, equations, m, weights, a);
}

void CudaBackend::multiply(ConstMatrix m, const double *p, Matrix a) {
  const CurrentDevice current = device_.memory().enter();
  cuda::multiply(device_, m, p, a);
}

void CudaBackend::column_norms(ConstMatrix a, NormKind kind, double *out) {
  const CurrentDevice current = device_.memory().enter();
  cuda::column_norms(device_, a, kind, out);
}

void CudaBackend::weights_from_norms(NormKind kind, i64 rank, double *norms) {
  const CurrentDevice current = device_.memory().enter();
  cuda::weights_from_norms(device_, kind, rank, norms);
}

void CudaBackend::divide_columns(Matrix a, const double *d) {
  const CurrentDevice current = device_.memory().enter();
  cuda::divide_columns(device_, a, d);
}

void CudaBackend::column_dots(ConstMatrix a, ConstMatrix b, double *out) {
  const CurrentDevice current = device_.memory().enter();
  cuda::column_dots(device_, a, b, out);
}

void CudaBackend::random_uniform(Matrix a, u64 seed, int mode, i64 first_row) {
  const CurrentDevice current = device_.memory().enter();
  cuda::random_uniform(device_, a, seed, mode, first_row);
}

void CudaBackend::compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
                          Range entries, double *out) {
  const CurrentDevice current = device_.memory().enter();
  cuda::compare(device_, x, weights, factors, entries, out);
}

} // namespace td::kernels::cuda
