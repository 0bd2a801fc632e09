#include "solvers/eigenvectors.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/factorizations.hpp"
#include "plan/nvecs.hpp"
#include "solvers/replica.hpp"

namespace td::solvers {

namespace {

using kernels::Backend;

SymmetricEigen eigen_of(const std::vector<double> &matrix, i64 n) {
  auto eigen = symmetric_eigen(matrix.data(), n);
  if (!eigen)
    throw_error(Status::numerical, "the eigen-decomposition of a {} x {} matrix did not converge", n, n);
  return std::move(*eigen);
}

// ---- short modes: the matrix itself ----

/// The result is empty if time was up before all columns were there.
std::vector<double> unfolding_gram(Backend &backend, const UnfoldingNormal &normal, i64 n,
                                   const std::function<bool()> &time_is_up) {
  std::vector<double> matrix(static_cast<std::size_t>(n * n));
  const i64 width = std::min(n, plan::identity_columns);
  const DeviceMatrix omega(backend, n, width, ValueType::f64, "columns of an identity");
  const DeviceMatrix product(backend, n, width, ValueType::f64, "columns of X X^T");
  std::vector<double> host(static_cast<std::size_t>(n * width));
  for (i64 begin = 0; begin < n; begin += width) {
    if (time_is_up())
      return {};
    std::fill(host.begin(), host.end(), 0.0);
    const i64 columns = std::min(width, n - begin); // beyond them: zeros
    for (i64 c = 0; c < columns; ++c)
      host[static_cast<std::size_t>((begin + c) * width + c)] = 1;
    backend.upload(omega.view().data, host.data(), omega.bytes());
    normal(omega.view(), product.view());
    backend.download(host.data(), product.view().data, product.bytes());
    for (i64 i = 0; i < n; ++i)
      std::copy_n(host.data() + i * width, columns, matrix.data() + i * n + begin);
  }
  return matrix;
}

// ---- long modes: randomized subspace iteration with Rayleigh-Ritz (Halko, Martinsson and Tropp, SIAM Review 53,
// 2011, algorithm 4.4, to convergence) ----

constexpr int most_iterations = 60;
// The residuals of the Ritz pairs may be so large, relative to the largest eigenvalue. They are differences of Gram
// matrices, which are good to about 1e-8 here; a start needs no more.
constexpr double tolerance = 1e-6;

/// Q beside Z = X X^T Q in one n x 2s matrix, whose Gram matrix holds all inner products that an iteration needs.
class Subspace {
public:
  Subspace(Backend &backend, const UnfoldingNormal &normal, int mode, i64 n, i64 s, u64 seed)
      : backend_(backend), normal_(normal), s_(s), both_(backend, n, 2 * s, ValueType::f64, "a subspace and its image"),
        small_(backend, s * s, "a change of basis"), gram_(backend, 4 * s * s, "the Gram matrix of a subspace") {
    // The start is centred, so that it does not lean towards the vector of ones. Its numbers are not those of any
    // factor's random start.
    const Matrix q = both_.view();
    backend.random_uniform(q, seed, max_order + mode, 0);
    std::vector<double> host(static_cast<std::size_t>(n * 2 * s));
    backend.download(host.data(), q.data, both_.bytes());
    for (double &v : host)
      v -= 0.5;
    backend.upload(q.data, host.data(), both_.bytes());
    orthonormalize(part(0), part(0));
    orthonormalize(part(0), part(0));
  }

  /// Takes one step, and gives whether the first `count` Ritz pairs have converged.
  bool improve(i64 count) {
    normal_(part(0), part(s_));
    backend_.gram(both_.view(), gram_.data());
    const std::vector<double> g = gram_.download();
    std::vector<double> t(static_cast<std::size_t>(s_ * s_)); // Q^T Z
    for (i64 i = 0; i < s_; ++i) {
      for (i64 j = 0; j < s_; ++j)
        t[static_cast<std::size_t>(i * s_ + j)] = (at(g, i, s_ + j) + at(g, j, s_ + i)) / 2;
    }
    const SymmetricEigen ritz = eigen_of(t, s_);
    values_ = ritz.values;
    std::vector<double> rotation(static_cast<std::size_t>(s_ * s_));
    for (i64 k = 0; k < s_; ++k) {
      for (i64 i = 0; i < s_; ++i)
        rotation[static_cast<std::size_t>(i * s_ + k)] = ritz.vector(k)[i];
    }
    small_.upload(rotation);
    backend_.multiply(part(0), small_.data(), part(0));
    backend_.multiply(part(s_), small_.data(), part(s_));
    return worst_residual(g, ritz, count) <= tolerance * std::max(values_.front(), 0.0);
  }

