// The R x R matrices: the normal equations and their factor, as kernels/host/factor_normal.cpp decides it.
#include <algorithm>
#include <climits>
#include <cmath>
#include <vector>

#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/refuse.hpp"
#include "kernels/cuda/solve.cuh"

namespace td::kernels::cuda {

namespace {

__device__ i64 grid_thread() { return i64{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ i64 grid_threads() { return i64{gridDim.x} * blockDim.x; }

__global__ void multiply_grams(const __grid_constant__ SolveInput in, double *v) {
  for (i64 k = grid_thread(); k < in.rank * in.rank; k += grid_threads())
    v[k] = in.normal(k / in.rank, k % in.rank);
}

__global__ void write_scales(const __grid_constant__ SolveInput in, SolveScalesOut out) {
  for (i64 r = grid_thread(); r < in.rank; r += grid_threads())
    in.write_scales(r, out);
}

__global__ void finish_gram(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                            double *gram) {
  for (i64 k = grid_thread(); k < rank * rank; k += grid_threads()) {
    const i64 r = min(k / rank, k % rank);
    const i64 s = max(k / rank, k % rank);
    const Finished first(largest[r], solved[r]);
    const Finished second(largest[s], solved[s]);
    gram[k] = gram[k] / first.scale / second.scale;
    if (k < rank) { // r = 0, s = k
      weights[k] = second.weight;
      scales[k] = second.scale;
    }
  }
}

/// What the host has to know before the next step.
struct Finding {
  double bad;       // the first value of v that is not finite
  i64 bad_at;       // where; -1 if there is none
  int factored;     // cuSOLVER's info: 0 if v is positive definite, or its eigenvalues were found
  int inverted;     // likewise of the triangle's inverse
  int squared;      // likewise of the whole inverse, for the condition number
  double condition; // |v| |v^-1| of the scaled matrix in the 1-norm; by eigenvalues in the 2-norm
  i64 kept;         // eigenvalues
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

/// Rows and columns k of the normal equations are scaled by 2^exponent, which brings v(k, k) into [1, 4).
__device__ int scale_exponent(const double *v, i64 rank, i64 k) {
  const double diagonal = v[k * rank + k];
  return diagonal > 0 && isfinite(diagonal) ? -(ilogb(diagonal) >> 1) : 0;
}

/// a := v scaled.
__global__ void scale(const double *v, i64 rank, double *a) {
  for (i64 k = grid_thread(); k < rank * rank; k += grid_threads())
    a[k] = scalbn(v[k], scale_exponent(v, rank, k / rank) + scale_exponent(v, rank, k % rank));
}

__global__ void find_bad(const double *v, i64 size, Finding *finding) {
  __shared__ unsigned long long first_bad;
  if (threadIdx.x == 0)
    first_bad = ULLONG_MAX;
  __syncthreads();
  for (i64 k = threadIdx.x; k < size; k += threads)
    if (!isfinite(v[k]))
      atomicMin(&first_bad, static_cast<unsigned long long>(k));
  __syncthreads();
  if (threadIdx.x == 0) {
    finding->bad_at = first_bad == ULLONG_MAX ? -1 : static_cast<i64>(first_bad);
    finding->bad = first_bad == ULLONG_MAX ? 0 : v[first_bad];
  }
}

/// The largest sum of magnitudes in a row of a symmetric matrix, of which the lower triangle by rows is read.
__device__ double norm_of(const double *a, i64 rank) {
  double norm = 0;
  for (i64 row = threadIdx.x; row < rank; row += threads) {
    double sum = 0;
    for (i64 column = 0; column < rank; ++column)
      sum += fabs(a[max(row, column) * rank + min(row, column)]);
    norm = fmax(norm, sum);
  }
  return block_max(norm);
}

__global__ void start_condition(const double *scaled, i64 rank, Finding *finding) {
  const double norm = norm_of(scaled, rank);
  if (threadIdx.x == 0)
    finding->condition = norm;
}

__global__ void finish_condition(const double *inverse, i64 rank, Finding *finding) {
  const double norm = norm_of(inverse, rank);
  if (threadIdx.x == 0)
    finding->condition *= norm;
}

__global__ void judge_eigenvalues(const double *eigenvalues, i64 rank, double cutoff, Finding *finding) {
  const double largest = eigenvalues[rank - 1]; // they ascend
  const double smallest = eigenvalues[0];
  finding->condition = smallest > 0 && largest <= most_condition * smallest ? largest / smallest : most_condition;
  finding->kept = 0;
  for (i64 e = 0; e < rank; ++e)
    finding->kept += eigenvalues[e] > cutoff * largest && eigenvalues[e] > 0 ? 1 : 0;
}

/// f := the lower triangle in a, or eigenvectors over the roots of their eigenvalues, scaled back; NaN after a failure.
__global__ void finish(const double *v, const double *a, const double *eigenvalues, i64 rank, double cutoff,
                       SolveRecord found, double *f, SolveRecord *record) {
  for (i64 k = grid_thread(); k < rank * rank; k += grid_threads()) {
    const i64 row = k / rank;
    const i64 column = k % rank;
    double entry = column <= row ? a[k] : 0;
    if (eigenvalues != nullptr) {
      const bool keep = eigenvalues[row] > cutoff * eigenvalues[rank - 1] && eigenvalues[row] > 0;
      entry = keep ? a[k] / sqrt(eigenvalues[row]) : 0;
    }
    f[k] = found.failure == SolveFailure::none ? scalbn(entry, scale_exponent(v, rank, column)) : nan("");
  }
  if (grid_thread() == 0)
    *record = found;
}

/// One factorization. cuSOLVER reads matrices by columns: its upper triangle is the lower one of rows.
class Factoring {
public:
  Factoring(Gpu &device, const double *v, i64 rank)
      : device_(device), v_(v), rank_(rank), a_(device, rank * rank, what), b_(device, rank * rank, what),
        eigenvalues_(device, rank, what), finding_(device, 1, what) {
    check(cudaMemsetAsync(finding_.data(), 0, sizeof(Finding), device.stream()), what); // it is copied as a whole
    find_bad<<<1, threads, 0, device.stream()>>>(v, rank * rank, finding_.data());
    check_launch(what);
  }

  /// Inverts the triangle in a_, not yet asking whether that went well.
  void by_cholesky() {
    const int n = static_cast<int>(rank_);
    const cusolverDnHandle_t solver = device_.solver();
    scale_into(a_.data());
    start_condition<<<1, threads, 0, device_.stream()>>>(a_.data(), rank_, finding_.data());
    check_launch(what);
    int factor_work = 0;
    int invert_work = 0;
    std::size_t triangle_work = 0;
    std::size_t triangle_host_work = 0;
    check(cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, &factor_work), what);
    check(cusolverDnDpotri_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, n, b_.data(), n, &invert_work), what);
    check(cusolverDnXtrtri_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, n, CUDA_R_64F, a_.data(), n,
                                      &triangle_work, &triangle_host_work),
          what);
    const int count = std::max({factor_work, invert_work, static_cast<int>(triangle_work / sizeof(double)) + 1});
    const Scratch<double> work(device_, count, what);
    host_work_.resize(triangle_host_work);
    check(cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n, work.data(), count,
                           &finding_.data()->factored),
          what);
    check(cudaMemcpyAsync(b_.data(), a_.data(), static_cast<std::size_t>(rank_ * rank_) * sizeof(double),
                          cudaMemcpyDeviceToDevice, device_.stream()),
          what);
    check(cusolverDnDpotri(solver, CUBLAS_FILL_MODE_UPPER, n, b_.data(), n, work.data(), count,
                           &finding_.data()->squared),
          what);
    finish_condition<<<1, threads, 0, device_.stream()>>>(b_.data(), rank_, finding_.data());
    check_launch(what);
    check(cusolverDnXtrtri(solver, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, n, CUDA_R_64F, a_.data(), n,
                           work.data(), triangle_work, host_work_.data(), triangle_host_work,
                           &finding_.data()->inverted),
          what);
  }

