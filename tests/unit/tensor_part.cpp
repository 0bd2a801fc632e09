// What each of several workers holds whose devices have memory of their own, resident and streamed, and what comes of
// them together.
#include "tensor/part.hpp"

#include <thread>

#include "plan/needs.hpp"
#include "solvers/worker.hpp"
#include "tensor/planned.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

constexpr i64 much = i64{1} << 30;

/// Even ones, of which each worker's are a P-th but for a percent or two.
CallerEntries<i64, double> even_entries() { return random_entries<i64, double>({200, 300, 250}, 30000, 0, 4); }

TensorPointer make(CallerEntries<i64, double> entries,
                   std::initializer_list<std::pair<const char *, const char *>> given,
                   kernels::Backend *builder = nullptr) {
  Options options;
  options.set_text("format", "sorted");
  options.set_text("groups", "none");
  for (const auto &[name, value] : given)
    options.set_text(name, value);
  return tensor::Tensor::make_sparse(entries.view(), options, 1, "", tensor::Target::gpu, builder);
}

std::vector<std::shared_ptr<SmallDevice>> small_devices(int count, i64 bytes) {
  std::vector<std::shared_ptr<SmallDevice>> devices;
  for (int k = 0; k < count; ++k)
    devices.push_back(std::make_shared<SmallDevice>(bytes));
  return devices;
}

/// Rows of MTTKRP's result, each as its owner has it.
TestMatrix<double> product(const tensor::Tensor &x, int mode, const Backends &backends, bool in_order) {
  const std::vector<i64> dims(x.dims().begin(), x.dims().end());
  std::vector<TestMatrix<double>> factors = random_factors<double>(dims, 3, 0, 5);
  const auto f = views(factors);
  const auto workers = static_cast<int>(backends.size());
  const tensor::Sharding sharding(x, workers, in_order);
  TestMatrix<double> result(dims[static_cast<std::size_t>(mode)], 3, 0);
  auto communicators = make_thread_communicators(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      const auto w = static_cast<std::size_t>(worker);
      const solvers::Worker own(x, sharding, *backends[w], *communicators[w]);
      TestMatrix<double> out(result.rows(), 3, 0);
      own.mttkrp(mode, f, out.view());
      for (const Range &rows : own.own(mode))
        for (i64 i = rows.begin; i < rows.end; ++i)
          for (i64 r = 0; r < 3; ++r)
            result.at(i, r) = out.at(i, r);
    });
  for (std::thread &thread : threads)
    thread.join();
  return result;
}

Backends backends_of(const std::vector<std::shared_ptr<SmallDevice>> &devices) {
  return {devices.begin(), devices.end()};
}

// Workers with parts, whole or streamed, give the bits of workers that share the host's memory.
TEST(Part, GivesWhatTheWholeFormGives) {
  for (const char *format : {"sorted", "blco", "coo"})
    for (const char *tiles : {"none", "24"})
      for (const char *sharding : {"auto", "rows", "entries"}) {
        if (std::string_view(format) != "sorted" && std::string_view(tiles) != "none")
          continue;
        for (const int workers : light() ? std::vector{3} : std::vector{2, 3, 60})
          for (const bool in_order : {false, true}) {
            const auto x = make(heavy_entries(), {{"format", format}, {"tiles", tiles}, {"sharding", sharding}});
            SCOPED_TRACE(testing::Message() << format << ", tiles " << tiles << ", sharding " << sharding << ", "
                                            << workers << " workers, in order " << in_order);
            std::vector<TestMatrix<double>> expected;
            const auto devices = small_devices(workers, much);
            for (int mode = 0; mode < 3; ++mode) {
              expected.push_back(product(*x, mode, reference_backends(workers), in_order));
              EXPECT_TRUE(product(*x, mode, backends_of(devices), in_order).same_bits(expected.back())) << mode;
            }
            if (workers > 3)
              continue;
            for (const auto &device : devices) { // room for a quarter of its entries
              const i64 kept = x->resident_bytes_on(*device), lists = device->kept() - kept;
              device->run_short(much);
              device->set_limit(lists + kept / 4);
            }
            for (int mode = 0; mode < 3; ++mode) {
              const auto streamed = product(*x, mode, backends_of(devices), in_order);
              i64 fetched = 0;
              for (const auto &device : devices)
                fetched += device->take_fetched();
              EXPECT_GT(fetched, 0) << mode;
              for (i64 i = 0; i < streamed.rows(); ++i)
                for (i64 r = 0; r < 3; ++r) // 2400 terms of at most 9, added in another order
                  EXPECT_NEAR(streamed.at(i, r), expected[static_cast<std::size_t>(mode)].at(i, r),
                              2400.0 * 2400 * 9e-16);
              if (in_order) {
                EXPECT_TRUE(streamed.same_bits(expected[static_cast<std::size_t>(mode)])) << mode;
              }
            }
          }
      }
}

