// Building in a device's memory against the host's builders, bit for bit: by serial steps, and by those of
// each device string in TD_TEST_DEVICES.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "formats/key.hpp"
#include "formats/tiles.hpp"
#include "formats_random.hpp"
#include "kernels/loader.hpp"
#include "software/building.hpp"
#include "tensor/export.hpp"
#include "tensor/joint_building.hpp"
#include "tensor/part.hpp"
#include "tensor/tensor.hpp"

namespace td::test {
namespace {

using formats::EmptyRows;
using formats::Numbering;

std::vector<std::string> builders() {
  std::vector<std::string> all{"serial", "two", "three"};
  const char *devices = std::getenv("TD_TEST_DEVICES");
  std::istringstream words(devices == nullptr ? "" : devices);
  for (std::string word; words >> word;)
    all.push_back(word);
  return all;
}

class FormatsBuilt : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    try {
      if (const int count = in_software(); count > 0)
        for (int k = 0; k < count; ++k)
          backends_.push_back(std::make_shared<software::BuildingBackend>());
      else
        backends_ = kernels::open_backends(kernels::parse_devices(GetParam(), true), 1);
    } catch (const Error &error) {
      ASSERT_EQ(error.status(), Status::backend_unavailable) << error.what();
      GTEST_SKIP() << error.what();
    }
    if (in_software() == 0 && !backends_.front()->has_own_memory())
      GTEST_SKIP() << GetParam() << " has no memory of its own";
  }
  /// How many stand for devices; 0: these are others.
  int in_software() const {
    return GetParam() == "serial" ? 1 : GetParam() == "two" ? 2 : GetParam() == "three" ? 3 : 0;
  }
  tensor::Builders devices() const {
    tensor::Builders all;
    for (const auto &backend : backends_)
      all.push_back(backend.get());
    return all;
  }
  std::unique_ptr<kernels::Building> begin(const EntriesView &e, EmptyRows empty = EmptyRows::drop) {
    return begin(devices(), e, empty, plan::ShardingRule::automatic);
  }
  /// One device by itself, or several together.
  static std::unique_ptr<kernels::Building> begin(const tensor::Builders &devices, const EntriesView &e,
                                                  EmptyRows empty, plan::ShardingRule rule) {
    std::unique_ptr<kernels::Building> building;
    const auto known = formats::known_keys(e, empty);
    const kernels::KeyMoves *keys = known ? &*known : nullptr;
    if (devices.size() > 1 && e.nnz >= std::ssize(devices))
      building = tensor::JointBuilding::begin(devices, e, rule, keys);
    else
      building = devices.front()->begin_building(e, false, keys);
    EXPECT_NE(building, nullptr);
    return building;
  }
  template <class Index, class T>
  static void check(const tensor::Builders &devices, const std::vector<i64> &dims, i64 nnz, std::int32_t base,
                    EmptyRows empty, plan::ShardingRule rule = plan::ShardingRule::automatic);
  std::vector<std::shared_ptr<kernels::Backend>> backends_;
};

std::string place(const testing::TestParamInfo<std::string> &info) {
  std::string name;
  for (const char c : info.param)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Devices, FormatsBuilt, testing::ValuesIn(builders()), place);

template <class B> void expect_same(const B &got, const B &expected, const char *name) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  ASSERT_EQ(got.bytes(), expected.bytes()) << name;
  if (got.bytes() > 0) {
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), static_cast<std::size_t>(got.bytes())), 0) << name;
  }
}

bool same_layout(const kernels::KeyLayout &a, const kernels::KeyLayout &b) {
  return a.order == b.order && a.shift == b.shift && a.bits == b.bits;
}

