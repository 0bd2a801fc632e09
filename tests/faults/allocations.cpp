// The k-th allocation fails, for k = 0, 1, 2, ..., until a whole scenario succeeds: each failure must come out as
// TD_ERR_HOST_MEMORY (or be coped with), leak nothing and crash nothing. This program replaces operator new and delete,
// which libtd then uses too.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>

#include <gtest/gtest.h>

#include "scenario.hpp"
#include "support/temporary.hpp"

namespace {

// Allocations that are alive, and those still to succeed before one fails.
std::atomic<long> live{0};
std::atomic<long> left{0};
std::atomic<bool> armed{false};
std::atomic<bool> from_then_on{false};

bool must_fail() noexcept {
  if (!armed.load())
    return false;
  const long before = left.fetch_sub(1);
  return before == 0 || (before < 0 && from_then_on.load());
}

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  if (must_fail())
    return nullptr;
  void *p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size == 0 ? 1 : size) != 0)
    return nullptr;
  live.fetch_add(1);
  return p;
}

void release(void *p) noexcept {
  if (p != nullptr)
    live.fetch_sub(1);
  std::free(p);
}

} // namespace

#include "replaced_new.hpp"

namespace {

using namespace tdtest;

td_status start(Handles &h, const char *format) {
  TRY(td_context_create("cpu:2", nullptr, h.context.out()));
  TRY(td_options_create(h.options.out()));
  TRY(td_options_set_str(h.options, "format", format));
  return TD_OK;
}

template <const char *const &Format> td_status sparse_scenario() {
  Handles h;
  TRY(start(h, Format));
  TRY(make_sparse(h, h.x.out()));
  TRY(multiply(h.context, h.x, 3));
  int64_t columns[3][nnz], counts[6];
  double values[nnz], full[120];
  void *out[3] = {columns[0], columns[1], columns[2]};
  TRY(td_tensor_get_entries(h.x, TD_I64, out, 0, TD_F64, values));
  TRY(td_tensor_get_dense(h.x, nullptr, TD_F64, full));
  TRY(td_tensor_slice_counts(h.x, 0, counts));
  char text[64];
  TRY(td_tensor_describe(h.x, text, 64, nullptr));
  return td_context_describe(h.context, text, 64, nullptr);
}

td_status dense_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(make_dense(h, h.y.out()));
  return multiply(h.context, h.y, 3);
}

td_status ktensor_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(make_sparse(h, h.x.out()));
  TRY(td_ktensor_create(h.context, 3, dims, 3, TD_F64, h.k.out()));
  double a[18], full[120], value = 0;
  for (int n = 0; n < 18; ++n)
    a[n] = n % 5 - 1.5;
  for (int32_t m = 0; m < 3; ++m)
    TRY(td_ktensor_set_factor(h.k, m, a, dims[m], TD_HOST));
  TRY(td_ktensor_copy(h.k, h.k2.out()));
  TRY(td_ktensor_arrange(h.k2));
  TRY(td_ktensor_fixsigns(h.k2));
  TRY(td_ktensor_norm(h.k2, &value));
  TRY(td_ktensor_dot(h.k, h.k2, &value));
  TRY(td_ktensor_score(h.k, h.k2, 1, &value, nullptr));
  TRY(td_ktensor_full(h.k, nullptr, TD_F64, full));
  TRY(td_ktensor_fit(h.context, h.k, h.x, &value, nullptr, nullptr, nullptr));
  return td_ktensor_dot_tensor(h.context, h.k, h.x, &value);
}

td_status decompose(Handles &h, const td_tensor *x, const char *init) {
  TRY(td_options_set_i64(h.options, "max_iters", 2));
  TRY(td_options_set_str(h.options, "init", init));
  const auto progress = [](const td_report *so_far, void *) -> int32_t {
    double fit = 0;
    td_report_get_f64(so_far, "fit", &fit);
    return 0;
  };
  TRY(td_cpals(h.context, x, 2, nullptr, h.options, progress, nullptr, h.k.out(), h.report.out()));
  double fits[2];
  return td_report_get_series(h.report, "fit", fits, 2, nullptr);
}

td_status cpals_sparse_scenario() {
  Handles h;
  TRY(start(h, "blco"));
  TRY(make_sparse(h, h.x.out()));
  return decompose(h, h.x, "random");
}

td_status cpals_nvecs_scenario() {
  Handles h;
  TRY(start(h, "sorted"));
  TRY(make_sparse(h, h.x.out()));
  return decompose(h, h.x, "nvecs");
}

td_status cpals_dense_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(td_options_set_str(h.options, "groups", "0,1|2"));
  TRY(make_dense(h, h.y.out()));
  return decompose(h, h.y, "nvecs");
}

char paths[11][256]; // of the file scenarios, made before allocations fail

template <int File> td_status tensor_file_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(make_sparse(h, h.x.out()));
  TRY(td_tensor_write(h.x, paths[File], nullptr));
  return td_tensor_read(h.context, paths[File], nullptr, h.y.out());
}

td_status dense_file_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(make_dense(h, h.y.out()));
  TRY(td_tensor_write(h.y, paths[4], nullptr));
  return td_tensor_read(h.context, paths[4], nullptr, h.x.out());
}