// Computed some rows at a time a load's entries are each read once, also those of a row that several workers sum.
TEST(Part, ALoadIsCutBeforeAnyRows) {
  const auto x = make(heavy_entries(), {{"tiles", "none"}});
  const std::vector<i64> dims(x->dims().begin(), x->dims().end());
  std::vector<TestMatrix<double>> factors = random_factors<double>(dims, 3, 0, 5);
  const auto f = views(factors);
  for (const int workers : {2, 3})
    for (int mode = 0; mode < 3; ++mode) {
      const i64 rows = dims[static_cast<std::size_t>(mode)];
      const tensor::Sharding sharding(*x, workers, false);
      const auto devices = small_devices(workers, much);
      const auto communicators = make_thread_communicators(workers);
      i64 entries_of_all = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const auto w = static_cast<std::size_t>(worker);
        const tensor::Part part(*x, sharding, worker, *devices[w], *communicators[w]);
        ASSERT_TRUE(part.cuts_rows(mode));
        TestMatrix<double> whole(rows, 3, 0), cut(rows, 3, 0);
        kernels::MttkrpArgs args{mode, f, whole.view(), {0, rows}, {0, x->stored_entries()}};
        EXPECT_FALSE(part.mttkrp(mode, args));
        args.out = cut.view();
        i64 entries = 0;
        for (const auto &some : part.cut_load(mode, std::vector<i64>{3, 3, 17, 18, rows / 2, rows})) {
          EXPECT_EQ(some.entries.begin, entries);
          entries = some.entries.end;
          part.mttkrp_part(mode, args, some);
        }
        entries_of_all += entries;
        EXPECT_TRUE(cut.same_bits(whole)) << "mode " << mode << ", worker " << worker << " of " << workers;
      }
      EXPECT_EQ(entries_of_all, x->stored_entries());
    }
  const auto tiled = make(heavy_entries(), {{"tiles", "24"}});
  const auto device = std::make_shared<SmallDevice>(much);
  const auto alone = make_self_communicator();
  EXPECT_FALSE(tensor::Part(*tiled, tensor::Sharding(*tiled, 2, false), 0, *device, *alone).cuts_rows(2));
  EXPECT_FALSE(tensor::Part(*x, tensor::Sharding(*x, 1, false), 0, *device, *alone).cuts_rows(0)); // nobody to send to
}

// Each device has its worker's part when the tensor is there: nothing but lists of tiles goes to it, and entries come
// to the host only where somebody else needs them.
TEST(Part, IsMadeWhereItIsToBe) {
  for (const char *tiles : {"none", "24"})
    for (const char *sharding : {"auto", "rows", "entries"})
      for (const int workers : {2, 3}) {
        SCOPED_TRACE(testing::Message() << "tiles " << tiles << ", sharding " << sharding << ", " << workers);
        auto entries = heavy_entries();
        const auto devices = small_devices(workers, much);
        tensor::Builders builders;
        for (const auto &device : devices)
          builders.push_back(device.get());
        Options options;
        for (const auto &[name, value] : {std::pair("format", "sorted"), {"tiles", tiles}, {"sharding", sharding}})
          options.set_text(name, value);
        const auto x =
            tensor::Tensor::make_sparse(formats::Given(entries.view()), options, 1, "", tensor::Target::gpu, builders);
        const auto host = make(heavy_entries(), {{"tiles", tiles}, {"sharding", sharding}});
        EXPECT_EQ(x->bytes(), host->bytes());
        i64 uploaded = 0, there = 0;
        for (const auto &device : devices) {
          uploaded += device->take_uploaded();
          there += x->resident_bytes_on(*device);
        }
        i64 entries_of_all = 0, lists_of_tiles = 0;
        for (int mode = 0; mode < 3; ++mode) {
          const tensor::FormBytes bytes = tensor::bytes_of(host->view(mode));
          entries_of_all += bytes.entries;
          lists_of_tiles += bytes.lists - 8 * (2 * std::get<kernels::SortedView>(host->view(mode)).rows + 1);
        }
        EXPECT_EQ(there, entries_of_all);
        EXPECT_EQ(uploaded, workers * lists_of_tiles);
        for (int mode = 0; mode < 3; ++mode)
          EXPECT_TRUE(product(*x, mode, backends_of(devices), false)
                          .same_bits(product(*host, mode, reference_backends(workers), false)))
              << mode;
        for (const auto &device : devices) {
          EXPECT_EQ(device->take_uploaded(), 0);
          EXPECT_EQ(device->own()->downloaded, 0);
        }

        // One device alone gets all of it, by way of the host; then the others have nothing any more that is not there.
        for (int mode = 0; mode < 3; ++mode) {
          const auto a = tensor::FormView(x->view(mode)).arrays(), b = tensor::FormView(host->view(mode)).arrays();
          ASSERT_EQ(a.size(), b.size());
          for (std::size_t k = 0; k < a.size(); ++k) {
            ASSERT_EQ(a[k].bytes(), b[k].bytes());
            EXPECT_EQ(std::memcmp(a[k].data, b[k].data, static_cast<std::size_t>(a[k].bytes())), 0) << mode << k;
          }
        }
        devices.front()->run_short(much);
        EXPECT_EQ(x->resident_bytes_on(*devices.front()), 0);
        for (int mode = 0; mode < 3; ++mode)
          EXPECT_TRUE(product(*x, mode, backends_of(devices), true)
                          .same_bits(product(*host, mode, reference_backends(workers), true)))
              << mode;
      }
}