/// All that a view tells the arrays of.
template <class Form> void expect_same_arrays(const formats::OnDevice<Form> &got, const Form &expected) {
  EXPECT_TRUE(same_layout(got.view.layout, expected.layout));
  EXPECT_EQ(got.view.type, expected.values.type());
  const tensor::StoredForm stored(got.view, nullptr, got.arrays);
  const auto there = tensor::FormView(stored.view(tensor::OnHost::all)).arrays();
  const auto arrays = tensor::FormView(expected.view()).arrays();
  ASSERT_EQ(there.size(), arrays.size());
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    ASSERT_EQ(there[k].bytes(), arrays[k].bytes()) << "array " << k;
    if (arrays[k].bytes() > 0) {
      EXPECT_EQ(std::memcmp(there[k].data, arrays[k].data, static_cast<std::size_t>(arrays[k].bytes())), 0)
          << "array " << k;
    }
  }
}

void expect_same(const formats::OnDevice<formats::Blco> &got, const formats::Blco &expected) {
  EXPECT_EQ(got.rest.dims, expected.dims);
  expect_same_arrays(got, expected);
}

void expect_same(const formats::OnDevice<formats::Sorted> &built, const formats::Sorted &expected) {
  const formats::Sorted &got = built.rest;
  EXPECT_EQ(got.dims, expected.dims);
  EXPECT_EQ(got.mode, expected.mode);
  EXPECT_EQ(got.key_bytes, expected.key_bytes);
  expect_same_arrays(built, expected);
  expect_same(got.heavy_rows, expected.heavy_rows, "heavy_rows");
  expect_same(got.heavy_cuts, expected.heavy_cuts, "heavy_cuts");
  expect_same(got.light_cuts, expected.light_cuts, "light cuts");
}

std::vector<Range> ranges_of(const tensor::Chosen &some) {
  std::vector<Range> all;
  some.each({0, some.count()}, [&](Range range) { all.push_back(range); });
  return all;
}

void expect_same_ranges(const std::vector<Range> &got, const std::vector<Range> &expected) {
  EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                         [](Range a, Range b) { return a.begin == b.begin && a.end == b.end; }));
}

/// What devices have of a copy is what lists of its rows on the host give them.
void expect_same_parts(const tensor::JointBuilding::Held &held, const formats::Sorted &copy, plan::ShardingRule rule) {
  const kernels::SortedView x = copy.view();
  const auto workers = static_cast<int>(held.parts.size());
  ASSERT_GT(workers, 1);
  const tensor::Sharded expected = tensor::shard_copy(x, workers, tensor::partition_kind(rule, false));
  const tensor::Sharded &got = *held.sharded;
  EXPECT_EQ(got.partition.load, expected.partition.load);
  ASSERT_EQ(got.loads.size(), expected.loads.size());
  ASSERT_EQ(got.selected.size(), expected.loads.size());
  for (std::size_t w = 0; w < got.loads.size(); ++w) {
    SCOPED_TRACE(testing::Message() << "worker " << w);
    expect_same_ranges(got.partition.owned[w], expected.partition.owned[w]);
    expect_same_ranges(got.loads[w].whole, expected.loads[w].whole);
    ASSERT_EQ(got.loads[w].split.size(), expected.loads[w].split.size());
    for (std::size_t k = 0; k < got.loads[w].split.size(); ++k) {
      EXPECT_EQ(got.loads[w].split[k].row, expected.loads[w].split[k].row);
      expect_same_ranges({got.loads[w].split[k].entries}, {expected.loads[w].split[k].entries});
    }
    const tensor::Selection some = tensor::select_load(x, expected.loads[w]);
    expect_same_ranges(ranges_of(got.selected[w].entries), ranges_of(some.entries));
    expect_same_ranges(ranges_of(got.selected[w].lists), ranges_of(some.lists));
    EXPECT_EQ(held.parts[w] == nullptr, some.entries.count() == 0);
  }
}

void expect_same(const tensor::Facts &got, const tensor::Facts &expected) {
  EXPECT_EQ(got.nnz, expected.nnz);
  EXPECT_EQ(got.zeros, expected.zeros);
  EXPECT_EQ(got.norm, expected.norm);
  EXPECT_EQ(got.min, expected.min);
  EXPECT_EQ(got.max, expected.max);
  EXPECT_EQ(got.sum, expected.sum);
}

