// MTTKRP of dense tensors on a GPU: milliseconds a mode beside the floor, which is one read of the tensor at the copy
// rate, or its multiplications at the rate of DGEMM, both measured in the same run. Each result is compared with one
// that is summed element by element.
// usage: gpu_dense [RANK,RANK,... [SHAPE,SHAPE,... [KERNEL,KERNEL,...]]]
//   32, 200x150x12x250 and fused if not given; kernels as option dense_kernel has them, tile:6 for tiles 6 wide, and
//   ready for cuBLAS on a Khatri-Rao product that is ready in memory
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

#include <cublas_v2.h>

#include "gpu_ready_products.cuh"
#include "gpu_tensors.cuh"
#include "kernels/cuda/backend.hpp"

namespace bench {

using kernels::cuda::CudaBackend;
using kernels::cuda::Gpu;

template <class T> __global__ void fill(T *to, i64 n, u64 seed) {
  FOR_EACH(k, n)
  to[k] = static_cast<T>(uniform(seed << 40 ^ static_cast<u64>(k)));
}

/// sums[i, r] for some rows: a block a row and column.
template <class T>
__global__ void sum_elements(Dims x, const T *values, Factors<T> factors, int mode, i64 step, i64 rank, i64 n,
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

template <class T> struct TypeOf;
template <> struct TypeOf<double> { static constexpr ValueType value = ValueType::f64; };
template <> struct TypeOf<float> { static constexpr ValueType value = ValueType::f32; };

/// A kernel with the name that it was asked for by.
struct Variant {
  std::string name;
  kernels::DenseChoice choice;

  bool is_ready() const { return name == "ready"; }
};

Variant variant_of(const std::string &name) {
  using kernels::DenseKernel;
  const std::pair<const char *, DenseKernel> kernels[] = {{"auto", DenseKernel::automatic},
                                                          {"elem", DenseKernel::elem},
                                                          {"slice", DenseKernel::slice},
                                                          {"tile", DenseKernel::tile},
                                                          {"gemm", DenseKernel::gemm},
                                                          {"fused", DenseKernel::fused},
                                                          {"fused_tf32", DenseKernel::fused_tf32}};
  if (name == "ready")
    return {name, {}};
  const auto colon = name.find(':');
  for (const auto &[word, kernel] : kernels)
    if (name.substr(0, colon) == word && (colon == std::string::npos || kernel == DenseKernel::tile))
      return {name, {kernel, colon == std::string::npos ? 0 : std::stoll(name.substr(colon + 1))}};
  throw std::runtime_error("kernel '" + name +
                           "': expected auto, elem, slice, tile, tile:WIDTH, gemm, fused, fused_tf32 or ready");
}

struct Rates {
  double copy = 0;  // bytes a second, read and written
  double dgemm = 0; // operations a second
};

/// Rows that were summed element by element: how many of their columns, and how many numbers lie between them.
struct Expected {
  const std::vector<double> &sums;
  i64 columns;
  i64 step;

  /// Relative.
  template <class T> double worst_error(const std::vector<T> &found) const {
    double worst = 0;
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const auto columns_of = static_cast<std::size_t>(columns);
      const double f = static_cast<double>(found[k / columns_of * static_cast<std::size_t>(step) + k % columns_of]);
      const double error = std::abs(sums[k] - f) / std::abs(sums[k]);
      worst = error <= worst ? worst : error;
    }
    return worst;
  }
};

/// Matrix products of f32 add in f32: 10^-4 is that of a hundred thousand terms whose roundings mostly cancel.
template <class T> double most_error(bool adds_in_f32) { return sizeof(T) == 8 ? 1e-12 : adds_in_f32 ? 1e-4 : 1e-6; }

/// `bytes` and `flops`: seconds that they take at least.
template <class T>
void measure(CudaBackend &backend, const kernels::DenseView &x, kernels::MttkrpArgs args, const Variant &variant,
             const Array<T> &out, const Expected &expected, double bytes, double flops) {
  args.dense = variant.choice;
  check(cudaMemset(out.data(), 0xff, static_cast<std::size_t>(args.out.rows * args.out.cols) * sizeof(T)), "filling");
  check(cudaDeviceSynchronize(), "filling"); // with NaN
  const double ms = median_ms(
      backend.gpu().stream(), [&] { backend.mttkrp(x, args); }, 7);
  const double floor = 1e3 * std::max(bytes, flops);
  const double worst = expected.worst_error(out.host());
  const kernels::Prediction predicted = backend.predict_mttkrp(x, args, backend.rates());
  const bool in_f32 = sizeof(T) == 4 && variant.choice.kernel == kernels::DenseKernel::gemm;
  std::printf("%9.3f ms, floor %8.3f (%s), %5.1f %% of it, predicted %9.3f, workspace %8.1f MB, error %.0e%s\n", ms,
              floor, bytes > flops ? "bytes" : "flops", 100 * floor / ms, 1e3 * predicted.seconds,
              predicted.bytes / 1e6, worst, worst <= most_error<T>(in_f32) ? "" : " WRONG");
}

template <class T>
void measure_ready(cublasHandle_t cublas, cudaStream_t stream, const Dims &dims, const Array<T> &values,
                   const Factors<T> &factors, int mode, i64 rank, const Array<T> &out, const Expected &expected) {
  const Ready ready = multiply_ready(cublas, stream, dims, values.data(), factors, mode, rank, out.data());
  if (!std::isfinite(ready.ms)) {
    std::printf("%s\n", ready.how.c_str());
    return;
  }
  const double worst = expected.worst_error(out.host());
  std::printf("%9.3f ms, %s, error %.0e%s\n", ready.ms, ready.how.c_str(), worst,
              worst <= most_error<T>(true) ? "" : " WRONG");
}

template <class T>
void run(CudaBackend &backend, cublasHandle_t cublas, const std::vector<i64> &dims, const std::vector<i64> &ranks,
         const std::vector<Variant> &variants, const Rates &rates) {
  constexpr ValueType type = TypeOf<T>::value;
  Dims shape;
  i64 n = 1;
  std::string name;
  for (const i64 d : dims) {
    shape.dims[shape.order++] = d;
    n *= d;
    name += (name.empty() ? "" : "x") + std::to_string(d);
  }
  const Array<T> values(n);
  fill<<<grid, block>>>(values.data(), n, 99);
  const kernels::DenseView x{dims, type, values.data(), {}, 1};
  for (const i64 rank : ranks) {
    Factors<T> factors{};
    std::vector<Array<T>> memory;
    std::vector<ConstMatrix> matrices;
    i64 longest = 1;
    for (std::size_t m = 0; m < dims.size(); ++m) {
      const T *a = memory.emplace_back(dims[m] * rank).data();
      fill<<<grid, block>>>(memory.back().data(), dims[m] * rank, m);
      factors.of[m] = a;
      matrices.push_back({a, type, dims[m], rank, rank});
      longest = std::max(longest, dims[m]);
    }
    const Array<T> out(longest * rank);
    check(cudaDeviceSynchronize(), "filling");
    for (int mode = 0; mode < shape.order; ++mode) {
      const i64 rows = dims[static_cast<std::size_t>(mode)];
      // A few rows, element by element.
      const i64 step = std::max<i64>(1, (rows + 4) / 5);
      const auto sampled = static_cast<unsigned>((rows + step - 1) / step);
      const auto columns = static_cast<unsigned>(std::min<i64>(rank, 16));
      const Array<double> sums(i64{sampled} * columns);
      sum_elements<<<dim3(sampled, columns), 256>>>(shape, values.data(), factors, mode, step, rank, n, sums.data());
      const std::vector<double> expected = sums.host();
      const double bytes = static_cast<double>(n) * sizeof(T) / rates.copy;
      const double flops = 2.0 * static_cast<double>(n * rank) / rates.dgemm;
      for (const Variant &variant : variants) {
        std::printf("  %-22s %s R %-5lld mode %d %-8s: ", name.c_str(), type == ValueType::f64 ? "f64" : "f32",
                    static_cast<long long>(rank), mode, variant.name.c_str());
        const Expected to_find{expected, columns, step * rank};
        if (variant.is_ready()) {
          measure_ready(cublas, backend.gpu().stream(), shape, values, factors, mode, rank, out, to_find);
          std::fflush(stdout);
          continue;
        }
        const kernels::MttkrpArgs args{mode, matrices, {out.data(), type, rows, rank, rank}, {0, rows}, {0, n}};
        try {
          measure(backend, x, args, variant, out, to_find, bytes, flops);
        } catch (const std::exception &error) { // one that takes too much memory leaves the others their turn
          std::printf("%s\n", error.what());
        }
        std::fflush(stdout);
      }
    }
  }
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
  std::vector<Variant> variants;
  for (const auto &name : split(argc > 3 ? argv[3] : "fused", ','))
    variants.push_back(variant_of(name));
  CudaBackend backend(0, 0, {});
  Gpu &gpu = backend.gpu();
  std::printf("%s\n", backend.describe().c_str());
  cublasHandle_t cublas = nullptr;
  need(cublasCreate(&cublas));
  need(cublasSetStream(cublas, gpu.stream()));
  Rates rates;
  {
    const i64 numbers = i64{1} << 28;
    const Array<double> a(numbers);
    const Array<double> b(numbers);
    const auto bytes = static_cast<std::size_t>(numbers) * sizeof(double);
    fill<<<grid, block>>>(a.data(), numbers, 1);
    check(cudaDeviceSynchronize(), "filling");
    const auto copy = [&] {
      check(cudaMemcpyAsync(b.data(), a.data(), bytes, cudaMemcpyDeviceToDevice, gpu.stream()), "copying");
    };
    rates.copy = 2e3 * static_cast<double>(bytes) / median_ms(gpu.stream(), copy, 7);
    const int size = 8192;
    const double one = 1;
    const double zero = 0;
    const auto multiply = [&] {
      need(cublasDgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, a.data(), size,
                       a.data() + i64{size} * size, size, &zero, b.data(), size));
    };
    rates.dgemm = 2e3 * size * double(size) * size / median_ms(gpu.stream(), multiply, 5);
  }
  std::printf("copies %.2f TB/s, DGEMM of 8192 cubed %.1f TFLOP/s\n", rates.copy / 1e12, rates.dgemm / 1e12);
  for (const auto &shape : split(argc > 2 ? argv[2] : "200x150x12x250", ',')) {
    std::vector<i64> dims;
    for (const auto &d : split(shape, 'x'))
      dims.push_back(std::stoll(d));
    run<double>(backend, cublas, dims, ranks, variants, rates);
    run<float>(backend, cublas, dims, ranks, variants, rates);
  }
  need(cublasDestroy(cublas));
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