// Where one of the devices has no room to build, one or the host does; where it has none to keep its part, that comes
// to the host.
TEST(Part, IsMadeAsFarAsThereIsRoom) {
  const auto host = make(heavy_entries(), {});
  for (const auto &[room, building] : {std::pair(i64{60000}, i64{70000}), {i64{60000}, i64{0}}, {much, i64{0}}}) {
    SCOPED_TRACE(testing::Message() << room << ", building takes " << building);
    auto entries = heavy_entries();
    const auto devices = small_devices(3, much);
    devices[1]->set_limit(room);
    devices[1]->set_building(building);
    tensor::Builders builders;
    for (const auto &device : devices)
      builders.push_back(device.get());
    Options options;
    options.set_text("format", "sorted");
    const auto x =
        tensor::Tensor::make_sparse(formats::Given(entries.view()), options, 1, "", tensor::Target::gpu, builders);
    EXPECT_EQ(x->resident_bytes_on(*devices[2]) > 0, building == 0) << "the first builds where one cannot";
    EXPECT_LE(devices[1]->kept(), room);
    for (int mode = 0; mode < 3; ++mode)
      EXPECT_TRUE(
          product(*x, mode, backends_of(devices), true).same_bits(product(*host, mode, reference_backends(3), true)))
          << mode;
  }
}

/// It has no memory for one of the allocations that are asked of it.
class Failing : public SmallDevice {
public:
  explicit Failing(int allocation) : SmallDevice(much), left_(allocation) {}
  void *allocate(i64 bytes, const char *what) override {
    if (left_-- == 0)
      throw_error(Status::device_memory, "out of device memory: {} bytes for {}", bytes, what);
    return SmallDevice::allocate(bytes, what);
  }
  bool has_failed() const { return left_ < 0; }

private:
  int left_;
};

// Wherever one of them fails while they build together, nobody waits for it, its error is the caller's, nothing stays
// on any device, and the next tensor can be made.
TEST(Part, OneThatFailsEndsWhatAllMake) {
  int failures = 0;
  for (int allocation = 0;; ++allocation) {
    SCOPED_TRACE(allocation);
    auto entries = heavy_entries();
    const auto devices = small_devices(2, much);
    Failing failing(allocation);
    const tensor::Builders builders{devices[0].get(), &failing, devices[1].get()};
    Options options;
    options.set_text("format", "sorted");
    const auto build = [&] {
      return tensor::Tensor::make_sparse(formats::Given(entries.view()), options, 1, "", tensor::Target::gpu, builders);
    };
    TensorPointer x;
    try {
      x = build();
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::device_memory) << error.what();
      EXPECT_EQ(devices[0]->kept() + failing.kept() + devices[1]->kept(), 0);
      ++failures;
      x = build();
    }
    EXPECT_GT(x->resident_bytes_on(failing), 0);
    if (!failing.has_failed())
      break;
  }
  EXPECT_GT(failures, 10);
}

