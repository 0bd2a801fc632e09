// The plan of a shape or of a file for processes that are not there, against processes that are.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include <malloc.h>

#include "support/devices.hpp"
#include "support/problem.hpp"
#include "support/processes.hpp"
#include "support/temporary.hpp"

namespace {

// Each thread, which stands for a process, is counted by itself: processes have their most at different moments.
thread_local bool counting = false;
thread_local int64_t live = 0;
thread_local int64_t most = 0;
std::atomic<int64_t> held = 0, most_held = 0; // by all threads together

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  void *p = nullptr;
  if (posix_memalign(&p, std::max(alignment, sizeof p), size == 0 ? 1 : size) != 0)
    return nullptr;
  const int64_t now = held += static_cast<int64_t>(malloc_usable_size(p));
  for (int64_t so_far = most_held; so_far < now && !most_held.compare_exchange_weak(so_far, now);) {
  }
  if (counting)
    most = std::max(most, live += static_cast<int64_t>(malloc_usable_size(p)));
  return p;
}

void release(void *p) noexcept {
  held -= static_cast<int64_t>(malloc_usable_size(p)); // 0 of null
  if (p != nullptr && counting)
    live -= static_cast<int64_t>(malloc_usable_size(p));
  std::free(p);
}

} // namespace

#include "replaced_new.hpp"

namespace {

using namespace tdtest;

constexpr int64_t rank_of_model = 5;
const std::vector<int> sizes = light() ? std::vector{2, 7} : std::vector{2, 7, 8};
const std::vector<int> few_sizes = light() ? std::vector{3} : std::vector{2, 3, 4};

int64_t number(const td_plan *plan, const char *key) { return get<int64_t>(td_plan_get_i64, plan, key); }

Options iterations(int64_t count) { return Options{{"tol", "0"}, {"max_iters", std::to_string(count)}}; }

/// Few indices come often where skew > 1; where it is 1 all do equally.
Entries drawn(Random &random, const std::vector<int64_t> &dims, int64_t nnz, double skew) {
  Entries e(dims);
  for (int64_t k = 0; k < nnz; ++k) {
    std::vector<int64_t> at;
    for (const int64_t dim : dims)
      at.push_back(static_cast<int64_t>(static_cast<double>(dim) * std::pow(random.uniform(), skew)));
    e.add(at, 1 + random.uniform());
  }
  return e;
}

Entries of_process(const Entries &all, int rank, int size) {
  Entries mine(all.dims);
  for (int64_t k = rank; k < all.nnz(); k += size)
    mine.add(all.coordinate(k), all.values[static_cast<std::size_t>(k)]);
  return mine;
}

/// The tensor is made from the arrays where they are.
Tensor build(td_context *context, const Entries &e, const Options &options) {
  std::vector<const void *> columns;
  for (const auto &column : e.indices)
    columns.push_back(column.data());
  return make<Tensor>(td_tensor_create, context, e.order(), e.dims.data(), e.nnz(), TD_I64, columns.data(), 0, TD_F64,
                      e.values.data(), TD_HOST, static_cast<const td_options *>(options));
}

/// What processes have come to.
struct Counted {
  int64_t sent = 0;                              // by all in an iteration
  int64_t calls = 0;                             // of each in an iteration
  std::vector<int64_t> tensor, building, solver; // of each, by the plan of its part
};

Counted run_on(int size, const Entries &e) {
  constexpr int64_t few = 3, many = 8;
  Counted counted;
  int64_t calls[2] = {0, 0};
  for (const int64_t count : {few, many}) {
    Processes processes(size);
    std::vector<int64_t> sent(static_cast<std::size_t>(size)), tensor(sent), building(sent), solver(sent);
    processes.run("cpu", [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, of_process(e, rank, size), {TD_F64, TD_I64, 0});
      const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x), rank_of_model,
                                   static_cast<const td_options *>(nullptr));
      const auto p = static_cast<std::size_t>(rank);
      tensor[p] = number(plan, "host_bytes.tensor");
      building[p] = number(plan, "host_bytes.building");
      solver[p] = number(plan, "host_bytes.solver");
      const Fitted run = cpals(context, x, rank_of_model, iterations(count));
      sent[p] = report_i64(run.report, "exchanged_bytes");
    });
    EXPECT_EQ(processes.trouble(), "");
    counted.sent = std::accumulate(sent.begin(), sent.end(), int64_t{0}) / count;
    calls[count == many ? 1 : 0] = processes.calls();
    counted.tensor = tensor;
    counted.building = building;
    counted.solver = solver;
  }
  counted.calls = (calls[1] - calls[0]) / (many - few);
  EXPECT_EQ((calls[1] - calls[0]) % (many - few), 0);
  return counted;
}

