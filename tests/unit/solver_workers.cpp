// CP-ALS and MTTKRP for any number of workers.
#include "unit/solver_make.hpp"

#include <bit>

#include "kernels/reference/backend.hpp"
#include "solvers/fit.hpp"

namespace {

using namespace td;
using namespace td::test;
using kernels::DeviceSpec;
using solvers::RunResult;

Backends cpu_backends(int workers, int threads) {
  return kernels::open_backends({DeviceSpec::Kind::cpu, workers, {}}, threads);
}

/// A third of the entries of a random array, so that slices differ in how full they are.
std::vector<double> spotted(const std::vector<i64> &dims, unsigned seed) {
  std::vector<double> values = full_array(random_ktensor(dims, 5, seed));
  for (std::size_t k = 0; k < values.size(); ++k) {
    if ((k * k + k / 7) % 3 != 0)
      values[k] = 0;
  }
  return values;
}

/// Keeps a fifth of the entries outside of row 3 of mode 0 and cell (3, 2) of modes 0 and 1.
template <class T> std::vector<T> with_heavy_row(std::vector<T> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (k % 6 != 3 && k / 6 % 5 != 2 && k % 5 != 0)
      values[k] = 0;
  }
  return values;
}

struct Case {
  const char *name;
  TensorPointer x;
};

std::vector<Case> cases() {
  const std::vector<i64> dims{6, 5, 2, 4}; // 2: fewer rows than workers
  const auto values = spotted(dims, 31);
  const std::vector<float> singles(values.begin(), values.end());
  return {{"dense", dense_tensor(dims, values, "none")},
          {"dense, grouped", dense_tensor(dims, values, "0,1|2,3")},
          {"coo", sparse_tensor(dims, values, "coo")},
          {"blco", sparse_tensor(dims, values, "blco")},
          {"blco, by rows", sparse_tensor(dims, values, "blco", "auto", "rows")},
          {"sorted", sparse_tensor(dims, values, "sorted")},
          {"sorted, by rows", sparse_tensor(dims, values, "sorted", "none", "rows")},
          {"sorted, by entries", sparse_tensor(dims, values, "sorted", "none", "entries")},
          {"grouped, a heavy cell", sparse_tensor(dims, with_heavy_row(values), "sorted", "0,1|2|3")},
          {"sorted, a heavy row", sparse_tensor(dims, with_heavy_row(values), "sorted", "none")},
          {"sorted f32, a heavy row", sparse_tensor(dims, with_heavy_row(singles), "sorted", "none")},
          {"blco f32", sparse_tensor(dims, singles, "blco")}};
}

RunResult run(const tensor::Tensor &x, Backends backends, const char *deterministic, const char *init = "random") {
  auto request = request_for(x, 3);
  request.backends = std::move(backends);
  set(request, {{"tol", "0"}, {"max_iters", "12"}, {"deterministic", deterministic}, {"init", init}});
  RunResult result = solvers::cpals(request);
  EXPECT_EQ(result.report.fit.size(), 12U);
  return result;
}

void expect_same_bits(const std::vector<double> &a, const std::vector<double> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    EXPECT_EQ(std::bit_cast<u64>(a[k]), std::bit_cast<u64>(b[k])) << k << ": " << a[k] << " and " << b[k];
}

void expect_same_model(const Ktensor &a, const Ktensor &b) {
  expect_same_bits({a.weights().begin(), a.weights().end()}, {b.weights().begin(), b.weights().end()});
  for (int m = 0; m < a.order(); ++m) {
    for (i64 r = 0; r < a.rank(); ++r)
      expect_same_bits(column(a, m, r), column(b, m, r));
  }
}

TEST(CpalsWorkers, SameHistoryWithinRounding) {
  for (const auto &[name, x] : cases()) {
    const RunResult one = run(*x, reference_backends(1), "0");
    expect_sound(one);
    for (const int workers : {2, 3, 4, 7}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", name, workers));
      const RunResult many = run(*x, cpu_backends(workers, 2), "0");
      EXPECT_EQ(many.report.workers, workers);
      // A few roundings an iteration, of sums that ALS does not magnify here.
      const double tolerance = 1e4 * epsilon_of(x->type());
      for (std::size_t k = 0; k < one.report.fit.size(); ++k)
        EXPECT_NEAR(one.report.fit[k], many.report.fit[k], tolerance);
    }
  }
}

TEST(CpalsWorkers, SameBitsWhenDeterministic) {
  for (const auto &[name, x] : cases()) {
    const RunResult one = run(*x, cpu_backends(1, 1), "1");
    for (const int workers : {1, 2, 3, 4, 7}) {
      for (const int threads : {workers, 2 * workers}) {
        SCOPED_TRACE(fmt::format("{}, {} workers, {} threads", name, workers, threads));
        const RunResult many = run(*x, cpu_backends(workers, threads), "1");
        expect_same_bits(one.report.fit, many.report.fit);
        expect_same_bits(one.report.residual, many.report.residual);
        expect_same_model(one.model, many.model);
      }
    }
  }
}