  /// Eigenvectors, in the rows of a_.
  void by_eigen(double cutoff) {
    const int n = static_cast<int>(rank_);
    const cusolverDnHandle_t solver = device_.solver();
    scale_into(a_.data());
    int count = 0;
    check(cusolverDnDsyevd_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n,
                                      eigenvalues_.data(), &count),
          what);
    const Scratch<double> work(device_, std::max(count, 1), what);
    check(cusolverDnDsyevd(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, a_.data(), n,
                           eigenvalues_.data(), work.data(), count, &finding_.data()->factored),
          what);
    judge_eigenvalues<<<1, 1, 0, device_.stream()>>>(eigenvalues_.data(), rank_, cutoff, finding_.data());
    check_launch(what);
  }

  Finding finding() {
    Finding found;
    device_.download(&found, finding_.data(), sizeof found);
    return found;
  }

  void finish_into(double *f, SolveRecord *record, double cutoff, SolveRecord found) {
    finish<<<blocks_for(device_, rank_ * rank_, block_threads), block_threads, 0, device_.stream()>>>(
        v_, a_.data(), found.used_eigen != 0 ? eigenvalues_.data() : nullptr, rank_, cutoff, found, f, record);
    check_launch(what);
  }

private:
  static constexpr const char *what = "solving the normal equations";