/// A third of the entries in one row of each mode, and a few values of which sums depend on the order.
template <class Index, class T>
CallerEntries<Index, T> skewed(const std::vector<i64> &dims, i64 nnz, std::int32_t base, unsigned seed) {
  std::mt19937_64 random(seed);
  CallerEntries<Index, T> e{dims, base, {}, {}, {}};
  for (i64 k = 0; k < nnz; ++k) {
    std::vector<i64> coordinate;
    for (const i64 d : dims)
      coordinate.push_back(random() % 3 == 0 ? d / 2 : static_cast<i64>(random() % static_cast<u64>(d)));
    e.add(coordinate, k % 11 == 0 ? T{0} : static_cast<T>(1e3 / static_cast<double>(1 + random() % 999) - 1.5));
  }
  return e;
}

/// Cuts that a test asks for: none, those for a GPU, and every other mode in ranges of four rows.
std::vector<std::vector<int>> bits_in_tiles(const std::vector<i64> &dims, int mode, i64 nnz, ValueType type) {
  auto fine = formats::bits_of(dims);
  for (std::size_t m = 0; m < fine.size(); m += 2)
    fine[m] = dims[m] <= 64 ? std::min(fine[m], 2) : std::max(fine[m] - 2, 0);
  if (dims[static_cast<std::size_t>(mode)] > 1 << 17) // the rows of copies in tiles are counted
    return {formats::bits_of(dims)};
  return {formats::bits_of(dims), formats::gpu_tile_bits(kernels::Chip{}, dims, mode, nnz, type, type), fine};
}

template <class Index, class T>
void FormatsBuilt::check(const tensor::Builders &devices, const std::vector<i64> &dims, i64 nnz, std::int32_t base,
                         EmptyRows empty, plan::ShardingRule rule) {
  SCOPED_TRACE(testing::Message() << dims.size() << " modes, " << nnz << " entries, " << name_of(value_type_of<T>)
                                  << ", base " << base);
  auto entries = skewed<Index, T>(dims, nnz, base, static_cast<unsigned>(nnz + base));
  const EntriesView e = entries.view();
  const auto building = begin(devices, e, empty, rule);
  ASSERT_NE(building, nullptr);
  formats::check_entries(formats::Given(e), *building);
  const Numbering there(e, empty, *building, 1), numbering(e, empty, 1);
  for (int m = 0; m < e.order(); ++m) {
    const auto got = there.rows(m), expected = numbering.rows(m);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin(), expected.end())) << "mode " << m;
  }
  auto packed = formats::build_packed(e, numbering, false, 2);
  {
    const auto other = begin(devices, e, empty, rule);
    const auto built = formats::build_packed(*other, formats::Given(e), there, false);
    EXPECT_EQ(built.dims, packed.dims);
    EXPECT_TRUE(same_layout(built.layout, packed.layout));
    EXPECT_EQ(built.duplicates, packed.duplicates);
    const i64 size = other->size();
    Buffer<u64> keys(size * (built.key_bytes / 8), "keys");
    ValueBuffer values(built.type, size, "values");
    other->take_entries()->download(std::vector<void *>{keys.data(), values.data()});
    expect_same(keys, packed.keys, "keys");
    expect_same(values, packed.values, "values");
  }
  const auto built = formats::build_packed(*building, formats::Given(e), there, false);
  expect_same(tensor::facts_of(*building), tensor::facts_of(packed.values, 2));
  for (int mode = 0; mode < e.order(); ++mode)
    for (const auto &bits : bits_in_tiles(packed.dims, mode, packed.nnz(), packed.values.type())) {
      SCOPED_TRACE(testing::Message() << "mode " << mode);
      const formats::Sorted expected = formats::build_sorted(packed, mode, bits, 2);
      expect_same(formats::build_sorted(built, mode, bits), expected);
      if (auto *joint = dynamic_cast<tensor::JointBuilding *>(building.get()))
        expect_same_parts(joint->take_held(), expected, rule);
    }
  expect_same(formats::build_blco(built), formats::build_blco(std::move(packed), 2));
}

