// Partial products that the modes of a sweep share: the same numbers as without, and never stale ones.
#include "tensor/planned.hpp"
#include "unit/solver_make.hpp"

#include <random>

#include "kernels/reference/backend.hpp"
#include "solvers/mttkrp.hpp"
#include "solvers/products.hpp"
#include "support/partitions.hpp"
#include "unit/formats_random.hpp"

namespace {

using namespace td;
using namespace td::test;
using kernels::DeviceSpec;
using kernels::reference::ReferenceBackend;
using solvers::RunResult;

constexpr unsigned seed = 71;

std::vector<i64> dims_of(int order) {
  const std::vector<i64> all{4, 3, 2, 5, 2, 3};
  return {all.begin(), all.begin() + order};
}

/// Uniform in [-1, 1).
std::vector<double> noise(const std::vector<i64> &dims) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(static_cast<std::size_t>(checked_product(dims).value()));
  for (double &v : values)
    v = uniform(random);
  return values;
}

/// Counts how often all of a dense tensor is read.
class CountingBackend final : public ReferenceBackend {
public:
  void mttkrp(const kernels::TensorView &x, const kernels::MttkrpArgs &args) override {
    passes += std::holds_alternative<kernels::DenseView>(x) && !in_slabs_ ? 1 : 0;
    ReferenceBackend::mttkrp(x, args);
  }
  void mttkrp_slabs(const kernels::DenseView &x, std::span<const ConstMatrix> factors, Matrix out) override {
    ++passes;
    in_slabs_ = true;
    ReferenceBackend::mttkrp_slabs(x, factors, out);
    in_slabs_ = false;
  }
  int passes = 0;

private:
  bool in_slabs_ = false;
};

/// A GPU, as far as options go, that takes down which kernels are asked for of dense tensors.
class ChoosingBackend final : public ReferenceBackend {
public:
  const void *memory() const noexcept override { return this; }
  i64 room() const override { return i64{1} << 30; }
  std::shared_ptr<void> keep(i64 bytes, const char *) override {
    return {::operator new(static_cast<std::size_t>(bytes)), [](void *p) { ::operator delete(p); }};
  }
  void mttkrp(const kernels::TensorView &x, const kernels::MttkrpArgs &args) override {
    if (std::holds_alternative<kernels::DenseView>(x))
      computed.push_back(args.dense);
    ReferenceBackend::mttkrp(x, args);
  }
  kernels::Prediction predict_mttkrp(const kernels::TensorView &x, const kernels::MttkrpArgs &args,
                                     const kernels::Rates &rates) const override {
    if (std::holds_alternative<kernels::DenseView>(x))
      predicted.push_back(args.dense);
    return ReferenceBackend::predict_mttkrp(x, args, rates);
  }
  std::vector<kernels::DenseChoice> computed;
  mutable std::vector<kernels::DenseChoice> predicted;
};

TEST(DenseChoice, ReachesKernelsAndPredictions) {
  const std::vector<i64> dims = dims_of(3);
  const auto values = noise(dims);
  for (const char *groups : {"none", "auto", "0,1|2"}) { // by auto a named kernel takes all of the tensor
    Options options;
    options.set_text("dense_kernel", "tile");
    options.set_text("dense_tile_width", "3");
    options.set_text("groups", groups);
    const auto x =
        tensor::Tensor::make_dense({dims, {}, ValueType::f64, values.data()}, options, 1, "", tensor::Target::gpu);
    const auto backend = std::make_shared<ChoosingBackend>();
    const Ktensor k(dims, 2, ValueType::f64);
    for (int mode = 0; mode < 3; ++mode) {
      Ktensor out(dims, 2, ValueType::f64);
      std::vector<ConstMatrix> factors;
      for (int m = 0; m < 3; ++m)
        factors.push_back(k.factor(m));
      mttkrp_of_columns({backend}, *x, mode, factors, out.factor(mode));
    }
    plan::PlanRequest request;
    request.rank = 2;
    request.backends = {backend};
    EXPECT_EQ(tensor::plan_of(*x, request).dense_kernel.what, "tile");
    EXPECT_EQ(backend->computed.size(), 3u) << groups;
    EXPECT_EQ(backend->predicted.size(), std::string_view(groups) != "0,1|2" ? 3u : 2u); // a pair's partial product
    for (const auto *choices : {&backend->computed, &backend->predicted})
      for (const kernels::DenseChoice &choice : *choices) {
        EXPECT_EQ(choice.kernel, kernels::DenseKernel::tile);
        EXPECT_EQ(choice.tile_width, 3);
      }
  }
}