void expect_within(double most, double planned, double came, const char *what) {
  std::printf("    %-9s planned %12.0f  came %12.0f  %.3f\n", what, planned, came, planned / came);
  EXPECT_NEAR(planned / came, 1, most) << what << ": planned " << planned << ", came " << came;
}

double mean(const std::vector<int64_t> &numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

Plan shape_plan(const Entries &e, int size, const Options &network = Options{}, const std::string &devices = "cpu") {
  const Context alone = make_context(place_of(devices), context_options(devices, "1"));
  Options options = copy(network);
  options.set("processes", std::to_string(size));
  return make<Plan>(td_plan_create, static_cast<td_context *>(alone), static_cast<int32_t>(e.order()), e.dims.data(),
                    e.nnz(), TD_F64, rank_of_model, static_cast<const td_options *>(options));
}

// Where entries are spread evenly, sizes say what is sent: a mode that all processes share, modes in which
// each row has many entries, few, or hardly one.
TEST(PlannedProcesses, ASizeTellsWhatIsSent) {
  Random random(71);
  for (const auto &dims : std::vector<std::vector<int64_t>>{
           {3000, 20000, 4000}, {300, 24, 1000}, {90000, 60000, 70000}, {500, 7, 40, 600}}) {
    const Entries e = drawn(random, dims, 40000, 1);
    for (const int size : sizes) {
      SCOPED_TRACE(std::to_string(dims[0]) + " ... on " + std::to_string(size));
      const Counted came = run_on(size, e);
      const Plan plan = shape_plan(e, size);
      EXPECT_EQ(number(plan, "processes"), size);
      EXPECT_EQ(number(plan, "nnz"), e.nnz());
      EXPECT_EQ(number(plan, "exchange_calls"), came.calls);
      expect_within(0.05, static_cast<double>(size * number(plan, "host_bytes.exchanged")),
                    static_cast<double>(came.sent), "sent");
      expect_within(0.05, static_cast<double>(number(plan, "host_bytes.tensor")), mean(came.tensor), "tensor");
      expect_within(0.05, static_cast<double>(number(plan, "host_bytes.building")), mean(came.building), "building");
      expect_within(0.05, static_cast<double>(number(plan, "host_bytes.solver")), mean(came.solver), "solver");
    }
  }
}

// Each process with a GPU: what is on it, what its host holds and what it sends, as sizes tell it.
TEST(PlannedProcesses, ASizeTellsWhatGpusHold) {
  if (process_devices() == "cpu")
    GTEST_SKIP() << "no GPUs for processes: TD_TEST_DEVICES names none";
  const std::string one = device_alone();
  Random random(78);
  const Entries e = drawn(random, {3000, 20000, 4000}, 40000, 1);
  const std::vector<const char *> keys{"device_bytes.tensor", "device_bytes.solver", "host_bytes.tensor",
                                       "host_bytes.building", "host_bytes.solver",   "host_bytes.exchanged"};
  for (const char *format : {"sorted", "blco", "coo"})
    for (const int size : few_sizes) {
      SCOPED_TRACE(std::string(format) + " on " + std::to_string(size));
      const Options stored{{"format", format}};
      std::vector<std::vector<int64_t>> there(keys.size(), std::vector<int64_t>(static_cast<std::size_t>(size)));
      std::vector<int64_t> sent(static_cast<std::size_t>(size));
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = build(context, of_process(e, rank, size), stored);
        const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x),
                                     rank_of_model, static_cast<const td_options *>(nullptr));
        const auto p = static_cast<std::size_t>(rank);
        for (std::size_t k = 0; k < keys.size(); ++k)
          there[k][p] = number(plan, keys[k]);
        sent[p] = report_i64(cpals(context, x, rank_of_model, iterations(4)).report, "exchanged_bytes") / 4;
      });
      const Plan plan = shape_plan(e, size, stored, one);
      for (std::size_t k = 0; k < keys.size(); ++k)
        expect_within(0.05, static_cast<double>(number(plan, keys[k])), mean(there[k]), keys[k]);
      expect_within(0.05, static_cast<double>(number(plan, "host_bytes.exchanged")), mean(sent), "sent");
    }
}

