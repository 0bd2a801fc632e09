// Tensors that work on the caller's array: what comes out is what a copy gives, and gaps between elements are not read.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "support/device_memory.hpp"
#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;
using Dims = std::vector<std::int64_t>;

/// How an array lies: modes from the fastest, and elements of gap behind each mode's.
struct Lie {
  const char *name;
  bool last_fastest;
  std::int64_t gap;
  std::int64_t first_stride = 1;
};
constexpr Lie lies[] = {{"first_fastest", false, 0},
                        {"last_fastest", true, 0},
                        {"halo", false, 2},
                        {"last_fastest_halo", true, 1},
                        {"every_other", false, 3, 2}};

Dims strides_of(const Dims &dims, const Lie &lie) {
  Dims strides(dims.size());
  std::int64_t next = lie.first_stride;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::size_t m = lie.last_fastest ? dims.size() - 1 - k : k;
    strides[m] = next;
    next = next * dims[m] + lie.gap;
  }
  return strides;
}

std::int64_t reach_of(const Dims &dims, const Dims &strides) {
  std::int64_t reach = 1;
  for (std::size_t m = 0; m < dims.size(); ++m)
    reach += (dims[m] - 1) * strides[m];
  return reach;
}

/// Elements at their strides, NaN in the gaps, a page that may not be touched behind the last.
Array lie_down(const Entries &cells, const Dims &strides, td_type type) {
  Array array(type, std::vector<double>(static_cast<std::size_t>(reach_of(cells.dims, strides)),
                                        std::numeric_limits<double>::quiet_NaN()));
  for (std::int64_t k = 0; k < cells.nnz(); ++k) {
    std::int64_t place = 0;
    for (std::size_t m = 0; m < cells.dims.size(); ++m)
      place += cells.indices[m][static_cast<std::size_t>(k)] * strides[m];
    array.set(place, cells.values[static_cast<std::size_t>(k)]);
  }
  return array;
}

const Options &borrow() {
  static const Options options{{"borrow", "1"}};
  return options;
}

bool on_gpu(const std::string &device) { return device.rfind("cuda", 0) == 0; }
bool one_gpu(const std::string &device) { return on_gpu(device) && device.find(',') == std::string::npos; }

struct Case {
  std::string device;
  td_type type;
  Lie lie;
  int order;
  bool in_device_memory;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto &device : device_strings())
    for (const td_type type : {TD_F32, TD_F64})
      for (const Lie &lie : lies)
        for (const int order : light() ? std::vector<int>{2, 4} : std::vector<int>{2, 3, 4, 5})
          for (const bool in_device_memory : {false, true})
            if (!in_device_memory || one_gpu(device))
              cases.push_back({device, type, lie, order, in_device_memory});
  return cases;
}

class Borrowed : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &c = GetParam();
    context_ = context_if_there(c.device);
    if (!context_)
      GTEST_SKIP() << c.device << ": " << last_error();
    Random random(static_cast<std::uint64_t>(c.order));
    cells_ = random_cells(random, {all_dims.begin(), all_dims.begin() + c.order}, c.type);
    strides_ = strides_of(cells_.dims, c.lie);
    array_ = lie_down(cells_, strides_, c.type);
    lent_ = array_.data();
    if (c.in_device_memory) {
      there_ = on_device(0, array_.data(), static_cast<std::size_t>(array_.size()) * size_of(c.type));
      lent_ = there_.get();
      if (there_ == nullptr)
        GTEST_SKIP() << c.device << ": no arrays on the GPU";
    }
  }
  Tensor borrowed(const td_options *options = borrow()) const {
    return make<Tensor>(td_tensor_create_dense, *context_, GetParam().order, cells_.dims.data(), strides_.data(),
                        GetParam().type, lent_, GetParam().in_device_memory ? TD_DEVICE : TD_HOST, options);
  }
  /// Whether a copy is worked on in the same order: with its modes as they are, and where there is room for both, so
  /// that neither is streamed while the other is not.
  bool as_a_copy() const {
    const Case &c = GetParam();
    return !c.lie.last_fastest && c.device.find('@') == std::string::npos;
  }
  Tensor copied() const { return make_dense(*context_, cells_, GetParam().type); }

  const Dims all_dims{7, 9, 5, 3, 4};
  std::optional<Context> context_;
  Entries cells_{{}};
  Dims strides_;
  Array array_;
  std::shared_ptr<void> there_;
  const void *lent_ = nullptr;
};