TEST_P(FormatsBuilt, EveryFormBitForBit) {
  const i64 wide = i64{1} << 40;
  for (const i64 nnz : light() ? std::vector<i64>{700} : std::vector<i64>{1, 700, 20000}) {
    check<std::int32_t, double>(devices(), {40, 30, 20}, nnz, 1, EmptyRows::keep); // many at the same coordinates
    check<i64, float>(devices(), {300, 7, 1, 5000}, nnz, 0, EmptyRows::keep);
    check<i64, double>(devices(), {100000, 3, 900}, nnz, 1, EmptyRows::drop); // rows that are numbered
    check<std::int32_t, float>(devices(), {1 << 20, 1 << 21, 1 << 22, 50}, nnz, 0, EmptyRows::drop);
    check<i64, double>(devices(), {wide, 4, wide}, nnz, 0, EmptyRows::keep); // keys of 128 bits, BLCO in blocks
    check<i64, float>(devices(), {wide, wide + 3, 11, 12, 13, 100}, nnz, 1, EmptyRows::keep);
    for (const auto rule : {plan::ShardingRule::rows, plan::ShardingRule::entries})
      check<i64, double>(devices(), {100000, 30, 900}, nnz, 0, EmptyRows::keep, rule);
  }
}

template <class F> std::string refusal_of(Status expected, F &&f) {
  try {
    f();
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), expected) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

TEST_P(FormatsBuilt, RefusesInTheSameWords) {
  const double nan = std::nan("");
  for (const std::int32_t base : {0, 1})
    for (const auto &[outside, bad] : {std::pair<i64, i64>{-1, 5}, {5, -1}, {3, 7}, {7, 3}, {4, 4}}) {
      auto entries = random_entries<std::int32_t, double>({9, 8}, 10, base, 3);
      if (outside >= 0)
        entries.columns[1][static_cast<std::size_t>(outside)] = base == 0 ? -1 : 9;
      if (bad >= 0)
        entries.values[static_cast<std::size_t>(bad)] = nan;
      const EntriesView e = entries.view();
      const Status status = outside >= 0 && (bad < 0 || outside <= bad) ? Status::index : Status::argument;
      const auto building = begin(e);
      EXPECT_EQ(refusal_of(status, [&] { formats::check_entries(formats::Given(e), *building); }),
                refusal_of(status, [&] { formats::check_entries(e, 1); }));
    }

  auto entries = random_entries<i64, float>({100000, 8}, 50, 1, 4);
  for (const int at : {17, 30})
    entries.add(
        {entries.columns[0][static_cast<std::size_t>(at)] - 1, entries.columns[1][static_cast<std::size_t>(at)] - 1},
        std::numeric_limits<float>::max());
  entries.values[30] = entries.values[17] = std::numeric_limits<float>::max();
  const EntriesView e = entries.view();
  for (const auto empty : {EmptyRows::keep, EmptyRows::drop})
    for (const bool refuse : {true, false}) {
      const Status status = refuse ? Status::index : Status::argument;
      const auto building = begin(e);
      const Numbering numbering(e, empty, 1);
      const std::string text =
          refusal_of(status, [&] { formats::build_packed(*building, formats::Given(e), numbering, refuse); });
      EXPECT_EQ(text, refusal_of(status, [&] { formats::build_packed(e, numbering, refuse, 1); }));
      EXPECT_NE(text.find(refuse ? "are both at" : "beyond the range of f32"), std::string::npos) << text;
    }
}

