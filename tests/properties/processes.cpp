// CP-ALS of a tensor that processes share: the run of one process, for any number of them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/processes.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

bool on_gpus() { return process_devices() != "cpu"; }

/// Workers of all processes, and of one.
int workers_of_all(int size) { return workers_of(process_devices(), size); }
int workers_of_process(int rank) { return workers_of_all(rank + 1) - workers_of_all(rank); }

/// Light runs have more processes than there are GPUs in software where each takes one, and few where some have
/// several.
std::vector<int> some_sizes() {
  if (!light())
    return {1, 2, 3, 4, 7};
  return workers_of_all(3) > 3 ? std::vector{1, 2, 3} : std::vector{1, 3, 7};
}
const std::vector<int> sizes = some_sizes();

Entries of_process(const Entries &all, int rank, int size) {
  Entries mine(all.dims);
  for (int64_t k = 0; k < all.nnz(); ++k)
    if ((k * 5 + 1) % size == rank)
      mine.add(all.coordinate(k), all.values[static_cast<std::size_t>(k)]);
  return mine;
}

/// What a run came to on one process.
struct Came {
  std::vector<double> fit, weights;
  Factors factors{{1, 1}, 1};
  std::string stop;
  int64_t workers = 0;
  double norm = 0;
};

Came came_of(const Fitted &run) {
  return {report_series(run.report, "fit"),
          weights_of(run.model),
          factors_of(run.model),
          report_str(run.report, "stop_reason"),
          report_i64(run.report, "workers"),
          report_f64(run.report, "norm")};
}

std::vector<Came> run_on(int size, const Entries &all, td_type type, int64_t rank_of_model, const Options &options,
                         const Options &stored = Options{}) {
  Processes processes(size);
  std::vector<Came> came(static_cast<std::size_t>(size));
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_sparse(context, of_process(all, rank, size), {type, TD_I64, 0}, stored);
    came[static_cast<std::size_t>(rank)] = came_of(cpals(context, x, rank_of_model, options));
  });
  EXPECT_EQ(processes.trouble(), "");
  return came;
}

void expect_same(const Came &a, const Came &b) {
  EXPECT_EQ(a.fit, b.fit);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.factors.a, b.factors.a);
  EXPECT_EQ(a.stop, b.stop);
}

void expect_near(const std::vector<double> &a, const std::vector<double> &b, double most, const char *what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t k = 0; k < a.size(); ++k)
    EXPECT_NEAR(a[k], b[k], most * std::max(1.0, std::abs(b[k]))) << what << " " << k;
}

// Sums are taken in another order: that moves ten steps on a well-conditioned tensor by far less than 1e-9.
void expect_run_of_one(const Entries &all, td_type type, int64_t rank, const Options &options,
                       const Options &stored = Options{}, double most = 1e-9) {
  const Context alone = make_context("cpu");
  const Came expected = came_of(cpals(alone, make_sparse(alone, all, {type, TD_I64, 0}, stored), rank, options));
  for (const int size : sizes) {
    SCOPED_TRACE(std::to_string(size) + " processes");
    const std::vector<Came> came = run_on(size, all, type, rank, options, stored);
    for (const Came &some : came)
      expect_same(some, came.front());
    EXPECT_EQ(came.front().workers, workers_of_all(size));
    EXPECT_NEAR(came.front().norm, expected.norm, 1e-12 * expected.norm);
    EXPECT_EQ(came.front().stop, expected.stop);
    expect_near(came.front().fit, expected.fit, most, "fit");
    expect_near(came.front().weights, expected.weights, most, "weight");
    for (std::size_t m = 0; m < all.dims.size(); ++m)
      expect_near(came.front().factors.a[m], expected.factors.a[m], 100 * most, "factor");
  }
}

const Options ten_steps{{"tol", "0"}, {"max_iters", "10"}, {"seed", "3"}};

Options with(const Options &options, const char *name, const std::string &value) {
  Options more = copy(options);
  more.set(name, value);
  return more;
}

/// The first steps of those ten, after which a checkpoint stands at a path.
Options steps_before(const std::string &path) {
  return {{"tol", "0"}, {"max_iters", "4"}, {"seed", "3"}, {"checkpoint", path}};
}

/// A run is resumed for the steps that are left.
Options steps_after(const std::string &path) { return {{"tol", "0"}, {"max_iters", "10"}, {"resume", path}}; }

TEST(SharedCpals, IsTheRunOfOneProcess) {
  Random random(51);
  expect_run_of_one(planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries, TD_F64, 3, ten_steps);
  expect_run_of_one(planted(random, {8, 7, 6, 5}, 2, 0.4, 0.1).entries, TD_F64, 4, ten_steps);
}

TEST(SharedCpals, IsTheRunOfOneProcessInF32) {
  Random random(52);
  expect_run_of_one(planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries, TD_F32, 3, ten_steps, Options{}, 1e-3);
}

TEST(SharedCpals, IsTheRunOfOneProcessHoweverItIsStored) {
  Random random(53);
  const Entries e = planted(random, {9, 8, 7, 6}, 3, 0.5, 0.2).entries;
  for (const char *format : {"coo", "blco", "sorted"})
    expect_run_of_one(e, TD_F64, 3, ten_steps, Options{{"format", format}, {"groups", "none"}});
  expect_run_of_one(e, TD_F64, 3, ten_steps, Options{{"format", "sorted"}, {"groups", "0,1|2|3"}});
  expect_run_of_one(e, TD_F64, 3, ten_steps, Options{{"gather", "f32"}}, 1e-4);
  expect_run_of_one(e, TD_F32, 3, ten_steps, Options{{"accumulate", "f64"}}, 1e-4);
}

// Some processes have no entries, and modes share partial products of which these have no rows.
TEST(SharedCpals, IsTheRunOfOneProcessWhereSomeHaveNoEntries) {
  Entries e({4, 3, 3});
  e.add({0, 1, 2}, 5);
  expect_run_of_one(e, TD_F64, 1, ten_steps, Options{{"groups", "0|1,2"}});
}

// A dense tensor in boxes, of which a process's partial products are those of its box.
TEST(SharedCpals, IsTheRunOfOneProcessWhereItIsDense) {
  Random random(65);
  const auto expect = [&](const Entries &cells, td_type type, int64_t rank, const Options &stored, double most) {
    const Context alone = make_context("cpu");
    const Came expected = came_of(cpals(alone, make_dense(alone, cells, type, stored), rank, ten_steps));
    for (const int size : sizes) {
      SCOPED_TRACE(std::to_string(size) + " processes");
      Processes processes(size);
      std::vector<Came> came(static_cast<std::size_t>(size));
      processes.run(process_devices(), [&](int process, td_context *context) {
        const Tensor x = make_dense_block(context, cells, process, size, Blocks::boxes, type, stored);
        came[static_cast<std::size_t>(process)] = came_of(cpals(context, x, rank, ten_steps));
      });
      EXPECT_EQ(processes.trouble(), "");
      for (const Came &some : came)
        expect_same(some, came.front());
      expect_near(came.front().fit, expected.fit, most, "fit");
      expect_near(came.front().weights, expected.weights, most, "weight");
      for (std::size_t m = 0; m < cells.dims.size(); ++m)
        expect_near(came.front().factors.a[m], expected.factors.a[m], 100 * most, "factor");
    }
  };
  const Entries cells = planted(random, {9, 8, 7}, 3, 0, 0.2).entries;
  expect(cells, TD_F64, 3, Options{}, 1e-9);
  expect(cells, TD_F32, 3, Options{{"accumulate", "f64"}}, 1e-3);
  expect(planted(random, {5, 4, 6, 3}, 2, 0, 0.2).entries, TD_F64, 4, Options{{"groups", "0,1|2,3"}}, 1e-9);
  Entries large = cells;
  for (double &v : large.values)
    v *= 1e200; // a scaled copy is worked on
  expect(large, TD_F64, 2, Options{}, 1e-9);
}

