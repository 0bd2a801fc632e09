#include "kernels/cuda/staging.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <sys/mman.h>

#include "core/parallel.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int most_threads = 12;
constexpr const char *what = "copying between the GPU and the host";
constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Pinned memory of whole huge pages; null if there is none to be had. CUDA's own is pinned page by page, which took
/// 0.4 to 0.9 ms a MiB in a trace beside an H200. A forked process does not get it: the system would give one of the
/// two processes other pages, and the GPU knows of these alone.
void *map_pinned(std::size_t bytes) noexcept {
  const std::size_t room = bytes + huge_page;
  void *const all = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED)
    return nullptr;
  auto *const begin = static_cast<char *>(all);
  const std::size_t skipped = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  char *const memory = begin + skipped;
  if (skipped > 0)
    munmap(begin, skipped);
  munmap(memory + bytes, huge_page - skipped);
  madvise(memory, bytes, MADV_HUGEPAGE);
  if (madvise(memory, bytes, MADV_DONTFORK) == 0 &&
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess)
    return memory;
  munmap(memory, bytes);
  return nullptr;
}

/// What a lane copies to may be given back next, also where it fails.
struct Settled {
  cudaStream_t stream;
  ~Settled() { cudaStreamSynchronize(stream); }
};

void unmap_pinned(void *memory, std::size_t bytes) noexcept {
  if (memory == nullptr)
    return;
  cudaHostUnregister(memory);
  munmap(memory, bytes);
}

} // namespace

Staging::~Staging() {
  const CurrentDevice current = device_.memory().enter(std::nothrow);
  if (!current)
    return;
  for (const Lane &lane : lanes_)
    end(lane);
  if (before_ != nullptr)
    cudaEventDestroy(before_);
}

void Staging::end(const Lane &lane) noexcept {
  unmap_pinned(lane.buffer.front(), buffer_bytes);
  for (const cudaEvent_t moved : lane.moved)
    if (moved != nullptr)
      cudaEventDestroy(moved);
  if (lane.group != nullptr)
    cudaEventDestroy(lane.group);
  if (lane.stream != nullptr)
    cudaStreamDestroy(lane.stream);
}

bool Staging::add_lane() {
  Lane &lane = lanes_.emplace_back();
  cudaError_t result = cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
  if (result == cudaSuccess)
    result = cudaEventCreateWithFlags(&lane.group, cudaEventDisableTiming);
  if (result == cudaSuccess && (lane.buffer.front() = map_pinned(buffer_bytes)) == nullptr)
    result = cudaErrorMemoryAllocation;
  for (std::size_t k = 0; k < lane.buffer.size() && result == cudaSuccess; ++k) {
    lane.buffer[k] = static_cast<char *>(lane.buffer.front()) + static_cast<i64>(k) * chunk;
    result = cudaEventCreateWithFlags(&lane.moved[k], cudaEventDisableTiming);
  }
  if (result == cudaSuccess)
    return true;
  cudaGetLastError();
  end(lane);
  lanes_.pop_back();
  return false;
}

bool Staging::is_pageable(const void *host) {
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, host), what);
  return found.type == cudaMemoryTypeUnregistered;
}

bool Staging::is_worth_it(const void *host, i64 bytes) { return bytes >= least && is_pageable(host); }

void Staging::upload(void *to, const void *from_host, i64 bytes) {
  const Group all{{to, from_host, bytes}};
  if (is_worth_it(from_host, bytes))
    copy({&all, 1}, cudaMemcpyHostToDevice, nullptr);
  else
    device_.upload(to, from_host, bytes);
}

void Staging::upload(std::span<const Group> groups, const std::function<void(std::size_t)> &arrived) {
  copy(groups, cudaMemcpyHostToDevice, arrived);
}

void Staging::download(void *to_host, const void *from, i64 bytes) {
  const Group all{{to_host, from, bytes}};
  if (is_worth_it(to_host, bytes))
    copy({&all, 1}, cudaMemcpyDeviceToHost, nullptr);
  else
    device_.download(to_host, from, bytes);
}

