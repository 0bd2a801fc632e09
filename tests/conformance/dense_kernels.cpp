// Dense tensors by each kernel that option dense_kernel names, against the definition; what the plan says of it, and
// where it is refused.
#include <cstddef>
#include <limits>

#include <gtest/gtest.h>

#include "support/device_memory.hpp"
#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

struct Case {
  std::string kernel;
  std::string tile_width;
  std::string device;
  td_type type;
};

bool is_gpu(const std::string &device) { return device.rfind("cuda", 0) == 0; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string &device : device_strings())
    for (const td_type type : {TD_F32, TD_F64}) {
      cases.push_back({"auto", "0", device, type});
      cases.push_back({"gemm", "0", device, type});
      if (!is_gpu(device)) // which refuses all but auto
        continue;
      for (const char *kernel : {"elem", "slice", "tile", "fused"})
        cases.push_back({kernel, "0", device, type});
      if (type == TD_F32)
        cases.push_back({"fused_tf32", "0", device, type});
      cases.push_back({"tile", "3", device, type});
      cases.push_back({"tile", "9007199254740992", device, type}); // is cut to the modes' lengths
    }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  return c.kernel + (c.tile_width == "0" ? "" : "_" + c.tile_width) + "_" + name_part(c.device) +
         (c.type == TD_F32 ? "_f32" : "_f64");
}

/// The error that a call ends with.
template <class F> Error error_of(F &&f) {
  try {
    f();
  } catch (const Error &error) {
    return error;
  }
  throw std::runtime_error("expected an error");
}

bool says(const Error &error, const char *words) { return std::string(error.what()).find(words) != std::string::npos; }

class DenseKernels : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    context_ = context_if_there(GetParam().device);
    if (!context_)
      GTEST_SKIP() << GetParam().device << ": " << last_error();
  }
  td_context *context() const { return *context_; }
  bool on_gpu() const { return is_gpu(GetParam().device); }
  Options options() const { return {{"dense_kernel", GetParam().kernel}, {"dense_tile_width", GetParam().tile_width}}; }

private:
  std::optional<Context> context_;
};

/// Numbers of pairs of TensorFloat-32 have 22 bits, so that a product is off by four roundings of f32.
constexpr double pairs_slack = 4;

std::vector<int64_t> usual_ranks() {
  return light() ? std::vector<int64_t>{17} : std::vector<int64_t>{1, 3, 17, 32, 70, 101};
}

void expect_right(td_context *context, const Entries &entries, td_type type, const Options &options, double slack,
                  const std::vector<int64_t> &ranks = usual_ranks()) {
  const Tensor x = make_dense(context, entries, type, options);
  Random random(8);
  for (const int64_t rank : ranks) {
    const Factors factors = random_factors(random, entries.dims, rank, type);
    for (int mode = 0; mode < entries.order(); ++mode)
      EXPECT_TRUE(
          within_bound(mttkrp(context, x, factors, mode, type), oracle_mttkrp(entries, factors, mode), type, slack))
          << "order " << entries.order() << ", rank " << rank << ", mode " << mode;
  }
}

TEST_P(DenseKernels, AgreeWithTheDefinition) {
  const Case &c = GetParam();
  Random random(7);
  if (!on_gpu() && c.kernel != "auto") {
    const Entries entries = random_cells(random, {4, 5, 6}, c.type);
    const Error error = error_of([&] { make_dense(context(), entries, c.type, options()); });
    EXPECT_EQ(error.status(), TD_ERR_UNSUPPORTED) << error.what();
    EXPECT_TRUE(says(error, "expected auto, or a GPU, for format dense")) << error.what();
    return;
  }
  for (const auto &dims : std::vector<std::vector<int64_t>>{{7, 9}, {13, 6, 11}, {7, 9, 1, 5}, {3, 4, 2, 5, 3, 2}}) {
    const Entries entries = random_cells(random, dims, c.type);
    const double slack = c.kernel == "fused_tf32" ? pairs_slack : 1;
    expect_right(context(), entries, c.type, options(), slack);
    Options in_f64 = options();
    in_f64.set("accumulate", "f64");
    expect_right(context(), entries, c.type, in_f64, 1);
    if (dims.size() == 4) {
      Options halves = options(); // partial products are MTTKRPs of dense tensors too
      halves.set("groups", "0,1|2,3");
      expect_right(context(), entries, c.type, halves, slack);
    }
  }
}

