#include "kernels/cuda/staging.hpp"

#include <algorithm>
#include <cstring>

#include "core/parallel.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int most_threads = 8;
constexpr const char *what = "copying between the GPU and the host";

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
  for (void *buffer : lane.buffer)
    cudaFreeHost(buffer);
  for (const cudaEvent_t moved : lane.moved)
    if (moved != nullptr)
      cudaEventDestroy(moved);
  if (lane.stream != nullptr)
    cudaStreamDestroy(lane.stream);
}

bool Staging::add_lane() {
  Lane &lane = lanes_.emplace_back();
  cudaError_t result = cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
  for (std::size_t k = 0; k < lane.buffer.size() && result == cudaSuccess; ++k) {
    result = cudaMallocHost(&lane.buffer[k], static_cast<std::size_t>(chunk));
    if (result == cudaSuccess)
      result = cudaEventCreateWithFlags(&lane.moved[k], cudaEventDisableTiming);
  }
  if (result == cudaSuccess)
    return true;
  cudaGetLastError();
  end(lane);
  lanes_.pop_back();
  return false;
}

bool Staging::is_worth_it(const void *host, i64 bytes) {
  if (bytes < least)
    return false;
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, host), what);
  return found.type == cudaMemoryTypeUnregistered;
}

void Staging::upload(void *to, const void *from_host, i64 bytes) {
  if (is_worth_it(from_host, bytes))
    copy(to, from_host, bytes, cudaMemcpyHostToDevice);
  else
    device_.upload(to, from_host, bytes);
}

void Staging::download(void *to_host, const void *from, i64 bytes) {
  if (is_worth_it(to_host, bytes))
    copy(to_host, from, bytes, cudaMemcpyDeviceToHost);
  else
    device_.download(to_host, from, bytes);
}

void Staging::copy(void *to, const void *from, i64 bytes, cudaMemcpyKind kind) {
  const i64 most = std::clamp(threads_, 1, most_threads);
  const auto wanted = static_cast<std::size_t>(std::clamp<i64>(bytes / least, 1, most));
  if (before_ == nullptr)
    check(cudaEventCreateWithFlags(&before_, cudaEventDisableTiming), what);
  while (lanes_.size() < wanted && add_lane()) {
  }
  const std::size_t lanes = std::min(lanes_.size(), wanted);
  if (lanes == 0) // no host memory can be pinned
    return kind == cudaMemcpyHostToDevice ? device_.upload(to, from, bytes) : device_.download(to, from, bytes);
  device_.settle();
  check(cudaEventRecord(before_, device_.stream()), what);
  for (std::size_t k = 0; k < lanes; ++k)
    check(cudaStreamWaitEvent(lanes_[k].stream, before_, 0), what);

  const i64 chunks = (bytes + chunk - 1) / chunk;
  parallel(static_cast<int>(lanes), [&](int thread, int count) {
    const CurrentDevice current(device_.ordinal()); // a thread has its own
    for (auto k = static_cast<std::size_t>(thread); k < lanes; k += static_cast<std::size_t>(count)) {
      const Range own = part_of({0, chunks}, static_cast<i64>(k), static_cast<i64>(lanes));
      const i64 begin = own.begin * chunk;
      const i64 end = std::min(own.end * chunk, bytes);
      check(
          move(lanes_[k], static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin, end - begin, kind),
          what);
    }
  });
}

cudaError_t Staging::move(const Lane &lane, char *to, const char *from, i64 bytes, cudaMemcpyKind kind) {
  const bool up = kind == cudaMemcpyHostToDevice;
  const i64 chunks = (bytes + chunk - 1) / chunk;
  const auto size = [&](i64 k) { return static_cast<std::size_t>(std::min(chunk, bytes - k * chunk)); };
  cudaError_t result = cudaSuccess;
  // Chunk k is on its way while the host moves the next ones (up) or those before (down).
  constexpr i64 behind = chunks_under_way - 1;
  for (i64 k = 0; k < chunks + (up ? 0 : behind) && result == cudaSuccess; ++k) {
    const auto turn = static_cast<std::size_t>(k % chunks_under_way);
    if (up) {
      if (k >= chunks_under_way)
        result = cudaEventSynchronize(lane.moved[turn]);
      if (result == cudaSuccess) {
        std::memcpy(lane.buffer[turn], from + k * chunk, size(k));
        result = cudaMemcpyAsync(to + k * chunk, lane.buffer[turn], size(k), kind, lane.stream);
      }
      if (result == cudaSuccess)
        result = cudaEventRecord(lane.moved[turn], lane.stream);
      continue;
    }
    if (k < chunks) {
      result = cudaMemcpyAsync(lane.buffer[turn], from + k * chunk, size(k), kind, lane.stream);
      if (result == cudaSuccess)
        result = cudaEventRecord(lane.moved[turn], lane.stream);
    }
    if (const i64 there = k - behind; there >= 0 && result == cudaSuccess) {
      const auto its = static_cast<std::size_t>(there % chunks_under_way);
      result = cudaEventSynchronize(lane.moved[its]);
      if (result == cudaSuccess)
        std::memcpy(to + there * chunk, lane.buffer[its], size(there));
    }
  }
  const cudaError_t end = cudaStreamSynchronize(lane.stream);
  return result == cudaSuccess ? end : result;
}

} // namespace td::kernels::cuda
