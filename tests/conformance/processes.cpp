// MTTKRP of tensors that processes share, against its definition: every format, on 1 to 7 processes, whichever of them
// brought the entries.
#include <cctype>
#include <cstring>

#include <gtest/gtest.h>

#include "support/device_memory.hpp"
#include "support/devices.hpp"
#include "support/oracle.hpp"
#include "support/processes.hpp"

namespace {

using namespace tdtest;

struct Case {
  int processes;
  std::string format;
  td_type type;
  int order;
};

std::string case_name(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  return c.format + (c.type == TD_F32 ? "_f32" : "_f64") + "_order" + std::to_string(c.order) + "_on" +
         std::to_string(c.processes);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int processes : {1, 2, 3, 4, 7})
    for (const char *format : {"coo", "blco", "sorted"})
      for (const td_type type : {TD_F32, TD_F64})
        for (const int order : {2, 3, 5})
          cases.push_back({processes, format, type, order});
  return cases;
}

/// Who brings entry k.
enum class Bring { one, scattered, ranges };

Entries brought(const Entries &all, int rank, int size, Bring how) {
  Entries mine(all.dims);
  for (int64_t k = 0; k < all.nnz(); ++k) {
    const int64_t owner = how == Bring::one         ? size - 1
                          : how == Bring::scattered ? (k * 7 + 3) % size
                                                    : k * size / all.nnz();
    if (owner == rank)
      mine.add(all.coordinate(k), all.values[static_cast<std::size_t>(k)]);
  }
  return mine;
}

/// Every process checks all that it gets.
void expect_right(const Case &c, const Entries &all, Bring how, const std::string &devices) {
  Processes processes(c.processes);
  Random random(29);
  const Factors factors = random_factors(random, all.dims, 5, c.type);
  std::vector<Bounded> expected;
  for (int mode = 0; mode < all.order(); ++mode)
    expected.push_back(oracle_mttkrp(all, factors, mode));
  processes.run(devices, [&](int rank, td_context *context) {
    const Tensor x = make_tensor(context, c.format, brought(all, rank, c.processes, how),
                                 {c.type, rank % 2 == 0 ? TD_I64 : TD_I32, rank % 2});
    for (int mode = 0; mode < all.order(); ++mode) {
      SCOPED_TRACE("mode " + std::to_string(mode) + ", process " + std::to_string(rank));
      EXPECT_TRUE(
          within_bound(mttkrp(context, x, factors, mode, c.type), expected[static_cast<std::size_t>(mode)], c.type));
    }
    const Ktensor k = make_ktensor(context, factors, c.type);
    EXPECT_TRUE(within_bound(mttkrp_ktensor(context, x, k, 0), expected.front(), c.type));
  });
  EXPECT_EQ(processes.trouble(), "");
  EXPECT_EQ(processes.released(), c.processes);
}

class OnProcesses : public testing::TestWithParam<Case> {};

// Coordinates repeat, on one process and between them.
TEST_P(OnProcesses, MttkrpIsTheDefinition) {
  Random random(7);
  const std::vector<int64_t> dims{13, 40, 7, 19, 5};
  const Entries all = random_entries(random, {dims.begin(), dims.begin() + GetParam().order}, 300, GetParam().type);
  for (const Bring how : {Bring::one, Bring::scattered, Bring::ranges})
    expect_right(GetParam(), all, how, how == Bring::scattered ? "reference" : process_devices());
}

INSTANTIATE_TEST_SUITE_P(All, OnProcesses, testing::ValuesIn(all_cases()), case_name);