/// A run with option "deterministic" on any number of processes, which is bitwise that of one worker without others.
void expect_same_bits(const Entries &all, td_type type, const std::string &format, const Options &options,
                      const Options &stored = Options{{"groups", "none"}}) {
  const bool dense = format == "dense";
  const std::string device = device_alone();
  const Context alone = make_context(place_of(device), context_options(device, "0"));
  const auto made = [&](td_context *context, int rank, int size) {
    if (dense)
      return size == 0 ? make_dense(context, all, type, stored)
                       : make_dense_block(context, all, rank, size, Blocks::boxes, type, stored);
    return make_sparse(context, size == 0 ? all : of_process(all, rank, size), {type, TD_I64, 0}, stored);
  };
  const Came expected = came_of(cpals(alone, made(alone, 0, 0), 3, options));
  for (const int size : sizes) {
    SCOPED_TRACE(format + " on " + std::to_string(size) + " processes");
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Came came = came_of(cpals(context, made(context, rank, size), 3, options));
      expect_same(came, expected);
      EXPECT_EQ(came.norm, expected.norm);
      EXPECT_EQ(came.workers, workers_of_all(size));
    });
    EXPECT_EQ(processes.trouble(), "");
  }
}

TEST(SharedCpals, SameBitsOnAnyNumberOfProcesses) {
  Random random(69);
  Entries e = distinct_entries(random, {14, 30, 9}, 600, TD_F64);
  const auto options = [](const char *name, const char *value) {
    return Options{{"tol", "0"}, {"max_iters", "6"}, {"seed", "3"}, {"deterministic", "1"}, {name, value}};
  };
  for (const td_type type : {TD_F64, TD_F32})
    for (const char *format : {"coo", "blco", "sorted"})
      expect_same_bits(e, type, format, options("tol", "0"), Options{{"format", format}, {"groups", "none"}});
  expect_same_bits(e, TD_F32, "sorted", options("tol", "0"), Options{{"accumulate", "f64"}, {"groups", "none"}});
  expect_same_bits(e, TD_F64, "sorted", options("tol", "0"), Options{{"gather", "f32"}, {"groups", "none"}});
  expect_same_bits(e, TD_F64, "sorted", options("tol", "0"), Options{{"tiles", "8"}, {"groups", "none"}});
  expect_same_bits(e, TD_F64, "auto", options("exact_residual", "always"));
  expect_same_bits(e, TD_F64, "auto", options("init", "nvecs"));
  expect_same_bits(e, TD_F64, "auto", options("solve", "qr"));
  const Entries cells = random_cells(random, {6, 5, 7}, TD_F64);
  expect_same_bits(cells, TD_F64, "dense", options("tol", "0"));
  expect_same_bits(cells, TD_F32, "dense", options("exact_residual", "always"));
  expect_same_bits(cells, TD_F32, "dense", options("tol", "0"), Options{{"accumulate", "f64"}, {"groups", "none"}});
  expect_same_bits(cells, TD_F64, "dense", options("init", "nvecs"));
  e.dims = {4000, 30, 50000}; // rows without entries, and none at all on some processes
  for (const td_type type : {TD_F64, TD_F32})
    for (const char *format : {"blco", "sorted"})
      expect_same_bits(e, type, format, options("tol", "0"), Options{{"format", format}, {"groups", "none"}});
  expect_same_bits(e, TD_F64, "auto", options("exact_residual", "always"));
  e.dims = {4000, 30, 500000}; // of which a mode so long keeps only rows that have some
  expect_same_bits(e, TD_F64, "auto", options("tol", "0"));
  e.dims = {4000, 30, 50000};
  expect_same_bits(distinct_entries(random, {5, 4, 3}, 3, TD_F64), TD_F64, "auto", options("tol", "0"));
  for (double &v : e.values)
    v *= 1e200;
  expect_same_bits(e, TD_F64, "auto", options("tol", "0"));
}

// No order of sums makes a GPU's those of a CPU.
TEST(SharedCpals, RefusesTheSameBitsOnGpusBesideCpus) {
  if (process_devices().find("cpu") == std::string::npos || process_devices().find("cuda") == std::string::npos)
    GTEST_SKIP() << "no processes with GPUs and without in TD_TEST_DEVICES";
  Random random(69);
  const Entries e = distinct_entries(random, {14, 30, 9}, 600, TD_F64);
  const Options same_bits{{"deterministic", "1"}};
  Processes processes(2);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_sparse(context, of_process(e, rank, 2));
    Ktensor model;
    EXPECT_EQ(td_cpals(context, x, 3, nullptr, same_bits, nullptr, nullptr, model.out(), nullptr), TD_ERR_UNSUPPORTED);
    EXPECT_NE(last_error().find("'deterministic' = 1 on 2 processes of which some have GPUs"), std::string::npos)
        << last_error();
    Plan plan;
    EXPECT_EQ(td_plan_create_for_tensor(context, x, 3, same_bits, plan.out()), TD_ERR_UNSUPPORTED);
    EXPECT_EQ(td_cpals(context, x, 3, nullptr, nullptr, nullptr, nullptr, model.out(), nullptr), TD_OK) << last_error();
  });
  EXPECT_EQ(processes.trouble(), "");
}

// Fibers of a mode are whole on one process each, and process 0 looks for the eigenvectors: of short modes by the
// matrix, of long ones in a subspace.
TEST(SharedCpals, StartsFromEigenvectors) {
  Random random(72);
  const Options by_nvecs{{"tol", "0"}, {"max_iters", "6"}, {"init", "nvecs"}};
  expect_run_of_one(planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries, TD_F64, 3, by_nvecs, Options{}, 1e-7);
  expect_run_of_one(planted(random, {14, 11}, 2, 0.3, 0.2).entries, TD_F32, 2, by_nvecs, Options{}, 1e-3);
  Entries e = planted(random, {600, 9, 7}, 2, 0.3, 0.05).entries;
  e.dims = {700, 9, 8};
  expect_run_of_one(e, TD_F64, 2, by_nvecs, Options{}, 1e-5);
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{9, 8, 7}, {2, 2, 2}}) {
    const Entries cells = planted(random, dims, 2, 0, 0.2).entries;
    const Context alone = make_context("cpu");
    const Came expected = came_of(cpals(alone, make_dense(alone, cells), 2, by_nvecs));
    for (const int size : sizes) {
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = make_dense_block(context, cells, rank, size, Blocks::slabs);
        expect_near(came_of(cpals(context, x, 2, by_nvecs)).fit, expected.fit, 1e-7, "fit");
      });
      EXPECT_EQ(processes.trouble(), "");
    }
  }
}

