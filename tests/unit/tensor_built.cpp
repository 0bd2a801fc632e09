// A tensor built in a device's memory: it stays there, and comes to the host when somebody needs it there, as far as it
// is needed.
#include <cstring>
#include <random>
#include <thread>

#include "formats_random.hpp"
#include "tensor/export.hpp"
#include "tensor/planned.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

using tensor::OnHost;
using tensor::Tensor;

using Made = std::shared_ptr<const Tensor>;

Options options_of(const char *format) {
  Options options;
  options.set_text("format", format);
  return options;
}

/// Whole numbers so small that sums of products are exact in any order.
template <class T> std::vector<TestMatrix<T>> whole_factors(const std::vector<i64> &dims) {
  std::vector<TestMatrix<T>> factors;
  for (const i64 d : dims) {
    factors.emplace_back(d, 4, 0);
    factors.back().fill([](i64 i, i64 r) { return (3 * i + r) % 4 - 1; });
  }
  return factors;
}

/// 300, 40 and 25 rows, some of them heavy; sorted copies in tiles.
struct Problem {
  CallerEntries<i64, double> entries = random_entries<i64, double>({300, 40, 25}, 4000, 0, 5);
  std::vector<TestMatrix<double>> factors = whole_factors<double>(entries.dims);

  Problem() {
    const auto heavy = random_entries<i64, double>({300, 40, 25}, 1500, 0, 9);
    for (std::size_t k = 0; k < heavy.values.size(); ++k)
      entries.add({17, heavy.columns[1][k], 3}, heavy.values[k]);
  }
  Made make(const char *format, kernels::Backend *builder) {
    Options options = options_of(format);
    if (std::string_view(format) == "sorted")
      options.set_text("tiles", "24");
    return Tensor::make_sparse(entries.view(), options, 1, "", tensor::Target::gpu, builder);
  }
  TestMatrix<double> product(const Tensor &x, int mode, kernels::Backend &backend,
                             kernels::Conflicts conflicts = kernels::Conflicts::automatic) {
    const i64 rows = entries.dims[static_cast<std::size_t>(mode)];
    TestMatrix<double> out(rows, 4, 0);
    const auto f = views(factors);
    x.view(mode, backend).mttkrp(backend, {mode, f, out.view(), {0, rows}, {0, x.facts().nnz}, conflicts});
    return out;
  }
  void expect_same_products(const Tensor &x, kernels::Backend &on, const Tensor &y, kernels::Backend &other) {
    for (int mode = 0; mode < 3; ++mode)
      EXPECT_TRUE(product(x, mode, on).same_bits(product(y, mode, other))) << "mode " << mode;
  }
};

constexpr const char *formats_built[] = {"sorted", "blco"};

i64 copies_of(const char *format) { return std::string_view(format) == "sorted" ? 3 : 1; }

tensor::FormBytes sizes_of(const Tensor &x, const char *format) {
  tensor::FormBytes all;
  for (int mode = 0; mode < copies_of(format); ++mode) {
    const tensor::FormBytes bytes = tensor::bytes_of(x.view(mode, OnHost::sizes));
    all.entries += bytes.entries;
    all.lists += bytes.lists;
  }
  return all;
}

void expect_same_arrays(const Tensor &x, const Tensor &y, const char *format) {
  for (int mode = 0; mode < copies_of(format); ++mode) {
    const auto a = tensor::FormView(x.view(mode)).arrays(), b = tensor::FormView(y.view(mode)).arrays();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) {
      ASSERT_EQ(a[k].bytes(), b[k].bytes());
      EXPECT_EQ(a[k].bytes() == 0 ? 0 : std::memcmp(a[k].data, b[k].data, static_cast<std::size_t>(a[k].bytes())), 0)
          << "mode " << mode << ", array " << k;
    }
  }
}