// One entry, none at all, one row that has all of them, rows far apart, more processes than entries.
TEST(OnProcessesShapes, AreAllRight) {
  Random random(8);
  std::vector<Entries> shapes;
  shapes.push_back(random_entries(random, {6, 5, 4}, 0, TD_F64));
  shapes.push_back(random_entries(random, {6, 5, 4}, 1, TD_F64));
  shapes.push_back(random_entries(random, {1, 1, 1}, 9, TD_F64));
  shapes.push_back(random_entries(random, {1, 50, 30}, 200, TD_F64));
  Entries far({40000, 3, 2});
  far.add({39999, 0, 1}, 2);
  far.add({0, 2, 0}, 3);
  far.add({20000, 2, 0}, -1);
  shapes.push_back(far);
  Entries heavy({20, 20, 20});
  for (int64_t k = 0; k < 300; ++k)
    heavy.add({k % 10 == 0 ? random.below(20) : 3, random.below(20), random.below(20)}, random.symmetric());
  shapes.push_back(heavy);
  for (const int processes : {2, 3, 7})
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      SCOPED_TRACE("shape " + std::to_string(s) + " on " + std::to_string(processes));
      expect_right({processes, "sorted", TD_F64, 3}, shapes[s], Bring::ranges, process_devices());
    }
}

/// The same of a dense tensor, whichever blocks it is brought in.
void expect_right_dense(const Entries &cells, int size, td_type type, Blocks how, const std::string &devices,
                        const Options &options = Options{}) {
  Processes processes(size);
  Random random(31);
  const Factors factors = random_factors(random, cells.dims, 5, type);
  std::vector<Bounded> expected;
  for (int mode = 0; mode < cells.order(); ++mode)
    expected.push_back(oracle_mttkrp(cells, factors, mode));
  processes.run(devices, [&](int rank, td_context *context) {
    const Tensor x = make_dense_block(context, cells, rank, size, how, type, options);
    EXPECT_EQ(tensor_nnz(x), cells.nnz());
    for (int mode = 0; mode < cells.order(); ++mode) {
      SCOPED_TRACE("mode " + std::to_string(mode) + ", process " + std::to_string(rank));
      EXPECT_TRUE(
          within_bound(mttkrp(context, x, factors, mode, type), expected[static_cast<std::size_t>(mode)], type));
    }
  });
  EXPECT_EQ(processes.trouble(), "");
}

TEST(DenseOnProcesses, MttkrpIsTheDefinition) {
  Random random(11);
  const std::vector<int64_t> dims{6, 9, 4, 5};
  for (const int order : {2, 3, 4})
    for (const td_type type : {TD_F32, TD_F64}) {
      const Entries cells = random_cells(random, {dims.begin(), dims.begin() + order}, type);
      for (const int size : {1, 2, 3, 4, 7})
        for (const Blocks how : {Blocks::slabs, Blocks::one, Blocks::boxes}) {
          SCOPED_TRACE("order " + std::to_string(order) + " on " + std::to_string(size));
          expect_right_dense(cells, size, type, how, how == Blocks::one ? "reference" : process_devices());
        }
    }
}

// Partial products of a process's box; f64 sums of f32; more processes than elements.
TEST(DenseOnProcesses, HoweverItIsWorkedOn) {
  Random random(12);
  const Entries cells = random_cells(random, {4, 5, 3, 6}, TD_F64);
  for (const char *groups : {"none", "0,1|2,3", "0,1,2|3"})
    expect_right_dense(cells, 3, TD_F64, Blocks::boxes, process_devices(), Options{{"groups", groups}});
  expect_right_dense(random_cells(random, {4, 5, 3}, TD_F32), 4, TD_F32, Blocks::slabs, process_devices(),
                     Options{{"accumulate", "f64"}});
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{1, 1, 1}, {2, 1, 2}, {1, 7, 1}, {2, 3, 1}})
    for (const int size : {2, 4, 7}) {
      expect_right_dense(random_cells(random, dims, TD_F64), size, TD_F64, Blocks::boxes, process_devices());
      expect_right_dense(random_cells(random, dims, TD_F64), size, TD_F64, Blocks::one, process_devices());
    }
}