// Rows of QR decompositions are decomposed by processes, and what that leaves together.
TEST(SharedCpals, SolvesByQr) {
  Random random(71);
  const Options by_qr{{"tol", "0"}, {"max_iters", "8"}, {"seed", "3"}, {"solve", "qr"}};
  expect_run_of_one(planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries, TD_F64, 3, by_qr, Options{}, 1e-8);
  Entries e = planted(random, {9, 8, 7, 6}, 2, 0.3, 0.1).entries;
  e.dims = {9, 80, 7, 6}; // empty rows
  const Options ridge{{"tol", "0"}, {"max_iters", "5"}, {"seed", "3"}, {"solve", "qr"}, {"ridge", "0.1"}};
  expect_run_of_one(e, TD_F64, 3, ridge, Options{{"groups", "0,1|2|3"}}, 1e-8);
  const Entries cells = planted(random, {9, 8, 7}, 3, 0, 0.2).entries;
  const Context one = make_context("cpu");
  const std::vector<double> fit = came_of(cpals(one, make_dense(one, cells), 3, by_qr)).fit;
  Processes four(4);
  four.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_dense_block(context, cells, rank, 4, Blocks::slabs);
    expect_near(came_of(cpals(context, x, 3, by_qr)).fit, fit, 1e-8, "fit of a dense tensor");
  });
  const Entries few =
      distinct_entries(random, {3, 40, 5}, 60, TD_F64); // a dim below the rank, as are rows of processes
  for (const int size : sizes) {
    Processes processes(size);
    std::vector<int64_t> predicted(static_cast<std::size_t>(size)), sent(predicted);
    const Context alone = make_context("cpu");
    const Came expected = came_of(cpals(alone, make_sparse(alone, few), 4, by_qr));
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, of_process(few, rank, size));
      const auto exchanged = [&](const char *iterations) {
        const Options options{{"tol", "0"}, {"max_iters", iterations}, {"seed", "3"}, {"solve", "qr"}};
        return report_i64(cpals(context, x, 4, options).report, "exchanged_bytes");
      };
      const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x), int64_t{4},
                                   static_cast<const td_options *>(by_qr));
      predicted[static_cast<std::size_t>(rank)] = get<int64_t>(td_plan_get_i64, plan, "host_bytes.exchanged");
      sent[static_cast<std::size_t>(rank)] = exchanged("3") - exchanged("2");
      expect_near(came_of(cpals(context, x, 4, by_qr)).fit, expected.fit, 1e-6, "fit");
    });
    EXPECT_EQ(processes.trouble(), "");
    EXPECT_EQ(sent, predicted);
  }
}

// Rows that no process has entries in count in a start, and are zero afterwards; a fixed mode keeps its start.
TEST(SharedCpals, EmptyRowsAndFixedModes) {
  Random random(54);
  Entries e = planted(random, {14, 11, 9}, 2, 0.3, 0.1).entries;
  e.dims = {40, 11, 500};
  expect_run_of_one(e, TD_F64, 2, ten_steps);
  const Context alone = make_context("cpu");
  const Factors start = random_factors(random, e.dims, 2, TD_F64);
  const Options options{{"tol", "0"}, {"max_iters", "5"}, {"fixed_modes", "1"}, {"arrange", "0"}, {"fixsigns", "0"}};
  const auto fitted = [&](td_context *context, const td_tensor *x) {
    return came_of(cpals(context, x, 2, options, make_ktensor(context, start)));
  };
  const Came expected = fitted(alone, make_sparse(alone, e));
  Processes processes(3);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Came came = fitted(context, make_sparse(context, of_process(e, rank, 3)));
    expect_near(came.fit, expected.fit, 1e-9, "fit");
    for (std::size_t m = 0; m < 3; ++m)
      expect_near(came.factors.a[m], expected.factors.a[m], 1e-7, "factor");
  });
}

// A scaled copy is worked on where the squares of numbers overflow or vanish.
TEST(SharedCpals, NumbersFarFromOne) {
  Random random(55);
  for (const double scale : {1e200, 1e-200}) {
    Entries e = planted(random, {9, 8, 7}, 2, 0.3, 0.1).entries;
    for (double &v : e.values)
      v *= scale;
    const Context alone = make_context("cpu");
    const Came expected = came_of(cpals(alone, make_sparse(alone, e), 2, ten_steps));
    for (const Came &came : run_on(3, e, TD_F64, 2, ten_steps))
      expect_near(came.fit, expected.fit, 1e-9, "fit");
  }
}

// The residual of a model that fits is computed entry by entry, by each process of its own.
TEST(SharedCpals, ExactResidual) {
  Random random(56);
  const Planted p = planted(random, {12, 10, 8}, 2, 0, 0);
  const Options always{{"tol", "1e-8"}, {"max_iters", "500"}, {"exact_residual", "always"}};
  for (const Came &came : run_on(3, p.entries, TD_F64, 2, always))
    EXPECT_GT(came.fit.back(), 1 - 1e-6);
  Entries few({2, 1, 2}); // elements, fewer than processes
  few.add({0, 0, 0}, 3);
  few.add({1, 0, 1}, 4);
  const Context alone = make_context("cpu");
  const Came expected = came_of(cpals(alone, make_dense(alone, few), 1, always));
  for (const bool large : {true, false}) {
    const Entries &cells = large ? p.entries : few;
    Processes processes(7);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Came came =
          came_of(cpals(context, make_dense_block(context, cells, rank, 7, Blocks::slabs), large ? 2 : 1, always));
      if (large)
        EXPECT_GT(came.fit.back(), 1 - 1e-6);
      else
        expect_near(came.fit, expected.fit, 1e-12, "fit");
    });
  }
}

struct Counted {
  int calls = 0;
  int stop_at = 0; // 0: never
};

int32_t count_calls(const td_report *, void *user) {
  auto *counted = static_cast<Counted *>(user);
  return ++counted->calls == counted->stop_at ? 1 : 0;
}

TEST(SharedCpals, ACallbackOfOneProcessStopsAll) {
  Random random(57);
  const Entries e = planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries;
  Processes processes(4);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_sparse(context, of_process(e, rank, 4));
    Counted counted{0, rank == 2 ? 3 : 0};
    Ktensor model;
    Report report;
    EXPECT_EQ(td_cpals(context, x, 3, nullptr, ten_steps, rank == 0 ? nullptr : count_calls, &counted, model.out(),
                       report.out()),
              TD_STOPPED);
    EXPECT_EQ(report_str(report, "stop_reason"), "callback");
    EXPECT_EQ(report_i64(report, "iterations"), 3);
    EXPECT_EQ(counted.calls, rank == 0 ? 0 : 3);
  });
  EXPECT_EQ(processes.trouble(), "");
}

// One file, written by process 0, from which any number of processes goes on.
TEST(SharedCpals, GoesOnOnAnotherNumberOfProcesses) {
  Random random(58);
  const Entries e = planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries;
  const TemporaryFolder folder;
  const std::string path = folder.file("run.tdb");
  const auto in_order = [](const Options &options) { return with(options, "deterministic", "1"); };
  run_on(3, e, TD_F64, 3, in_order(steps_before(path)));
  const Came bits = run_on(2, e, TD_F64, 3, in_order(ten_steps)).front();
  for (const int size : sizes)
    for (const Came &came : run_on(size, e, TD_F64, 3, in_order(steps_after(path))))
      expect_same(came, bits);
  const Came whole = run_on(3, e, TD_F64, 3, ten_steps).front();
  run_on(3, e, TD_F64, 3, steps_before(path));
  const Options on = steps_after(path);
  const Context alone = make_context("cpu");
  expect_near(came_of(cpals(alone, make_sparse(alone, e), 3, on)).fit, whole.fit, 1e-9, "fit");
  for (const int size : sizes) {
    const Came came = run_on(size, e, TD_F64, 3, on).front();
    expect_near(came.fit, whole.fit, 1e-9, "fit");
    expect_near(came.weights, whole.weights, 1e-9, "weight");
  }
}

