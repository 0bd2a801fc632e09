// What a caller sees of td_mttkrp on a GPU: with his arrays on the GPU and on the host, through td.h.
// usage: gpu_arrays [RANK [REPEATS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <td/td.hpp>

namespace {

using Clock = std::chrono::steady_clock;

void cuda(cudaError_t result) {
  if (result != cudaSuccess) {
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(result));
    std::exit(1);
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Case {
  const char *name;
  std::vector<std::int64_t> dims;
  std::int64_t nnz;
};

tdpp::Tensor random_tensor(const tdpp::Context &context, const Case &c) {
  std::mt19937_64 engine(1);
  std::vector<std::vector<std::int32_t>> columns;
  std::vector<const void *> indices;
  for (const std::int64_t dim : c.dims) {
    std::uniform_int_distribution<std::int32_t> index(0, static_cast<std::int32_t>(dim - 1));
    auto &column = columns.emplace_back(static_cast<std::size_t>(c.nnz));
    std::generate(column.begin(), column.end(), [&] { return index(engine); });
  }
  for (const auto &column : columns)
    indices.push_back(column.data());
  const std::vector<double> values(static_cast<std::size_t>(c.nnz), 1.5);
  return tdpp::make<tdpp::Tensor>(td_tensor_create, context, static_cast<std::int32_t>(c.dims.size()), c.dims.data(),
                                  c.nnz, TD_I32, indices.data(), 0, TD_F64, values.data(), TD_HOST, nullptr);
}

void measure(const tdpp::Context &context, const Case &c, std::int64_t rank, int repeats) {
  const tdpp::Tensor x = random_tensor(context, c);
  const auto order = c.dims.size();
  std::vector<std::vector<double>> host;
  std::vector<const void *> on_host, on_gpu;
  for (const std::int64_t dim : c.dims) {
    host.emplace_back(static_cast<std::size_t>(dim * rank), 0.5);
    on_host.push_back(host.back().data());
    void *copy = nullptr;
    cuda(cudaMalloc(&copy, host.back().size() * sizeof(double)));
    cuda(cudaMemcpy(copy, host.back().data(), host.back().size() * sizeof(double), cudaMemcpyHostToDevice));
    on_gpu.push_back(copy);
  }
  for (const bool device : {true, false})
    for (std::size_t mode = 0; mode < order; ++mode) {
      std::vector<double> result(static_cast<std::size_t>(c.dims[mode] * rank));
      void *out = result.data();
      if (device)
        cuda(cudaMalloc(&out, result.size() * sizeof(double)));
      std::vector<double> seconds;
      for (int k = 0; k < repeats + 2; ++k) {
        const auto begin = Clock::now();
        tdpp::check(td_mttkrp(context, x, static_cast<std::int32_t>(mode), rank, (device ? on_gpu : on_host).data(),
                              c.dims.data(), out, c.dims[mode], device ? TD_DEVICE : TD_HOST));
        if (device)
          cuda(cudaDeviceSynchronize());
        if (k >= 2)
          seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      }
      if (device)
        cuda(cudaMemcpy(result.data(), out, result.size() * sizeof(double), cudaMemcpyDeviceToHost));
      double sum = 0;
      for (const double v : result)
        sum += v;
      std::printf("%-8s R = %lld  arrays on the %-4s mode %zu  %10.3f ms   sum %.10e\n", c.name,
                  static_cast<long long>(rank), device ? "GPU" : "host", mode, 1e3 * median(seconds), sum);
      if (device)
        cuda(cudaFree(out));
    }
  for (const void *copy : on_gpu)
    cuda(cudaFree(const_cast<void *>(copy)));
}

} // namespace

int main(int argc, char **argv) {
  const std::int64_t rank = argc > 1 ? std::atoll(argv[1]) : 32;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 9;
  try {
    const auto context = tdpp::make<tdpp::Context>(td_context_create, "cuda", nullptr);
    const Case cases[] = {{"short", {183, 24, 1140, 1717}, 3000000},
                          {"middle", {12000, 9000, 29000}, 15000000},
                          {"long", {2000000, 1500000, 1000000}, 20000000}};
    for (const Case &c : cases)
      measure(context, c, rank, repeats);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "gpu_arrays: %s\n", e.what());
    return 1;
  }
  return 0;
}
