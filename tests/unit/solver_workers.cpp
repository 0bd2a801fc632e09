// CP-ALS and MTTKRP for any number of workers.
#include "unit/solver_make.hpp"

#include <bit>

#include "kernels/reference/backend.hpp"
#include "solvers/fit.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"

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

/// A GPU of several, which alone may touch the arrays of a caller's in its memory.
class OneOfSeveral final : public SmallDevice {
public:
  OneOfSeveral() : SmallDevice(1 << 20) {}
  void forbid(const void *begin, i64 bytes) { forbidden_.push_back({static_cast<const char *>(begin), bytes}); }
  void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) override {
    expect_allowed(from.data);
    ReferenceBackend::gather_transposed(from, rows, to);
  }
  void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) override {
    expect_allowed(to.data);
    ReferenceBackend::scatter_transposed(from, rows, to);
  }
  void set_zero(Matrix a) override {
    expect_allowed(a.data);
    ReferenceBackend::set_zero(a);
  }

private:
  void expect_allowed(const void *array) const {
    for (const auto &[begin, bytes] : forbidden_)
      EXPECT_FALSE(array >= begin && array < begin + bytes) << "an array of another device is touched";
  }
  std::vector<std::pair<const char *, i64>> forbidden_;
};

TEST(MttkrpWorkers, ACallersArraysAreTouchedByTheDeviceThatHasThem) {
  for (const auto &[name, x] : cases()) {
    const Ktensor k = random_ktensor({6, 5, 2, 4}, 3, 33).convert(x->type());
    const i64 element = size_of(x->type());
    for (int mode = 0; mode < 4; ++mode)
      for (const int workers : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{}, mode {}, {} workers", name, mode, workers));
        Backends backends;
        for (int worker = 0; worker < workers; ++worker)
          backends.push_back(std::make_shared<OneOfSeveral>());
        solvers::CallerFactors given{std::vector<ConstMatrix>(4), true};
        std::vector<std::vector<std::byte>> arrays; // column-major
        Ktensor expected(x->dims(), 3, x->type());
        for (int m = 0; m < 4; ++m) {
          const ConstMatrix a = m == mode ? ConstMatrix(expected.factor(m)) : k.factor(m);
          const auto bytes = static_cast<std::size_t>(a.rows * 3 * element);
          const Matrix columns{arrays.emplace_back(bytes).data(), x->type(), 3, a.rows, a.rows};
          backends.front()->scatter_transposed(a, nullptr, columns);
          given.columns[static_cast<std::size_t>(m)] = columns;
          for (int worker = 1; worker < workers; ++worker)
            static_cast<OneOfSeveral &>(*backends[static_cast<std::size_t>(worker)])
                .forbid(columns.data, static_cast<i64>(bytes));
        }
        std::vector<ConstMatrix> factors;
        for (int m = 0; m < 4; ++m)
          factors.push_back(k.factor(m));
        mttkrp_of_columns(reference_backends(1), *x, mode, factors, expected.factor(mode));
        const auto at = static_cast<std::size_t>(mode);
        const i64 rows = x->dims()[at];
        const Matrix out{arrays[at].data(), x->type(), 3, rows, rows};
        solvers::mttkrp(backends, *x, mode, given, {out, true});
        Ktensor got(x->dims(), 3, x->type());
        backends.front()->gather_transposed(out, nullptr, got.factor(mode));
        for (i64 r = 0; r < 3; ++r) {
          const auto a = column(expected, mode, r), b = column(got, mode, r);
          for (std::size_t i = 0; i < a.size(); ++i)
            EXPECT_NEAR(a[i], b[i], 200 * epsilon_of(x->type())); // at most 80 terms of magnitude below 2
        }
      }
  }
}

/// Fails at the nth solve.
template <class Base> class Failing final : public Base {
public:
  template <class... Args> explicit Failing(int calls_left, Args... args) : Base(args...), calls_left_(calls_left) {}
  void solve_normal(const kernels::NormalEquations &equations, ConstMatrix m, const kernels::SolveScales &scales,
                    Matrix a) override {
    if (calls_left_-- == 0)
      throw_error(Status::device, "the device went away");
    Base::solve_normal(equations, m, scales, a);
  }

private:
  int calls_left_;
};