Options in_blocks(const Options &options) { return with(options, "model", "distributed"); }

/// The rows of each factor that a process has, as they stand in a whole model's.
void expect_rows_of(const td_ktensor *block, const Factors &whole, double most) {
  int64_t rank = 0;
  check(td_ktensor_shape(block, nullptr, nullptr, &rank, nullptr));
  for (int32_t m = 0; m < static_cast<int32_t>(whole.dims.size()); ++m) {
    const int64_t dim = whole.dims[static_cast<std::size_t>(m)];
    int64_t first = -1, count = -1;
    check(td_ktensor_local_rows(block, m, &first, &count));
    const int64_t ld = count + 2;
    std::vector<double> a(static_cast<std::size_t>(ld * rank), -77);
    check(td_ktensor_get_local_factor(block, m, a.data(), ld, TD_HOST));
    for (int64_t r = 0; r < rank; ++r)
      for (int64_t i = 0; i < ld; ++i) {
        const double here = a[static_cast<std::size_t>(r * ld + i)];
        if (i >= count)
          EXPECT_EQ(here, -77);
        else
          EXPECT_NEAR(here, whole.a[static_cast<std::size_t>(m)][static_cast<std::size_t>(r * dim + first + i)], most);
      }
  }
}

std::string bytes_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What is left in blocks is the model that every process would have got, and the functions of a ktensor give of it what
// they give of that one; also where a process has no row of a mode, and rows have no entries.
TEST(SharedModel, IsTheOneThatAllWouldGet) {
  Random random(81);
  Entries e = planted(random, {14, 5, 9}, 3, 0.3, 0.2).entries;
  e.dims = {40, 5, 9};
  const Options plain{{"tol", "0"}, {"max_iters", "5"}, {"seed", "3"}, {"arrange", "0"}, {"fixsigns", "0"}};
  const Options cases[] = {copy(ten_steps), copy(plain), with(plain, "init", "nvecs"), with(ten_steps, "solve", "qr"),
                           with(plain, "deterministic", "1")};
  for (const Options &options : cases)
    for (const int size : sizes) {
      SCOPED_TRACE(size);
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = make_sparse(context, of_process(e, rank, size));
        const Fitted whole = cpals(context, x, 3, options);
        const Fitted block = cpals(context, x, 3, in_blocks(options));
        EXPECT_EQ(report_series(block.report, "fit"), report_series(whole.report, "fit"));
        expect_near(weights_of(block.model), weights_of(whole.model), 1e-13, "weight");
        expect_rows_of(block.model, factors_of(whole.model), 1e-13);
        const Ktensor gathered = make<Ktensor>(td_ktensor_gather, static_cast<const td_ktensor *>(block.model));
        expect_rows_of(block.model, factors_of(gathered), 0);
        EXPECT_NEAR(ktensor_norm(block.model), ktensor_norm(whole.model), 1e-12 * ktensor_norm(whole.model));
        double score = 0, dot = 0;
        check(td_ktensor_score(block.model, whole.model, 1, &score, nullptr));
        EXPECT_NEAR(score, 1, 1e-12);
        check(td_ktensor_dot(whole.model, block.model, &dot));
        EXPECT_NEAR(dot, ktensor_norm(whole.model) * ktensor_norm(whole.model), 1e-12 * dot);
        const Ktensor changed = make<Ktensor>(td_ktensor_copy, static_cast<const td_ktensor *>(block.model));
        for (const auto change : {td_ktensor_normalize, td_ktensor_arrange, td_ktensor_fixsigns}) {
          check(change(changed));
          check(change(whole.model));
          expect_rows_of(changed, factors_of(whole.model), 1e-13);
        }
      });
      EXPECT_EQ(processes.trouble(), "");
    }
}

// A file is the same, byte by byte, whether all processes write it or one that has all rows.
TEST(SharedModel, IsWrittenIntoOneFile) {
  Random random(82);
  const Entries e = planted(random, {30, 5, 9}, 3, 0.3, 0.2).entries;
  for (const td_type type : {TD_F64, TD_F32})
    for (const int size : sizes) {
      const TemporaryFolder folder;
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = make_sparse(context, of_process(e, rank, size), {type, TD_I64, 0});
        const Fitted block = cpals(context, x, 3, in_blocks(ten_steps));
        check(td_ktensor_set_mode_name(block.model, 1, rank == 0 ? "word" : "another"));
        const Ktensor whole = make<Ktensor>(td_ktensor_gather, static_cast<const td_ktensor *>(block.model));
        const std::pair<const char *, const char *> files[] = {
            {"k.tdb", ""}, {"k.txt", ""}, {"k.txt.gz", ""}, {"npy", "factor0.npy"}, {"splatt", "mode3.mat"}};
        for (const auto &[name, inside] : files) {
          const bool is_folder = *inside != '\0';
          const Options options{{"file_format", is_folder ? name : "auto"}};
          const std::string path = folder.file(name), other = folder.file(std::string("one_") + name);
          check(td_ktensor_write(block.model, path.c_str(), options));
          if (rank != 0)
            continue;
          check(td_ktensor_write(whole, other.c_str(), options));
          const std::string end = is_folder ? std::string("/") + inside : "";
          if (std::string(name) != "k.txt.gz") { // its members are other ones
            EXPECT_EQ(bytes_of(path + end), bytes_of(other + end)) << name;
          }
          EXPECT_EQ(factors_of(make<Ktensor>(td_ktensor_read, context, path.c_str())).a, factors_of(whole).a) << name;
        }
      });
      EXPECT_EQ(processes.trouble(), "");
    }
}

// A run from a model in blocks is that from the same model where all have it whole, of whatever process they are.
TEST(SharedModel, IsAStart) {
  Random random(83);
  Entries e = planted(random, {14, 5, 9}, 3, 0.3, 0.2).entries;
  e.dims = {40, 5, 9};
  const Options first{{"tol", "0"}, {"max_iters", "2"}, {"seed", "3"}};
  const Options cases[] = {copy(ten_steps), with(ten_steps, "fixed_modes", "0"), with(ten_steps, "solve", "qr"),
                           with(ten_steps, "deterministic", "1")};
  for (const Options &options : cases)
    for (const int size : sizes) {
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = make_sparse(context, of_process(e, rank, size));
        const Fitted block = cpals(context, x, 3, in_blocks(first));
        const Ktensor whole = make<Ktensor>(td_ktensor_gather, static_cast<const td_ktensor *>(block.model));
        expect_same(came_of(cpals(context, x, 3, options, block.model)), came_of(cpals(context, x, 3, options, whole)));
      });
      EXPECT_EQ(processes.trouble(), "");
    }
}