// Wide tiles of the fused kernel are for long sums, here of a few rows alone; those begin with 16 bytes, or anywhere.
TEST_P(DenseKernels, AgreeOnLongSumsOfManyColumns) {
  const Case &c = GetParam();
  if (!on_gpu() || c.kernel.rfind("fused", 0) != 0)
    GTEST_SKIP() << "kernel " << c.kernel << " has no tiles of columns";
  Random random(11);
  for (const auto &dims : std::vector<std::vector<int64_t>>{{2, 33801}, {33808, 3}, {3, 7, 4843}})
    expect_right(context(), random_cells(random, dims, c.type), c.type, options(),
                 c.kernel == "fused_tf32" ? pairs_slack : 1,
                 light() ? std::vector<int64_t>{101} : std::vector<int64_t>{40, 72, 101, 200});
}

// Elements of one side of the matrix then lie in runs, with the others between these: of 32 bytes or some of them, with
// 16 bytes at their beginning or not.
TEST_P(DenseKernels, AgreeWhereALongModeIsInTheMiddle) {
  const Case &c = GetParam();
  if (!on_gpu() || c.kernel.rfind("fused", 0) != 0)
    GTEST_SKIP() << "kernel " << c.kernel << " has no such matrix";
  Random random(15);
  for (const auto &dims :
       std::vector<std::vector<int64_t>>{{5, 3001, 3}, {8, 2003, 4}, {2, 3, 1500, 2, 5}, {12, 1000, 7}}) {
    const Entries entries = random_cells(random, dims, c.type);
    const std::string kernel = "kernel." + std::to_string(dims.size() / 2);
    Options alone = options();
    alone.set("groups", "none");
    for (const int64_t rank : light() ? std::vector<int64_t>{17} : std::vector<int64_t>{3, 17, 40, 101}) {
      const Plan plan = make<Plan>(td_plan_create_dense, context(), entries.order(), dims.data(), c.type, rank, alone);
      const std::string told = text(td_plan_get_str, plan.get(), kernel.c_str());
      if (told.find("tensor cores") != std::string::npos) { // else a GPU in software, which has the CPU's kernels
        EXPECT_NE(told.find("in the middle"), std::string::npos) << told;
      }
      expect_right(context(), entries, c.type, options(), c.kernel == "fused_tf32" ? pairs_slack : 1, {rank});
    }
  }
}

// An array that is lent may begin with any element. What the fused kernel copies at once, 16 or 32 bytes, holds
// elements of before and behind the tensor as well, which come into no sum.
TEST_P(DenseKernels, AgreeWhereverATensorBegins) {
  const Case &c = GetParam();
  if (!on_gpu() || c.device.find(',') != std::string::npos || c.kernel.rfind("fused", 0) != 0)
    GTEST_SKIP() << "for the fused kernel of one GPU";
  constexpr int64_t behind = 16;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 12, 15}, few{1, 4, 6};
  Options lent = options();
  lent.set("borrow", "1");
  Random random(13);
  for (const auto &dims :
       std::vector<std::vector<int64_t>>{{37, 11, 23}, {6, 300, 4}, {8, 301, 4}, {96, 5, 40}, {5, 1203}}) {
    const Entries cells = random_cells(random, dims, c.type);
    const Factors factors = random_factors(random, dims, light() ? 10 : 33, c.type);
    std::vector<Bounded> expected;
    for (int mode = 0; mode < cells.order(); ++mode)
      expected.push_back(oracle_mttkrp(cells, factors, mode));
    for (const int64_t begin : light() ? few : all) {
      Array array(c.type, std::vector<double>(static_cast<std::size_t>(begin + cells.nnz() + behind), nan));
      for (int64_t k = 0; k < cells.nnz(); ++k)
        array.set(begin + k, cells.values[static_cast<std::size_t>(k)]);
      const auto there = on_device(0, array.data(), static_cast<std::size_t>(array.size()) * size_of(c.type));
      if (there == nullptr)
        GTEST_SKIP() << c.device << ": no arrays on the GPU";
      const Tensor x =
          make<Tensor>(td_tensor_create_dense, context(), cells.order(), dims.data(), nullptr, c.type,
                       static_cast<const std::byte *>(there.get()) + static_cast<std::size_t>(begin) * size_of(c.type),
                       TD_DEVICE, lent);
      for (int mode = 0; mode < cells.order(); ++mode)
        EXPECT_TRUE(within_bound(mttkrp(context(), x, factors, mode, c.type), expected[static_cast<std::size_t>(mode)],
                                 c.type, c.kernel == "fused_tf32" ? pairs_slack : 1))
            << dims[0] << "x" << dims[1] << "..., " << begin << " elements behind, mode " << mode;
    }
  }
}