/// One worker's products of a tensor with modes {0, 1} and {2, 3} together.
class OneWorker : public testing::Test {
protected:
  void SetUp() override { products_.reserve(12); } // cells of modes 0 and 1; the others have 10

  static constexpr i64 rank = 2;

  std::vector<double> product(int mode) {
    Ktensor out(x_->dims(), rank, ValueType::f64);
    const auto product = plan::product_by_itself(dims_, x_->settings().groups, mode);
    products_.mttkrp(mode, factors_.views(), out.factor(mode), &*product);
    return column(out, mode, 1);
  }

  std::vector<double> direct(int mode) {
    Ktensor out(x_->dims(), rank, ValueType::f64);
    const Matrix to = out.factor(mode);
    ReferenceBackend().mttkrp(x_->view(mode), {mode, factors_.views(), to, {0, to.rows}, {0, x_->facts().nnz}});
    return column(out, mode, 1);
  }

  void replace(int mode, unsigned with) { factors_.upload(mode, random_ktensor(dims_, rank, with).factor(mode), {}); }

  std::vector<i64> dims_ = dims_of(4);
  TensorPointer x_ = dense_tensor(dims_, noise(dims_), "0,1|2,3");
  CountingBackend backend_;
  std::unique_ptr<Communicator> self_ = make_self_communicator();
  tensor::Sharding sharding_{*x_, 1, false};
  solvers::Worker worker_{*x_, sharding_, backend_, *self_};
  solvers::Replica factors_{backend_, random_ktensor(dims_, rank, 72), formats::Numbering(dims_)};
  solvers::Products products_{*x_, worker_, backend_, rank};
};

// 30 or 40 terms below 1 in another order.
void expect_near(const std::vector<double> &a, const std::vector<double> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-13) << i;
}

TEST_F(OneWorker, OnePassServesAGroupUntilAFactorOutsideChanges) {
  expect_near(product(0), direct(0));
  EXPECT_EQ(backend_.passes, 1);
  replace(0, 73); // inside the group
  products_.changed(0);
  expect_near(product(1), direct(1));
  EXPECT_EQ(backend_.passes, 1);
  for (const int outside : {2, 3}) {
    replace(outside, 74);
    products_.changed(outside);
    expect_near(product(1), direct(1));
    EXPECT_EQ(backend_.passes, outside);
    expect_near(product(0), direct(0));
    EXPECT_EQ(backend_.passes, outside);
  }
  expect_near(product(3), direct(3)); // the other group's takes the place of this one's
  expect_near(product(2), direct(2));
  EXPECT_EQ(backend_.passes, 4);
  expect_near(product(1), direct(1));
  EXPECT_EQ(backend_.passes, 5);
}

// What is left of a product summed over a mode serves the others until that mode, or one outside, changes.
TEST_F(OneWorker, SumsOverAModeServeTheOthers) {
  products_.reserve(40); // cells of modes 1, 2 and 3, and of 2 and 3; the others have fewer
  for (const auto &[first, last, dropped] :
       {std::array{0, 2, 0}, std::array{0, 2, 2}, std::array{1, 3, 1}, std::array{1, 3, 3}}) {
    const plan::PartialProduct whole(dims_, first, 3);
    const plan::PartialProduct left = whole.without(dropped);
    const int outside = first == 0 ? 3 : 0;
    replace(outside, 80);
    products_.changed(outside);
    const int passes = backend_.passes;
    const auto from_left = [&, &left = left](int mode) {
      Ktensor out(x_->dims(), rank, ValueType::f64);
      products_.mttkrp(mode, factors_.views(), out.factor(mode), &whole, &left);
      return column(out, mode, 1);
    };
    Ktensor out(x_->dims(), rank, ValueType::f64);
    products_.mttkrp(dropped, factors_.views(), out.factor(dropped), &whole);
    expect_near(column(out, dropped, 1), direct(dropped));
    for (const unsigned with : {81u, 82u}) {
      replace(dropped, with);
      products_.changed(dropped);
      for (const int mode : left.modes) {
        expect_near(from_left(mode), direct(mode));
        replace(mode, with + 10);
        products_.changed(mode);
      }
    }
    EXPECT_EQ(backend_.passes, passes + 1);
    replace(outside, 83);
    products_.changed(outside);
    expect_near(from_left(left.modes.front()), direct(left.modes.front()));
    EXPECT_EQ(backend_.passes, passes + 2);
    EXPECT_EQ(left.modes.size() + 1, static_cast<std::size_t>(last - first + 1));
  }
}