// A tensor whose index needs more than 128 bits in numbers of rows stays in coordinates.
TEST(OnProcessesShapes, CoordinatesBeyondAKey) {
  Random random(9);
  const Entries all = random_entries(random, std::vector<int64_t>(30, 20), 60, TD_F64);
  expect_right({2, "coo", TD_F64, 30}, all, Bring::scattered, process_devices());
}

// Workers of a process have equally many entries, whatever the rows are like.
TEST(OnProcessesShapes, EntriesAreSpreadEvenly) {
  Random random(10);
  Entries all({50, 4000, 30000});
  for (int64_t k = 0; k < 40000; ++k)
    all.add({k % 3 == 0 ? 7 : random.below(50), k % 2 == 0 ? 11 : random.below(4000), random.below(30000)}, 1);
  for (const int size : {2, 3, 4, 7}) {
    Processes processes(size);
    std::vector<int64_t> here(static_cast<std::size_t>(size)), nnz(here);
    processes.run(process_devices(), [&](int rank, td_context *context) {
      const Tensor x = make_sparse(context, brought(all, rank, size, Bring::one));
      here[static_cast<std::size_t>(rank)] = get<int64_t>(td_tensor_get_i64, x, "stored_here");
      nnz[static_cast<std::size_t>(rank)] = tensor_nnz(x);
    });
    int64_t sum = 0;
    for (const int64_t &some : here) {
      sum += some;
      const auto rank = static_cast<int>(&some - here.data());
      const int workers = workers_of(process_devices(), rank + 1) - workers_of(process_devices(), rank);
      const double even = static_cast<double>(nnz.front()) * workers / workers_of(process_devices(), size);
      EXPECT_NEAR(static_cast<double>(some), even, 0.05 * even);
    }
    EXPECT_EQ(sum, nnz.front());
  }
}

// A caller's arrays may be on the first GPU of each process: the others get what they need of them.
TEST(OnProcessesShapes, ArraysOnTheFirstGpu) {
  const int size = 3;
  Random random(12);
  const Entries all = random_entries(random, {9, 8, 7}, 150, TD_F64);
  const Factors factors = random_factors(random, all.dims, 4, TD_F64);
  const Bounded expected = oracle_mttkrp(all, factors, 1);
  bool there = true;
  Processes processes(size);
  processes.run(process_devices(), [&](int rank, td_context *context) {
    const std::string devices = place_of(devices_of_process(process_devices(), rank));
    const std::size_t colon = devices.find(':');
    if (!devices.starts_with("cuda:") || std::isdigit(static_cast<unsigned char>(devices[colon + 1])) == 0) {
      there = false; // which GPU it is has to be known
      return;
    }
    const int ordinal = devices[colon + 1] - '0';
    const Tensor x = make_sparse(context, brought(all, rank, size, Bring::ranges));
    std::vector<std::shared_ptr<void>> arrays;
    std::vector<const void *> on_gpu;
    std::vector<int64_t> ld;
    for (std::size_t m = 0; m < all.dims.size(); ++m) {
      const std::vector<double> &a = factors.a[m];
      arrays.push_back(on_device(ordinal, a.data(), a.size() * sizeof(double)));
      on_gpu.push_back(arrays.back().get());
      ld.push_back(all.dims[m]);
    }
    std::vector<double> out(8 * 4);
    const auto result = on_device(ordinal, out.data(), out.size() * sizeof(double));
    check(td_mttkrp(context, x, 1, 4, on_gpu.data(), ld.data(), result.get(), 8, TD_DEVICE));
    const std::vector<std::byte> bytes = from_device(ordinal, result.get(), out.size() * sizeof(double));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    EXPECT_TRUE(within_bound(out, expected, TD_F64));
  });
  EXPECT_EQ(processes.trouble(), "");
  if (!there)
    GTEST_SKIP() << "no GPUs that TD_TEST_DEVICES names";
}

} // namespace