TEST_P(Borrowed, mttkrp_is_that_of_the_definition) {
  const Tensor x = borrowed();
  EXPECT_EQ(get<std::int64_t>(td_tensor_get_i64, x, "borrowed"), 1);
  EXPECT_LT(get<std::int64_t>(td_tensor_get_i64, x, "bytes"), 200);
  const Tensor same = copied();
  Random random(5);
  for (const std::int64_t rank : {1, 8, 17}) {
    const Factors factors = random_factors(random, cells_.dims, rank, GetParam().type);
    for (int mode = 0; mode < cells_.order(); ++mode) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", mode " + std::to_string(mode));
      const auto got = mttkrp(*context_, x, factors, mode, GetParam().type);
      EXPECT_TRUE(within_bound(got, oracle_mttkrp(cells_, factors, mode), GetParam().type));
      // Kernels gather what has gaps into the order that a copy has, so that nothing differs but where it lay.
      if (as_a_copy()) {
        EXPECT_EQ(got, mttkrp(*context_, same, factors, mode, GetParam().type));
      }
    }
  }
}

TEST_P(Borrowed, facts_are_those_of_a_copy) {
  const Tensor x = borrowed();
  const Tensor same = copied();
  for (const char *key : {"min", "max"})
    EXPECT_EQ(get<double>(td_tensor_get_f64, x, key), get<double>(td_tensor_get_f64, same, key));
  EXPECT_EQ(get<std::int64_t>(td_tensor_get_i64, x, "zeros"), get<std::int64_t>(td_tensor_get_i64, same, "zeros"));
  if (!GetParam().lie.last_fastest) {
    EXPECT_EQ(tensor_norm(x), tensor_norm(same));
  } else {
    EXPECT_NEAR(tensor_norm(x), tensor_norm(same), 1e-12 * tensor_norm(same));
  }
}

TEST_P(Borrowed, comes_out_as_it_is) {
  const Tensor x = borrowed();
  Array out(GetParam().type, cells_.nnz());
  check(td_tensor_get_dense(x, nullptr, GetParam().type, out.data()));
  EXPECT_EQ(out.values(), cells_.values); // random_cells has them first index fastest
}

TEST_P(Borrowed, runs_give_the_model_of_a_copy) {
  const Options alone{{"groups", "none"}};
  const Options borrowed_alone{{"groups", "none"}, {"borrow", "1"}};
  const Tensor x = borrowed(borrowed_alone);
  const Tensor same = make_dense(*context_, cells_, GetParam().type, alone);
  for (const char *init : {"random", "nvecs"})
    for (const char *deterministic : {"0", "1"}) {
      SCOPED_TRACE(std::string(init) + ", deterministic " + deterministic);
      const Options options{{"max_iters", "4"},
                            {"tol", "0"},
                            {"init", init},
                            {"exact_residual", "always"},
                            {"deterministic", deterministic}};
      const Fitted a = cpals(*context_, x, 2, options);
      const Fitted b = cpals(*context_, same, 2, options);
      EXPECT_NEAR(report_f64(a.report, "fit"), report_f64(b.report, "fit"), GetParam().type == TD_F32 ? 1e-4 : 1e-9);
      EXPECT_NEAR(fit_of(*context_, a.model, x).residual, fit_of(*context_, a.model, same).residual, 1e-6);
      if (as_a_copy()) {
        EXPECT_EQ(report_f64(a.report, "fit"), report_f64(b.report, "fit"));
        EXPECT_EQ(factors_of(a.model).a, factors_of(b.model).a);
      }
    }
}