/// What each of P devices has after a run of CP-ALS, with the model that it gave.
std::vector<double> fitted(const tensor::Tensor &x, const Backends &backends, bool in_order = false,
                           const char *exact_residual = "never", const char *iterations = "3") {
  auto request = request_for(x, 4);
  request.backends = backends;
  set(request, {{"max_iters", iterations},
                {"tol", "0"},
                {"deterministic", in_order ? "1" : "0"},
                {"exact_residual", exact_residual}});
  auto result = solvers::cpals(request);
  std::vector<double> numbers = result.report.fit;
  for (int m = 0; m < result.model.order(); ++m)
    for (i64 i = 0; i < result.model.factor(m).rows; ++i)
      numbers.insert(numbers.end(), result.model.factor(m).row<double>(i), result.model.factor(m).row<double>(i) + 4);
  return numbers;
}

void expect_near(const std::vector<double> &a, const std::vector<double> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    ASSERT_NEAR(a[k], b[k], 1e-9) << k; // roundings of sums of 30000 terms, through the solves of three iterations
}

i64 entry_bytes(const tensor::Tensor &x, bool sorted) {
  i64 bytes = 0;
  for (int m = 0; m < (sorted ? 3 : 1); ++m)
    bytes += tensor::bytes_of(x.view(m, tensor::OnHost::sizes)).entries;
  return bytes;
}

// Adding a device adds room: of the entries each has a P-th.
TEST(Part, EachDeviceHasAPth) {
  struct Case {
    const char *format, *tiles;
    bool heavy;
  };
  for (const Case &c : {Case{"sorted", "none", false}, Case{"sorted", "none", true}, Case{"sorted", "64", false},
                        Case{"sorted", "64", true}, Case{"blco", "none", false}, Case{"coo", "none", true}}) {
    const auto entries = c.heavy ? heavy_entries() : even_entries();
    const auto x = make(entries, {{"format", c.format}, {"tiles", c.tiles}});
    const i64 all = entry_bytes(*x, std::string_view(c.format) == "sorted");
    const auto one = small_devices(1, much);
    const std::vector<double> expected = fitted(*x, backends_of(one));
    const i64 all_with_lists = one[0]->kept();
    EXPECT_EQ(x->resident_bytes_on(*one[0]), all);
    std::vector<std::shared_ptr<SmallDevice>> earlier; // a tensor knows devices by where they are
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << c.format << ", tiles " << c.tiles << ", heavy " << c.heavy << ", " << workers
                                      << " workers");
      const auto devices = small_devices(workers, much);
      expect_near(fitted(*x, backends_of(devices)), expected);
      i64 sum = 0;
      for (const auto &device : devices) {
        const i64 kept = x->resident_bytes_on(*device);
        EXPECT_LE(static_cast<double>(kept), static_cast<double>(all) / workers * (1 + plan::most_imbalance));
        // Each device lists all tiles, and a list of blocks or rows has an end.
        const double lists = static_cast<double>(all_with_lists - all);
        EXPECT_LE(static_cast<double>(device->kept() - kept),
                  100 + lists * (std::string_view(c.tiles) == "none" ? 0.7 : 0.9));
        sum += kept;
        earlier.push_back(device);
      }
      EXPECT_EQ(sum, all);
    }
  }
}

// So it is where each needs all entries for its rows, which then pass from device to device; in order to the same bits.
TEST(Part, EachDeviceHasAPthOfWhatAllNeed) {
  struct Case {
    const char *format, *sharding;
    bool in_order;
  };
  for (const Case &c : {Case{"blco", "auto", true}, Case{"coo", "auto", true}, Case{"blco", "rows", false},
                        Case{"coo", "rows", false}, Case{"blco", "rows", true}}) {
    const auto x = make(heavy_entries(), {{"format", c.format}, {"sharding", c.sharding}});
    const i64 all = entry_bytes(*x, false);
    const auto one = small_devices(1, much);
    const std::vector<double> expected = fitted(*x, backends_of(one), c.in_order, "always");
    const i64 lists = one[0]->kept() - all;
    std::vector<std::shared_ptr<SmallDevice>> earlier; // a tensor knows devices by where they are
    for (const int workers : {2, 3, 4, 7}) {
      SCOPED_TRACE(testing::Message() << c.format << ", sharding " << c.sharding << ", in order " << c.in_order << ", "
                                      << workers << " workers");
      const auto devices = small_devices(workers, much);
      const std::vector<double> got = fitted(*x, backends_of(devices), c.in_order, "always");
      expect_near(got, expected);
      if (c.in_order) {
        EXPECT_EQ(got, expected);
      }
      i64 sum = 0;
      for (const auto &device : devices) {
        const i64 kept = x->resident_bytes_on(*device);
        EXPECT_LE(static_cast<double>(kept), static_cast<double>(all) / workers * (1 + plan::most_imbalance));
        EXPECT_LE(device->kept() - kept, lists + 5 * 256); // a copy begins at a border of 256 bytes
        sum += kept;
        earlier.push_back(device);
      }
      EXPECT_EQ(sum, all);
    }
  }
}