TEST(PlanBuilt, ComesToTheHostOnlyWhenItIsNeededThere) {
  Problem p;
  const auto reference = kernels::reference::make_backend();
  for (const char *format : formats_built) {
    SCOPED_TRACE(format);
    const Made host = p.make(format, nullptr);
    SmallDevice device(1 << 30);
    SmallMemory &memory = *device.own();
    const Made x = p.make(format, &device);
    const tensor::FormBytes bytes = sizes_of(*x, format);

    // On the device it is at once, and there is nothing to copy again.
    EXPECT_EQ(x->resident_bytes_on(device), bytes.entries);
    device.take_uploaded();
    for (int mode = 0; mode < 3; ++mode) {
      EXPECT_TRUE(p.product(*x, mode, device).same_bits(p.product(*host, mode, *reference)));
      EXPECT_TRUE(p.product(*x, mode, device, kernels::Conflicts::owner)
                      .same_bits(p.product(*host, mode, *reference, kernels::Conflicts::owner)));
    }
    EXPECT_EQ(device.take_uploaded(), 0);

    // Facts, sizes and plans are known without the arrays.
    EXPECT_EQ(x->describe(), host->describe());
    EXPECT_EQ(x->bytes(), host->bytes());
    plan::PlanRequest request;
    request.rank = 4;
    request.backends = {reference};
    const plan::Plan there = tensor::plan_of(*x, request), here = tensor::plan_of(*host, request);
    EXPECT_EQ(there.host.tensor, here.host.tensor);
    EXPECT_EQ(there.host.building, here.host.building);
    EXPECT_EQ(memory.downloaded, 0);

    // Lists of rows come by themselves.
    std::vector<i64> got(300), expected(300);
    if (copies_of(format) == 3) {
      x->slice_counts(0, got.data());
      host->slice_counts(0, expected.data());
      EXPECT_EQ(got, expected);
      EXPECT_GT(memory.downloaded, 0);
      EXPECT_LE(memory.downloaded, tensor::bytes_of(host->view(0)).lists);
      const i64 before = memory.downloaded;
      x->slice_counts(0, got.data());
      EXPECT_EQ(memory.downloaded, before);
    }

    std::optional<formats::Coo> a, b;
    const auto coordinates = x->coordinates(a, 1), coordinates_of_host = host->coordinates(b, 1);
    ASSERT_EQ(coordinates.nnz, coordinates_of_host.nnz);
    for (int m = 0; m < 3; ++m)
      EXPECT_TRUE(
          std::equal(coordinates.indices[m], coordinates.indices[m] + coordinates.nnz, coordinates_of_host.indices[m]));
    expect_same_arrays(*x, *host, format);
    const i64 all = memory.downloaded;
    EXPECT_GE(all, bytes.entries);
    EXPECT_LE(all, bytes.entries + bytes.lists);

    // Once is enough, and the device has kept its copy.
    p.expect_same_products(*x, *reference, *host, *reference);
    EXPECT_TRUE(p.product(*x, 0, device).same_bits(p.product(*host, 0, *reference)));
    EXPECT_EQ(memory.downloaded, all);
    EXPECT_EQ(device.take_uploaded(), 0);
    EXPECT_EQ(x->resident_bytes_on(device), bytes.entries);
  }
}

TEST(PlanBuilt, GoesToTheHostBeforeItIsGivenBack) {
  Problem p;
  for (const char *format : formats_built)
    for (const bool some : {true, false}) {
      SCOPED_TRACE(testing::Message() << format << ", some " << some);
      const Made host = p.make(format, nullptr);
      SmallDevice device(1 << 30);
      const Made x = p.make(format, &device);
      const i64 kept = device.kept();
      std::thread([&] { device.run_short(some ? 1 : 1 << 30); }).join(); // asked for in another context's thread
      EXPECT_LT(device.kept(), kept);
      EXPECT_GT(device.own()->downloaded, 0);
      if (some && copies_of(format) == 3) {
        EXPECT_LT(device.own()->downloaded, kept / 2) << "more than one copy was given back";
      }
      if (!some) {
        EXPECT_EQ(x->resident_bytes_on(device), 0);
      }
      p.expect_same_products(*x, device, *host, device);
      expect_same_arrays(*x, *host, format);
    }
}

TEST(PlanBuilt, OutlivesTheContextThatBuiltIt) {
  Problem p;
  for (const char *format : formats_built) {
    SCOPED_TRACE(format);
    const Made host = p.make(format, nullptr);
    auto device = std::make_unique<SmallDevice>(1 << 30);
    const auto memory = device->own();
    Made x = p.make(format, device.get());
    device.reset();
    EXPECT_GT(memory->kept, 0);
    expect_same_arrays(*x, *host, format);
    x.reset();
    EXPECT_EQ(memory->kept, 0);
  }
}