// A checkpoint of a run that keeps its model in blocks is one like any other.
TEST(SharedModel, GoesOnFromACheckpoint) {
  Random random(84);
  const Entries e = planted(random, {14, 11, 9}, 3, 0.3, 0.2).entries;
  const TemporaryFolder folder;
  const std::string path = folder.file("run.tdb");
  const Came whole = run_on(3, e, TD_F64, 3, ten_steps).front();
  const Options first = steps_before(path);
  const Options on = steps_after(path);
  Processes three(3), seven(7);
  three.run(process_devices(), [&](int rank, td_context *context) {
    cpals(context, make_sparse(context, of_process(e, rank, 3)), 3, in_blocks(first));
  });
  seven.run(process_devices(), [&](int rank, td_context *context) {
    const Fitted run = cpals(context, make_sparse(context, of_process(e, rank, 7)), 3, in_blocks(on));
    expect_near(report_series(run.report, "fit"), whole.fit, 1e-9, "fit");
    expect_rows_of(run.model, whole.factors, 1e-7);
  });
  const Context alone = make_context("cpu");
  expect_near(came_of(cpals(alone, make_sparse(alone, e), 3, on)).fit, whole.fit, 1e-9, "fit");
}

int32_t remove_folder(const td_report *, void *user) {
  std::filesystem::remove_all(*static_cast<const std::string *>(user));
  return 0;
}

// What cannot be written is an error on all, or of a checkpoint a note in each report; and nothing is left of it.
TEST(SharedModel, IsWrittenWholeOrNotAtAll) {
  Random random(85);
  const Entries e = planted(random, {14, 11, 9}, 2, 0.3, 0.2).entries;
  const TemporaryFolder folder;
  const std::string gone = folder.file("gone");
  std::filesystem::create_directory(gone);
  const Options checkpoint{
      {"tol", "0"}, {"max_iters", "3"}, {"checkpoint", gone + "/c.tdb"}, {"checkpoint_iters", "1"}};
  Processes processes(3);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_sparse(context, of_process(e, rank, 3));
    Ktensor model;
    Report report;
    std::string user = gone;
    check(td_cpals(context, x, 2, nullptr, in_blocks(checkpoint), rank == 2 ? remove_folder : nullptr, &user,
                   model.out(), report.out()));
    EXPECT_EQ(report_i64(report, "iterations"), 3);
    EXPECT_NE(report_str(report, "checkpoint_error").find("process 0 of 3: " + gone), std::string::npos)
        << report_str(report, "checkpoint_error");
    for (const char *name : {"/k.tdb", "/k.txt"}) {
      EXPECT_EQ(td_ktensor_write(model, (gone + name).c_str(), nullptr), TD_ERR_IO);
      EXPECT_NE(last_error().find("process 0 of 3: " + gone), std::string::npos) << last_error();
    }
    EXPECT_EQ(td_ktensor_write(model, folder.file(rank == 1 ? "a.tdb" : "b.tdb").c_str(), nullptr), TD_ERR_ARGUMENT);
    EXPECT_NE(last_error().find("process 1 of 3: td_ktensor_write: path"), std::string::npos) << last_error();
  });
  EXPECT_EQ(processes.trouble(), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SharedModel, Refusals) {
  Random random(86);
  const Entries e = planted(random, {14, 11, 9}, 2, 0.3, 0.2).entries;
  Processes processes(2);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = make_sparse(context, of_process(e, rank, 2));
    const Fitted run = cpals(context, x, 2, in_blocks(ten_steps));
    std::vector<double> numbers(14 * 11 * 9, 1);
    const auto refused = [&](td_status status) {
      EXPECT_EQ(status, TD_ERR_UNSUPPORTED);
      EXPECT_NE(last_error().find("td_ktensor_gather"), std::string::npos) << last_error();
    };
    refused(td_ktensor_get_factor(run.model, 0, numbers.data(), 14, TD_HOST));
    refused(td_ktensor_set_factor(run.model, 0, numbers.data(), 14, TD_HOST));
    refused(td_ktensor_set_weights(run.model, numbers.data()));
    refused(td_ktensor_full(run.model, nullptr, TD_F64, numbers.data()));
    refused(td_mttkrp_ktensor(context, x, 0, run.model, numbers.data(), 14, TD_HOST));
    EXPECT_EQ(td_ktensor_local_rows(run.model, 3, nullptr, nullptr), TD_ERR_SHAPE);
    EXPECT_EQ(td_ktensor_get_local_factor(run.model, 0, numbers.data(), 6, TD_HOST), TD_ERR_SHAPE); // of 7 rows
    const Context alone = make_context("cpu");
    const Tensor own = make_sparse(alone, e);
    Ktensor model;
    EXPECT_EQ(td_cpals(alone, own, 2, run.model, nullptr, nullptr, nullptr, model.out(), nullptr), TD_ERR_UNSUPPORTED);
    EXPECT_NE(last_error().find("init: its rows"), std::string::npos) << last_error();
    const Ktensor whole = make<Ktensor>(td_ktensor_gather, static_cast<const td_ktensor *>(run.model));
    int64_t first = -1, count = -1;
    check(td_ktensor_local_rows(whole, 0, &first, &count));
    EXPECT_EQ(first, 0);
    EXPECT_EQ(count, 14);
    EXPECT_EQ(td_cpals(context, x, 2, rank == 0 ? static_cast<const td_ktensor *>(whole) : run.model, nullptr, nullptr,
                       nullptr, model.out(), nullptr),
              TD_ERR_ARGUMENT);
  });
  EXPECT_EQ(processes.trouble(), "");
}

/// Indices as in data of people and words: few come often, most hardly ever.
Entries skewed(Random &random, const std::vector<int64_t> &dims, int64_t nnz) {
  Entries e(dims);
  for (int64_t k = 0; k < nnz; ++k) {
    std::vector<int64_t> at;
    for (const int64_t dim : dims)
      at.push_back((static_cast<int64_t>(std::pow(static_cast<double>(dim), random.uniform())) - 1 +
                    (random.below(3) == 0 ? random.below(dim / 2) : 0)) %
                   dim);
    e.add(at, random.symmetric());
  }
  return e;
}

/// What the plan of each process tells that it sends in an iteration, and what it has sent in each of a run's.
struct Traffic {
  std::vector<int64_t> predicted, sent;
};

/// `made` makes each process's part of a tensor of a context.
template <class Made>
Traffic traffic_of(int size, const Options &options, int64_t iterations, int64_t rank_of_model, Made &&made) {
  Processes processes(size);
  Traffic traffic{std::vector<int64_t>(static_cast<std::size_t>(size)),
                  std::vector<int64_t>(static_cast<std::size_t>(size))};
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const Tensor x = made(context, rank);
    const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x), rank_of_model,
                                 static_cast<const td_options *>(options));
    EXPECT_EQ(get<int64_t>(td_plan_get_i64, plan, "processes"), size);
    const Fitted run = cpals(context, x, rank_of_model, options);
    EXPECT_EQ(report_i64(run.report, "iterations"), iterations);
    traffic.predicted[static_cast<std::size_t>(rank)] = get<int64_t>(td_plan_get_i64, plan, "host_bytes.exchanged");
    traffic.sent[static_cast<std::size_t>(rank)] = report_i64(run.report, "exchanged_bytes");
  });
  EXPECT_EQ(processes.trouble(), "");
  return traffic;
}

/// The sum over processes of what each tells; each sends that in ten iterations ten times.
template <class Made> int64_t predicted_and_sent(int size, Made &&made) {
  const Traffic traffic = traffic_of(size, ten_steps, 10, 5, made);
  for (std::size_t rank = 0; rank < traffic.predicted.size(); ++rank)
    EXPECT_EQ(traffic.sent[rank], 10 * traffic.predicted[rank]) << "process " << rank << " of " << size;
  return std::accumulate(traffic.predicted.begin(), traffic.predicted.end(), int64_t{0});
}