// So many that a GPU sorts slices of them while others come, and merges what it has sorted.
TEST_P(FormatsBuilt, SortsWhatHasComeWhileMoreComes) {
  if (in_software() > 0)
    GTEST_SKIP() << "takes entries one by one";
  const i64 wide = i64{1} << 36;
  const auto compare = [&](auto index, auto value, const std::vector<i64> &dims, std::int32_t base) {
    const i64 nnz = std::ssize(backends_) * ((i64{5} << 20) + 4321);
    auto entries = skewed<decltype(index), decltype(value)>(dims, nnz, base, 7);
    const EntriesView e = entries.view();
    const Numbering numbering(dims);
    const formats::Packed packed = formats::build_packed(e, numbering, false, 2);
    const auto building = begin(e, EmptyRows::keep);
    formats::check_entries(formats::Given(e), *building);
    const auto built = formats::build_packed(*building, formats::Given(e), numbering, false);
    EXPECT_GT(packed.duplicates, 0);
    EXPECT_EQ(built.duplicates, packed.duplicates);
    ASSERT_EQ(building->size(), packed.nnz());
    Buffer<u64> keys(packed.nnz() * (packed.key_bytes / 8), "keys");
    ValueBuffer values(built.type, packed.nnz(), "values");
    building->take_entries()->download(std::vector<void *>{keys.data(), values.data()});
    expect_same(keys, packed.keys, "keys");
    expect_same(values, packed.values, "values");

    entries.columns[1][static_cast<std::size_t>(nnz - 5)] = static_cast<decltype(index)>(dims[1] + base);
    entries.values[static_cast<std::size_t>(nnz / 2)] = std::numeric_limits<decltype(value)>::infinity();
    for (const Status status : {Status::argument, Status::index}) {
      const auto bad = begin(e, EmptyRows::keep);
      EXPECT_EQ(refusal_of(status, [&] { formats::check_entries(formats::Given(e), *bad); }),
                refusal_of(status, [&] { formats::check_entries(e, 1); }));
      entries.values[static_cast<std::size_t>(nnz / 2)] = 1;
    }
  };
  compare(std::int32_t{}, double{}, {40, 3000, 70}, 1);
  compare(i64{}, float{}, {wide, 5, wide}, 0); // keys of 128 bits
}

TEST_P(FormatsBuilt, TensorsAreTheSame) {
  auto entries = skewed<i64, double>({2000, 30, 40}, 9000, 0, 8);
  for (const char *format : {"auto", "sorted", "blco", "coo"})
    for (const char *groups : {"auto", "none"})
      for (const char *rows : {"auto", "drop"}) {
        SCOPED_TRACE(testing::Message() << format << ", groups " << groups << ", rows " << rows);
        Options options;
        options.set_text("format", format);
        options.set_text("groups", groups);
        options.set_text("empty_rows", rows);
        const auto host = tensor::Tensor::make_sparse(entries.view(), options, 1, "", tensor::Target::gpu);
        const auto built =
            tensor::Tensor::make_sparse(formats::Given(entries.view()), options, 1, "", tensor::Target::gpu, devices());
        EXPECT_EQ(built->describe(), host->describe());
        EXPECT_EQ(built->bytes(), host->bytes());
        EXPECT_EQ(built->groups().text(), host->groups().text());
        EXPECT_EQ(built->reasons().groups, host->reasons().groups);
        EXPECT_EQ(built->facts().duplicates, host->facts().duplicates);
        expect_same(built->facts(), host->facts());
        std::optional<formats::Coo> a, b;
        const auto x = built->coordinates(a, 1), y = host->coordinates(b, 1);
        for (int m = 0; m < 3; ++m)
          EXPECT_TRUE(std::equal(x.indices[m], x.indices[m] + x.nnz, y.indices[m]));
        EXPECT_EQ(std::memcmp(x.values, y.values, static_cast<std::size_t>(x.nnz) * 8), 0);
      }
}

} // namespace
} // namespace td::test