// What all need passes, too, where it has no room, from the host: to the device that would hold it, and on from there.
TEST(Part, WhatAllNeedFitsDevicesThatAreEachTooSmall) {
  for (const char *format : {"blco", "coo"}) {
    SCOPED_TRACE(format);
    const auto x = make(even_entries(), {{"format", format}});
    const auto wide = small_devices(1, much);
    const std::vector<double> expected = fitted(*x, backends_of(wide), true);
    const i64 all = entry_bytes(*x, false), room = wide[0]->kept() * 2 / 3;
    const auto two = small_devices(2, room);
    EXPECT_EQ(fitted(*x, backends_of(two), true), expected);
    for (const auto &device : two)
      EXPECT_EQ(device->take_fetched(), 0);
    const auto tight = small_devices(2, room / 2);
    EXPECT_EQ(fitted(*x, backends_of(tight), true), expected);
    for (const auto &device : tight) {
      const i64 fetched = device->take_fetched(); // by three modes, three times
      EXPECT_GT(fetched, 0);
      EXPECT_LE(fetched, 9 * (all / 2 + 5 * 256));
      EXPECT_LE(device->kept(), room / 2);
      device->run_short(much); // and when all is asked back
    }
    EXPECT_EQ(fitted(*x, backends_of(tight), true), expected);
    EXPECT_EQ(x->resident_bytes_on(*tight[0]), 0);
  }
}

TEST(Part, FitsDevicesThatAreEachTooSmall) {
  for (const char *tiles : {"none", "64"}) {
    SCOPED_TRACE(tiles);
    const auto x = make(even_entries(), {{"tiles", tiles}});
    const auto wide = small_devices(1, much);
    const std::vector<double> expected = fitted(*x, backends_of(wide));
    const i64 room = wide[0]->kept() * 2 / 3;

    const auto one = small_devices(1, room);
    expect_near(fitted(*x, backends_of(one)), expected);
    EXPECT_GT(one[0]->take_fetched(), 0);
    const auto two = small_devices(2, room);
    expect_near(fitted(*x, backends_of(two)), expected);
    for (const auto &device : two)
      EXPECT_EQ(device->take_fetched(), 0);
    const auto tight = small_devices(2, room / 2);
    expect_near(fitted(*x, backends_of(tight)), expected);
    for (const auto &device : tight) {
      EXPECT_GT(device->take_fetched(), 0);
      EXPECT_LE(device->kept(), room / 2);
      device->run_short(much); // and when all is asked back
    }
    expect_near(fitted(*x, backends_of(tight)), expected);
    EXPECT_EQ(x->resident_bytes_on(*tight[0]), 0);
  }
}

// In order, no number depends on who has what, residuals included.
TEST(Part, InOrderTheBitsAreThoseOfOneDevice) {
  for (const char *format : {"sorted", "blco"})
    for (const char *groups : {"none", "0,1|2"}) {
      if (std::string_view(groups) != "none" && std::string_view(format) != "sorted")
        continue;
      SCOPED_TRACE(testing::Message() << format << ", groups " << groups);
      const auto fit = [&](int workers, i64 room) {
        const auto x = make(heavy_entries(), {{"format", format}, {"groups", groups}});
        return fitted(*x, backends_of(small_devices(workers, room)), true, "always");
      };
      const std::vector<double> expected = fit(1, much);
      for (const int workers : {2, 3})
        for (const i64 room : {much, i64{90000}})
          EXPECT_EQ(fit(workers, room), expected);
    }
}

