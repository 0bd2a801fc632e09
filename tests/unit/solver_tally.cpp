// What an iteration of CP-ALS asks its device for: nothing before its end, and there what went wrong.
#include <cmath>

#include "kernels/reference/backend.hpp"
#include "unit/solver_make.hpp"

namespace {

using namespace td;
using namespace td::test;
using kernels::NormKind;
using kernels::SolveFailure;
using kernels::SolveRecord;

class Watched final : public kernels::reference::ReferenceBackend {
public:
  int downloads = 0, uploads = 0, solves = 0;
  int failing_solve = -1, failing_norms = -1; // counted from 0
  SolveRecord failure;

  void download(void *to, const void *from, i64 bytes) override {
    ++downloads;
    ReferenceBackend::upload(to, from, bytes); // its download would call the one here
  }
  void upload(void *to, const void *from, i64 bytes) override {
    ++uploads;
    ReferenceBackend::upload(to, from, bytes);
  }
  void factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) override {
    ReferenceBackend::factor_normal(v, rank, cutoff, f, record);
    if (solves++ == failing_solve)
      *record = failure;
  }
  void column_norms(ConstMatrix a, NormKind kind, double *out) override {
    ReferenceBackend::column_norms(a, kind, out);
    if (norms_++ == failing_norms)
      out[0] = std::numeric_limits<double>::infinity();
  }

private:
  int norms_ = 0;
};

class SolverTally : public testing::Test {
protected:
  SolverTally() {
    request_.backends = {backend_};
    set(request_, {{"tol", "0"}, {"exact_residual", "never"}});
  }
  void run(const char *iterations) {
    set(request_, {{"max_iters", iterations}});
    solvers::cpals(request_);
  }
  TensorPointer x_ = sparse_tensor({4, 3, 5}, full_array(random_ktensor({4, 3, 5}, 4, 71)));
  std::shared_ptr<Watched> backend_ = std::make_shared<Watched>();
  solvers::RunRequest request_ = request_for(*x_, 2);
};

TEST_F(SolverTally, OneDownloadAnIterationAndNoUpload) {
  run("2");
  const int downloads = backend_->downloads;
  const int uploads = backend_->uploads;
  backend_->downloads = backend_->uploads = 0;
  run("9");
  EXPECT_EQ(backend_->downloads, downloads + 7);
  EXPECT_EQ(backend_->uploads, uploads);
}

TEST_F(SolverTally, TheFirstFailureIsNamedWithIterationAndMode) {
  backend_->failing_solve = 4; // the second iteration's in mode 1
  backend_->failure = {0, 0, 0, SolveFailure::not_finite, 3, HUGE_VAL};
  EXPECT_EQ(refusal(Status::numerical, [&] { run("3"); }),
            "iteration 2, mode 1: the factors overflowed: the normal-equation matrix has the value inf at (1, 1)");
  EXPECT_EQ(backend_->solves, 6) << "the iteration was not done to its end";

  backend_->solves = 0;
  backend_->failing_solve = 2;
  backend_->failure = {0, 1, 0, SolveFailure::no_convergence, 0, 0};
  EXPECT_EQ(
      refusal(Status::numerical, [&] { run("3"); }),
      "iteration 1, mode 2: the factors overflowed: the eigen-decomposition of the 2 x 2 normal equations did not "
      "converge");
}

TEST_F(SolverTally, ANormBeforeASolveIsNamedFirst) {
  backend_->failing_norms = 0;
  backend_->failing_solve = 1;
  backend_->failure = {0, 1, 0, SolveFailure::no_convergence, 0, 0};
  EXPECT_EQ(refusal(Status::numerical, [&] { run("3"); }),
            "iteration 1, mode 0: the factors overflowed: a column's norm is not finite");
  backend_->solves = 0;
  EXPECT_NE(refusal(Status::numerical, [&] { run("3"); }).find("mode 1: the factors overflowed: the eigen-dec"),
            std::string::npos);
}

} // namespace