TEST(PlanBuilt, GoesToAnotherDevice) {
  Problem p;
  for (const char *format : formats_built) {
    SCOPED_TRACE(format);
    const Made host = p.make(format, nullptr);
    SmallDevice first(1 << 30), second(1 << 30);
    const Made x = p.make(format, &first);
    p.expect_same_products(*x, second, *host, second);
    EXPECT_GE(first.own()->downloaded, sizes_of(*x, format).entries);
    EXPECT_LE(first.own()->downloaded, second.take_uploaded() / 2); // which had the host's tensor too
    EXPECT_GT(x->resident_bytes_on(first), 0);
  }
}

// As much as fits stays; what does not is on the host at once, and parts of it pass through as of any other tensor.
TEST(PlanBuilt, StaysWithinTheRoom) {
  Problem p;
  const auto reference = kernels::reference::make_backend();
  for (const char *format : formats_built) {
    const Made host = p.make(format, nullptr);
    const tensor::FormBytes bytes = sizes_of(*host, format);
    for (const double share : {0.0, 0.4, 0.7, 1.0}) {
      SCOPED_TRACE(testing::Message() << format << ", share " << share);
      const i64 limit = bytes.lists + static_cast<i64>(share * static_cast<double>(bytes.entries));
      SmallDevice device(limit);
      const Made x = p.make(format, &device);
      EXPECT_LE(device.kept(), limit);
      EXPECT_EQ(device.own()->downloaded == 0, share == 1);
      for (int mode = 0; mode < 3; ++mode) {
        EXPECT_TRUE(p.product(*x, mode, device).same_bits(p.product(*host, mode, *reference)));
        EXPECT_LE(device.kept(), limit);
      }
      expect_same_arrays(*x, *host, format);
    }
  }
}

// What building takes counts, too: without room for it the host builds, and a copy stays only if the next can be made.
TEST(PlanBuilt, StaysWithinTheRoomWhileItIsBuilt) {
  Problem p;
  for (const char *format : formats_built) {
    const Made host = p.make(format, nullptr);
    const tensor::FormBytes all = sizes_of(*host, format);
    const tensor::FormBytes first = tensor::bytes_of(host->view(0)), last = tensor::bytes_of(host->view(2));
    const i64 building = 3 * (all.lists + all.entries);
    const bool three = copies_of(format) == 3;
    const struct {
      i64 room, kept;
    } cases[] = {{building - 1, 0},
                 {building, last.entries},
                 {building + first.lists + first.entries, three ? first.entries + last.entries : last.entries},
                 {building + all.lists + all.entries, all.entries}};
    for (const auto &[room, kept] : cases) {
      SCOPED_TRACE(testing::Message() << format << ", room " << room << ", building takes " << building);
      SmallDevice device(room);
      device.set_building(building);
      const Made x = p.make(format, &device); // the device looks that there is room for each copy
      EXPECT_EQ(x->resident_bytes_on(device), kept);
      p.expect_same_products(*x, device, *host, device);
      expect_same_arrays(*x, *host, format);
    }
  }
}

TEST(PlanBuilt, StaysUsableWhenTheHostHasNoRoom) {
  Problem p;
  for (const char *format : formats_built) {
    SCOPED_TRACE(format);
    const Made host = p.make(format, nullptr);
    SmallDevice device(1 << 30);
    const Made x = p.make(format, &device);
    const i64 kept = device.kept();
    device.own()->fails = true;
    std::optional<formats::Coo> holder;
    const auto text = refusal(Status::host_memory, [&] { x->coordinates(holder, 1); });
    EXPECT_NE(text.find("out of host memory"), std::string::npos);
    refusal(Status::host_memory, [&] { x->view(0); });
    refusal(Status::host_memory, [&] { device.run_short(1 << 30); });
    EXPECT_EQ(device.kept(), kept) << "nothing is lost";
    EXPECT_TRUE(p.product(*x, 0, device).same_bits(p.product(*host, 0, device)));
    device.own()->fails = false;
    expect_same_arrays(*x, *host, format);
  }
}