TEST(PlannedProcesses, RefusalsOfGpus) {
  if (process_devices() == "cpu")
    GTEST_SKIP() << "no GPUs for processes: TD_TEST_DEVICES names none";
  const int64_t dims[] = {30, 20, 10};
  const Context context = make_context("cuda:0,0", context_options("cuda:0,0", "1"));
  const Options options{{"processes", "4"}};
  Plan plan;
  EXPECT_EQ(td_plan_create(context, 3, dims, 100, TD_F64, rank_of_model, options, plan.out()), TD_ERR_UNSUPPORTED);
  EXPECT_NE(last_error().find("expected a context of \"cpu\" or of one GPU, as each process is one worker"),
            std::string::npos)
      << last_error();
}

// For a run in order each process has all of the tensor, beside its part; of several GPUs a process each is planned for
// as that of a process, but all of the tensor is on the host once for them.
TEST(PlannedProcesses, ASizeTellsWhatARunInOrderTakes) {
  const std::string one = device_alone();
  Random random(79);
  const Entries e = drawn(random, {3000, 20000, 4000}, 40000, 1);
  std::vector<const char *> keys{"host_bytes.tensor", "host_bytes.solver", "host_bytes.exchanged"};
  if (one != "cpu")
    keys.insert(keys.end(), {"device_bytes.tensor", "device_bytes.solver"});
  for (const char *format : {"sorted", "blco", "coo"})
    for (const int size : few_sizes) {
      SCOPED_TRACE(std::string(format) + " on " + std::to_string(size));
      const Options stored{{"format", format}}, in_order{{"deterministic", "1"}};
      std::vector<double> there(keys.size()); // of all processes
      std::mutex adding;
      Processes processes(size);
      processes.run(process_devices(), [&](int rank, td_context *context) {
        const Tensor x = build(context, of_process(e, rank, size), stored);
        const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x),
                                     rank_of_model, static_cast<const td_options *>(in_order));
        const std::lock_guard lock(adding);
        for (std::size_t k = 0; k < keys.size(); ++k)
          there[k] += static_cast<double>(number(plan, keys[k]));
      });
      EXPECT_EQ(processes.trouble(), "");
      const int workers = workers_of(process_devices(), size);
      const Plan plan = shape_plan(e, workers, Options{{"format", format}, {"deterministic", "1"}}, one);
      const auto part = static_cast<double>(number(shape_plan(e, workers, stored, one), "host_bytes.tensor"));
      EXPECT_EQ(tdpp::series(td_plan_get_series, plan, "scaling_seconds").size(), 0U);
      for (std::size_t k = 0; k < keys.size(); ++k) {
        const auto each = static_cast<double>(number(plan, keys[k]));
        expect_within(0.05, k == 0 ? size * (each - part) + workers * part : workers * each, there[k], keys[k]);
      }
    }
}

int32_t note_held(const td_report *, void *user) {
  *static_cast<int64_t *>(user) = held;
  return 0;
}

// Workers of one process work on the same tensor of all entries: as many of these are in memory as there are processes.
TEST(PlannedProcesses, ARunInOrderHasTheWholeOnceAProcess) {
  Random random(80);
  const Entries e = drawn(random, {300, 200, 400}, 100000, 1);
  const Options plain{{"max_iters", "2"}, {"tol", "0"}}, in_order{{"max_iters", "2"}, {"deterministic", "1"}};
  for (const int size : {1, 2}) {
    int64_t whole = 0, without = 0, with = 0;
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = build(context, of_process(e, rank, size), Options{{"groups", "none"}});
      const auto bytes = [&](const Options &options) {
        const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x),
                                     rank_of_model, static_cast<const td_options *>(options));
        return number(plan, "host_bytes.tensor");
      };
      if (rank == 0)
        whole = bytes(in_order) - bytes(plain);
      const auto run = [&](const Options &options, int64_t &meanwhile) {
        Ktensor model;
        check(td_cpals(context, x, rank_of_model, nullptr, options, rank == 0 ? note_held : nullptr, &meanwhile,
                       model.out(), nullptr));
      };
      run(in_order, with); // what is allocated once does not count
      run(plain, without);
      run(in_order, with);
    });
    EXPECT_EQ(processes.trouble(), "");
    if (workers_of(process_devices(), size) > 1)
      expect_within(0.1, static_cast<double>(size * whole), static_cast<double>(with - without), "whole");
  }
}

