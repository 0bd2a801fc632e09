#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "formats_random.hpp"
#include "kernels/building.hpp"
#include "kernels/reference/backend.hpp"
#include "plan/plan.hpp"
#include "tensor/tensor.hpp"

namespace td {
namespace {

using tensor::Tensor;
using Entries = test::CallerEntries<i64, double>;

Options with_format(std::string_view format) {
  Options options;
  options.set_text("format", format);
  return options;
}

tensor::Facts facts_of(const std::vector<double> &values) {
  ValueBuffer buffer(ValueType::f64, static_cast<i64>(values.size()), "test");
  std::copy(values.begin(), values.end(), buffer.as<double>());
  return tensor::facts_of(buffer, 1);
}

TEST(plan_facts, of_a_few_values) {
  const auto f = facts_of({3, 0, -4, -0.0});
  EXPECT_EQ(f.nnz, 4);
  EXPECT_EQ(f.zeros, 2);
  EXPECT_EQ(f.norm, 5);
  EXPECT_EQ(f.min, -4);
  EXPECT_EQ(f.max, 3);
  EXPECT_EQ(f.sum, -1);
  const auto none = facts_of({});
  EXPECT_EQ(none.min, 0);
  EXPECT_EQ(none.max, 0);
  EXPECT_EQ(none.norm, 0);
}

TEST(plan_facts, norm_survives_squares_out_of_range) {
  // Scaling is by powers of two, so the norm is off by the roundings of two squares, a sum and a root: 4 half units.
  constexpr double units = 2 * 0x1p-52;
  EXPECT_NEAR(facts_of({3e200, 4e200}).norm / 5e200, 1, units);
  EXPECT_NEAR(facts_of({3e-200, 4e-200}).norm / 5e-200, 1, units);
  const double least = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(facts_of({3 * least, 4 * least}).norm, 5 * least);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(facts_of({most}).norm, most);
  EXPECT_EQ(facts_of({most, most, -most, -most}).sum, 0); // neither infinite nor NaN on the way
}

TEST(plan_facts, are_the_same_bits_for_any_threads_and_format) {
  auto e = test::random_entries<i64, double>({60, 50, 40}, 60000, 0, 3);
  for (double &v : e.values)
    v = 1 / v;
  const auto one = Tensor::make_sparse(e.view(), with_format("coo"), 1, "");
  for (const char *format : {"coo", "blco", "sorted", "auto"})
    for (const int threads : {1, 2, 3}) {
      const auto x = Tensor::make_sparse(e.view(), with_format(format), threads, "");
      EXPECT_EQ(x->facts().norm, one->facts().norm);
      EXPECT_EQ(x->facts().sum, one->facts().sum);
      EXPECT_EQ(x->facts().duplicates, 60000 - x->facts().nnz);
    }
}

Entries three_rows() { // mode 0: 1, 0, 4 and 2 entries
  Entries e{{4, 8}, 0, {}, {}, {}};
  e.add({0, 5}, 1);
  for (const i64 j : {0, 2, 4, 6})
    e.add({2, j}, 2);
  e.add({3, 1}, 3);
  e.add({3, 7}, 4);
  return e;
}

TEST(plan_tensor, stores_what_is_asked_for) {
  auto e = three_rows();
  const auto coo = Tensor::make_sparse(e.view(), with_format("coo"), 1, "a file");
  EXPECT_TRUE(std::holds_alternative<kernels::CooView>(coo->view(0)));
  EXPECT_EQ(coo->format(), plan::Format::coo);
  EXPECT_EQ(coo->source(), "a file");
  EXPECT_EQ(coo->describe(), "sparse 4 x 8, 7 entries, f64, coo (184 bytes)"); // 2 * 8 + 7 * (2 * 8 + 8)
  const auto blco = Tensor::make_sparse(e.view(), with_format("blco"), 1, "");
  EXPECT_TRUE(std::holds_alternative<kernels::BlcoView>(blco->view(1)));
  EXPECT_FALSE(blco->partitioned_by_rows());
  EXPECT_EQ(blco->describe(), "sparse 4 x 8, 7 entries, f64, blco (1 block, 160 bytes)"); // 16 + 7 * 16 + 16 + 16
  const auto sorted = Tensor::make_sparse(e.view(), with_format("auto"), 1, "");
  EXPECT_EQ(std::get<kernels::SortedView>(sorted->view(1)).mode, 1);
  EXPECT_TRUE(sorted->partitioned_by_rows());
  EXPECT_TRUE(sorted->sparse());
  EXPECT_EQ(sorted->dense(), nullptr);
}

TEST(plan_tensor, gives_coordinates_and_slice_counts_from_any_format) {
  auto e = three_rows();
  const auto coo = Tensor::make_sparse(e.view(), with_format("coo"), 1, "");
  std::optional<formats::Coo> unused;
  const auto expected = coo->coordinates(unused, 1);
  EXPECT_FALSE(unused.has_value());
  for (const char *format : {"coo", "blco", "sorted"}) {
    const auto x = Tensor::make_sparse(e.view(), with_format(format), 1, "");
    std::optional<formats::Coo> holder;
    const auto c = x->coordinates(holder, 1);
    ASSERT_EQ(c.nnz, 7);
    for (i64 k = 0; k < 7; ++k) {
      EXPECT_EQ(c.indices[0][k], expected.indices[0][k]);
      EXPECT_EQ(c.indices[1][k], expected.indices[1][k]);
      EXPECT_EQ(static_cast<const double *>(c.values)[k], static_cast<const double *>(expected.values)[k]);
    }
    std::vector<i64> counts(4, -1);
    x->slice_counts(0, counts.data());
    EXPECT_EQ(counts, (std::vector<i64>{1, 0, 4, 2}));
  }
}

TEST(plan_tensor, stores_coordinates_beyond_128_bits_and_says_why_not_else) {
  Entries e{std::vector<i64>(16, i64{1} << 31), 0, {}, {}, {}};
  e.add(std::vector<i64>(16, 5), 2);
  const auto x = Tensor::make_sparse(e.view(), Options{}, 1, "");
  EXPECT_EQ(x->format(), plan::Format::coo);
  for (const char *format : {"blco", "sorted"})
    try {
      Tensor::make_sparse(e.view(), with_format(format), 1, "");
      ADD_FAILURE() << format << " was not refused";
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_NE(std::string(error.what()).find("496 bits, expected at most 128"), std::string::npos) << error.what();
    }
}

TEST(plan_tensor, of_a_dense_array) {
  const std::vector<i64> dims = {2, 3};
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const auto x = Tensor::make_dense({dims, {}, ValueType::f32, a.data()}, Options{}, 1, "");
  EXPECT_FALSE(x->sparse());
  EXPECT_TRUE(x->partitioned_by_rows());
  EXPECT_EQ(x->facts().nnz, 6);
  EXPECT_EQ(x->facts().sum, 21);
  EXPECT_EQ(x->describe(), "dense 2 x 3, 6 elements, f32, 40 bytes"); // 6 * 4 + 2 * 8
  ASSERT_NE(x->dense(), nullptr);
  EXPECT_EQ(x->dense()->values.as<float>()[4], 5.0F);
  EXPECT_EQ(kernels::entries_of(x->view(0)), 6);
  std::optional<formats::Coo> holder;
  EXPECT_THROW(x->coordinates(holder, 1), Error);
  std::vector<i64> counts(3);
  x->slice_counts(1, counts.data());
  EXPECT_EQ(counts, (std::vector<i64>{2, 2, 2}));
}

// The cells of a dense tensor's groups are coordinates, which have no private rows on a GPU.
TEST(plan_tensor, refuses_private_rows_on_a_gpu_when_it_is_made) {
  const std::vector<i64> dims = {2, 3, 2};
  const std::vector<double> a(12, 1.0);
  Options options;
  options.set_text("groups", "0,1|2");
  options.set_text("conflicts", "private");
  const auto make = [&](tensor::Target target) {
    return Tensor::make_dense({dims, {}, ValueType::f64, a.data()}, options, 1, "", target);
  };
  EXPECT_EQ(make(tensor::Target::cpu)->settings().conflicts, kernels::Conflicts::privatize);
  try {
    make(tensor::Target::gpu);
    ADD_FAILURE() << "was not refused";
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(std::string(error.what()).find("expected auto, atomic or owner for format dense on a GPU"),
              std::string::npos)
        << error.what();
  }
}

// Rows half as long: tiles twice as wide. Rows that are widened: the same wherever they come from, so none.
TEST(plan_tensor, tiles_of_a_gpu_follow_the_precision) {
  const auto tiles = [](ValueType type, const char *option, const char *value) {
    Options options;
    options.set_text("format", "sorted");
    if (option != nullptr)
      options.set_text(option, value);
    const std::vector<i64> dims{20000, 20000, 20000};
    return plan::layout_of(dims, 40000000, type, {plan::TensorSettings(options), true, 1, {}}).copies.front().tiles;
  };
  EXPECT_EQ(tiles(ValueType::f64, nullptr, ""), 40);
  EXPECT_EQ(tiles(ValueType::f32, nullptr, ""), 20);
  EXPECT_EQ(tiles(ValueType::f64, "gather", "f32"), 1);
  EXPECT_EQ(tiles(ValueType::f32, "accumulate", "f64"), 1);
  // Options for the other type say what is so anyhow.
  EXPECT_EQ(tiles(ValueType::f64, "accumulate", "f64"), 40);
  EXPECT_EQ(tiles(ValueType::f32, "gather", "f32"), 20);
}

/// A GPU with less shared memory than an H200, on which no tensor is built.
class SmallChip final : public kernels::reference::ReferenceBackend {
public:
  const void *memory() const noexcept override { return this; }
  kernels::Chip chip() const override { return {132, i64{99} << 10, i64{60} << 20}; }
  std::unique_ptr<kernels::DeviceBuilding> begin_building(const EntriesView &, bool,
                                                          const kernels::KeyMoves *) override {
    return nullptr;
  }
};

TEST(PlanTensor, TilesFollowTheGpu) {
  plan::PlanRequest request;
  request.options.set_text("format", "sorted");
  request.rank = 32;
  request.backends = {std::make_shared<SmallChip>()};
  const std::vector<i64> dims{20000, 20000, 20000};
  const plan::Plan plan = plan::plan_of(dims, 40000000, ValueType::f64, request);
  EXPECT_EQ(plan.layout.tiles, "79|79|79"); // of 256 rows, which 64 KiB hold; an H200 would have 40

  // Few entries in 6 tiles of 128 rows pay where these and the 700 of the other mode can be staged.
  Entries e{{4, 700, 700}, 0, {}, {}, {}};
  for (i64 k = 0; k < 20000; ++k)
    e.add({k % 4, k / 4 % 700, k / 2800 * 97}, 1);
  const auto tiles = [&](kernels::Backend *builder) {
    const auto x = Tensor::make_sparse(e.view(), with_format("sorted"), 1, "", tensor::Target::gpu, builder);
    return std::get<kernels::SortedView>(x->view(0)).tiles;
  };
  SmallChip small;
  EXPECT_EQ(tiles(nullptr), 6);
  EXPECT_EQ(tiles(&small), 1);
}

} // namespace
} // namespace td