/// What is copied, of which each lane takes the next chunk when it has a buffer free: some threads get less of the
/// host's memory rate than others.
class Staging::Chunks {
public:
  /// The device's stream waits for groups before arrived() is called, if it is not empty.
  Chunks(std::span<const Group> groups, cudaMemcpyKind kind, std::span<const Lane> lanes, cudaStream_t stream,
         const std::function<void(std::size_t)> &arrived)
      : kind_(kind), lanes_(lanes), stream_(stream), arrived_(arrived), left_(groups.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const Piece &piece : groups[g])
        for (i64 at = 0; at < piece.bytes; at += chunk) {
          chunks_.push_back({static_cast<char *>(piece.to) + at, static_cast<const char *>(piece.from) + at,
                             static_cast<std::size_t>(std::min(chunk, piece.bytes - at)), g});
          left_[g].fetch_add(1);
        }
  }

  // Chunks are on their way while the host moves others.
  cudaError_t move(const Lane &lane) {
    const bool up = kind_ == cudaMemcpyHostToDevice;
    std::array<std::size_t, chunks_under_way> in_buffer{};
    cudaError_t result = cudaSuccess;
    /// Waits until a buffer's chunk has come or gone.
    const auto end = [&](std::size_t turn) {
      result = cudaEventSynchronize(lane.moved[turn]);
      if (const Chunk &c = chunks_[in_buffer[turn]]; !up && result == cudaSuccess)
        std::memcpy(c.to, lane.buffer[turn], c.bytes);
    };
    std::size_t taken = 0;
    for (; result == cudaSuccess; ++taken) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= chunks_.size())
        break;
      const Chunk &c = chunks_[next];
      const std::size_t turn = taken % chunks_under_way;
      void *const buffer = lane.buffer[turn];
      if (taken >= chunks_under_way)
        end(turn);
      in_buffer[turn] = next;
      if (up && result == cudaSuccess)
        std::memcpy(buffer, c.from, c.bytes);
      if (result == cudaSuccess)
        result = cudaMemcpyAsync(up ? c.to : buffer, up ? buffer : c.from, c.bytes, kind_, lane.stream);
      if (result == cudaSuccess)
        result = cudaEventRecord(lane.moved[turn], lane.stream);
      if (result == cudaSuccess && left_[c.group].fetch_sub(1) == 1)
        result = tell();
    }
    for (std::size_t k = taken - std::min<std::size_t>(taken, chunks_under_way); k < taken && result == cudaSuccess;
         ++k)
      end(k % chunks_under_way);
    const cudaError_t last = cudaStreamSynchronize(lane.stream);
    return result == cudaSuccess ? last : result;
  }

private:
  struct Chunk {
    char *to;
    const char *from;
    std::size_t bytes;
    std::size_t group;
  };

  /// Tells of groups all of which are on their way. The last chunk of one may be in any lane.
  cudaError_t tell() {
    if (!arrived_)
      return cudaSuccess;
    const std::lock_guard lock(mutex_);
    for (; told_ < left_.size() && left_[told_] == 0; ++told_) {
      for (const Lane &lane : lanes_) {
        cudaError_t result = cudaEventRecord(lane.group, lane.stream);
        if (result == cudaSuccess)
          result = cudaStreamWaitEvent(stream_, lane.group, 0);
        if (result != cudaSuccess)
          return result;
      }
      arrived_(told_);
    }
    return cudaSuccess;
  }

  cudaMemcpyKind kind_;
  std::span<const Lane> lanes_;
  cudaStream_t stream_;
  const std::function<void(std::size_t)> &arrived_;
  std::vector<Chunk> chunks_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::atomic<i64>> left_; // [groups] chunks that are not on their way
  std::mutex mutex_;
  std::size_t told_ = 0; // groups
};

void Staging::copy(std::span<const Group> groups, cudaMemcpyKind kind,
                   const std::function<void(std::size_t)> &arrived) {
  i64 bytes = 0;
  for (const Group &group : groups)
    for (const Piece &piece : group)
      bytes += piece.bytes;
  const i64 most = std::clamp(threads_, 1, most_threads);
  const auto wanted = static_cast<std::size_t>(std::clamp<i64>(bytes / least, 1, most));
  if (before_ == nullptr)
    check(cudaEventCreateWithFlags(&before_, cudaEventDisableTiming), what);
  while (lanes_.size() < wanted && add_lane()) {
  }
  const std::size_t lanes = std::min(lanes_.size(), wanted);
  if (lanes == 0) { // no host memory can be pinned
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Piece &piece : groups[g])
        if (kind == cudaMemcpyHostToDevice)
          device_.upload(piece.to, piece.from, piece.bytes);
        else
          device_.download(piece.to, piece.from, piece.bytes);
      if (arrived)
        arrived(g);
    }
    return;
  }
  device_.settle();
  check(cudaEventRecord(before_, device_.stream()), what);
  for (std::size_t k = 0; k < lanes; ++k)
    check(cudaStreamWaitEvent(lanes_[k].stream, before_, 0), what);

  Chunks chunks(groups, kind, std::span(lanes_).first(lanes), device_.stream(), arrived);
  parallel(static_cast<int>(lanes), [&](int thread, int count) {
    const CurrentDevice current = device_.memory().enter(); // a thread has its own
    for (auto k = static_cast<std::size_t>(thread); k < lanes; k += static_cast<std::size_t>(count)) {
      const Settled settled{lanes_[k].stream};
      check(chunks.move(lanes_[k]), what);
    }
  });
}

} // namespace td::kernels::cuda