// A caller's arrays that are in the device's memory are not copied, unless the host builds or has to name an entry.
TEST(PlanBuilt, IsBuiltOfCoordinatesWhereTheyAre) {
  Problem p;
  const EntriesView e = p.entries.view();
  const i64 bytes = e.nnz * (3 * 8 + 8);
  const auto columns = p.entries.columns;
  const auto values = p.entries.values;
  for (const char *format : {"sorted", "blco", "coo"}) {
    SCOPED_TRACE(format);
    SmallDevice device(1 << 30);
    const auto make = [&](const formats::Given &given, const char *duplicates) {
      Options options = options_of(format);
      options.set_text("duplicates", duplicates);
      return Tensor::make_sparse(given, options, 1, "", tensor::Target::gpu, {&device});
    };
    const Made host = make(formats::Given(e), "sum");
    EXPECT_EQ(device.take_downloads(), 0);
    const Made x = make(formats::Given(e, device), "sum");
    EXPECT_EQ(device.take_downloads(), std::string_view(format) == "coo" ? bytes : 0);
    expect_same_arrays(*x, *host, format);

    const auto refused = [&](Status status, const char *duplicates) {
      const std::string there = refusal(status, [&] { make(formats::Given(e, device), duplicates); });
      EXPECT_EQ(device.take_downloads(), bytes);
      EXPECT_EQ(there, refusal(status, [&] { make(formats::Given(e), duplicates); }));
    };
    refused(Status::index, "error");
    p.entries.columns[1][77] = 40;
    refused(Status::index, "sum");
    p.entries.columns[1][77] = columns[1][77];
    p.entries.values[5] = HUGE_VAL;
    refused(Status::argument, "sum");
    p.entries.values[5] = values[5];
  }
  EXPECT_EQ(p.entries.columns, columns);
  EXPECT_EQ(p.entries.values, values);
}

// Several contexts ask at once, while memory is asked back.
TEST(PlanBuilt, ComesOnceForAllThreads) {
  Problem p;
  for (const char *format : formats_built) {
    SCOPED_TRACE(format);
    const Made host = p.make(format, nullptr);
    SmallDevice device(1 << 30);
    const Made x = p.make(format, &device);
    const i64 all = device.kept();
    const auto expected = p.product(*host, 0, device);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const auto reference = kernels::reference::make_backend();
        Problem own;
        std::vector<i64> counts(300);
        if (t == 3)
          device.run_short(1 << 30);
        else if (t == 2)
          x->slice_counts(0, counts.data());
        EXPECT_TRUE(own.product(*x, 0, *reference).same_bits(expected));
        expect_same_arrays(*x, *host, format);
      });
    for (auto &thread : threads)
      thread.join();
    EXPECT_LE(device.own()->downloaded, all);
  }
}

// In order, a large tensor is worked on in spans of rows, for which the host needs the lists and no more.
TEST(PlanBuilt, SpansNeedNothingButLists) {
  const std::vector<i64> dims{2000, 1 << 11};
  const i64 nnz = (i64{1} << 20) + 5000;
  CallerEntries<std::int32_t, float> entries{dims, 0, {}, {}, {}};
  for (i64 k = 0; k < nnz; ++k)
    entries.add({k % 2000, k / 2000}, static_cast<float>(k % 7));
  SmallDevice device(1 << 30);
  const Options options = options_of("sorted");
  const Made x = Tensor::make_sparse(entries.view(), options, 1, "", tensor::Target::gpu, &device);
  const auto factors = whole_factors<float>(dims);
  const auto f = views(factors);
  const auto run = [&](kernels::Backend &backend) {
    TestMatrix<float> out(2000, 4, 0);
    x->view(0, backend).mttkrp(backend, {0, f, out.view(), {0, 2000}, {0, nnz}, kernels::Conflicts::owner});
    return out;
  };
  const auto there = run(device);
  EXPECT_GT(device.own()->downloaded, 0);
  EXPECT_LE(device.own()->downloaded, tensor::bytes_of(x->view(0, OnHost::sizes)).lists);
  EXPECT_TRUE(there.same_bits(run(*kernels::reference::make_backend())));
}

} // namespace
} // namespace td::test
