// MTTKRP of a tensor of which a GPU keeps all, some or nothing: how fast its keys and values are worked off, beside a
// plain copy of as many bytes from pinned memory. Each result is compared with that of a tensor that is there whole.
// usage: gpu_streaming [RANK [ENTRIES [REPEATS]]]     32, 40,000,000 and 9
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime_api.h>

#include "core/parallel.hpp"
#include "kernels/loader.hpp"
#include "plan/needs.hpp"
#include "tensor/tensor.hpp"

namespace {

using namespace td;
using kernels::Backend;
using kernels::DeviceBuffer;

constexpr i64 chunk = i64{64} << 20; // bytes of the plain copy at a time

void check(cudaError_t result, const char *what) {
  if (result != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
    std::exit(1);
  }
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <class F> double median_ms(int repeats, F &&f) {
  std::vector<double> ms;
  for (int k = 0; k <= repeats; ++k) {
    const auto begin = Clock::now();
    f();
    if (k > 0) // the first time warms up
      ms.push_back(1e3 * seconds_since(begin));
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

/// A number in [0, 1) from a counter.
double uniform(u64 k) {
  k += 0x9e3779b97f4a7c15u; // splitmix64
  k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
  k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((k ^ (k >> 31)) >> 11) * 0x1p-53;
}

/// nell2's dims; indices with skew 0.5, hot ones not neighbours; equal entries are summed.
std::shared_ptr<const tensor::Tensor> make_tensor(const std::vector<i64> &dims, i64 nnz, const char *format) {
  const int threads = available_threads();
  std::vector<std::vector<std::int32_t>> index(dims.size(), std::vector<std::int32_t>(static_cast<std::size_t>(nnz)));
  std::vector<double> values(static_cast<std::size_t>(nnz));
  parallel(threads, [&](int thread, int count) {
    const Range mine = part_of({0, nnz}, thread, count);
    for (i64 k = mine.begin; k < mine.end; ++k) {
      for (std::size_t m = 0; m < dims.size(); ++m) {
        const double u = uniform(4 * static_cast<u64>(k) + m);
        const auto drawn = static_cast<i64>(static_cast<double>(dims[m]) * u * u);
        index[m][static_cast<std::size_t>(k)] = static_cast<std::int32_t>((drawn * 7919 + 13) % dims[m]);
      }
      values[static_cast<std::size_t>(k)] = 1 + uniform(4 * static_cast<u64>(k) + 3);
    }
  });
  std::vector<const void *> columns;
  for (const auto &column : index)
    columns.push_back(column.data());
  Options options;
  options.set_text("format", format);
  return tensor::Tensor::make_sparse({dims, nnz, IndexType::i32, columns.data(), 0, ValueType::f64, values.data()},
                                     options, threads, "", tensor::Target::gpu);
}

tensor::FormBytes bytes_of_all(const tensor::Tensor &x) {
  tensor::FormBytes all;
  for (int m = 0; m < (x.format() == plan::Format::sorted ? x.order() : 1); ++m) {
    const tensor::FormBytes form = tensor::bytes_of(x.view(m));
    all.entries += form.entries;
    all.lists += form.lists;
    all.each = form.each;
  }
  return all;
}

struct Result {
  double ms;
  double first_s; // the first sweep, which copies and pins
  i64 kept;       // bytes of keys and values
  std::vector<std::vector<double>> products;
};

Result sweeps(Backend &backend, const tensor::Tensor &x, const tensor::FormBytes &all, i64 rank, int repeats) {
  tensor::Resident resident; // not the tensor's own: what one context keeps there serves all
  std::vector<DeviceBuffer> memory;
  std::vector<ConstMatrix> factors;
  std::vector<Matrix> out;
  Result result{};
  for (const i64 rows : x.dims()) {
    std::vector<double> numbers(static_cast<std::size_t>(rows * rank));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = uniform(k + (u64{1} << 50));
    memory.emplace_back(backend, rows * rank * 8, "a factor");
    backend.upload(memory.back().data(), numbers.data(), memory.back().bytes());
    factors.push_back({memory.back().data(), ValueType::f64, rows, rank, rank});
    memory.emplace_back(backend, rows * rank * 8, "a result");
    out.push_back({memory.back().data(), ValueType::f64, rows, rank, rank});
    result.products.push_back(std::move(numbers));
  }
  const auto sweep = [&] {
    for (int m = 0; m < x.order(); ++m) {
      const auto at = static_cast<std::size_t>(m);
      const i64 rows = x.dims()[at];
      resident.on(backend, x.format() == plan::Format::sorted ? m : 0, x.view(m), all)
          .mttkrp(backend, {m, factors, out[at], {0, rows}, {0, x.facts().nnz}});
    }
    check(cudaDeviceSynchronize(), "a sweep");
  };
  const auto begin = Clock::now();
  sweep();
  result.first_s = seconds_since(begin);
  result.ms = median_ms(repeats, sweep);
  result.kept = resident.bytes(backend.memory());
  for (std::size_t m = 0; m < out.size(); ++m)
    backend.download(result.products[m].data(), out[m].data, out[m].rows * rank * 8);
  return result;
}

double largest_error(const Result &a, const Result &b) {
  double worst = 0;
  for (std::size_t m = 0; m < a.products.size(); ++m)
    for (std::size_t k = 0; k < a.products[m].size(); ++k) {
      const double e = std::abs(a.products[m][k] - b.products[m][k]) / std::max(std::abs(b.products[m][k]), 1e-300);
      worst = e <= worst ? worst : e; // NaN too
    }
  return worst;
}

double copy_ms(i64 bytes, int repeats) {
  void *host = nullptr;
  void *device = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaMallocHost(&host, static_cast<std::size_t>(chunk)), "pinned memory");
  check(cudaMalloc(&device, static_cast<std::size_t>(chunk)), "device memory");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  std::fill_n(static_cast<unsigned char *>(host), chunk, static_cast<unsigned char>(5));
  const double ms = median_ms(repeats, [&] {
    for (i64 done = 0; done < bytes; done += chunk)
      check(cudaMemcpyAsync(device, host, static_cast<std::size_t>(std::min(chunk, bytes - done)),
                            cudaMemcpyHostToDevice, stream),
            "copying");
    check(cudaStreamSynchronize(stream), "copying");
  });
  cudaStreamDestroy(stream);
  cudaFree(device);
  cudaFreeHost(host);
  return ms;
}

void measure(const std::vector<i64> &dims, i64 rank, i64 nnz, int repeats, const char *format) {
  auto spec = kernels::parse_devices("cuda:0");
  const auto begin = Clock::now();
  const auto x = make_tensor(dims, nnz, format);
  std::printf("\n%s: %s, made in %.1f s on %d threads\n", format, x->describe().c_str(), seconds_since(begin),
              available_threads());
  const tensor::FormBytes all = bytes_of_all(*x);
  const double touched = static_cast<double>(all.entries) * (x->format() == plan::Format::sorted ? 1 : x->order());
  const auto whole = kernels::open_backends(spec, 0).front();
  const double copied = copy_ms(static_cast<i64>(touched), repeats);
  const double bandwidth = touched / copied / 1e6;
  const Result there = sweeps(*whole, *x, all, rank, repeats);
  std::printf("  rank %lld; keys and values %.2f GB, lists %.3f GB; all modes read %.2f GB\n",
              static_cast<long long>(rank), static_cast<double>(all.entries) / 1e9,
              static_cast<double>(all.lists) / 1e9, touched / 1e9);
  std::printf("  pinned copy of as much: %.2f ms, %.1f GB/s\n", copied, bandwidth);
  std::printf("  %-9s %10s %10s %10s %12s %12s %14s %10s\n", "limit GB", "streamed", "first s", "ms", "GB/s",
              "of the copy", "of what streams", "error");
  std::printf("  %-9s %10s %10.2f %10.2f %12.1f\n", "none", "0 %", there.first_s, there.ms, touched / there.ms / 1e6);
  for (const double share : {0.0, 0.25, 0.5, 0.75}) {
    // What parts on their way take comes off first (tensor/resident.cpp). Nothing stays where there is no room for
    // them.
    const i64 passing = share > 0 ? 3 * plan::span_entries(nnz) * all.each : 1;
    spec.memory_limit = all.lists + passing + static_cast<i64>(share * static_cast<double>(all.entries));
    const auto little = kernels::open_backends(spec, 0).front();
    const Result some = sweeps(*little, *x, all, rank, repeats);
    const double streamed = 1 - static_cast<double>(some.kept) / static_cast<double>(all.entries);
    const double rate = touched / some.ms / 1e6;
    std::printf("  %-9.3f %8.0f %% %10.2f %10.2f %12.1f %11.0f %% %14.0f %% %10.1e\n",
                static_cast<double>(spec.memory_limit) / 1e9, 100 * streamed, some.first_s, some.ms, rate,
                100 * rate / bandwidth, 100 * rate * streamed / bandwidth, largest_error(some, there));
  }
}

} // namespace

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const i64 rank = argc > 1 ? std::atoll(argv[1]) : 32;
  const i64 nnz = argc > 2 ? std::atoll(argv[2]) : 40'000'000;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 9;
  const std::vector<i64> nell2{12092, 9184, 28818};
  for (const char *format : {"sorted", "blco"})
    measure(nell2, rank, nnz, repeats, format);
  return 0;
}