TEST(Part, MayHaveNothing) {
  for (const char *format : {"sorted", "blco", "coo"})
    for (const char *tiles : {"none", "24"}) {
      if (std::string_view(format) != "sorted" && std::string_view(tiles) != "none")
        continue;
      SCOPED_TRACE(testing::Message() << format << ", tiles " << tiles);
      const auto none = make({{4, 9, 5}, 0, {}, {}, {}}, {{"format", format}, {"tiles", tiles}});
      EXPECT_EQ(fitted(*none, backends_of(small_devices(2, much)), true, "always"),
                fitted(*none, reference_backends(1), true, "always"));
      auto entries = random_entries<i64, double>({4, 9, 5}, 30, 0, 8);
      const auto x = make(entries, {{"format", format}, {"tiles", tiles}, {"sharding", "auto"}});
      const auto one = small_devices(1, much), many = small_devices(40, much);
      const auto expected = fitted(*x, backends_of(one), false, "always");
      expect_near(fitted(*x, backends_of(many), false, "always"), expected);
      EXPECT_EQ(fitted(*x, backends_of(many), true, "always"), fitted(*x, backends_of(one), true, "always"));
    }
}

TEST(Part, SharesPartialProducts) {
  const auto fit = [](int workers, i64 room) {
    const auto x = make(heavy_entries(), {{"groups", "0,1|2"}});
    return fitted(*x, backends_of(small_devices(workers, room)), false, "always");
  };
  const std::vector<double> expected = fit(1, much);
  for (const int workers : {2, 3})
    for (const i64 room : {much, i64{90000}})
      expect_near(fit(workers, room), expected);
}

// What is compared for a residual is what a worker has; in order a range of entries, beside the parts.
TEST(Part, ResidualsTakeNoMoreOrAPth) {
  for (const bool in_order : {false, true}) {
    SCOPED_TRACE(in_order);
    const auto x = make(even_entries(), {});
    const i64 all = entry_bytes(*x, true);
    const i64 more = in_order ? tensor::bytes_of(x->view(0, tensor::OnHost::sizes)).entries : 0;
    const auto devices = small_devices(2, much), one = small_devices(1, much);
    expect_near(fitted(*x, backends_of(devices), in_order, "always"), fitted(*x, backends_of(one), in_order, "always"));
    for (const auto &device : devices)
      EXPECT_LE(static_cast<double>(x->resident_bytes_on(*device)),
                0.5 * (1 + plan::most_imbalance) * static_cast<double>(all + more));
  }
}

// Whole copies that one device has built, or has for work of its own, give way to its part.
TEST(Part, TakesThePlaceOfWholeForms) {
  const auto entries = even_entries();
  for (const char *format : {"sorted", "blco"})
    for (const bool tight : {false, true}) {
      SCOPED_TRACE(testing::Message() << format << ", tight " << tight);
      const auto devices = small_devices(2, much);
      const auto x = make(entries, {{"format", format}}, devices[0].get());
      const i64 all = entry_bytes(*x, std::string_view(format) == "sorted");
      EXPECT_EQ(x->resident_bytes_on(*devices[0]), all);
      if (tight)
        for (const auto &device : devices)
          device->set_limit(devices[0]->kept());
      const std::vector<double> together = fitted(*x, backends_of(devices));
      for (const auto &device : devices) {
        EXPECT_LE(static_cast<double>(x->resident_bytes_on(*device)),
                  0.5 * (1 + plan::most_imbalance) * static_cast<double>(all));
        EXPECT_EQ(device->take_fetched(), 0);
      }
      // The other way round, one device alone needs all of them again.
      const std::vector<double> alone = fitted(*x, {devices[0]});
      expect_near(alone, together);
      EXPECT_GE(x->resident_bytes_on(*devices[0]), all);
      EXPECT_EQ(devices[0]->take_fetched(), 0);
      devices[0]->run_short(much);
      expect_near(fitted(*x, backends_of(devices)), together);
    }
}

TensorPointer make_dense(const std::vector<i64> &dims, const char *groups, const char *sharding) {
  std::vector<double> values;
  for (i64 k = 0; k < checked_product(dims).value(); ++k)
    values.push_back(static_cast<double>(k * k % 101) / 50 - 1);
  Options options;
  options.set_text("groups", groups);
  options.set_text("sharding", sharding);
  return tensor::Tensor::make_dense({dims, {}, ValueType::f64, values.data()}, options, 1, "", tensor::Target::gpu);
}