// Shows that the test above looks at what it means to: untold, the old partial product is used.
TEST_F(OneWorker, KeepsWhatItIsNotToldToBeStale) {
  const std::vector<double> before = product(0);
  replace(2, 75);
  EXPECT_EQ(product(0), before);
  products_.changed(2);
  EXPECT_NE(product(0), before);
  expect_near(product(0), direct(0));
}

struct Path {
  const char *mode_order;
  const char *fixed_modes;
};

int passes_of(const tensor::Tensor &x, const Path &path, const char *iterations) {
  auto request = request_for(x, 2);
  const Ktensor init = random_ktensor({x.dims().begin(), x.dims().end()}, 2, 76);
  const auto backend = std::make_shared<CountingBackend>();
  request.backends = {backend};
  request.init = &init;
  set(request, {{"mode_order", path.mode_order},
                {"fixed_modes", path.fixed_modes},
                {"tol", "0"},
                {"max_iters", iterations},
                {"exact_residual", "never"}});
  solvers::cpals(request);
  return backend->passes;
}

TEST(CpalsProducts, PassesOverTheTensor) {
  const TensorPointer x = dense_tensor(dims_of(4), noise(dims_of(4)), "0,1|2,3");
  EXPECT_EQ(passes_of(*x, {"", ""}, "7"), 14);
  EXPECT_EQ(passes_of(*x, {"3,2,1,0", ""}, "7"), 14);
  EXPECT_EQ(passes_of(*x, {"0,2,1,3", ""}, "7"), 28);
  EXPECT_EQ(passes_of(*x, {"1,2,3,0", ""}, "7"), 15); // 1 | 2 3 | 0 1 | 2 3 | ...
  EXPECT_EQ(passes_of(*x, {"", "2,3"}, "7"), 1);      // nothing outside the group changes
  EXPECT_EQ(passes_of(*x, {"", "3"}, "7"), 14);
  const TensorPointer alone = dense_tensor(dims_of(4), noise(dims_of(4)), "none");
  EXPECT_EQ(passes_of(*alone, {"", ""}, "7"), 28);
}

// A product that drops one mode serves the other three: every third of 28 updates reads the tensor. With one mode fixed
// two are served of 21.
TEST(CpalsProducts, PassesOfMultiSweepTrees) {
  const TensorPointer x = dense_tensor(dims_of(4), noise(dims_of(4)), "multi-sweep");
  EXPECT_EQ(passes_of(*x, {"", ""}, "7"), 10);
  EXPECT_EQ(passes_of(*x, {"3,2,1,0", ""}, "7"), 10);
  EXPECT_EQ(passes_of(*x, {"0,2,1,3", ""}, "7"), 10);
  EXPECT_EQ(passes_of(*x, {"", "2"}, "7"), 11);
  EXPECT_EQ(passes_of(*x, {"", "0,1,3"}, "7"), 1);
  const TensorPointer three = dense_tensor(dims_of(3), noise(dims_of(3)), "multi-sweep");
  EXPECT_EQ(passes_of(*three, {"", ""}, "8"), 12); // 3/2 a sweep
}

class Sweeps : public testing::TestWithParam<int> {
protected:
  RunResult run(const tensor::Tensor &x, const Path &path, Backends backends, const char *deterministic) const {
    auto request = request_for(x, 2);
    const Ktensor init = random_ktensor(dims_, 2, 77);
    request.init = &init;
    request.backends = std::move(backends);
    set(request, {{"mode_order", path.mode_order},
                  {"fixed_modes", path.fixed_modes},
                  {"deterministic", deterministic},
                  {"tol", "0"},
                  {"max_iters", "6"}});
    return solvers::cpals(request);
  }

  std::vector<std::string> partitions(bool sparse) const {
    std::vector<std::string> all = sparse ? tdtest::sparse_partitions(order_) : tdtest::partitions(order_);
    all.emplace_back("auto");
    if (!sparse)
      all.emplace_back("multi-sweep");
    return all;
  }