// All rows of a product are in memory once a process, whatever its workers.
TEST(PlannedProcesses, AProductIsWholeOnceAProcess) {
  Random random(81);
  const Entries e = drawn(random, {200000, 20, 30}, 2000, 1);
  const Factors factors = random_factors(random, e.dims, rank_of_model, TD_F64);
  std::vector<std::vector<double>> out(2, std::vector<double>(200000 * rank_of_model));
  std::vector<const void *> columns;
  for (const auto &a : factors.a)
    columns.push_back(a.data());
  for (const int size : {1, 2}) {
    int64_t before = 0;
    std::barrier all(size);
    Processes processes(size);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = build(context, of_process(e, rank, size), Options{});
      for (int round = 0; round < 2; ++round) { // what is allocated once does not count
        all.arrive_and_wait();
        if (rank == 0)
          most_held = before = held;
        all.arrive_and_wait();
        check(td_mttkrp(context, x, 0, rank_of_model, columns.data(), e.dims.data(),
                        out[static_cast<std::size_t>(rank)].data(), e.dims.front(), TD_HOST));
      }
    });
    EXPECT_EQ(processes.trouble(), "");
    expect_within(0.1, static_cast<double>(size * 200000 * rank_of_model * 8), static_cast<double>(most_held - before),
                  "product");
  }
}

// Entries that lie in few rows share others than sizes say; the plan of their file partitions them as processes do.
TEST(PlannedProcesses, AFileTellsWhatIsSent) {
  Random random(72);
  const Entries e = drawn(random, {3000, 20000, 40000, 300}, 30000, 2.5);
  const TemporaryFolder folder;
  const std::string path = folder.file("x.tdb");
  const Context alone = make_context("cpu", Options{{"threads", "1"}});
  check(td_tensor_write(make_sparse(alone, e), path.c_str(), nullptr));
  for (const int size : sizes) {
    const Counted came = run_on(size, e);
    const Options options{{"processes", std::to_string(size)}};
    const Plan plan = make<Plan>(td_plan_read, static_cast<td_context *>(alone), path.c_str(), rank_of_model,
                                 static_cast<const td_options *>(options));
    EXPECT_EQ(number(plan, "processes"), size);
    expect_within(0.001, static_cast<double>(size * number(plan, "host_bytes.exchanged")),
                  static_cast<double>(came.sent), "sent");
    expect_within(0.05, static_cast<double>(number(plan, "host_bytes.tensor")), mean(came.tensor), "tensor");
    EXPECT_EQ(tdpp::series(td_plan_get_series, plan, "scaling_seconds").size(), 0U);
  }
}

// Building is counted on each process by itself: entries that come and go, and then the format beside them.
TEST(PlannedProcesses, BytesAreThoseAllocated) {
  Random random(73);
  const Entries e = drawn(random, {30000, 4000, 5000}, 100000, 1);
  for (const char *format : {"sorted", "blco", "coo"})
    for (const int size : sizes) {
      SCOPED_TRACE(std::string(format) + " on " + std::to_string(size));
      const Options stored{{"format", format}};
      const Plan plan = shape_plan(e, size, stored);
      Processes processes(size);
      std::vector<int64_t> built(static_cast<std::size_t>(size)), solved(built);
      processes.run("cpu", [&](int rank, td_context *context) {
        const Entries mine = of_process(e, rank, size);
        for (const bool counted : {false, true}) { // what is allocated once a process is there does not count
          live = most = 0;
          counting = counted;
          const Tensor x = build(context, mine, stored);
          built[static_cast<std::size_t>(rank)] = most;
          live = most = 0;
          cpals(context, x, rank_of_model, iterations(2));
          solved[static_cast<std::size_t>(rank)] = most;
          counting = false;
        }
      });
      expect_within(0.05, static_cast<double>(number(plan, "host_bytes.tensor") + number(plan, "host_bytes.building")),
                    mean(built), "built");
      // A start, the sweeps and the model that process 0 gathers are not at the same moment: what is refused by counts
      // the largest of each.
      const int64_t solver = number(plan, "host_bytes.solver");
      const int64_t largest = *std::max_element(solved.begin(), solved.end());
      EXPECT_GE(solver, largest);
      EXPECT_LT(solver, largest + largest / 2);
    }
}

