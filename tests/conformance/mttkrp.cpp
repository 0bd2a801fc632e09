// MTTKRP against its definition: every format on every device, for each value type, index type, base, order, mode and
// rank, with padded matrices that end at a guard page.
#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"
#include "support/partitions.hpp"

namespace {

using namespace tdtest;

struct Case {
  std::string format;
  std::string device;
  SparseForm form;
  int order = 3;
};

std::string case_name(const testing::TestParamInfo<Case> &info) {
  const Case &c = info.param;
  std::string name = c.format + "_" + name_part(c.device) + (c.form.value_type == TD_F32 ? "_f32" : "_f64");
  if (c.format != "dense")
    name += (c.form.index_type == TD_I32 ? "_i32_base" : "_i64_base") + std::to_string(c.form.index_base);
  return name + "_order" + std::to_string(c.order);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto &device : device_strings())
    for (const int order : {2, 3, 4, 5, 6})
      for (const td_type value_type : {TD_F32, TD_F64}) {
        cases.push_back({"dense", device, {value_type, TD_I64, 0}, order});
        for (const char *format : {"coo", "blco", "sorted", "blco_drop", "sorted_drop"})
          for (const td_type index_type : {TD_I32, TD_I64})
            for (const int32_t base : {0, 1})
              if (!light() || (index_type == TD_I32) == (base == 1))
                cases.push_back({format, device, {value_type, index_type, base}, order});
      }
  return cases;
}

// Dims that are no powers of two, one of them 1 or 2, and of different sizes.
std::vector<int64_t> dims_of_order(int order, bool dense) {
  const std::vector<int64_t> sparse_dims{13, 40, 7, 19, 5, 2};
  const std::vector<int64_t> dense_dims{7, 9, 1, 5, 3, 4};
  const auto &dims = dense ? dense_dims : sparse_dims;
  return {dims.begin(), dims.begin() + order};
}

// The definition in extended precision is what every product must agree with.
void expect_right(td_context *context, const Tensor &x, const Entries &entries, td_type type, Random &random) {
  for (const int64_t rank : light() ? std::vector<int64_t>{3, 17} : std::vector<int64_t>{1, 3, 8, 17, 32}) {
    const Factors factors = random_factors(random, entries.dims, rank, type);
    const Ktensor k = make_ktensor(context, factors, type);
    for (int mode = 0; mode < entries.order(); ++mode) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", mode " + std::to_string(mode));
      const Bounded expected = oracle_mttkrp(entries, factors, mode);
      EXPECT_TRUE(within_bound(mttkrp(context, x, factors, mode, type), expected, type));
      EXPECT_TRUE(within_bound(mttkrp_ktensor(context, x, k, mode), expected, type));
    }
  }
}

class Mttkrp : public testing::TestWithParam<Case> {};

TEST_P(Mttkrp, AgreesWithItsDefinition) {
  const Case &c = GetParam();
  const auto context_if = context_if_there(c.device);
  if (!context_if)
    GTEST_SKIP() << c.device << ": " << last_error();
  td_context *context = *context_if;
  const bool dense = c.format == "dense";
  const td_type type = c.form.value_type;
  Random random(static_cast<uint64_t>(c.order));
  const auto dims = dims_of_order(c.order, dense);
  const Entries entries = dense ? random_cells(random, dims, type) : random_entries(random, dims, 300, type);
  const Tensor x = make_tensor(context, c.format, entries, c.form);
  ASSERT_EQ(tensor_str(x, "format"), c.format.substr(0, c.format.find('_')));

  expect_right(context, x, entries, type, random);
  std::vector<std::string> all_groups = dense ? partitions(c.order) : sparse_partitions(c.order);
  if (dense)
    all_groups.emplace_back("multi-sweep");
  if (c.order > 2 && (dense || c.format == "sorted"))
    for (const std::string &groups : all_groups) {
      SCOPED_TRACE("groups " + groups);
      const Options options{{"groups", groups}};
      const Tensor grouped =
          dense ? make_dense(context, entries, type, options)
                : make_sparse(context, entries, c.form, Options{{"format", "sorted"}, {"groups", groups}});
      ASSERT_EQ(tensor_str(grouped, "groups"), groups);
      expect_right(context, grouped, entries, type, random);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Mttkrp, testing::ValuesIn(all_cases()), case_name);

} // namespace
