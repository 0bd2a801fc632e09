#include "kernels/cuda/backend.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/cuda/building.hpp"
#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/pinned.hpp"
#include "kernels/gpu_model.hpp"

namespace td::kernels::cuda {

namespace {

/// What does MTTKRP on each form.
struct Mttkrp {
  Gpu &device;
  const MttkrpArgs &args;

  void operator()(const CooView &x) const { mttkrp_coo(device, x, args); }
  void operator()(const BlcoView &x) const { mttkrp_blco(device, x, args); }
  void operator()(const SortedView &x) const { mttkrp_sorted(device, x, args); }
  void operator()(const DenseView &x) const {
    x.strides.empty() ? mttkrp_dense(device, x, args) : mttkrp_strided(device, x, args);
  }
};

} // namespace

std::string CudaBackend::describe() const {
  return fmt::format("cuda:{}, {}, {} multiprocessors, {:.0f} GB, compute capability {}.{}", device_.ordinal(),
                     device_.name(), device_.multiprocessors(), static_cast<double>(device_.memory_bytes()) / 1e9,
                     device_.capability() / 10, device_.capability() % 10);
}

void *CudaBackend::allocate(i64 bytes, const char *what) {
  const CurrentDevice current = enter();
  return device_.allocate(bytes, what);
}

void *CudaBackend::try_allocate(i64 bytes, const char *what) {
  const CurrentDevice current = enter();
  return device_.memory().try_allocate(bytes, what, device_.stream());
}

void CudaBackend::release(void *memory) noexcept { device_.release(memory); }

void CudaBackend::upload(void *to, const void *from_host, i64 bytes) {
  const CurrentDevice current = enter();
  const InPhase phase(*this, Phase::host_copies);
  staging_.upload(to, from_host, bytes);
}

void CudaBackend::download(void *to_host, const void *from, i64 bytes) {
  const CurrentDevice current = enter();
  const InPhase phase(*this, Phase::host_copies);
  staging_.download(to_host, from, bytes);
}

void CudaBackend::begin_download(void *to_host, const void *from, i64 bytes) {
  const CurrentDevice current = enter();
  const InPhase phase(*this, Phase::host_copies);
  device_.begin_download(to_host, from, bytes);
}

void CudaBackend::end_download() {
  const CurrentDevice current = enter();
  device_.end_download();
}

void CudaBackend::wait() {
  const CurrentDevice current = enter();
  device_.wait();
}

void CudaBackend::mark(std::size_t moment) {
  const CurrentDevice current = enter();
  device_.mark(moment);
}

double CudaBackend::seconds_between(std::size_t first, std::size_t second) {
  const CurrentDevice current = enter();
  return device_.seconds_between(first, second);
}

std::shared_ptr<void> CudaBackend::keep(i64 bytes, const char *what) {
  const CurrentDevice current = enter();
  return device_.keep(bytes, what);
}

i64 CudaBackend::room() const {
  const CurrentDevice current = enter();
  return device_.room();
}

void CudaBackend::make_room(i64 bytes) {
  const CurrentDevice current = enter();
  device_.settle(); // evicting waits
  evict_others(bytes, false);
}

void CudaBackend::evict_others(i64 bytes, bool temporary) {
  for (const auto &evictable : device_.memory().evictables())
    if (device_.room() < bytes)
      evictable->evict(&device_.memory(), bytes, temporary);
}

std::shared_ptr<const void> CudaBackend::pin(const void *host, i64 bytes) {
  const CurrentDevice current = enter();
  device_.settle(); // pinning may wait for the GPU
  return cuda::pin(device_.memory(), host, bytes);
}

void CudaBackend::fetch(int buffer, void *to, const void *from_host, i64 bytes) {
  const CurrentDevice current = enter();
  device_.fetch(buffer, to, from_host, bytes);
}

void CudaBackend::fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch) {
  const CurrentDevice current = enter();
  device_.fetch_rows(buffer, to, from_host, bytes, rows, pitch);
}

void CudaBackend::await(int buffer) noexcept {
  if (const CurrentDevice current = device_.memory().enter(std::nothrow); current)
    device_.await(buffer);
}

void CudaBackend::done(int buffer) {
  const CurrentDevice current = enter();
  device_.done(buffer);
}

void CudaBackend::borrow(const void *array, std::string_view name) {
  const CurrentDevice current = enter();
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, array), "asking where a caller's array is");
  if (found.type == cudaMemoryTypeDevice ? found.device != device_.ordinal() : found.type != cudaMemoryTypeManaged)
    throw_error(Status::argument, "{}: expected an array in the memory of cuda:{}, as space = TD_DEVICE says", name,
                device_.ordinal());
  device_.wait_for_caller();
}

void CudaBackend::follow(void *stream) {
  const CurrentDevice current = enter();
  device_.follow(static_cast<cudaStream_t>(stream));
}

bool CudaBackend::reach(Device &other) {
  auto *const gpu = dynamic_cast<CudaBackend *>(&other);
  if (gpu == nullptr)
    return false;
  const CurrentDevice current = gpu->enter();
  return gpu->device_.memory().open_to(device_.ordinal());
}