template <int File> td_status ktensor_file_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(td_ktensor_create(h.context, 3, dims, 2, TD_F64, h.k.out()));
  TRY(td_ktensor_write(h.k, paths[File], nullptr));
  return td_ktensor_read(h.context, paths[File], h.k2.out());
}

td_status checkpoint_scenario() {
  Handles h;
  TRY(start(h, "coo"));
  TRY(make_sparse(h, h.x.out()));
  TRY(td_options_set_str(h.options, "checkpoint", paths[7]));
  TRY(td_options_set_i64(h.options, "checkpoint_iters", 1));
  TRY(decompose(h, h.x, "random"));
  TRY(td_options_set_str(h.options, "resume", paths[7]));
  TRY(td_options_set_i64(h.options, "max_iters", 3));
  return td_cpals(h.context, h.x, 2, nullptr, h.options, nullptr, nullptr, h.k2.out(), nullptr);
}

td_status table_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(td_options_set_str(h.options, "columns", "who,what,when:%Y-%m"));
  TRY(td_options_set_str(h.options, "value", "count"));
  TRY(td_tensor_read(h.context, paths[8], h.options, h.x.out()));
  TRY(td_tensor_set_mode_name(h.x, 0, "a name that needs an allocation of its own"));
  TRY(td_tensor_set_labels(h.x, 0, "a\0b", 4));
  TRY(decompose(h, h.x, "random"));
  char text[64];
  int64_t best = 0;
  TRY(td_ktensor_get_label(h.k, 1, 1, text, 64, nullptr));
  TRY(td_ktensor_get_leading(h.k, 1, 0, 1, &best, nullptr, nullptr));
  TRY(td_ktensor_write(h.k, paths[9], nullptr));
  return td_ktensor_read(h.context, paths[9], h.k2.out());
}

td_status report_scenario() {
  Handles h;
  TRY(start(h, "auto"));
  TRY(make_sparse(h, h.x.out()));
  TRY(td_tensor_set_labels(h.x, 0, "a\0b\0c\0d\0e\0f", 12));
  for (const char *rate : {"read_rate", "operation_rate"}) // a measurement would allocate what is measured with
    TRY(td_options_set_f64(h.options, rate, 1e9));
  TRY(decompose(h, h.x, "random"));
  return td_report_write(h.context, h.report, h.x, h.k, h.options, paths[10]);
}

constexpr const char *coo = "coo";
constexpr const char *blco = "blco";
constexpr const char *sorted = "sorted";

struct Scenario {
  const char *name;
  td_status (*run)();
};

const Scenario scenarios[] = {
    {"coo", sparse_scenario<coo>},
    {"blco", sparse_scenario<blco>},
    {"sorted", sparse_scenario<sorted>},
    {"dense", dense_scenario},
    {"ktensor", ktensor_scenario},
    {"cpals_sparse", cpals_sparse_scenario},
    {"cpals_nvecs", cpals_nvecs_scenario},
    {"cpals_dense", cpals_dense_scenario},
    {"file_frostt", tensor_file_scenario<0>},
    {"file_toolbox", tensor_file_scenario<1>},
    {"file_binary", tensor_file_scenario<2>},
    {"file_gz", tensor_file_scenario<3>},
    {"file_npy", dense_file_scenario},
    {"ktensor_text", ktensor_file_scenario<5>},
    {"ktensor_binary", ktensor_file_scenario<6>},
    {"checkpoint", checkpoint_scenario},
    {"table", table_scenario},
    {"report", report_scenario},
};

class Allocations : public testing::TestWithParam<Scenario> {
protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers bring an operator new of their own";
#endif
    const char *names[] = {"x.tns", "x.txt",   "x.tdb", "x.tns.gz", "x.npy",   "k.txt",
                           "k.tdb", "run.tdb", "t.csv", "m.tdb",    "run.html"};
    for (int n = 0; n < 11; ++n)
      std::snprintf(paths[n], sizeof paths[n], "%s", folder_.file(names[n]).c_str());
    std::ofstream(paths[8]) << "who,what,when,count\nann,\"te\"\"a\",2024-01-05,2\nbob,cake,2024-02-01,1\n";
  }

  void fail_each(bool all_later_ones) {
    const Scenario &scenario = GetParam();
    ASSERT_EQ(scenario.run(), TD_OK); // also fills what the library keeps for good
    ASSERT_EQ(scenario.run(), TD_OK);
    from_then_on = all_later_ones;
    for (long k = 0; k < 100000; ++k) {
      const long before = live;
      left = k;
      armed = true;
      const td_status status = scenario.run();
      armed = false;
      const bool failed_one = left < 0;
      ASSERT_EQ(live, before) << "allocations left after number " << k << " failed";
      if (!failed_one) {
        ASSERT_EQ(status, TD_OK);
        ASSERT_GT(k, 5);
        return;
      }
      if (status < 0) {
        char why[512];
        td_last_error(why, sizeof why);
        ASSERT_EQ(status, TD_ERR_HOST_MEMORY) << "when number " << k << " failed: " << why;
      }
    }
    FAIL() << "no end of allocations";
  }

private:
  tdtest::TemporaryFolder folder_;
};

TEST_P(Allocations, OneFails) { fail_each(false); }

TEST_P(Allocations, AllFailFromOneOn) { fail_each(true); }

INSTANTIATE_TEST_SUITE_P(All, Allocations, testing::ValuesIn(scenarios),
                         [](const auto &info) { return info.param.name; });

} // namespace