TEST_P(DenseKernels, ArePlanned) {
  const Case &c = GetParam();
  if (!on_gpu() && c.kernel != "auto")
    GTEST_SKIP() << c.device << " has one kernel for dense tensors";
  Random random(7);
  const Entries entries = random_cells(random, {30, 20, 25}, c.type);
  const Tensor x = make_dense(context(), entries, c.type, options());
  const Plan of_tensor = make<Plan>(td_plan_create_for_tensor, context(), x, 8, nullptr);
  const Plan of_shape = make<Plan>(td_plan_create_dense, context(), 3, entries.dims.data(), c.type, 8, options());
  for (const td_plan *plan : {of_tensor.get(), of_shape.get()}) {
    const std::string why = text(td_plan_get_str, plan, "dense_kernel.why");
    EXPECT_EQ(text(td_plan_get_str, plan, "dense_kernel"), on_gpu() && c.kernel == "auto" ? "fused" : c.kernel);
    EXPECT_EQ(why == "asked for by option 'dense_kernel'", c.kernel != "auto") << why;
    EXPECT_FALSE(text(td_plan_get_str, plan, "kernel.1").empty());
    EXPECT_EQ(tdpp::series(td_plan_get_series, plan, "workspace_bytes").size(), 3u);
    EXPECT_NE(text(td_plan_describe, plan).find("\nkernel "), std::string::npos);
  }
}

TEST_P(DenseKernels, DecomposeAlike) {
  const Case &c = GetParam();
  if (!on_gpu() || c.tile_width != "0")
    GTEST_SKIP() << "one kernel";
  Random random(9);
  const Entries entries = random_cells(random, {12, 10, 9}, c.type);
  const auto fit = [&](Options options) {
    const Tensor x = make_dense(context(), entries, c.type, options);
    const Fitted fitted =
        cpals(context(), x, 4, Options{{"max_iters", "5"}, {"tol", "0"}, {"deterministic", "1"}, {"seed", "3"}});
    return fit_of(context(), fitted.model, x).fit;
  };
  // Five iterations from the same start, whose sums differ in their order alone.
  EXPECT_NEAR(fit(options()), fit(Options{}), c.type == TD_F32 ? 1e-4 : 1e-10);
  EXPECT_EQ(fit(options()), fit(options()));
}

INSTANTIATE_TEST_SUITE_P(All, DenseKernels, testing::ValuesIn(all_cases()), case_name);

TEST(DenseKernelOptions, AreRefusedWhereTheyMeanNothing) {
  const Context context = make_context("cpu", Options{});
  Random random(7);
  const Entries entries = random_entries(random, {4, 5, 6}, 20, TD_F64);
  const Error sparse = error_of([&] { make_sparse(context, entries, {}, Options{{"dense_kernel", "tile"}}); });
  EXPECT_EQ(sparse.status(), TD_ERR_UNSUPPORTED) << sparse.what();
  EXPECT_TRUE(says(sparse, "option 'dense_kernel' = \"tile\": expected auto for format")) << sparse.what();
  const Error width = error_of([&] { make_dense(context, entries, TD_F64, Options{{"dense_tile_width", "5"}}); });
  EXPECT_EQ(width.status(), TD_ERR_OPTION_RANGE) << width.what();
  EXPECT_TRUE(says(width, "option 'dense_tile_width' = 5 with 'dense_kernel' = \"auto\": expected 0")) << width.what();
  for (const char *none : {"-1", "1.5", "wide"}) {
    const Error error = error_of([&] { Options{{"dense_tile_width", none}}; });
    EXPECT_EQ(error.status(), TD_ERR_OPTION_RANGE) << error.what();
  }
  const Error kernel = error_of([&] { Options{{"dense_kernel", "tiled"}}; });
  EXPECT_EQ(kernel.status(), TD_ERR_OPTION_RANGE) << kernel.what();
  EXPECT_TRUE(says(kernel, "expected one of auto|elem|slice|tile|gemm|fused")) << kernel.what();
}

} // namespace
