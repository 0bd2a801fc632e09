// The report that a progress callback is lent ends with the callback, however the callback ends.
#include <stdexcept>

#include <gtest/gtest.h>

#include "support/planted.hpp"

namespace {

using namespace tdtest;

struct Callback {
  const td_report *lent = nullptr;
  bool throws = false;
  int calls = 0;
};

int32_t keep(const td_report *so_far, void *user) {
  auto &callback = *static_cast<Callback *>(user);
  callback.lent = so_far;
  ++callback.calls;
  if (callback.throws)
    throw std::runtime_error("the caller's own trouble");
  return 1;
}

td_status handle_of(const td_report *report) {
  int64_t value = 0;
  return td_report_get_i64(report, "iterations", &value);
}

TEST(Progress, ALentReportEndsWithTheCallback) {
  Random random(17);
  const Planted p = planted(random, {12, 9, 7}, 2, 0.3, 0.1);
  for (const char *devices : {"cpu", "cpu:3"})
    for (const bool throws : {false, true}) {
      SCOPED_TRACE(std::string(devices) + (throws ? ", which throws" : ""));
      const Context context = make_context(devices);
      const Tensor x = make_tensor(context, "sorted", p.entries);
      Callback callback;
      callback.throws = throws;
      Ktensor model;
      Report report;
      const td_status status = td_cpals(context, x, 2, nullptr, nullptr, keep, &callback, model.out(), report.out());
      EXPECT_EQ(status, throws ? TD_ERR_INTERNAL : TD_STOPPED);
      if (throws) {
        EXPECT_EQ(last_error(), "the caller's own trouble");
        EXPECT_EQ(model, nullptr);
        EXPECT_EQ(report, nullptr);
      }
      EXPECT_EQ(callback.calls, 1);
      EXPECT_EQ(handle_of(callback.lent), TD_ERR_HANDLE);
      EXPECT_EQ(cpals(context, x, 2, nullptr).status, TD_OK); // the context works on
    }
}

} // namespace
