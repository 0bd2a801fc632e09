#include "kernels/cuda/staging.hpp"

#include <algorithm>
#include <cstring>

#include "core/parallel.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int most_threads = 12;
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

  Chunks chunks{static_cast<char *>(to), static_cast<const char *>(from), bytes, kind};
  parallel(static_cast<int>(lanes), [&](int thread, int count) {
    const CurrentDevice current = device_.memory().enter(); // a thread has its own
    for (auto k = static_cast<std::size_t>(thread); k < lanes; k += static_cast<std::size_t>(count))
      check(chunks.move(lanes_[k]), what);
  });
}

// Chunks are on their way while the host moves others.
cudaError_t Staging::Chunks::move(const Lane &lane) {
  const bool up = kind == cudaMemcpyHostToDevice;
  std::array<i64, chunks_under_way> begin{}; // of what a buffer has
  const auto size = [&](i64 at) { return static_cast<std::size_t>(std::min(chunk, bytes - at)); };
  cudaError_t result = cudaSuccess;
  /// Waits until a buffer's chunk has come or gone.
  const auto end = [&](std::size_t turn) {
    result = cudaEventSynchronize(lane.moved[turn]);
    if (!up && result == cudaSuccess)
      std::memcpy(to + begin[turn], lane.buffer[turn], size(begin[turn]));
  };
  i64 taken = 0;
  for (; result == cudaSuccess; ++taken) {
    const i64 at = next.fetch_add(1) * chunk;
    if (at >= bytes)
      break;
    const auto turn = static_cast<std::size_t>(taken % chunks_under_way);
    void *const buffer = lane.buffer[turn];
    if (taken >= chunks_under_way)
      end(turn);
    begin[turn] = at;
    if (up && result == cudaSuccess)
      std::memcpy(buffer, from + at, size(at));
    if (result == cudaSuccess)
      result = cudaMemcpyAsync(up ? to + at : buffer, up ? buffer : from + at, size(at), kind, lane.stream);
    if (result == cudaSuccess)
      result = cudaEventRecord(lane.moved[turn], lane.stream);
  }
  for (i64 k = std::max<i64>(0, taken - chunks_under_way); k < taken && result == cudaSuccess; ++k)
    end(static_cast<std::size_t>(k % chunks_under_way));
  const cudaError_t last = cudaStreamSynchronize(lane.stream);
  return result == cudaSuccess ? last : result;
}

} // namespace td::kernels::cuda