TEST(CpalsWorkers, SameBitsWhenDeterministicAndResidualsAreExact) {
  const std::vector<i64> dims{50, 40, 60}; // too many cells to visit them all
  std::vector<double> values(static_cast<std::size_t>(50 * 40 * 60), 0.0);
  const auto filled = spotted(dims, 32);
  for (std::size_t k = 0; k < values.size(); k += 29)
    values[k] = filled[k];
  const TensorPointer x = sparse_tensor(dims, values, "sorted");
  std::vector<double> first;
  for (const int workers : {1, 2, 5}) {
    auto request = request_for(*x, 3);
    request.backends = cpu_backends(workers, workers + 1);
    set(request, {{"tol", "0"}, {"max_iters", "5"}, {"deterministic", "1"}, {"exact_residual", "always"}});
    const RunResult result = solvers::cpals(request);
    EXPECT_EQ(result.report.exact_residuals, 5);
    if (first.empty())
      first = result.report.residual;
    expect_same_bits(first, result.report.residual);
  }
}

TEST(CpalsWorkers, ExactAndQuickResidualsAgree) {
  for (const auto &[name, x] : cases()) {
    if (x->type() == ValueType::f32)
      continue;
    for (const int workers : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", name, workers));
      std::vector<double> residuals[2];
      for (const char *exact : {"never", "always"}) {
        auto request = request_for(*x, 3, workers);
        set(request, {{"tol", "0"}, {"max_iters", "8"}, {"exact_residual", exact}});
        residuals[exact[0] == 'a'] = solvers::cpals(request).report.residual;
      }
      for (std::size_t k = 0; k < 8; ++k)
        EXPECT_NEAR(residuals[0][k], residuals[1][k], 1e-11); // norms near 5, a hundred roundings
    }
  }
}

TEST(MttkrpWorkers, SameForAnyNumber) {
  for (const auto &[name, x] : cases()) {
    const Ktensor k = random_ktensor({6, 5, 2, 4}, 3, 33).convert(x->type());
    std::vector<ConstMatrix> factors;
    for (int m = 0; m < 4; ++m)
      factors.push_back(k.factor(m));
    for (int mode = 0; mode < 4; ++mode) {
      Ktensor expected(x->dims(), 3, x->type());
      mttkrp_of_columns(reference_backends(1), *x, mode, factors, expected.factor(mode));
      for (const int workers : {1, 2, 3, 4, 7}) {
        SCOPED_TRACE(fmt::format("{}, mode {}, {} workers", name, mode, workers));
        Ktensor out(x->dims(), 3, x->type());
        mttkrp_of_columns(cpu_backends(workers, workers), *x, mode, factors, out.factor(mode));
        for (i64 r = 0; r < 3; ++r) {
          const auto a = column(expected, mode, r), b = column(out, mode, r);
          for (std::size_t i = 0; i < a.size(); ++i)
            EXPECT_NEAR(a[i], b[i], 200 * epsilon_of(x->type())); // at most 80 terms of magnitude below 2
        }
      }
    }
  }
}

/// Fails at the nth solve.
class FailingBackend final : public kernels::reference::ReferenceBackend {
public:
  explicit FailingBackend(int calls_left) : calls_left_(calls_left) {}
  void solve_normal(const kernels::NormalEquations &equations, ConstMatrix m, const double *weights,
                    Matrix a) override {
    if (calls_left_-- == 0)
      throw_error(Status::device, "the device went away");
    ReferenceBackend::solve_normal(equations, m, weights, a);
  }

private:
  int calls_left_;
};

TEST(CpalsWorkers, AFailingWorkerEndsTheRun) {
  const TensorPointer x = cases().front().x;
  for (const int failing : {0, 1, 2, 3}) {
    for (const int calls : {0, 1, 5}) {
      auto request = request_for(*x, 3, 4);
      request.backends[static_cast<std::size_t>(failing)] = std::make_shared<FailingBackend>(calls);
      EXPECT_EQ(refusal(Status::device, [&] { solvers::cpals(request); }), "the device went away");
    }
  }
}

TEST(CpalsWorkers, ACallbackThatThrowsEndsTheRun) {
  const TensorPointer x = cases().front().x;
  auto request = request_for(*x, 3, 3);
  request.progress = [](const solvers::Report &) -> bool { throw_error(Status::io, "disk full"); };
  EXPECT_EQ(refusal(Status::io, [&] { solvers::cpals(request); }), "disk full");
}

} // namespace