// The plan of a process tells how many bytes it sends in an iteration, and it sends these; and all together less than
// half of what they would if each had all rows.
TEST(SharedPlan, TellsWhatIsSent) {
  Random random(61);
  const Entries e = skewed(random, {3000, 20000, 40000, 300}, 30000);
  for (const char *stored : {"f64", "f32"}) {
    const bool sums = std::string(stored) == "f32"; // added in f64: sums take twice what rows do
    for (const int size : {2, 7, 8}) {
      const int64_t all = predicted_and_sent(size, [&](td_context *context, int rank) {
        return make_sparse(context, of_process(e, rank, size), {sums ? TD_F32 : TD_F64, TD_I64, 0},
                           sums ? Options{{"accumulate", "f64"}} : Options{});
      });
      const int64_t row_bytes = 5 * (sums ? 4 + 8 : 8 + 8); // a sum that goes to the owner, and the row that comes back
      EXPECT_GT(all, 0);
      EXPECT_LT(2 * all, (workers_of_all(size) - 1) * (3000 + 20000 + 40000 + 300) * row_bytes);
    }
  }
}

// So it does of a dense tensor: of a cube on 8 processes half of what the same sums and rows are of slabs.
TEST(SharedPlan, TellsWhatIsSentOfADenseTensor) {
  Random random(66);
  const Entries cells = random_cells(random, {24, 25, 26}, TD_F64);
  for (const int size : {2, 3, 7, 8}) {
    const int64_t all = predicted_and_sent(size, [&](td_context *context, int rank) {
      return make_dense_block(context, cells, rank, size, Blocks::slabs);
    });
    if (size == 8 &&
        workers_of_all(size) == size) { // 4 processes have each row; of slabs all 8 have those of two modes
      EXPECT_EQ(all, 3 * (24 + 25 + 26) * 5 * 16);
      EXPECT_LT(all, 7 * (24 + 25) * 5 * 16);
    }
  }
}

// A deterministic run sends each row to all workers: the plan tells the mean of what they send.
TEST(SharedPlan, TellsWhatIsSentWhereAllHoldTheWhole) {
  Random random(70);
  const Entries e = distinct_entries(random, {40, 30, 20}, 4000, TD_F64);
  // GPUs hold a part of each copy, of keys of 4 bytes and values of 8, and get the rest from each other.
  const int64_t entries = on_gpus() ? 3 * 4000 * (4 + 8) : 0;
  const int64_t all = (40 + 30 + 20 + 20) * 5 * 8 + entries;
  const Options options{{"tol", "0"}, {"max_iters", "5"}, {"deterministic", "1"}};
  for (const int size : {1, 2, 5}) {
    const Traffic traffic = traffic_of(size, options, 5, 5, [&](td_context *context, int rank) {
      return make_sparse(context, of_process(e, rank, size));
    });
    const int workers = workers_of_all(size);
    for (int rank = 0; rank < size; ++rank) {
      const int here = workers_of_process(rank); // what each of them sends is rounded up
      EXPECT_NEAR(static_cast<double>(traffic.predicted[static_cast<std::size_t>(rank)]),
                  static_cast<double>(here * (workers - 1) * all) / workers, here);
    }
    EXPECT_EQ(std::accumulate(traffic.sent.begin(), traffic.sent.end(), int64_t{0}), (workers - 1) * all * 5);
  }
}

// Its plan tells that each process has the whole tensor besides its parts, once for all its workers, and a GPU of each
// only a part of the whole.
TEST(SharedPlan, TellsThatEachHoldsTheWhole) {
  Random random(73);
  const Entries e = distinct_entries(random, {60, 50, 40}, 20000, TD_F64);
  const Options in_order{{"deterministic", "1"}}, plain;
  const auto bytes = [](const Plan &plan, const char *key) {
    return static_cast<double>(get<int64_t>(td_plan_get_i64, plan, key));
  };
  const auto planned = [](td_context *context, const Tensor &x, const Options &options) {
    return make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x), int64_t{5},
                      static_cast<const td_options *>(options));
  };
  const Context alone = make_context(place_of(device_alone()), context_options(device_alone(), "1"));
  const Plan whole = planned(alone, make_sparse(alone, e, {}, Options{{"groups", "none"}}), in_order);
  for (const int size : {2, 4}) {
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, of_process(e, rank, size));
      const Plan plan = planned(context, x, in_order), part = planned(context, x, plain);
      EXPECT_EQ(get<int64_t>(td_plan_get_i64, plan, "processes"), size);
      EXPECT_EQ(get<int64_t>(td_plan_get_i64, plan, "workers"), workers_of_process(rank));
      EXPECT_EQ(get<int64_t>(td_plan_get_i64, plan, "nnz"), 20000);
      const double both = bytes(whole, "host_bytes.tensor") + bytes(part, "host_bytes.tensor");
      EXPECT_NEAR(bytes(plan, "host_bytes.tensor"), both, 0.05 * both);
      if (on_gpus()) {
        // Entries of one copy pass through the GPU besides, all of them as they are few.
        const double held = bytes(whole, "device_bytes.tensor");
        const int here = workers_of_process(rank);
        EXPECT_NEAR(bytes(plan, "device_bytes.tensor"), here * (held / workers_of_all(size) + held / 3),
                    0.1 * here * held);
        EXPECT_NE(
            text(td_plan_get_str, static_cast<const td_plan *>(plan), "sharding.why").find("each GPU holds a part"),
            std::string::npos);
      }
    });
    EXPECT_EQ(processes.trouble(), "");
  }
}

/// What a tensor that processes read from one file is, by products with it, and by what it says of itself.
void expect_read(const Entries &e, const std::string &path, const Options &options = Options{}) {
  Random random(62);
  const Context alone = make_context("cpu");
  const Tensor whole = make<Tensor>(td_tensor_read, static_cast<td_context *>(alone), path.c_str(),
                                    static_cast<const td_options *>(options));
  const Factors factors = random_factors(random, e.dims, 3, TD_F64);
  for (const int size : sizes) {
    SCOPED_TRACE(path + " on " + std::to_string(size));
    Processes processes(size);
    processes.run(process_devices(), [&](int, td_context *context) {
      const Tensor x = make<Tensor>(td_tensor_read, context, path.c_str(), static_cast<const td_options *>(options));
      EXPECT_EQ(tensor_nnz(x), tensor_nnz(whole));
      EXPECT_EQ(tensor_str(x, "source"), tensor_str(whole, "source"));
      for (int mode = 0; mode < e.order(); ++mode)
        expect_near(mttkrp(context, x, factors, mode, TD_F64), mttkrp(alone, whole, factors, mode, TD_F64), 1e-11,
                    "product");
    });
    EXPECT_EQ(processes.trouble(), "");
  }
}

void write_lines(const std::string &path, const std::string &text) { std::ofstream(path) << text; }

// Each process parses its share of the lines, or of the numbers of a binary file.
TEST(SharedRead, EveryFormat) {
  Random random(63);
  const Entries e = random_entries(random, {30, 40, 20}, 500, TD_F64);
  const Context alone = make_context("cpu");
  const Tensor x = make_sparse(alone, e);
  const TemporaryFolder folder;
  for (const char *name : {"x.tns", "x.tns.gz", "x.txt", "x.tdb"}) {
    check(td_tensor_write(x, folder.file(name).c_str(), nullptr));
    expect_read(e, folder.file(name));
  }
}