// So it is of one process that shares a tensor with none, and where each keeps a block of the model: then no process
// has room for all rows of it, of which most have no entry here.
TEST(PlannedProcesses, BlocksOfAModelAreAllThatAProcessHas) {
  Random random(77);
  const Entries e = drawn(random, {300000, 20000, 30000}, 40000, 1);
  constexpr int64_t model_bytes = (300000 + 20000 + 30000) * rank_of_model * 8;
  for (const char *model : {"replicated", "distributed"})
    for (const int size : {1, 2, 7}) {
      SCOPED_TRACE(std::string(model) + " on " + std::to_string(size));
      Options options = iterations(2);
      options.set("model", model);
      Processes processes(size);
      std::vector<int64_t> planned(static_cast<std::size_t>(size)), came(planned);
      processes.run("cpu", [&](int rank, td_context *context) {
        const Tensor x = build(context, of_process(e, rank, size), Options{});
        const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x),
                                     rank_of_model, static_cast<const td_options *>(options));
        planned[static_cast<std::size_t>(rank)] = number(plan, "host_bytes.solver");
        for (const bool counted : {false, true}) {
          live = most = 0;
          counting = counted;
          cpals(context, x, rank_of_model, options);
          came[static_cast<std::size_t>(rank)] = most;
          counting = false;
        }
      });
      for (std::size_t rank = 0; rank < came.size(); ++rank) {
        std::printf("    process %zu planned %12ld  came %12ld  %.3f\n", rank, static_cast<long>(planned[rank]),
                    static_cast<long>(came[rank]),
                    static_cast<double>(planned[rank]) / static_cast<double>(came[rank]));
        EXPECT_GE(planned[rank], came[rank] * 99 / 100); // small things are not counted
        EXPECT_LT(planned[rank], came[rank] * 8 / 5);    // a start and rows on their way are not at the same moment
        if (size == 7) {
          EXPECT_EQ(came[rank] > model_bytes, std::string(model) == "replicated");
        }
      }
    }
}

// Beside others' GPUs what a process exchanges is staged, as theirs is.
TEST(PlannedProcesses, ACpuBesideGpusStages) {
  const std::string devices = process_devices();
  if (devices.find("cpu") == devices.npos || devices.find("cuda") == devices.npos)
    GTEST_SKIP() << "no processes with GPUs and without in TD_TEST_DEVICES";
  Random random(79);
  const Entries e = drawn(random, {30000, 20000, 20000}, 60000, 1);
  Options options = iterations(2);
  options.set("model", "distributed");
  Processes processes(2);
  processes.run(devices, [&](int rank, td_context *context) {
    const Tensor x = build(context, of_process(e, rank, 2), Options{});
    const Plan plan = make<Plan>(td_plan_create_for_tensor, context, static_cast<const td_tensor *>(x), rank_of_model,
                                 static_cast<const td_options *>(options));
    for (const bool counted : {false, true}) {
      live = most = 0;
      counting = counted;
      cpals(context, x, rank_of_model, options);
      counting = false;
    }
    if (devices_of_process(devices, rank).find("cpu") != std::string::npos) {
      const int64_t planned = number(plan, "host_bytes.solver");
      EXPECT_GE(planned, most);
      EXPECT_LT(planned, most + most / 10); // a start and rows on their way are not at the same moment
    }
  });
  EXPECT_EQ(processes.trouble(), "");
}

