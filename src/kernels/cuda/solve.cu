// The R x R matrices: the normal equations and their pseudo-inverse, as kernels/host/pseudo_inverse.cpp decides it.
#include <climits>
#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix.hpp"
#include "kernels/cuda/refuse.hpp"
#include "kernels/cuda/solve.hpp"

namespace td::kernels::cuda {

namespace {

struct Grams {
  const double *gram[max_order];
  int count;
};

__global__ void multiply_grams(const __grid_constant__ Grams grams, i64 rank, double ridge, double *v) {
  const i64 size = rank * rank;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < size; k += i64{gridDim.x} * blockDim.x) {
    double product = 1;
    for (int m = 0; m < grams.count; ++m)
      product *= grams.gram[m][k];
    v[k] = k / rank == k % rank ? product + ridge : product;
  }
}

/// What the host has to know before the next step.
struct Finding {
  double largest;       // of v's magnitudes
  double bad;           // the first value of v that is not finite
  i64 bad_at;           // where; -1 if there is none
  int exponent;         // v is scaled by 2^exponent
  int factored;         // cuSOLVER's info: 0 if v is positive definite
  int inverted;         // likewise
  double condition;     // |v| |v^-1| in the 1-norm; of the scaled matrix, which is the same
  double inverse_scale; // largest magnitude of the scaled matrix's inverse
  i64 kept;             // eigenvalues
};

constexpr int threads = 1024; // of the kernels that are one block

/// The largest of the block's numbers, in every thread.
__device__ double block_max(double x) {
  __shared__ double largest[threads];
  largest[threadIdx.x] = x;
  for (int step = threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < step)
      largest[threadIdx.x] = fmax(largest[threadIdx.x], largest[threadIdx.x + step]);
  }
  __syncthreads();
  const double all = largest[0];
  __syncthreads();
  return all;
}

/// a, b := v scaled by a power of two (exact) so that its largest magnitude is in [1, 2).
__global__ void prepare(const double *v, i64 size, double *a, double *b, Finding *finding) {
  __shared__ unsigned long long first_bad;
  if (threadIdx.x == 0)
    first_bad = ULLONG_MAX;
  __syncthreads();
  double own = 0;
  for (i64 k = threadIdx.x; k < size; k += threads) {
    if (!isfinite(v[k]))
      atomicMin(&first_bad, static_cast<unsigned long long>(k));
    own = fmax(own, fabs(v[k]));
  }
  const double largest = block_max(own); // with a barrier: first_bad is complete
  const bool good = first_bad == ULLONG_MAX;
  const int exponent = good && largest > 0 ? -ilogb(largest) : 0;
  if (threadIdx.x == 0) {
    finding->largest = largest;
    finding->bad_at = good ? -1 : static_cast<i64>(first_bad);
    finding->bad = good ? 0 : v[first_bad];
    finding->exponent = exponent;
  }
  for (i64 k = threadIdx.x; k < size; k += threads)
    a[k] = b[k] = scalbn(v[k], exponent);
}

/// Fills in the lower triangle (column-major) of the inverse a of b, and finds how large it is and b's condition.
__global__ void judge(double *a, const double *b, i64 rank, Finding *finding) {
  for (i64 k = threadIdx.x; k < rank * rank; k += threads) {
    const i64 column = k / rank;
    const i64 row = k % rank;
    if (row > column)
      a[k] = a[row * rank + column];
  }
  __syncthreads();
  double norm = 0;
  double inverse_norm = 0;
  double scale = 0;
  for (i64 column = threadIdx.x; column < rank; column += threads) {
    double sum = 0;
    double inverse_sum = 0;
    for (i64 row = 0; row < rank; ++row) {
      sum += fabs(b[row * rank + column]); // symmetric: its rows are its columns
      inverse_sum += fabs(a[row * rank + column]);
      scale = fmax(scale, fabs(a[row * rank + column]));
    }
    norm = fmax(norm, sum);
    inverse_norm = fmax(inverse_norm, inverse_sum);
  }
  norm = block_max(norm);
  inverse_norm = block_max(inverse_norm);
  scale = block_max(scale);
  if (threadIdx.x == 0) {
    finding->condition = norm * inverse_norm;
    finding->inverse_scale = scale;
  }
}

/// p := sum over the eigenvalues above the cutoff of q q^T / lambda.
__global__ void sum_eigenvectors(const double *q, const double *eigenvalues, i64 rank, double cutoff, double *p,
                                 Finding *finding) {
  const double largest = eigenvalues[rank - 1]; // ascending
  const auto keep = [&](i64 k) { return eigenvalues[k] > cutoff * largest && eigenvalues[k] > 0; };
  double scale = 0;
  for (i64 k = threadIdx.x; k < rank * rank; k += threads) {
    const i64 i = max(k / rank, k % rank);
    const i64 j = min(k / rank, k % rank); // the same order of products on both sides of the diagonal
    double sum = 0;
    for (i64 e = 0; e < rank; ++e)
      if (keep(e))
        sum += q[e * rank + i] / eigenvalues[e] * q[e * rank + j];
    p[k] = sum;
    scale = fmax(scale, fabs(sum));
  }
  scale = block_max(scale);
  if (threadIdx.x == 0) {
    finding->inverse_scale = scale;
    finding->kept = 0;
    for (i64 e = 0; e < rank; ++e)
      finding->kept += keep(e) ? 1 : 0;
  }
}

