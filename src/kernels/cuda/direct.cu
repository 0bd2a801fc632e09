// Copies between GPUs that wait for signals take some ten microseconds each before they begin, which is most of the
// time where factors have few rows. Here the GPUs' threads wait for each other by flags in each other's memories and
// read what is there, so that an exchange takes one kernel.
#include <algorithm>
#include <array>

#include "kernels/cuda/direct.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/refuse.hpp"

namespace td::kernels::cuda {

namespace {

using u32 = std::uint32_t;

constexpr std::size_t most_workers = 16;
constexpr int threads = 512;
constexpr i64 most_reading_blocks = 32; // with four reads of 16 bytes on their way in each thread they fill an NVLink

/// Flags count exchanges. Of each GPU: for every worker how far that has written, how far it has read, and a counter of
/// blocks.
struct Job {
  int rank;
  int workers;
  u32 turn;
  u32 *flags[most_workers];
  const u32 *aborted; // in host memory
  int reads;
  DirectRead read[DirectLink::most_reads];
};

__device__ void set_flag(u32 *flag, u32 turn) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(turn) : "memory");
}
__device__ u32 look(const u32 *flag) {
  u32 now;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
  return now;
}

/// Waits until a worker has come as far; false if all was aborted.
__device__ bool await_turn(const u32 *flag, const Job &job) {
  constexpr u32 often = 1024; // host memory is far
  for (u32 tries = 1;; ++tries) {
    if (static_cast<int>(look(flag) - job.turn) >= 0)
      return true;
    if (tries % often == 0 && look(job.aborted) != 0)
      return false;
  }
}

template <class V> __device__ void read_all(const DirectRead &read) {
  constexpr i64 at_once = 4;
  const auto *const from = static_cast<const V *>(read.from);
  auto *const to = static_cast<V *>(read.to);
  const i64 count = read.bytes / static_cast<i64>(sizeof(V));
  const i64 step = i64{gridDim.x} * blockDim.x;
  for (i64 first = i64{blockIdx.x} * blockDim.x + threadIdx.x; first < count; first += at_once * step) {
    V some[at_once];
#pragma unroll
    for (i64 k = 0; k < at_once; ++k)
      if (first + k * step < count)
        some[k] = __ldcg(from + first + k * step); // not from what the first-level cache has of an earlier exchange
#pragma unroll
    for (i64 k = 0; k < at_once; ++k)
      if (first + k * step < count)
        to[first + k * step] = some[k];
  }
}

__global__ void __launch_bounds__(threads) exchange_directly(const __grid_constant__ Job job) {
  const int other = static_cast<int>(threadIdx.x);
  const bool speaks = other < job.workers && other != job.rank;
  u32 *const own = job.flags[job.rank];
  if (blockIdx.x == 0 && speaks)
    set_flag(job.flags[other] + job.rank, job.turn);
  if (__syncthreads_and(!speaks || await_turn(own + other, job)) != 0)
    for (int k = 0; k < job.reads; ++k) {
      const DirectRead &read = job.read[k];
      const auto odd = reinterpret_cast<std::uintptr_t>(read.from) | reinterpret_cast<std::uintptr_t>(read.to) |
                       static_cast<std::uintptr_t>(read.bytes);
      if (odd % sizeof(float4) == 0)
        read_all<float4>(read);
      else if (odd % sizeof(float) == 0)
        read_all<float>(read);
      else
        read_all<unsigned char>(read);
    }
  __syncthreads();
  __shared__ bool last;
  u32 *const ended = own + 2 * job.workers;
  if (threadIdx.x == 0) {
    __threadfence_system(); // all of the block's reads come before what the last block tells
    last = atomicAdd(ended, 1) + 1 == gridDim.x;
    __threadfence_system();
    if (last)
      *ended = 0;
  }
  __syncthreads();
  if (!last || !speaks)
    return;
  set_flag(job.flags[other] + job.workers + job.rank, job.turn);
  await_turn(own + job.workers + other, job);
}

} // namespace

class DirectClique::End final : public DirectLink {
public:
  End(std::shared_ptr<DirectClique> clique, std::size_t rank) : clique_(std::move(clique)), rank_(rank) {}
  void exchange(std::span<const DirectRead> reads) override { clique_->exchange(rank_, reads); }
  void abort() noexcept override { clique_->abort(); }

private:
  std::shared_ptr<DirectClique> clique_;
  std::size_t rank_;
};