// A device has slabs of a dense tensor, here of the last mode. Where a row's sum may not be split others' pass by.
TEST(Part, HasSlabsOfADenseTensor) {
  const std::vector<i64> dims{6, 5, 9, 12};
  for (const char *groups : light() ? std::vector{"0,1|2,3", "0|1|2,3", "multi-sweep"}
                                    : std::vector{"none", "0,1|2,3", "0|1,2|3", "0,1,2|3", "0|1|2,3", "multi-sweep"})
    for (const int workers : light() ? std::vector{3, 13} : std::vector{2, 3, 5, 12, 13})
      for (const char *sharding : {"auto", "rows"})
        for (const bool in_order : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << groups << ", " << workers << " workers, sharding " << sharding << ", in order " << in_order);
          const auto x = make_dense(dims, groups, sharding);
          const auto one = small_devices(1, much), devices = small_devices(workers, much);
          const auto expected = fitted(*x, backends_of(one), in_order, "always");
          const auto got = fitted(*x, backends_of(devices), in_order, "always");
          expect_near(got, expected);
          if (in_order) {
            EXPECT_EQ(got, expected);
          }
          const i64 slab = 6 * 5 * 9 * 8;
          for (const auto &device : devices)
            EXPECT_EQ(x->resident_bytes_on(*device), part_of({0, 12}, &device - devices.data(), workers).size() * slab);
        }
}

// Spans of more slabs than a device has, and of a partial product that begin in the middle of one.
TEST(Part, GathersSpansOfADenseTensor) {
  const std::vector<i64> dims{90, 8, 60, 25};
  ASSERT_GT(checked_product(dims).value(), plan::span_entries(checked_product(dims).value()));
  // Products of the last keep the last mode and the first, too.
  for (const char *groups : light() ? std::vector{"multi-sweep"} : std::vector{"none", "0,1|2,3", "multi-sweep"}) {
    const i64 all = 8 * checked_product(dims).value();
    const auto fit = [&](const tensor::Tensor &x, const auto &devices) {
      return fitted(x, backends_of(devices), true, "never", "1");
    };
    const auto expected = fit(*make_dense(dims, groups, "auto"), small_devices(1, much));
    for (const auto &[workers, tight] : {std::pair{2, false}, std::pair{2, true}, std::pair{3, true}}) {
      SCOPED_TRACE(testing::Message() << groups << ", " << workers << " workers, tight " << tight);
      const auto x = make_dense(dims, groups, "auto");
      const auto devices = small_devices(workers, tight ? all / workers * 3 / 4 : much);
      EXPECT_EQ(fit(*x, devices), expected);
      for (const auto &device : devices) {
        EXPECT_EQ(device->take_fetched() > 0, tight);
        EXPECT_LE(x->resident_bytes_on(*device), (25 + workers - 1) / workers * (all / 25));
      }
      if (tight)
        continue;
      devices[1]->run_short(all / 10); // what it has goes, and there is no room besides a span
      EXPECT_EQ(x->resident_bytes_on(*devices[1]), 0);
      EXPECT_EQ(fit(*x, devices), expected);
      EXPECT_GT(devices[1]->take_fetched(), 0);
    }
  }
}

TEST(Part, SlabsThatDoNotFitAreStreamed) {
  for (const char *groups : {"none", "0,1|2,3"}) {
    SCOPED_TRACE(groups);
    const auto x = make_dense({6, 5, 9, 12}, groups, "auto");
    const auto wide = small_devices(1, much), one = small_devices(1, 20000), two = small_devices(2, 20000),
               tight = small_devices(2, 9000);
    const auto expected = fitted(*x, backends_of(wide), false, "always");
    for (const auto *devices : {&one, &two, &tight}) {
      expect_near(fitted(*x, backends_of(*devices), false, "always"), expected);
      for (const auto &device : *devices)
        EXPECT_EQ(device->take_fetched() > 0, devices != &two);
    }
  }
}