// Each reads a slab of a dense file, of whichever mode is slowest in it.
TEST(SharedRead, DenseFiles) {
  Random random(67);
  const TemporaryFolder folder;
  const Context alone = make_context("cpu");
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{6, 5, 11}, {3, 40, 2}, {9, 4}}) {
    const Entries e = random_cells(random, dims, TD_F64);
    const Tensor x = make_dense(alone, e);
    for (const char *name : {"x.npy", "x.tdb", "x.txt", "x.txt.gz"}) {
      check(td_tensor_write(x, folder.file(name).c_str(), nullptr));
      expect_read(e, folder.file(name));
      expect_read(e, folder.file(name), Options{{"groups", "none"}});
    }
  }
  // NumPy writes C order, of which the first mode is cut.
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (5, 3, 2), }";
  header.append(64 - (header.size() + 11) % 64, ' ');
  std::string file =
      "\x93NUMPY" + std::string("\x01\x00", 2) + static_cast<char>(header.size() + 1) + '\0' + header + '\n';
  for (char k = 0; k < 30; ++k)
    file += std::string{k, '\0'};
  std::ofstream(folder.file("c.npy"), std::ios::binary) << file;
  expect_read(Entries({5, 3, 2}), folder.file("c.npy"));
}

// Blank lines, comments, fewer lines than processes, no newline at the end, and what entries alone settle: dims and
// base.
TEST(SharedRead, WhatTheEntriesOfAllSettle) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const Entries e({4, 3, 9});
  write_lines(path, "# of few lines\n\n1 1 1 2.5\n4 3 9 1 # the last of each\n\n2 3 4 -1");
  expect_read(e, path);
  expect_read(e, path, Options{{"value_type", "f64"}, {"dialect", "frostt"}});
  write_lines(path, "sptensor\n3\n4 3 9\n3\n1 1 1 1\n2 2 2 2\n3 2 9 3\n");
  expect_read(e, path); // the index 9 alone says that they count from 1
  write_lines(path, "sptensor\n3\n4 3 9\n3\n1 1 1 1\n2 2 2 2\n3 2 0 3\n");
  expect_read(e, path); // and 0 that they count from 0
  write_lines(path, "%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n1 1 1\n3 2 2\n4 4 3\n");
  expect_read(Entries({4, 4}), path);
}

/// What processes read of a file each is the tensor of all entries.
void expect_own_files(const Entries &e, const std::string &path, int size, const Options &options) {
  SCOPED_TRACE(path + " on " + std::to_string(size));
  Random random(66);
  const Context alone = make_context("cpu");
  const Tensor whole = make_sparse(alone, e);
  const Factors factors = random_factors(random, e.dims, 3, TD_F64);
  Processes processes(size);
  processes.run(process_devices(), [&](int, td_context *context) {
    const Tensor x = make<Tensor>(td_tensor_read, context, path.c_str(), static_cast<const td_options *>(options));
    EXPECT_EQ(tensor_nnz(x), tensor_nnz(whole));
    for (int mode = 0; mode < e.order(); ++mode)
      expect_near(mttkrp(context, x, factors, mode, TD_F64), mttkrp(alone, whole, factors, mode, TD_F64), 1e-11,
                  "product");
  });
  EXPECT_EQ(processes.trouble(), "");
}

std::string numbered(std::string path, int process) {
  return path.replace(path.find("%p"), 2, std::to_string(process));
}

// Entries at the same coordinates are in several files, and files are of different sizes.
TEST(SharedRead, AFileOfEachProcess) {
  Random random(69);
  Entries e = random_entries(random, {30, 40, 20}, 500, TD_F64);
  const TemporaryFolder folder;
  const Context alone = make_context("cpu");
  const Options own{{"file_per_process", "1"}};
  for (const int size : sizes)
    for (const char *name : {"x.%p.tns", "x.%p.tns.gz", "%p.txt", "x%p.tdb"}) {
      const std::string path = folder.file(std::to_string(size) + name);
      for (int rank = 0; rank < size; ++rank)
        check(td_tensor_write(make_sparse(alone, of_process(e, rank, size)), numbered(path, rank).c_str(), nullptr));
      expect_own_files(e, path, size, own);
    }
}

// Dims that no file states are the largest indices of all files, and a 0 in one makes all count from 0.
TEST(SharedRead, WhatTheFilesOfAllSettle) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.%p");
  const Options own{{"file_per_process", "1"}};
  const auto expect_settled = [&](const std::string &first, const std::string &second,
                                  const std::vector<int64_t> &dims) {
    write_lines(numbered(path, 0), first);
    write_lines(numbered(path, 1), second);
    Processes processes(2);
    processes.run(process_devices(), [&](int, td_context *context) {
      const Tensor x = make<Tensor>(td_tensor_read, context, path.c_str(), static_cast<const td_options *>(own));
      std::vector<int64_t> found(3);
      check(td_tensor_dims(x, found.data()));
      EXPECT_EQ(found, dims);
      EXPECT_EQ(tensor_nnz(x), 3);
    });
    EXPECT_EQ(processes.trouble(), "");
  };
  expect_settled("1 1 5 2.5\n2 2 2 1\n", "4 3 1 -1\n", {4, 3, 5});
  const std::string head = "sptensor\n3\n4 3 9\n";
  expect_settled(head + "2\n1 1 1 1\n2 2 2 2\n", head + "1\n3 2 0 3\n", {4, 3, 9});
  expect_settled(head + "2\n1 1 1 1\n2 2 2 2\n", head + "1\n3 2 9 3\n", {4, 3, 9});
}

TEST(SharedRead, FilesThatDoNotGoTogetherAreRefusedByAll) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.%p");
  const Options own{{"file_per_process", "1"}};
  const auto expect_refused = [&](const std::string &first, const std::string &second, td_status status,
                                  const std::string &part) {
    std::filesystem::remove(numbered(path, 1));
    write_lines(numbered(path, 0), first);
    if (!second.empty())
      write_lines(numbered(path, 1), second);
    Processes processes(2);
    std::vector<std::string> said(2);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      Tensor x;
      EXPECT_EQ(td_tensor_read(context, path.c_str(), own, x.out()), status);
      said[static_cast<std::size_t>(rank)] = last_error();
    });
    EXPECT_EQ(processes.trouble(), "");
    EXPECT_EQ(said[0], said[1]);
    EXPECT_NE(said[0].find(part), std::string::npos) << said[0];
  };
  const std::string three = "1 1 5 2.5\n2 2 2 1\n";
  expect_refused(three, "", TD_ERR_IO, numbered(path, 1));
  expect_refused(three, "1 2 3\n", TD_ERR_IO,
                 "is text of 3 modes, counted from 1, but that of process 1 is text of 2 modes");
  expect_refused(three, "sptensor\n3\n4 3 9\n1\n1 1 1 1\n", TD_ERR_IO,
                 "of process 1 is text of 3 modes, dims 4 x 3 x 9");
  expect_refused(three, "1 1 1 1\n1 x 1 1\n", TD_ERR_IO, "x.1: line 2: index of mode 1");
  expect_refused(three, "1 1 1 1\n1 0 1 1\n", TD_ERR_INDEX, "line 2 of process 1's file: index 0 of mode 1");
  expect_refused("tensor\n2\n2 2\n1 2 3 4\n", three, TD_ERR_UNSUPPORTED, "td_tensor_create_dense_block");
  const Context alone = make_context("cpu");
  check(td_tensor_write(make_sparse(alone, Entries({4, 3, 9})), folder.file("b.tdb").c_str(), nullptr));
  std::ifstream binary(folder.file("b.tdb"), std::ios::binary);
  expect_refused(three, {std::istreambuf_iterator<char>(binary), {}}, TD_ERR_IO,
                 "of process 1 is td binary of 3 modes");
}

