// Modes merged into one: which cells there are, how they are numbered, and the copy sorted by them.
#include <set>

#include <gtest/gtest.h>

#include "formats/merged.hpp"
#include "unit/formats_random.hpp"

namespace td {
namespace {

using Entries = test::CallerEntries<i64, double>;
using test::packed_of;

template <class T> std::vector<T> list(const T *from, i64 count) { return {from, from + count}; }

formats::Packed packed(Entries &e) { return packed_of(e.view()); }

TEST(formats_merged, cells_are_numbered_in_the_order_of_their_indices) {
  Entries e{{3, 4, 2}, 0, {}, {}, {}};
  e.add({2, 1, 0}, 1);
  e.add({0, 3, 1}, 2);
  e.add({2, 1, 1}, 3);
  e.add({1, 0, 1}, 4);
  formats::Packed p = packed(e);
  const auto x = formats::build_sorted_cells(p, std::vector<int>{0, 1}, {}, 1);
  // (1,0), (2,1), (0,3): mode 1 decides, mode 0 is the faster one.
  EXPECT_EQ(x.cells.dims, (std::vector<i64>{3, 4, 3}));
  EXPECT_EQ(list(x.cells.columns[0], 3), (std::vector<i64>{1, 2, 0}));
  EXPECT_EQ(list(x.cells.columns[1], 3), (std::vector<i64>{0, 1, 3}));
  EXPECT_EQ(list(x.cells.columns[2], 3), (std::vector<i64>{0, 1, 2}));
  EXPECT_EQ(list(x.cells.values.as<double>(), 3), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(x.sorted.dims, (std::vector<i64>{3, 2}));
  EXPECT_EQ(x.sorted.mode, 0);
  EXPECT_EQ(list(x.sorted.row_index.data(), 3), (std::vector<i64>{0, 1, 2}));
  EXPECT_EQ(list(x.sorted.row_begin.data(), 4), (std::vector<i64>{0, 1, 3, 4}));
  EXPECT_EQ(list(x.sorted.values.as<double>(), 4), (std::vector<double>{4, 1, 3, 2}));
  EXPECT_EQ(p.values.size(), 4); // lent, and given back
}

TEST(formats_merged, a_group_may_go_on_from_the_last_mode_to_the_first) {
  Entries e{{3, 4, 2}, 0, {}, {}, {}};
  e.add({2, 1, 0}, 1);
  e.add({2, 3, 0}, 2);
  e.add({0, 1, 1}, 3);
  formats::Packed p = packed(e);
  const auto x = formats::build_sorted_cells(p, std::vector<int>{2, 0}, {}, 1);
  EXPECT_EQ(x.sorted.dims, (std::vector<i64>{4, 2})); // mode 1, then the cells where mode 2 stood
  EXPECT_EQ(x.sorted.mode, 1);
  EXPECT_EQ(list(x.cells.columns[0], 2), (std::vector<i64>{1, 0})); // mode 2: (1,0) comes before (0,2)
  EXPECT_EQ(list(x.cells.columns[1], 2), (std::vector<i64>{0, 2}));
  EXPECT_EQ(list(x.sorted.row_begin.data(), 3), (std::vector<i64>{0, 1, 3}));
}

TEST(formats_merged, cells_are_counted) {
  auto few = test::random_entries<i64, double>({30, 40, 50}, 5000, 0, 3);
  std::set<std::pair<i64, i64>> cells;
  for (std::size_t k = 0; k < few.values.size(); ++k)
    cells.insert({few.columns[0][k], few.columns[2][k]});
  const formats::Packed some = packed(few); // of mode 1 all bits are left out
  EXPECT_EQ(formats::combinations_of(some, 2)(std::vector<int>{0, 6, 0}), static_cast<double>(cells.size()));
  EXPECT_EQ(formats::combinations_of(some, 2)(std::vector<int>{4, 6, 63}), 2); // rows 0 .. 15 and 16 .. 29

  // 300,000 entries over 90,000 cells: a cell stays empty with probability exp(-10/3), so 86,800 are expected. One in
  // 32 is counted, about 2,700: a standard deviation of 2 %.
  auto many = test::random_entries<i64, double>({300, 300, 1000}, 300000, 0, 4);
  const formats::Packed all = packed(many);
  EXPECT_NEAR(formats::combinations_of(all, 2)(std::vector<int>{0, 0, 10}), 86800, 8000);
  EXPECT_NEAR(formats::spread_evenly(all.dims, all.nnz())(std::vector<int>{0, 0, 10}), 86800, 100);
}

TEST(formats_merged, modes_whose_cells_need_too_many_marks_are_not_merged) {
  Entries e{{i64{1} << 20, i64{1} << 20, 5}, 0, {}, {}, {}};
  e.add({1, 2, 3}, 1);
  const auto p = packed(e);
  EXPECT_FALSE(formats::can_merge(p.dims, p.nnz(), std::vector<int>{0, 1}));
  EXPECT_TRUE(formats::can_merge(p.dims, p.nnz(), std::vector<int>{0, 2})); // 23 bits
}

} // namespace
} // namespace td