  std::vector<Path> paths() const {
    constexpr const char *scrambled[] = {"2,0,1", "2,0,3,1", "4,1,0,3,2", "5,0,2,4,1,3"};
    return {{"", ""}, {scrambled[order_ - 3], ""}, {"", "1"}, {scrambled[order_ - 3], "0,2"}};
  }

  /// Sparse: two of three cells.
  template <class T> TensorPointer tensor(bool sparse, const std::string &groups) const {
    const std::vector<double> wide = noise(dims_);
    std::vector<T> values(wide.begin(), wide.end());
    if (!sparse)
      return dense_tensor(dims_, values, groups.c_str());
    for (std::size_t k = 0; k < values.size(); k += 3)
      values[k] = 0;
    return sparse_tensor(dims_, values, "sorted", groups.c_str());
  }

  template <class T> void compare_with_none(bool sparse) const {
    const TensorPointer none = tensor<T>(sparse, "none");
    for (const Path &path : paths()) {
      const RunResult expected = run(*none, path, reference_backends(1), "0");
      for (const std::string &partition : partitions(sparse)) {
        const TensorPointer x = tensor<T>(sparse, partition);
        for (const int workers : {1, 2, 3})
          for (const bool cpu : {false, true}) {
            SCOPED_TRACE(fmt::format("{} {}, groups {}, mode_order '{}', fixed_modes '{}', {} workers, cpu {}, seed {}",
                                     name_of(x->type()), order_, partition, path.mode_order, path.fixed_modes, workers,
                                     cpu, seed));
            auto backends = cpu ? kernels::open_backends({DeviceSpec::Kind::cpu, workers, {}}, workers)
                                : reference_backends(workers);
            const RunResult came = run(*x, path, std::move(backends), "0");
            expect_sound(came);
            // Six iterations of solves whose condition is in the hundreds: some 1e3 roundings.
            for (std::size_t k = 0; k < 6; ++k)
              EXPECT_NEAR(came.report.fit[k], expected.report.fit[k], 1e4 * epsilon_of(x->type()));
          }
      }
    }
  }

  int order_ = GetParam();
  std::vector<i64> dims_ = dims_of(order_);
};

TEST_P(Sweeps, WithGroupsAsWithout) {
  compare_with_none<double>(false);
  compare_with_none<float>(false);
}

TEST_P(Sweeps, SparseWithGroupsAsWithout) {
  compare_with_none<double>(true);
  compare_with_none<float>(true);
}

class SameBits : public Sweeps {
protected:
  void check(bool sparse) const;
};

TEST_P(SameBits, DenseWhenDeterministic) { check(false); }
TEST_P(SameBits, SparseWhenDeterministic) { check(true); }

// What is added up in the same order has the same bits.
void SameBits::check(bool sparse) const {
  for (const std::string &partition : partitions(sparse)) {
    const TensorPointer x = tensor<double>(sparse, partition);
    for (const Path &path : paths()) {
      const RunResult one = run(*x, path, kernels::open_backends({DeviceSpec::Kind::cpu, 1, {}}, 1), "1");
      for (const int workers : {1, 2, 3})
        for (const int threads : {workers, 2 * workers}) {
          SCOPED_TRACE(fmt::format("groups {}, mode_order '{}', fixed_modes '{}', {} workers, {} threads", partition,
                                   path.mode_order, path.fixed_modes, workers, threads));
          const RunResult many =
              run(*x, path, kernels::open_backends({DeviceSpec::Kind::cpu, workers, {}}, threads), "1");
          EXPECT_EQ(many.report.fit, one.report.fit);
          for (int m = 0; m < order_; ++m)
            for (i64 r = 0; r < 2; ++r)
              EXPECT_EQ(column(many.model, m, r), column(one.model, m, r));
        }
    }
  }
}

const auto order_name = [](const auto &info) { return "order" + std::to_string(info.param); };
const std::vector<int> orders = light() ? std::vector<int>{3, 5} : std::vector<int>{3, 4, 5, 6};
INSTANTIATE_TEST_SUITE_P(Orders, SameBits, testing::ValuesIn(orders), order_name);
INSTANTIATE_TEST_SUITE_P(Orders, Sweeps, testing::ValuesIn(orders), order_name);

} // namespace
