// MTTKRP of dense tensors on a GPU: milliseconds a mode beside the floor, which is one read of the tensor at the copy
// rate, or its multiplications at the rate of DGEMM, both measured in the same run. Each result is compared with one
// that is summed element by element.
// usage: gpu_dense [RANK,RANK,... [SHAPE,SHAPE,...]]     32 and 200x150x12x250 if not given
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

#include <cublas_v2.h>

#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mttkrp.hpp"

namespace bench {

using namespace td;
using kernels::cuda::check;
using kernels::cuda::CudaBackend;
using kernels::cuda::Gpu;

__host__ __device__ inline double uniform(u64 x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

template <class T> __global__ void fill(T *to, i64 n, u64 seed) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < n; k += i64{gridDim.x} * blockDim.x)
    to[k] = static_cast<T>(uniform(seed << 40 ^ static_cast<u64>(k)));
}

struct Shape {
  int order = 0;
  i64 dims[max_order];
};
template <class T> struct Factors { const T *of[max_order]; };

/// sums[i, r] for some rows: a block a row and column.
template <class T>
__global__ void sum_elements(Shape x, const T *values, Factors<T> factors, int mode, i64 step, i64 rank, i64 n,
                             double *sums) {
  __shared__ double mine[256];
  const i64 row = i64{blockIdx.x} * step;
  const i64 r = blockIdx.y;
  i64 left = 1;
  for (int m = 0; m < mode; ++m)
    left *= x.dims[m];
  const i64 others = n / x.dims[mode];
  double sum = 0;
  for (i64 c = threadIdx.x; c < others; c += 256) {
    const i64 k = c % left + left * (row + x.dims[mode] * (c / left));
    double term = static_cast<double>(values[k]);
    i64 rest = k;
    for (int m = 0; m < x.order; ++m) {
      if (m != mode)
        term *= static_cast<double>(factors.of[m][rest % x.dims[m] * rank + r]);
      rest /= x.dims[m];
    }
    sum += term;
  }
  mine[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < 256; ++t)
      sum += mine[t];
    sums[blockIdx.x * gridDim.y + r] = sum;
  }
}

void need(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    std::printf("cuBLAS: status %d\n", static_cast<int>(status));
    std::exit(1);
  }
}

template <class T> T *on_gpu(i64 n) {
  void *memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(n) * sizeof(T)), "allocating");
  return static_cast<T *>(memory);
}