// Lines are counted from the file's first, whoever reads them, and all say the same.
TEST(SharedRead, ErrorsNameTheLine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.tns");
  const auto expect_refused = [&](const std::string &text, td_status status, const std::string &part) {
    write_lines(path, text);
    for (const int size : sizes) {
      Processes processes(size);
      std::vector<std::string> said(static_cast<std::size_t>(size));
      processes.run(process_devices(), [&](int rank, td_context *context) {
        Tensor x;
        EXPECT_EQ(td_tensor_read(context, path.c_str(), nullptr, x.out()), status);
        said[static_cast<std::size_t>(rank)] = last_error();
      });
      EXPECT_EQ(processes.trouble(), "");
      for (const std::string &text_of_one : said) {
        EXPECT_EQ(text_of_one, said.front());
        EXPECT_NE(text_of_one.find(part), std::string::npos) << text_of_one;
      }
    }
  };
  std::string lines;
  for (int k = 1; k <= 20; ++k)
    lines += std::to_string(k) + " 1 2 0.5\n";
  expect_refused(lines + "1 2 x 3\n" + lines, TD_ERR_IO, "line 21: ");
  expect_refused(lines + "1 2 0 3\n" + lines, TD_ERR_INDEX, "line 21: index 0 of mode 2");
  expect_refused("sptensor\n3\n20 1 2\n21\n" + lines, TD_ERR_IO, "line 4 states 21 entries, but 20 follow");
  expect_refused("tensor\n2\n2 2\n1 2 x 4\n", TD_ERR_IO, "line 4");
  // Each verifies a part of what a binary file's checksums are of.
  const Context alone = make_context("cpu");
  Random random(64);
  const std::string binary = folder.file("x.tdb");
  check(td_tensor_write(make_sparse(alone, random_entries(random, {5, 6, 7}, 100, TD_F64)), binary.c_str(), nullptr));
  std::string bytes(std::filesystem::file_size(binary), ' ');
  std::ifstream(binary, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  Processes processes(3);
  processes.run(process_devices(), [&](int, td_context *context) {
    Tensor x;
    EXPECT_EQ(td_tensor_read(context, path.c_str(), nullptr, x.out()), TD_ERR_IO);
    EXPECT_NE(last_error().find("checksum"), std::string::npos) << last_error();
    EXPECT_EQ(td_tensor_read(context, binary.c_str(), nullptr, x.out()), TD_OK) << last_error();
  });
}

TEST(SharedTensor, TellsOfTheWhole) {
  Random random(59);
  const Entries e = random_entries(random, {20, 30, 10}, 500, TD_F64);
  const Context alone = make_context("cpu");
  const Tensor whole = make_sparse(alone, e);
  for (const int size : sizes) {
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, of_process(e, rank, size));
      EXPECT_EQ(tensor_nnz(x), tensor_nnz(whole));
      EXPECT_EQ(get<int64_t>(td_tensor_get_i64, x, "duplicates"), get<int64_t>(td_tensor_get_i64, whole, "duplicates"));
      EXPECT_NEAR(tensor_norm(x), tensor_norm(whole), 1e-13 * tensor_norm(whole));
      for (const char *fact : {"min", "max"})
        EXPECT_EQ(get<double>(td_tensor_get_f64, x, fact), get<double>(td_tensor_get_f64, whole, fact));
      EXPECT_NEAR(get<double>(td_tensor_get_f64, x, "sum"), get<double>(td_tensor_get_f64, whole, "sum"), 1e-12);
      std::vector<int64_t> dims(3);
      check(td_tensor_dims(x, dims.data()));
      EXPECT_EQ(dims, e.dims);
    });
  }
}

TEST(SharedTensor, TellsOfTheWholeDenseOne) {
  Random random(68);
  const Entries e = random_cells(random, {7, 6, 5}, TD_F64);
  const Context alone = make_context("cpu");
  const Tensor whole = make_dense(alone, e);
  for (const int size : sizes) {
    Processes processes(size);
    std::vector<int64_t> here(static_cast<std::size_t>(size));
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_dense_block(context, e, rank, size, Blocks::one);
      here[static_cast<std::size_t>(rank)] = get<int64_t>(td_tensor_get_i64, x, "stored_here");
      EXPECT_EQ(tensor_nnz(x), 210);
      EXPECT_NEAR(tensor_norm(x), tensor_norm(whole), 1e-13 * tensor_norm(whole));
      for (const char *fact : {"min", "max"})
        EXPECT_EQ(get<double>(td_tensor_get_f64, x, fact), get<double>(td_tensor_get_f64, whole, fact));
      std::vector<int64_t> dims(3);
      check(td_tensor_dims(x, dims.data()));
      EXPECT_EQ(dims, e.dims);
      std::vector<double> cells(210);
      EXPECT_EQ(td_tensor_get_dense(x, nullptr, TD_F64, cells.data()), TD_ERR_UNSUPPORTED);
    });
    for (const int64_t &some : here) {
      const auto rank = static_cast<int>(&some - here.data());
      const int workers = workers_of_process(rank);
      const int all = workers_of_all(size);
      EXPECT_LE(some, (all == size ? 2 : 3) * 210 * workers / all); // of many workers boxes are small, and less even
    }
  }
}

// What one process cannot answer is refused, and so is a tensor in another context.
TEST(SharedTensor, RefusesWhatNeedsItWhole) {
  Random random(60);
  const Entries e = random_entries(random, {5, 6, 7}, 50, TD_F64);
  const Context alone = make_context("cpu");
  for (const int size : {1, 2}) {
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, of_process(e, rank, size));
      std::vector<int64_t> counts(7);
      EXPECT_EQ(td_tensor_slice_counts(x, 2, counts.data()), TD_ERR_UNSUPPORTED);
      EXPECT_EQ(td_tensor_write(x, "nowhere.tns", nullptr), TD_ERR_UNSUPPORTED);
      std::vector<double> cells(210);
      EXPECT_EQ(td_tensor_get_dense(x, nullptr, TD_F64, cells.data()), TD_ERR_UNSUPPORTED);
      Tensor dense;
      EXPECT_EQ(td_tensor_create_dense(context, 3, e.dims.data(), nullptr, TD_F64, cells.data(), TD_HOST, nullptr,
                                       dense.out()),
                TD_ERR_UNSUPPORTED);
      EXPECT_NE(last_error().find(size == 1 ? "1 process shares" : "2 processes share"), std::string::npos)
          << last_error();
      Plan plan;
      EXPECT_EQ(td_plan_create(context, 3, e.dims.data(), 50, TD_F64, 2, nullptr, plan.out()), TD_ERR_UNSUPPORTED);
      const Ktensor k = make_ktensor(context, random_factors(random, e.dims, 2, TD_F64));
      double dot = 0;
      EXPECT_EQ(td_ktensor_dot_tensor(context, k, x, &dot), TD_ERR_UNSUPPORTED);
      if (rank == 0) {
        Ktensor model;
        EXPECT_EQ(td_cpals(alone, x, 2, nullptr, nullptr, nullptr, nullptr, model.out(), nullptr), TD_ERR_UNSUPPORTED);
        EXPECT_NE(last_error().find("context"), std::string::npos) << last_error();
      }
    });
    EXPECT_EQ(processes.trouble(), "");
  }
}

} // namespace