TEST_P(Borrowed, not_a_number_is_named) {
  const Case &c = GetParam();
  if (c.in_device_memory)
    there_ = nullptr;
  std::int64_t place = 0;
  std::string position;
  for (std::size_t m = 0; m < strides_.size(); ++m) {
    place += (cells_.dims[m] - 1) * strides_[m];
    position += (m == 0 ? "(" : ", ") + std::to_string(cells_.dims[m] - 1);
  }
  array_.set(place, std::numeric_limits<double>::infinity());
  if (c.in_device_memory) {
    there_ = on_device(0, array_.data(), static_cast<std::size_t>(array_.size()) * size_of(c.type));
    lent_ = there_.get();
  }
  try {
    borrowed();
    FAIL() << "infinity was taken";
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), TD_ERR_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("element " + position + ") (0-based): value inf"), std::string::npos)
        << e.what();
  }
}

TEST_P(Borrowed, plans_count_no_copy_of_their_own) {
  const Tensor x = borrowed();
  const Plan plan = make<Plan>(td_plan_create_for_tensor, *context_, x, 4, nullptr);
  EXPECT_EQ(get<std::int64_t>(td_plan_get_i64, plan, "host_bytes.tensor"),
            get<std::int64_t>(td_tensor_get_i64, x, "bytes"));
  EXPECT_EQ(get<std::int64_t>(td_plan_get_i64, plan, "host_bytes.building"), 0);
  const auto on_devices = get<std::int64_t>(td_plan_get_i64, plan, "device_bytes.tensor") +
                          get<std::int64_t>(td_plan_get_i64, plan, "device_bytes.streamed");
  if (GetParam().in_device_memory || !on_gpu(GetParam().device)) {
    EXPECT_EQ(on_devices, 0);
  } else {
    EXPECT_GE(on_devices, cells_.nnz() * static_cast<std::int64_t>(size_of(GetParam().type)));
  }
}

/// There are more elements than pass at once: in order, a borrowed array on a GPU is summed by the same spans as a
/// copy, which may be streamed.
TEST(BorrowedSpans, deterministic_runs_give_the_bits_of_a_copy_cuda) {
  for (const std::string &device : device_strings()) {
    const auto context = context_if_there(device);
    if (!context || !one_gpu(device) || device.find('@') != std::string::npos) // where a copy would pass in small spans
      continue;
    Entries cells({64, 129, 130});
    Random random(7);
    const Dims strides{1, 66, 66 * 130};
    Array array(TD_F64, reach_of(cells.dims, strides));
    Array packed(TD_F64, 64 * 129 * 130);
    for (std::int64_t k = 0; k < packed.size(); ++k) {
      packed.set(k, random.symmetric());
      array.set(k % 64 + k / 64 % 129 * 66 + k / 64 / 129 * 66 * 130, packed.get(k));
    }
    const auto there = on_device(0, array.data(), static_cast<std::size_t>(array.size()) * sizeof(double));
    if (there == nullptr)
      GTEST_SKIP() << device << ": no arrays on the GPU";
    const Options alone{{"groups", "none"}};
    const Tensor x = make<Tensor>(td_tensor_create_dense, *context, 3, cells.dims.data(), strides.data(), TD_F64,
                                  there.get(), TD_DEVICE, borrow());
    const Tensor same = make<Tensor>(td_tensor_create_dense, *context, 3, cells.dims.data(), nullptr, TD_F64,
                                     packed.data(), TD_HOST, alone);
    const Options options{{"max_iters", "1"}, {"deterministic", "1"}};
    EXPECT_EQ(factors_of(cpals(*context, x, 1, options).model).a,
              factors_of(cpals(*context, same, 1, options).model).a);
    return;
  }
  GTEST_SKIP() << "no GPU";
}

std::string case_name(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  return std::string(c.lie.name) + "_" + name_part(c.device) + (c.in_device_memory ? "_there" : "") +
         (c.type == TD_F32 ? "_f32" : "_f64") + "_order" + std::to_string(c.order);
}
INSTANTIATE_TEST_SUITE_P(all, Borrowed, testing::ValuesIn(all_cases()), case_name);

} // namespace