TEST(CpalsWorkers, AFailingWorkerEndsTheRun) {
  const TensorPointer x = cases().front().x;
  for (const int failing : {0, 1, 2, 3}) {
    for (const int calls : {0, 1, 5}) {
      auto request = request_for(*x, 3, 4);
      request.backends[static_cast<std::size_t>(failing)] =
          std::make_shared<Failing<kernels::reference::ReferenceBackend>>(calls);
      EXPECT_EQ(refusal(Status::device, [&] { solvers::cpals(request); }), "the device went away");
    }
  }
}

// These devices exchange from memory to memory; what the failed one has lent may be read by others until all have
// ended.
TEST(CpalsWorkers, AFailingDeviceEndsTheRunAndTheNextWorks) {
  const auto all = cases();
  for (const auto &[x, deterministic] : {std::pair{all[0].x, "0"}, std::pair{all[0].x, "1"}, std::pair{all[3].x, "1"}})
    for (const int failing : {0, 1, 2}) {
      for (const int calls : {0, 1, 5, 6, 7}) { // the later ones between chunks that leave
        auto request = request_for(*x, 3);
        set(request, {{"deterministic", deterministic}, {"overlap", "on"}});
        request.backends.clear();
        for (int worker = 0; worker < 3; ++worker)
          request.backends.push_back(worker == failing ? std::make_shared<Failing<SmallDevice>>(calls, i64{1} << 20)
                                                       : std::make_shared<SmallDevice>(i64{1} << 20));
        EXPECT_EQ(refusal(Status::device, [&] { solvers::cpals(request); }), "the device went away");
        EXPECT_GT(solvers::cpals(request).report.iterations, 0);
      }
    }
}

/// Counts MTTKRPs, and how many rows they were asked for.
class Counting final : public SmallDevice {
public:
  using SmallDevice::SmallDevice;
  void mttkrp(const kernels::TensorView &x, const kernels::MttkrpArgs &args) override {
    ++calls[static_cast<std::size_t>(args.mode)];
    rows[static_cast<std::size_t>(args.mode)] += args.rows.size();
    SmallDevice::mttkrp(x, args);
  }
  std::array<i64, 2> calls{}, rows{};
};

// From the second iteration on: in chunks of 32 MiB at most, which is 262144 rows of rank 16. The short mode goes at
// once.
TEST(CpalsWorkers, LongModesAreUpdatedChunkByChunk) {
  const i64 rows = 600000;
  Options kept;
  for (const auto &[name, value] : {std::pair("format", "sorted"), {"groups", "none"}, {"empty_rows", "keep"}})
    kept.set_text(name, value);
  auto entries = random_entries<i64, double>({rows, 30}, 200000, 0, 9);
  const auto x = tensor::Tensor::make_sparse(entries.view(), kept, 1, "", tensor::Target::gpu);
  auto request = request_for(*x, 16);
  set(request, {{"tol", "0"}, {"max_iters", "3"}, {"overlap", "off"}});
  request.backends.clear();
  std::vector<std::shared_ptr<Counting>> devices;
  for (int worker = 0; worker < 2; ++worker)
    request.backends.push_back(devices.emplace_back(std::make_shared<Counting>(i64{1} << 30)));
  const RunResult off = solvers::cpals(request);
  for (const auto &device : devices) {
    EXPECT_EQ(device->calls, (std::array<i64, 2>{1 + 2 + 2, 3}));
    EXPECT_EQ(device->rows[1] % 3, 0);
    EXPECT_EQ(device->rows[0] % 3, 0); // the chunks of an iteration are all rows once
    EXPECT_GE(device->rows[0], rows);
  }
  set(request, {{"overlap", "on"}});
  const RunResult on = solvers::cpals(request);
  expect_same_bits(on.report.fit, off.report.fit);
  expect_same_model(on.model, off.model);
}

TEST(CpalsWorkers, ACallbackThatThrowsEndsTheRun) {
  const TensorPointer x = cases().front().x;
  auto request = request_for(*x, 3, 3);
  request.progress = [](const solvers::Report &) -> bool { throw_error(Status::io, "disk full"); };
  EXPECT_EQ(refusal(Status::io, [&] { solvers::cpals(request); }), "disk full");
}

} // namespace