/// p := a scaled back, or NaN; the record.
__global__ void finish(const double *a, i64 size, int exponent, SolveRecord found, double *p, SolveRecord *record) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < size; k += i64{gridDim.x} * blockDim.x)
    p[k] = found.failure == SolveFailure::none ? scalbn(a[k], exponent) : nan("");
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *record = found;
}

/// One inversion.
class Inversion {
public:
  Inversion(Device &device, const double *v, i64 rank)
      : device_(device), rank_(rank), a_(device, rank * rank, what), b_(device, rank * rank, what),
        finding_(device, 1, what) {
    check(cudaMemsetAsync(finding_.data(), 0, sizeof(Finding), device.stream()), what); // it is copied as a whole
    prepare<<<1, threads, 0, device.stream()>>>(v, rank * rank, a_.data(), b_.data(), finding_.data());
    check_launch(what);
  }

  /// Inverts in a_, not yet asking whether that went well.
  void by_cholesky() {
    const int n = static_cast<int>(rank_);
    const cusolverDnHandle_t solver = device_.solver();
    int factor_work = 0;
    int invert_work = 0;
    check(cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, &factor_work), what);
    check(cusolverDnDpotri_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, &invert_work), what);
    const int count = std::max({factor_work, invert_work, 1});
    const Scratch<double> work(device_, count, what);
    check(cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, work.data(), count,
                           &finding_.data()->factored),
          what);
    check(cusolverDnDpotri(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, work.data(), count,
                           &finding_.data()->inverted),
          what);
    judge<<<1, threads, 0, device_.stream()>>>(a_.data(), b_.data(), rank_, finding_.data());
    check_launch(what);
  }

  /// The pseudo-inverse, in a_.
  void by_eigen(double cutoff) {
    const int n = static_cast<int>(rank_);
    const cusolverDnHandle_t solver = device_.solver();
    const Scratch<double> eigenvalues(device_, n, what);
    int count = 0;
    check(cusolverDnDsyevd_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, b_.data(), n,
                                      eigenvalues.data(), &count),
          what);
    const Scratch<double> work(device_, std::max(count, 1), what);
    check(cusolverDnDsyevd(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, b_.data(), n,
                           eigenvalues.data(), work.data(), count, &finding_.data()->factored),
          what);
    sum_eigenvectors<<<1, threads, 0, device_.stream()>>>(b_.data(), eigenvalues.data(), rank_, cutoff, a_.data(),
                                                          finding_.data());
    check_launch(what);
  }

  Finding finding() {
    Finding found;
    device_.download(&found, finding_.data(), sizeof found);
    return found;
  }

  void set_zero() {
    check(cudaMemsetAsync(a_.data(), 0, static_cast<std::size_t>(rank_ * rank_) * sizeof(double), device_.stream()),
          what);
  }

  void finish_into(double *p, SolveRecord *record, int exponent, SolveRecord found) {
    const i64 size = rank_ * rank_;
    finish<<<blocks_for(device_, size, block_threads), block_threads, 0, device_.stream()>>>(a_.data(), size, exponent,
                                                                                             found, p, record);
    check_launch(what);
  }

private:
  static constexpr const char *what = "solving the normal equations";
  Device &device_;
  i64 rank_;
  Scratch<double> a_, b_;
  Scratch<Finding> finding_;
};

} // namespace

void hadamard(Device &device, std::span<const double *const> grams, i64 rank, double ridge, double *v) {
  Grams all{};
  all.count = static_cast<int>(grams.size());
  std::copy(grams.begin(), grams.end(), all.gram);
  multiply_grams<<<blocks_for(device, rank * rank, block_threads), block_threads, 0, device.stream()>>>(all, rank,
                                                                                                        ridge, v);
  check_launch("the normal equations");
}

void pseudo_inverse(Device &device, const double *v, i64 rank, double cutoff, double *p, SolveRecord *record) {
  refuse_rank(rank);
  if (rank <= small_rank)
    return invert_small(device, v, rank, cutoff, p, record);
  Inversion inversion(device, v, rank);
  inversion.by_cholesky();
  Finding found = inversion.finding();
  if (found.bad_at >= 0)
    return inversion.finish_into(p, record, 0, {0, 0, SolveFailure::not_finite, found.bad_at, found.bad});
  SolveRecord result{static_cast<double>(rank), 0};
  if (found.largest == 0) {
    inversion.set_zero();
    inversion.finish_into(p, record, 0, {0, 1});
    return;
  }
  const bool good = found.factored == 0 && found.inverted == 0 && 1 / found.condition >= cutoff;
  if (!good) {
    inversion.by_eigen(cutoff);
    found = inversion.finding();
    result = {static_cast<double>(found.kept), 1};
    if (found.factored != 0)
      result.failure = SolveFailure::no_convergence;
  }
  if (result.failure == SolveFailure::none && !std::isfinite(std::ldexp(found.inverse_scale, found.exponent)))
    result = {0, result.used_eigen, SolveFailure::overflow, 0, found.largest};
  inversion.finish_into(p, record, found.exponent, result);
}

} // namespace td::kernels::cuda
