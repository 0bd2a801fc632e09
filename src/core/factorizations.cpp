#include "core/factorizations.hpp"

#include <algorithm>
#include <utility>

// Eigen's own parallel products would be threads behind the caller's back, and its workspace belongs on the heap: a
// caller's stack may be small.
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_STACK_ALLOCATION_LIMIT 8192
#define EIGEN_MPL2_ONLY
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "core/checked.hpp"

namespace td {

namespace {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ByColumns = Eigen::MatrixXd;

Columns copied(const ByColumns &a) { return {a.rows(), a.cols(), std::vector<double>(a.data(), a.data() + a.size())}; }

} // namespace

bool cholesky(double *a, i64 n) {
  Eigen::Map<ByRows> matrix(a, n, n);
  return Eigen::LLT<Eigen::Ref<ByRows>, Eigen::Lower>(matrix).info() == Eigen::Success;
}

bool invert_lower_triangle(double *a, i64 n) {
  Eigen::Map<ByRows> matrix(a, n, n);
  if ((matrix.diagonal().array() == 0).any())
    return false;
  matrix = ByRows(matrix.triangularView<Eigen::Lower>().solve(ByRows::Identity(n, n)));
  return true;
}

std::optional<SymmetricEigen> symmetric_eigen(const double *matrix, i64 size) {
  const Eigen::SelfAdjointEigenSolver<ByColumns> solver(Eigen::Map<const ByColumns>(matrix, size, size));
  if (solver.info() != Eigen::Success)
    return std::nullopt;
  const ByColumns &vectors = solver.eigenvectors(); // by ascending eigenvalue
  SymmetricEigen out{size, std::vector<double>(solver.eigenvalues().begin(), solver.eigenvalues().end()), {}};
  std::reverse(out.values.begin(), out.values.end());
  out.vectors.reserve(static_cast<std::size_t>(size * size));
  for (i64 k = size - 1; k >= 0; --k)
    out.vectors.insert(out.vectors.end(), vectors.col(k).begin(), vectors.col(k).end());
  return out;
}

Columns Columns::zeros(i64 rows, i64 columns) {
  return {rows, columns, std::vector<double>(static_cast<std::size_t>(checked_multiply(rows, columns).value()), 0.0)};
}

Columns decompose_qr(Columns &a) {
  const i64 n = std::min(a.rows, a.columns);
  Columns r = Columns::zeros(n, a.columns);
  Eigen::Map<ByColumns> matrix(a.numbers.data(), a.rows, a.columns);
  const Eigen::HouseholderQR<Eigen::Ref<ByColumns>> qr(matrix);
  Eigen::Map<ByColumns>(r.numbers.data(), n, a.columns) = matrix.topRows(n).triangularView<Eigen::Upper>();
  Columns q = Columns::zeros(a.rows, n);
  Eigen::Map<ByColumns> basis(q.numbers.data(), a.rows, n);
  basis.setIdentity();
  qr.householderQ().applyThisOnTheLeft(basis);
  a = std::move(q);
  return r;
}

SingularValues singular_values(const Columns &a) {
  const Eigen::JacobiSVD<ByColumns> svd(Eigen::Map<const ByColumns>(a.numbers.data(), a.rows, a.columns),
                                        Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {copied(svd.matrixU()), copied(svd.matrixV()),
          std::vector<double>(svd.singularValues().begin(), svd.singularValues().end())};
}

} // namespace td