// What a plan says of all devices beforehand is what comes, resident and streamed.
TEST(Part, APlanTellsWhatDevicesHold) {
  struct Case {
    const char *format, *tiles;
    bool in_order; // a device has a span beside its part, which has all entries of a form here
  };
  for (const Case &c : {Case{"sorted", "none", false}, Case{"sorted", "64", false}, Case{"sorted", "none", true},
                        Case{"sorted", "64", true}, Case{"blco", "none", false}, Case{"blco", "none", true},
                        Case{"coo", "none", false}, Case{"coo", "none", true}})
    for (const int workers : light() ? std::vector{3} : std::vector{2, 3}) {
      SCOPED_TRACE(testing::Message() << c.format << ", tiles " << c.tiles << ", in order " << c.in_order << ", "
                                      << workers << " workers");
      const bool sorted = std::string_view(c.format) == "sorted";
      const auto x = make(even_entries(), {{"format", c.format}, {"tiles", c.tiles}});
      const auto all = static_cast<double>(entry_bytes(*x, sorted));
      const double span = c.in_order ? all / (sorted ? 3 : 1) : 0; // of one of three copies
      plan::PlanRequest request;
      request.rank = 4;
      request.options.set("deterministic", i64{c.in_order});
      const auto devices = small_devices(workers, much);
      request.backends = backends_of(devices);
      const plan::Plan wide = tensor::plan_of(*x, request);
      fitted(*x, request.backends, c.in_order);
      i64 kept = 0;
      for (const auto &device : devices)
        kept += device->kept();
      EXPECT_EQ(wide.device.streamed, 0);
      if (span > 0) { // rows of the three factors, which others own, and in each mode the entries that others hold
        EXPECT_NEAR(static_cast<double>(wide.exchanged), (3 * span + (200 + 300 + 250) * 4 * 8) * (1 - 1.0 / workers),
                    1);
      }
      // Tiles are listed by each worker; rows without a number and heavy ones stay on the host.
      EXPECT_NEAR((static_cast<double>(kept) + workers * span) / static_cast<double>(wide.device.tensor), 1, 0.1);

      const auto tight = small_devices(workers, kept / workers * 3 / 4);
      request.backends = backends_of(tight);
      const plan::Plan some = tensor::plan_of(*x, request);
      fitted(*x, request.backends, c.in_order);
      double entries = 0;
      for (const auto &device : tight)
        entries += static_cast<double>(x->resident_bytes_on(*device));
      EXPECT_GT(some.device.streamed, 0);
      // As many parts of copies stay as are whole, up to a twelfth of the room each for every copy.
      EXPECT_NEAR(static_cast<double>(some.device.streamed), all - entries, 0.25 * static_cast<double>(kept) + 6000);
      EXPECT_LE(static_cast<double>(some.device.tensor),
                static_cast<double>(kept * 3 / 4 + workers) + 3 * workers * span);
    }
}

TEST(Part, APlanTellsWhatSplittingIsFor) {
  const auto x = make(heavy_entries(), {});
  for (const bool in_order : {false, true}) {
    plan::PlanRequest request;
    request.rank = 4;
    request.options.set("deterministic", i64{in_order});
    request.backends = backends_of(small_devices(4, much));
    const plan::Plan plan = tensor::plan_of(*x, request);
    const plan::ModePlan &heavy = plan.modes.front(); // a row has more than 60 % of the entries
    EXPECT_GT(heavy.unsplit, 4 * 0.6 - 1);
    EXPECT_EQ(heavy.split_rows, in_order ? 0 : 1);
    EXPECT_EQ(heavy.imbalance == heavy.unsplit, in_order);
    EXPECT_EQ(plan.describe().find(fmt::format("1 row split, else {:.1f} %", 100 * heavy.unsplit)) == std::string::npos,
              in_order);
  }
}

// Rows longer than a span are added up span by span, in parts as in the whole form.
TEST(Part, SpansInOrderAreThoseOfTheWholeForm) {
  const i64 nnz = (i64{1} << 20) + 60000;
  CallerEntries<i64, double> entries{{3000, 1 << 21, 5}, 0, {}, {}, {}};
  for (i64 k = 0; k < nnz; ++k) // row 1000 of mode 0 and row 4 of mode 2 have more than a span
    entries.add({k % 40 == 0 ? k / 40 % 3000 : 1000, k, k % 40 == 1 ? k / 40 % 4 : 4}, static_cast<double>(k % 7) / 3);
  struct Case {
    const char *format, *tiles;
    std::vector<int> modes;
  };
  for (const Case &c : {Case{"sorted", "none", {0, 2}}, Case{"sorted", "100000", {0, 2}}, Case{"blco", "none", {0}},
                        Case{"coo", "none", {2}}}) {
    const auto x = make(entries, {{"format", c.format}, {"tiles", c.tiles}});
    ASSERT_GT(x->facts().nnz, plan::span_entries(x->facts().nnz));
    for (const int mode : light() ? std::vector{c.modes.back()} : c.modes) {
      SCOPED_TRACE(testing::Message() << c.format << ", tiles " << c.tiles << ", mode " << mode);
      const auto one = small_devices(1, much), two = small_devices(2, much), three = small_devices(3, 8000000);
      const auto expected = product(*x, mode, backends_of(one), true);
      EXPECT_TRUE(product(*x, mode, backends_of(two), true).same_bits(expected));
      EXPECT_TRUE(product(*x, mode, backends_of(three), true).same_bits(expected));
    }
  }
}

} // namespace
} // namespace td::test