template <class F> double median_ms(cudaStream_t stream, F &&call, int times = 7) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "timing");
  check(cudaEventCreate(&end), "timing");
  std::vector<float> ms;
  call();
  for (int i = 0; i < times; ++i) {
    check(cudaEventRecord(begin, stream), "timing");
    call();
    check(cudaEventRecord(end, stream), "timing");
    check(cudaEventSynchronize(end), "timing");
    cudaEventElapsedTime(&ms.emplace_back(), begin, end);
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

template <class T> struct TypeOf;
template <> struct TypeOf<double> { static constexpr ValueType value = ValueType::f64; };
template <> struct TypeOf<float> { static constexpr ValueType value = ValueType::f32; };

struct Rates {
  double copy = 0;  // bytes a second, read and written
  double dgemm = 0; // operations a second
};

template <class T>
void run(CudaBackend &backend, const std::vector<i64> &dims, const std::vector<i64> &ranks, const Rates &rates) {
  constexpr ValueType type = TypeOf<T>::value;
  const Gpu &gpu = backend.gpu();
  Shape shape;
  i64 n = 1;
  std::string name;
  for (const i64 d : dims) {
    shape.dims[shape.order++] = d;
    n *= d;
    name += (name.empty() ? "" : "x") + std::to_string(d);
  }
  T *values = on_gpu<T>(n);
  fill<<<1024, 256>>>(values, n, 99);
  const kernels::DenseView x{dims, type, values};
  for (const i64 rank : ranks) {
    Factors<T> factors{};
    std::vector<ConstMatrix> matrices;
    i64 longest = 1;
    for (std::size_t m = 0; m < dims.size(); ++m) {
      T *a = on_gpu<T>(dims[m] * rank);
      fill<<<1024, 256>>>(a, dims[m] * rank, m);
      factors.of[m] = a;
      matrices.push_back({a, type, dims[m], rank, rank});
      longest = std::max(longest, dims[m]);
    }
    T *out = on_gpu<T>(longest * rank);
    check(cudaDeviceSynchronize(), "filling");
    for (int mode = 0; mode < shape.order; ++mode) {
      const i64 rows = dims[static_cast<std::size_t>(mode)];
      const kernels::MttkrpArgs args{mode, matrices, {out, type, rows, rank, rank}, {0, rows}, {0, n}};
      const double ms = median_ms(gpu.stream(), [&] { backend.mttkrp(x, args); });
      // A few rows, element by element.
      const i64 step = std::max<i64>(1, (rows + 4) / 5);
      const auto sampled = static_cast<unsigned>((rows + step - 1) / step);
      const auto columns = static_cast<unsigned>(std::min<i64>(rank, 16));
      double *sums = on_gpu<double>(i64{sampled} * columns);
      sum_elements<<<dim3(sampled, columns), 256>>>(shape, values, factors, mode, step, rank, n, sums);
      std::vector<double> expected(std::size_t{sampled} * columns);
      std::vector<T> found(static_cast<std::size_t>(rows * rank));
      check(cudaMemcpy(expected.data(), sums, expected.size() * 8, cudaMemcpyDeviceToHost), "copying");
      check(cudaMemcpy(found.data(), out, found.size() * sizeof(T), cudaMemcpyDeviceToHost), "copying");
      check(cudaFree(sums), "freeing");
      double worst = 0;
      for (unsigned s = 0; s < sampled; ++s)
        for (unsigned r = 0; r < columns; ++r) {
          const double e = expected[s * columns + r];
          const double f = static_cast<double>(found[static_cast<std::size_t>(s * step * rank + r)]);
          const double error = std::abs(e - f) / std::abs(e);
          worst = error <= worst ? worst : error;
        }
      const double bytes = static_cast<double>(n) * sizeof(T) / rates.copy;
      const double flops = 2.0 * static_cast<double>(n * rank) / rates.dgemm;
      const double floor = 1e3 * std::max(bytes, flops);
      std::printf("  %-22s %s R %-5lld mode %d: %9.3f ms, floor %8.3f (%s), %5.1f %% of it, error %.0e%s\n",
                  name.c_str(), type == ValueType::f64 ? "f64" : "f32", static_cast<long long>(rank), mode, ms, floor,
                  bytes > flops ? "bytes" : "flops", 100 * floor / ms, worst,
                  worst <= (type == ValueType::f64 ? 1e-12 : 1e-6) ? "" : " WRONG");
      std::fflush(stdout);
    }
    for (std::size_t m = 0; m < dims.size(); ++m)
      check(cudaFree(const_cast<T *>(factors.of[m])), "freeing");
    check(cudaFree(out), "freeing");
  }
  check(cudaFree(values), "freeing");
}

std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    parts.push_back(part);
  return parts;
}

int main(int argc, char **argv) {
  std::vector<i64> ranks;
  for (const auto &rank : split(argc > 1 ? argv[1] : "32", ','))
    ranks.push_back(std::stoll(rank));
  CudaBackend backend(0, {});
  Gpu &gpu = backend.gpu();
  std::printf("%s\n", backend.describe().c_str());
  Rates rates;
  {
    const i64 bytes = i64{2} << 30;
    char *a = on_gpu<char>(bytes);
    char *b = on_gpu<char>(bytes);
    const double ms = median_ms(gpu.stream(), [&] {
      check(cudaMemcpyAsync(b, a, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, gpu.stream()), "copying");
    });
    rates.copy = 2e3 * static_cast<double>(bytes) / ms;
    cublasHandle_t cublas = nullptr;
    need(cublasCreate(&cublas));
    need(cublasSetStream(cublas, gpu.stream()));
    const int size = 8192;
    fill<<<1024, 256>>>(reinterpret_cast<double *>(a), bytes / 8, 1);
    double *c = on_gpu<double>(i64{size} * size);
    check(cudaDeviceSynchronize(), "filling");
    const double one = 1;
    const double zero = 0;
    const auto *matrix = reinterpret_cast<const double *>(a);
    const double product = median_ms(
        gpu.stream(),
        [&] {
          need(cublasDgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, matrix, size,
                           matrix + i64{size} * size, size, &zero, c, size));
        },
        5);
    rates.dgemm = 2e3 * size * double(size) * size / product;
    need(cublasDestroy(cublas));
    for (void *memory : {static_cast<void *>(a), static_cast<void *>(b), static_cast<void *>(c)})
      check(cudaFree(memory), "freeing");
  }
  std::printf("copies %.2f TB/s, DGEMM of 8192 cubed %.1f TFLOP/s\n", rates.copy / 1e12, rates.dgemm / 1e12);
  for (const auto &shape : split(argc > 2 ? argv[2] : "200x150x12x250", ',')) {
    std::vector<i64> dims;
    for (const auto &d : split(shape, 'x'))
      dims.push_back(std::stoll(d));
    run<double>(backend, dims, ranks, rates);
    run<float>(backend, dims, ranks, rates);
  }
  return 0;
}

} // namespace bench

int main(int argc, char **argv) {
  try {
    return bench::main(argc, argv);
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