void CudaBackend::copy_from(Device &other, void *to, const void *from, i64 bytes) {
  const CurrentDevice current = enter();
  device_.copy_from(static_cast<CudaBackend &>(other).device_, to, from, bytes);
}

void CudaBackend::raise(Signal signal) {
  const CurrentDevice current = enter();
  device_.raise(signal);
}

void CudaBackend::wait_for(Device &other, Signal signal) {
  const CurrentDevice current = enter();
  device_.wait_for(static_cast<CudaBackend &>(other).device_, signal);
}

void CudaBackend::begin_beside() {
  const CurrentDevice current = enter();
  device_.begin_beside();
}

void CudaBackend::join_beside() noexcept {
  if (const CurrentDevice current = device_.memory().enter(std::nothrow); current)
    device_.join_beside();
}

std::vector<std::unique_ptr<Link>> CudaBackend::link(std::span<Device *const> devices, std::string &why) {
  std::vector<Gpu *> gpus;
  for (Device *const device : devices)
    gpus.push_back(&static_cast<CudaBackend *>(device)->device_);
  if (clique_ == nullptr || !clique_->is_of(gpus))
    clique_ = NcclClique::make(gpus, why);
  return clique_ == nullptr ? std::vector<std::unique_ptr<Link>>{} : clique_->links();
}

std::vector<std::unique_ptr<DirectLink>> CudaBackend::link_directly(std::span<Device *const> devices) {
  std::vector<Gpu *> gpus;
  for (Device *const device : devices)
    gpus.push_back(&static_cast<CudaBackend *>(device)->device_);
  if (direct_ == nullptr || !direct_->is_of(gpus))
    direct_ = DirectClique::make(gpus);
  return direct_ == nullptr ? std::vector<std::unique_ptr<DirectLink>>{} : direct_->links();
}

std::unique_ptr<Link> CudaBackend::link_peers(Peers &peers, std::string &why) {
  why = no_end_; // of all processes, once it is of one
  if (!why.empty())
    return nullptr;
  if (peers.largest(end_ == nullptr || !end_->works() ? 1 : 0) != 0)
    end_ = NcclEnd::make(device_, peers, no_end_);
  why = no_end_;
  return end_ == nullptr ? nullptr : end_->link(peers);
}

std::unique_ptr<DeviceBuilding> CudaBackend::begin_building(const EntriesView &entries, bool together,
                                                            const KeyMoves *keys) {
  const CurrentDevice current = enter();
  if (entries.nnz == 0 || entries.nnz > most_built_entries)
    return nullptr;
  const i64 bytes = bytes_to_build(entries, together);
  const i64 limit = device_.resident()->limit;
  if (bytes > (limit > 0 ? limit : device_.memory_bytes()))
    return nullptr;
  // Building ends soon, so without a limit it may take what is left free for work in between.
  const auto lacking = [&] { return bytes > (limit > 0 ? device_.room() : device_.free_bytes()); };
  if (lacking()) {
    device_.settle();
    evict_others(bytes, true);
  }
  return lacking() ? nullptr : cuda::begin_building(device_, staging_, entries, together, keys);
}

i64 CudaBackend::room_to_build(const EntriesView &entries, bool together) const {
  return device_.resident()->limit > 0 ? bytes_to_build(entries, together) : 0;
}

void CudaBackend::find_rows(const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
                            std::span<RowPlace> found) {
  const CurrentDevice current = enter();
  cuda::find_rows(device_, row_index, row_begin, wanted, found);
}

void CudaBackend::mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) {
  const CurrentDevice current = enter();
  if (out.rows > 0)
    cuda::mttkrp_slabs(device_, x, factors, out);
}

Prediction CudaBackend::predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates) const {
  return cuda::predict_mttkrp(x, args, rates, device_.chip());
}

Prediction CudaBackend::predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates) const {
  return cuda::predict_mttkrp_cells(x, args, rates, chip());
}

Prediction CudaBackend::predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates) const {
  return cuda::predict_mttkrp_slabs(x, rank, rates, chip());
}

Rates CudaBackend::nominal_rates() const { return cuda::nominal_rates(chip()); }

Prediction CudaBackend::predict_update(i64 rows, i64 rank, ValueType, const Rates &rates) const {
  return cuda::predict_update(rows, rank, rates, chip());
}

void CudaBackend::mttkrp(const TensorView &x, const MttkrpArgs &args) {
  const CurrentDevice current = enter();
  if (args.rows.size() == 0)
    return;
  std::visit(Mttkrp{device_, args}, x);
}

bool CudaBackend::gathers_f32(const TensorView &x) const {
  if (!std::holds_alternative<SortedView>(x))
    return false;
  return gpu::pays_to_gather(dims_of(x), entries_of(x));
}

void CudaBackend::set_zero(Matrix a) {
  const CurrentDevice current = enter();
  cuda::set_zero(device_, a);
}

} // namespace td::kernels::cuda