std::shared_ptr<DirectClique> DirectClique::make(const std::vector<Gpu *> &gpus) {
  for (std::size_t k = 0; k < gpus.size(); ++k)
    for (std::size_t other = 0; other < k; ++other)
      if (gpus[k]->ordinal() == gpus[other]->ordinal())
        return nullptr;
  if (gpus.size() < 2 || gpus.size() > most_workers)
    return nullptr;
  return std::shared_ptr<DirectClique>(new DirectClique(gpus));
}

DirectClique::DirectClique(const std::vector<Gpu *> &gpus) : gpus_(gpus), turns_(gpus.size(), 0) {
  const auto bytes = static_cast<i64>((2 * gpus.size() + 1) * sizeof(u32));
  for (Gpu *const gpu : gpus_) {
    const CurrentDevice current = gpu->memory().enter();
    flags_.push_back(std::make_unique<Flags>(gpu->memory()));
    flags_.back()->data = static_cast<u32 *>(gpu->allocate(bytes, "flags of exchanges"));
    check(cudaMemsetAsync(flags_.back()->data, 0, static_cast<std::size_t>(bytes), gpu->stream()),
          "exchanging directly");
    gpu->wait(); // others may write there at once
  }
  const CurrentDevice current = gpus_.front()->memory().enter();
  void *pinned = nullptr;
  check(cudaHostAlloc(&pinned, sizeof(u32), cudaHostAllocPortable | cudaHostAllocMapped), "exchanging directly");
  aborted_ = static_cast<u32 *>(pinned);
  *aborted_ = 0;
}

// After an abort a kernel may still write to the flags of another GPU.
DirectClique::~DirectClique() {
  abort();
  for (const auto &flags : flags_)
    if (const CurrentDevice current = flags->memory.enter(std::nothrow); current)
      flags->memory.wait();
  if (flags_.empty() || aborted_ == nullptr)
    return;
  if (const CurrentDevice current = flags_.front()->memory.enter(std::nothrow); current)
    cudaFreeHost(aborted_);
}

DirectClique::Flags::~Flags() { memory.release(data); }

bool DirectClique::is_of(const std::vector<Gpu *> &gpus) const noexcept {
  const auto is_same = [](const Gpu *gpu, const auto &flags) { return &gpu->memory() == &flags->memory; };
  return __atomic_load_n(aborted_, __ATOMIC_ACQUIRE) == 0 && gpus == gpus_ &&
         std::equal(gpus.begin(), gpus.end(), flags_.begin(), flags_.end(), is_same);
}

std::vector<std::unique_ptr<DirectLink>> DirectClique::links() {
  std::vector<std::unique_ptr<DirectLink>> ends;
  for (std::size_t rank = 0; rank < gpus_.size(); ++rank)
    ends.push_back(std::make_unique<End>(shared_from_this(), rank));
  return ends;
}

void DirectClique::abort() noexcept {
  if (aborted_ != nullptr)
    __atomic_store_n(aborted_, 1U, __ATOMIC_RELEASE);
}

void DirectClique::exchange(std::size_t rank, std::span<const DirectRead> reads) {
  if (reads.size() > DirectLink::most_reads)
    refuse_reads(reads.size(), DirectLink::most_reads);
  Job job{};
  job.rank = static_cast<int>(rank);
  job.workers = static_cast<int>(gpus_.size());
  job.turn = ++turns_[rank];
  for (std::size_t k = 0; k < flags_.size(); ++k)
    job.flags[k] = flags_[k]->data;
  job.aborted = aborted_;
  job.reads = static_cast<int>(reads.size());
  std::copy(reads.begin(), reads.end(), job.read);
  i64 bytes = 0;
  for (const DirectRead &read : reads)
    bytes += read.bytes;
  constexpr i64 of_block = threads * 4 * static_cast<i64>(sizeof(float4));
  const i64 blocks = std::clamp<i64>((bytes + of_block - 1) / of_block, 1, most_reading_blocks);
  Gpu &gpu = *gpus_[rank];
  const CurrentDevice current = gpu.memory().enter();
  exchange_directly<<<static_cast<unsigned>(blocks), threads, 0, gpu.exchange_stream()>>>(job);
  check_launch("an exchange with other GPUs");
}

} // namespace td::kernels::cuda
