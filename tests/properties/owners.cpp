// td.hpp: handles end once and with their owners, failures carry status and sentence.
#include <type_traits>

#include <gtest/gtest.h>

#include "support/problem.hpp"

namespace {

using namespace tdtest;

class Owners : public testing::Test {
protected:
  Random random_{71};
  Context context_ = make_context("reference");
  Tensor x_ = make_sparse(context_, random_entries(random_, {4, 3, 2}, 10, TD_F64));
};

td_status state_of(const td_tensor *x) {
  int32_t order = 0;
  return td_tensor_order(x, &order);
}

static_assert(!std::is_copy_constructible_v<Tensor> && !std::is_copy_assignable_v<Options>);
static_assert(std::is_nothrow_move_constructible_v<Options> && std::is_nothrow_move_assignable_v<Options>);

TEST_F(Owners, EndTheirHandlesOnce) {
  td_tensor *const handle = x_;
  Tensor moved = std::move(x_);
  EXPECT_EQ(x_, nullptr);
  EXPECT_EQ(moved.get(), handle);
  Tensor &same = moved;
  moved = std::move(same);
  EXPECT_EQ(state_of(handle), TD_OK);
  moved = Tensor();
  EXPECT_EQ(state_of(handle), TD_ERR_HANDLE);
}

TEST_F(Owners, ReleaseResetAndOut) {
  td_tensor *const handle = x_.release();
  EXPECT_EQ(x_.get(), nullptr);
  EXPECT_EQ(state_of(handle), TD_OK);
  x_.reset(handle);
  EXPECT_EQ(td_tensor_share(handle, x_.out()), TD_ERR_HANDLE) << "out ends what was owned";
  EXPECT_EQ(x_.get(), nullptr);
}

TEST_F(Owners, WhatIsSharedOrCopiedOutlivesItsSource) {
  const Tensor other = tdpp::share(x_);
  const double norm = tensor_norm(x_);
  x_.reset();
  EXPECT_EQ(tensor_norm(other), norm);
  const Context same = tdpp::share(context_);
  context_.reset();
  Fitted run = cpals(same, other, 2, Options{{"max_iters", "3"}, {"tol", "0"}});
  const Ktensor model = copy(run.model);
  const Report report = copy(run.report);
  run = {};
  EXPECT_EQ(weights_of(model).size(), 2u);
  EXPECT_TRUE(tdpp::labels_of(td_ktensor_get_labels, model, 2).empty());
  tdpp::check(td_ktensor_set_labels(model, 2, "a\0", 3)); // and the NUL that ends the literal: an empty label
  EXPECT_EQ(tdpp::labels_of(td_ktensor_get_labels, model, 2), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(report_series(report, "fit").size(), 3u);
  const Plan plan = tdpp::share(make<Plan>(td_plan_create_for_tensor, same, other, 2, nullptr));
  EXPECT_EQ(tdpp::series(td_plan_get_series, plan, "dims"), (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(dims_of(other), (std::vector<int64_t>{4, 3, 2}));
}

TEST_F(Owners, OptionsOfTheirOwn) {
  const Options options{{"tol", "0.5"}, {"init", "nvecs"}};
  Options others = copy(options);
  others.set("tol", "0.25");
  EXPECT_EQ(get<double>(td_options_get_f64, options, "tol"), 0.5);
  EXPECT_EQ(get<double>(td_options_get_f64, others, "tol"), 0.25);
  EXPECT_EQ(text(td_options_get_str, others, "init"), "nvecs");
  EXPECT_EQ(text(td_options_get_str, others, "checkpoint"), "");
}

TEST_F(Owners, FailuresCarryStatusAndSentence) {
  try {
    Options{{"tol", "1e-4"}, {"tolerance", "1e-4"}};
    FAIL() << "an option of no meaning was set";
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), TD_ERR_OPTION_UNKNOWN);
    EXPECT_EQ(e.what(), last_error());
    EXPECT_NE(last_error().find("tolerance"), std::string::npos) << last_error();
  }
  EXPECT_THROW(make<Tensor>(td_tensor_read, context_, "/no/such/file", nullptr), Error);
  EXPECT_EQ(check(TD_STOPPED), TD_STOPPED);
}

} // namespace