  void scale_into(double *a) {
    scale<<<blocks_for(device_, rank_ * rank_, block_threads), block_threads, 0, device_.stream()>>>(v_, rank_, a);
    check_launch(what);
  }

  Gpu &device_;
  const double *v_;
  i64 rank_;
  Scratch<double> a_, b_, eigenvalues_;
  Scratch<Finding> finding_;
  std::vector<std::byte> host_work_; // cuSOLVER may use it until finding() has waited
};

} // namespace

void CudaBackend::hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) {
  const CurrentDevice current = enter();
  multiply_grams<<<blocks_for(device_, rank * rank, block_threads), block_threads, 0, device_.stream()>>>(
      SolveInput(grams, rank, ridge), v);
  check_launch("the normal equations");
}

void CudaBackend::solve_scales(const SolveColumns &columns, const SolveScalesOut &out) {
  const CurrentDevice current = enter();
  write_scales<<<blocks_for(device_, columns.rank, block_threads), block_threads, 0, device_.stream()>>>(
      SolveInput(columns, 0), out);
  check_launch("scales of columns");
}

void CudaBackend::prepare_solve(const SolveColumns &columns, double ridge, double cutoff, const PreparedSolve &out) {
  if (columns.rank > small_rank)
    return Kernels::prepare_solve(columns, ridge, cutoff, out);
  const CurrentDevice current = enter();
  prepare_small(device_, SolveInput(columns, ridge), cutoff, out);
}

void CudaBackend::finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                                 double *gram) {
  const CurrentDevice current = enter();
  finish_gram<<<blocks_for(device_, rank * rank, block_threads), block_threads, 0, device_.stream()>>>(
      rank, solved, largest, weights, scales, gram);
  check_launch("the columns' weights");
}

void CudaBackend::factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) {
  const CurrentDevice current = enter();
  refuse_rank(rank);
  if (rank <= small_rank)
    return factor_small(device_, v, rank, cutoff, f, record);
  Factoring factoring(device_, v, rank);
  factoring.by_cholesky();
  Finding found = factoring.finding();
  if (found.bad_at >= 0)
    return factoring.finish_into(f, record, cutoff, {0, 0, 0, SolveFailure::not_finite, found.bad_at, found.bad});
  SolveRecord result{static_cast<double>(rank), 0, std::min(found.condition, most_condition)};
  if (found.factored != 0 || found.inverted != 0 || found.squared != 0 || !(found.condition * cutoff <= 1)) {
    factoring.by_eigen(cutoff);
    found = factoring.finding();
    result = {static_cast<double>(found.kept), 1, found.condition};
    if (found.factored != 0)
      result = {0, 1, 0, SolveFailure::no_convergence};
  }
  factoring.finish_into(f, record, cutoff, result);
}

} // namespace td::kernels::cuda