  /// Q := an orthonormal basis of Z.
  void advance() {
    orthonormalize(part(s_), part(0));
    orthonormalize(part(0), part(0)); // a second time, for the digits that the first one lost
  }

  /// The leading Ritz vectors whose values are above rounding.
  Eigenvectors take(i64 count) const {
    const i64 n = both_.view().rows;
    std::vector<double> host(static_cast<std::size_t>(n * 2 * s_));
    backend_.download(host.data(), both_.view().data, both_.bytes());
    Eigenvectors out{n, 0, {}};
    out.vectors.reserve(static_cast<std::size_t>(count * n));
    for (i64 k = 0; k < count && value(k) > 1e-14 * values_.front(); ++k) {
      for (i64 i = 0; i < n; ++i)
        out.vectors.push_back(host[static_cast<std::size_t>(i * 2 * s_ + k)]);
      ++out.count;
    }
    return out;
  }

private:
  Matrix part(i64 first_column) const {
    Matrix a = both_.view();
    a.data = a.row<double>(0) + first_column;
    a.cols = s_;
    return a;
  }
  double at(const std::vector<double> &g, i64 i, i64 j) const { return g[static_cast<std::size_t>(i * 2 * s_ + j)]; }
  double value(i64 k) const { return values_[static_cast<std::size_t>(k)]; }

  /// The largest |Z v - theta Q v| of the first Ritz pairs, from v^T Z^T Z v - theta^2.
  double worst_residual(const std::vector<double> &g, const SymmetricEigen &ritz, i64 count) const {
    double worst = 0;
    for (i64 k = 0; k < count; ++k) {
      const double *v = ritz.vector(k);
      double image = 0;
      for (i64 i = 0; i < s_; ++i) {
        for (i64 j = 0; j < s_; ++j)
          image += v[i] * v[j] * at(g, s_ + i, s_ + j);
      }
      worst = std::max(worst, std::sqrt(std::max(0.0, image - value(k) * value(k))));
    }
    return worst;
  }

  /// to := from times what makes its columns orthonormal, by the eigenvectors of its scaled Gram matrix (Stathopoulos
  /// and Wu, SIAM J. Sci. Comput. 23, 2002). Directions that vanish become zero columns.
  void orthonormalize(Matrix from, Matrix to) {
    backend_.gram(from, gram_.data());
    std::vector<double> g = gram_.download();
    g.resize(static_cast<std::size_t>(s_ * s_));
    std::vector<double> scale(static_cast<std::size_t>(s_));
    for (i64 r = 0; r < s_; ++r) {
      const double square = g[static_cast<std::size_t>(r * s_ + r)];
      scale[static_cast<std::size_t>(r)] = square > 0 ? 1 / std::sqrt(square) : 0;
    }
    for (std::size_t k = 0; k < g.size(); ++k)
      g[k] *= scale[k / scale.size()] * scale[k % scale.size()];
    const SymmetricEigen eigen = eigen_of(g, s_);
    const double smallest = static_cast<double>(s_) * epsilon_of(ValueType::f64) * eigen.values.front();
    std::vector<double> basis(static_cast<std::size_t>(s_ * s_), 0.0);
    for (i64 k = 0; k < s_; ++k) {
      const double lambda = eigen.values[static_cast<std::size_t>(k)];
      if (!(lambda > smallest))
        continue;
      for (i64 i = 0; i < s_; ++i)
        basis[static_cast<std::size_t>(i * s_ + k)] =
            scale[static_cast<std::size_t>(i)] * eigen.vector(k)[i] / std::sqrt(lambda);
    }
    small_.upload(basis);
    backend_.multiply(from, small_.data(), to);
  }

  Backend &backend_;
  const UnfoldingNormal &normal_;
  i64 s_;
  DeviceMatrix both_;
  DeviceNumbers small_;
  DeviceNumbers gram_;
  std::vector<double> values_;
};

} // namespace

Eigenvectors leading_eigenvectors(Backend &backend, const UnfoldingNormal &normal, int mode, i64 n, i64 count, u64 seed,
                                  const std::function<bool()> &time_is_up) {
  if (n <= plan::longest_whole_mode) {
    std::vector<double> matrix = unfolding_gram(backend, normal, n, time_is_up);
    if (matrix.empty())
      return {n, 0, {}};
    SymmetricEigen eigen = eigen_of(matrix, n);
    eigen.vectors.resize(static_cast<std::size_t>(count * n));
    return {n, count, std::move(eigen.vectors)};
  }
  if (time_is_up())
    return {n, 0, {}};
  Subspace subspace(backend, normal, mode, n, plan::subspace_columns(n, count), seed);
  for (int iteration = 0; !subspace.improve(count) && iteration < most_iterations && !time_is_up(); ++iteration)
    subspace.advance();
  return subspace.take(count);
}

} // namespace td::solvers