// Seconds are messages at the latency and bytes at the rate.
TEST(PlannedProcesses, TheNetworkIsAnOption) {
  const Entries e = drawn(*std::make_unique<Random>(74), {3000, 2000, 1000}, 5000, 1);
  const auto plan = [&](const char *latency, const char *rate) {
    return shape_plan(e, 8, Options{{"link_latency", latency}, {"link_rate", rate}});
  };
  const auto seconds = [](const Plan &p) { return get<double>(td_plan_get_f64, p, "seconds.exchange"); };
  const Plan fast = plan("0", "1e9"), slow = plan("0.5", "1e300");
  const double summed = 2 * 3 * 8 * rank_of_model * (rank_of_model + 1); // norms and Gram matrices, there and back
  EXPECT_NEAR(seconds(fast), (static_cast<double>(number(fast, "host_bytes.exchanged")) + summed) / 1e9, 1e-15);
  // Six of the calls are exchanges, whose messages are counted; the others go through a tree of three steps.
  EXPECT_NEAR(seconds(slow),
              0.5 * static_cast<double>(number(slow, "exchange_messages") + 3 * (number(slow, "exchange_calls") - 6)),
              1e-9);
  EXPECT_NE(tdpp::text(td_plan_get_str, fast, "assumptions").find("sends 1 GB/s"), std::string::npos);
  EXPECT_EQ(tdpp::text(td_plan_get_str, fast, "assumptions").find("100 Gbit/s"), std::string::npos);
  EXPECT_NE(tdpp::text(td_plan_get_str, shape_plan(e, 8), "assumptions").find("12.5 GB/s, as over a network of 100"),
            std::string::npos);
}

// Processes are the more of use, the more work there is; where it ends is where exchange takes as long.
TEST(PlannedProcesses, TellWhereTheyStopToScale) {
  const Entries e = drawn(*std::make_unique<Random>(75), {3000, 2000, 1000}, 5000, 1);
  const Options machine{{"read_rate", "1e10"}, {"operation_rate", "1e11"}, {"link_latency", "1e-6"}};
  const auto plan_for = [&](int64_t nnz, const char *latency) {
    const Context alone = make_context("cpu", Options{{"threads", "1"}});
    Options options = copy(machine);
    options.set("processes", "16").set("link_latency", latency);
    return make<Plan>(td_plan_create, static_cast<td_context *>(alone), int32_t{3}, e.dims.data(), nnz, TD_F64,
                      rank_of_model, static_cast<const td_options *>(options));
  };
  const Plan much = plan_for(100000000, "1e-6"), little = plan_for(100000, "1e-6"), far = plan_for(100000, "1");
  EXPECT_GT(number(much, "scales_to"), number(little, "scales_to"));
  EXPECT_EQ(number(far, "scales_to"), 1);
  EXPECT_EQ(number(far, "fastest_processes"), 1);
  const std::vector<double> seconds = tdpp::series(td_plan_get_series, much, "scaling_seconds");
  ASSERT_EQ(seconds.size(), 17U); // 1 ... 65536
  EXPECT_DOUBLE_EQ(seconds[4], get<double>(td_plan_get_f64, much, "seconds.iteration"));
  EXPECT_DOUBLE_EQ(*std::min_element(seconds.begin(), seconds.end()),
                   seconds[static_cast<std::size_t>(std::log2(number(much, "fastest_processes")))]);
  EXPECT_EQ(tdpp::series(td_plan_get_series, plan_for(100, "1e-6"), "scaling_seconds").size(), 7U); // 1 ... 64
}

// What has no plan for several processes says so.
TEST(PlannedProcesses, Refusals) {
  const Context alone = make_context("cpu"), two = make_context("cpu:2");
  const Options eight{{"processes", "8"}};
  const std::vector<int64_t> dims{30, 20, 10};
  Plan plan;
  EXPECT_EQ(td_plan_create_dense(alone, 3, dims.data(), TD_F64, 2, eight, plan.out()), TD_ERR_UNSUPPORTED);
  EXPECT_NE(last_error().find("option 'processes' = 8"), std::string::npos) << last_error();
  EXPECT_EQ(td_plan_create(two, 3, dims.data(), 100, TD_F64, 2, eight, plan.out()), TD_ERR_UNSUPPORTED);
  EXPECT_NE(last_error().find("each process is one worker"), std::string::npos) << last_error();
  Entries e(dims);
  e.add({1, 2, 3}, 1);
  const Tensor x = make_sparse(alone, e);
  EXPECT_EQ(td_plan_create_for_tensor(alone, x, 2, eight, plan.out()), TD_ERR_UNSUPPORTED);
  EXPECT_NE(last_error().find("a tensor that is there"), std::string::npos) << last_error();
  EXPECT_EQ(td_plan_create(alone, 3, dims.data(), -1, TD_F64, 2, eight, plan.out()), TD_ERR_SHAPE);
}

} // namespace
