// What is refused, and that the text names what came.
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "formats/formats.hpp"
#include "formats_random.hpp"

namespace td {
namespace {

using Entries = test::CallerEntries<i64, double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class Call> void expect_refused(Status status, const std::string &text, Call &&call) {
  try {
    call();
    ADD_FAILURE() << "nothing was refused; expected: " << text;
  } catch (const Error &e) {
    EXPECT_EQ(static_cast<int>(e.status()), static_cast<int>(status)) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << "came: " << e.what() << "\nexpected: " << text;
  }
}

void expect_check(const EntriesView &e, Status status, const std::string &text) {
  for (const int threads : {1, 2, 3})
    expect_refused(status, text, [&] { formats::check_entries(e, threads); });
}

TEST(formats_refusals, shape) {
  Entries one{{5}, 0, {}, {}, {}};
  expect_check(one.view(), Status::shape, "order = 1, expected 2 to 64");
  Entries many{std::vector<i64>(65, 2), 0, {}, {}, {}};
  expect_check(many.view(), Status::shape, "order = 65, expected 2 to 64");
  Entries zero{{5, 0, 3}, 0, {}, {}, {}};
  expect_check(zero.view(), Status::shape, "mode 1: dim = 0, expected 1 or more");
  Entries negative{{5, 4, -3}, 0, {}, {}, {}};
  expect_check(negative.view(), Status::shape, "mode 2: dim = -3");
  Entries e{{5, 4}, 0, {}, {}, {}};
  auto view = e.view();
  view.nnz = -1;
  expect_check(view, Status::shape, "nnz = -1, expected 0 or more");
  view = e.view();
  view.index_base = 2;
  expect_check(view, Status::argument, "index_base = 2, expected 0 or 1");
}

TEST(formats_refusals, index_outside_in_the_callers_base) {
  for (const std::int32_t base : {0, 1}) {
    test::CallerEntries<std::int32_t, float> e{{3, 4, 11}, base, {}, {}, {}};
    for (int k = 0; k < 20; ++k)
      e.add({2, 3, k == 17 ? 11 : 10}, 1);
    expect_check(e.view(), Status::index,
                 base == 1 ? "entry 18, mode 3 (counting from 1): index 12 outside 1..11"
                           : "entry 17, mode 2 (counting from 0): index 11 outside 0..10");
    e.columns[0][3] = base - 1;
    expect_check(e.view(), Status::index,
                 base == 1 ? "entry 4, mode 1 (counting from 1): index 0 outside 1..3"
                           : "entry 3, mode 0 (counting from 0): index -1 outside 0..2");
  }
}

TEST(formats_refusals, smallest_and_largest_numbers_are_outside) {
  const i64 largest = std::numeric_limits<i64>::max();
  const i64 smallest = std::numeric_limits<i64>::min();
  Entries e{{largest, 2}, 1, {}, {}, {}};
  e.columns = {{largest}, {1}};
  e.values = {1};
  EXPECT_NO_THROW(formats::check_entries(e.view(), 1));
  e.columns = {{smallest}, {1}};
  expect_check(e.view(), Status::index,
               "mode 1 (counting from 1): index -9223372036854775808 outside 1..9223372036854775807");
}

TEST(formats_refusals, of_several_bad_entries_the_first_is_named) {
  auto e = test::random_entries<i64, double>({100, 100, 100}, 100000, 0, 7);
  e.values[90000] = nan;
  expect_check(e.view(), Status::argument, "entry 90000 (counting from 0): value nan, expected a finite");
  e.columns[0][80000] = 100;
  expect_check(e.view(), Status::index, "entry 80000, mode 0 (counting from 0): index 100 outside 0..99");
  e.columns[2][60000] = -5;
  expect_check(e.view(), Status::index, "entry 60000, mode 2 (counting from 0): index -5 outside 0..99");
  e.values[50000] = -std::numeric_limits<double>::infinity();
  expect_check(e.view(), Status::argument, "entry 50000 (counting from 0): value -inf");
  e.columns[1][50000] = 100;
  e.columns[2][50000] = 100;
  expect_check(e.view(), Status::index, "entry 50000, mode 1 (counting from 0): index 100 outside 0..99");
}

TEST(formats_refusals, duplicates_name_both_entries) {
  const i64 huge = i64{1} << 62; // the second shape is beyond 128 bits
  for (const auto &dims : {std::vector<i64>{9, 9, 9}, std::vector<i64>{huge, huge, huge}}) {
    Entries e{dims, 1, {}, {}, {}};
    e.add({8, 8, 8}, 1);
    e.add({1, 2, 3}, 1);
    e.add({1, 2, 4}, 1);
    e.add({1, 2, 3}, 1);
    expect_refused(Status::index, "entries 2 and 4 (counting from 1) are both at (2, 3, 4)",
                   [&] { formats::build_canonical(e.view(), true, 1); });
    e.values[1] = e.values[3] = 1e308;
    expect_refused(Status::argument, "the entries at (2, 3, 4) have a sum beyond the range of f64",
                   [&] { formats::build_canonical(e.view(), false, 1); });
  }
}

TEST(formats_refusals, dense_names_the_position) {
  const std::vector<i64> dims = {2, 3, 2};
  std::vector<double> a(12, 1.0);
  a[9] = nan;
  expect_refused(Status::argument, "element (1, 1, 1) (0-based): value nan, expected a finite number", [&] {
    formats::build_dense({dims, {}, ValueType::f64, a.data()}, 1);
  });
  const std::vector<i64> last_fastest = {6, 2, 1};
  expect_refused(Status::argument, "element (1, 1, 1)", [&] {
    formats::build_dense({dims, last_fastest, ValueType::f64, a.data()}, 2);
  });
  const std::vector<i64> enormous = {i64{1} << 32, i64{1} << 31};
  expect_refused(Status::shape, "more than 2^63 - 1 elements", [&] {
    formats::build_dense({enormous, {}, ValueType::f64, a.data()}, 1);
  });
  expect_refused(Status::host_memory, "out of host memory", [&] {
    formats::build_dense({std::vector<i64>{i64{1} << 32, i64{1} << 29}, {}, ValueType::f64, a.data()}, 1);
  });
  expect_refused(Status::shape, "2 strides for order 3", [&] {
    formats::build_dense({dims, std::span(last_fastest).first(2), ValueType::f64, a.data()}, 1);
  });
  expect_refused(Status::shape, "mode 1: dim = 0", [&] {
    formats::build_dense({std::vector<i64>{2, 0}, {}, ValueType::f64, a.data()}, 1);
  });
}

} // namespace
} // namespace td
