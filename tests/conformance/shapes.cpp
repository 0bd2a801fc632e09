// MTTKRP on tensors of unusual shape: wide indices, many modes, empty slices, no entries, one entry, repeated entries,
// one row with most of them; and dense arrays with any strides.
#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

/// Compares every mode (of many: the first, middle and last) with the definition. Values are made in f32, so that both
/// types hold them.
void expect_right(td_context *context, const td_tensor *x, const Entries &entries, int64_t rank, td_type type) {
  Random random(7);
  const Factors factors = random_factors(random, entries.dims, rank, type);
  const int order = entries.order();
  for (int mode = 0; mode<order; mode += order> 16 ? order / 2 - 1 : 1) {
    SCOPED_TRACE("rank " + std::to_string(rank) + ", mode " + std::to_string(mode));
    EXPECT_TRUE(within_bound(mttkrp(context, x, factors, mode, type), oracle_mttkrp(entries, factors, mode), type));
  }
}

class SparseShapes : public OnPlace {
protected:
  void expect_right_for(const Entries &entries, std::initializer_list<int64_t> ranks) {
    for (const td_type type : {TD_F32, TD_F64}) {
      const Tensor x = make_tensor(context(), format(), entries, {type, TD_I64, 0});
      for (const int64_t rank : ranks)
        expect_right(context(), x, entries, rank, type);
    }
  }
  Random random_{11};
};

// 8 modes of 11 bits: keys of 88 bits, so that one 64-bit word does not hold them.
TEST_P(SparseShapes, MoreThan64IndexBits) {
  expect_right_for(random_entries(random_, std::vector<int64_t>(8, 2000), 400, TD_F32), {1, 3});
}

// What does not fit two words of 64 bits is stored as coordinates, or refused where another format is forced.
TEST_P(SparseShapes, MoreThan128IndexBits) {
  for (const auto &dims : {std::vector<int64_t>(13, 600), std::vector<int64_t>(16, 600)}) { // 130 and 160 bits
    const Entries e = random_entries(random_, dims, 200, TD_F32);
    if (format() == "coo" || format() == "auto") {
      expect_right_for(e, {2});
      EXPECT_EQ(tensor_str(make_tensor(context(), format(), e), "format"), "coo");
    } else {
      try {
        make_tensor(context(), format(), e);
        FAIL() << "stored as " << format();
      } catch (const Error &f) {
        EXPECT_EQ(f.status(), TD_ERR_UNSUPPORTED) << f.what();
      }
    }
  }
}

TEST_P(SparseShapes, ExactlyTwoWords) {
  expect_right_for(random_entries(random_, std::vector<int64_t>(16, 256), 200, TD_F32), {1});
}

// The entries that differ only in the highest bit of one mode must not be taken for the same.
TEST_P(SparseShapes, CornersOfAWideTensor) {
  Entries corners(std::vector<int64_t>{4096, 4095, 2049, 1024, 513, 2000, 1025}); // 79 bits
  for (int corner = 0; corner < 128; ++corner) {
    std::vector<int64_t> c;
    for (int m = 0; m < 7; ++m)
      c.push_back((corner >> m) % 2 == 0 ? 0 : corners.dims[static_cast<std::size_t>(m)] - 1);
    corners.add(c, 1 + corner);
  }
  expect_right_for(corners, {1, 2});
}

TEST_P(SparseShapes, Order16) {
  expect_right_for(random_entries(random_, {3, 2, 1, 4, 2, 5, 2, 3, 2, 2, 3, 1, 2, 2, 6, 2}, 250, TD_F32), {1, 8, 17});
}

TEST_P(SparseShapes, Order64) {
  expect_right_for(random_entries(random_, std::vector<int64_t>(64, 2), 40, TD_F32), {2});
}

TEST_P(SparseShapes, DimsOfOne) { expect_right_for(random_entries(random_, {1, 1, 1}, 5, TD_F32), {1, 3}); }

TEST_P(SparseShapes, EmptySlices) {
  Entries e({1000, 50, 300});
  for (int k = 0; k < 120; ++k)
    e.add({100 + 7 * random_.below(9), 49 * random_.below(2), 3 * random_.below(90)},
          rounded(random_.symmetric(), TD_F32));
  expect_right_for(e, {3, 16});
}

TEST_P(SparseShapes, NoEntries) { expect_right_for(Entries({4, 3, 5}), {1, 8}); }

TEST_P(SparseShapes, OneEntry) {
  Entries e({40, 30, 50});
  e.add({39, 0, 17}, -2.5);
  expect_right_for(e, {1, 8});
}

TEST_P(SparseShapes, RepeatedEntriesAreSummed) {
  const Entries distinct = distinct_entries(random_, {9, 8, 7}, 60, TD_F32);
  Entries repeated(distinct.dims);
  for (int copy = 0; copy < 5; ++copy)
    for (int64_t k = 0; k < distinct.nnz(); ++k)
      repeated.add(distinct.coordinate(k), distinct.values[static_cast<std::size_t>(k)]);
  expect_right_for(repeated, {3, 8});
  const Tensor x = make_tensor(context(), format(), repeated);
  EXPECT_EQ(tensor_nnz(x), 60);
  EXPECT_EQ(get<int64_t>(td_tensor_get_i64, x, "duplicates"), 240);
}

TEST_P(SparseShapes, ExplicitZerosAreKept) {
  Entries e({5, 5, 5});
  for (int64_t i = 0; i < 5; ++i)
    e.add({i, (2 * i) % 5, 4 - i}, i % 2 == 0 ? 0.0 : 1.5);
  expect_right_for(e, {2});
  const Tensor x = make_tensor(context(), format(), e);
  EXPECT_EQ(tensor_nnz(x), 5);
  EXPECT_EQ(get<int64_t>(td_tensor_get_i64, x, "zeros"), 3);
}

// Row 5 of mode 0 has 60 % of the entries: whoever gives rows to workers must cope.
TEST_P(SparseShapes, HotRow) {
  Entries e({64, 300, 200});
  for (int k = 0; k < 5000; ++k)
    e.add({k % 5 < 3 ? 5 : random_.below(64), random_.below(300), random_.below(200)},
          rounded(random_.symmetric(), TD_F32));
  expect_right_for(e, {8, 17});
}

// Enough entries and rows that every worker and thread has several grains of work.
TEST_P(SparseShapes, ManyEntries) { expect_right_for(random_entries(random_, {700, 90, 1100}, 20000, TD_F32), {8}); }

INSTANTIATE_TEST_SUITE_P(All, SparseShapes, testing::ValuesIn(places({"coo", "blco", "sorted", "auto"})), place_name);

using DenseShapes = OnPlace;

// A 3 x 4 x 5 tensor taken from a larger array: modes in another order, one backwards, one with gaps.
TEST_P(DenseShapes, AnyStrides) {
  for (const td_type type : {TD_F32, TD_F64}) {
    Random random(3);
    const Entries cells = random_cells(random, {3, 4, 5}, TD_F32);
    const std::vector<int64_t> strides{-5, 2 * 15, 1};
    const int64_t origin = 10; // element (0, 0, 0): the first mode runs backwards
    Array array(type, origin + 3 * 30 + 4 + 1);
    for (int64_t k = 0; k < cells.nnz(); ++k) {
      const auto c = cells.coordinate(k);
      array.set(origin + c[0] * strides[0] + c[1] * strides[1] + c[2] * strides[2],
                cells.values[static_cast<std::size_t>(k)]);
    }
    const char *first = static_cast<const char *>(array.data()) + static_cast<std::size_t>(origin) * size_of(type);
    const Tensor x = make<Tensor>(td_tensor_create_dense, context(), 3, cells.dims.data(), strides.data(), type, first,
                                  TD_HOST, nullptr);
    expect_right(context(), x, cells, 3, type);
  }
}

TEST_P(DenseShapes, ZeroStrideRepeats) {
  for (const td_type type : {TD_F32, TD_F64}) {
    const Array line(type, std::vector<double>{1, 2, 3, 4});
    const std::vector<int64_t> dims{2, 4, 3}, strides{0, 1, 0};
    Entries cells(dims);
    for (int64_t k = 0; k < 24; ++k)
      cells.add({k % 2, k / 2 % 4, k / 8}, static_cast<double>(k / 2 % 4 + 1));
    const Tensor x = make<Tensor>(td_tensor_create_dense, context(), 3, dims.data(), strides.data(), type, line.data(),
                                  TD_HOST, nullptr);
    expect_right(context(), x, cells, 2, type);
  }
}

TEST_P(DenseShapes, Order16) {
  for (const td_type type : {TD_F32, TD_F64}) {
    Random random(5);
    const Entries cells = random_cells(random, {2, 1, 2, 2, 1, 1, 2, 3, 1, 2, 1, 2, 1, 2, 1, 2}, TD_F32);
    expect_right(context(), make_dense(context(), cells, type), cells, 5, type);
  }
}

// One long mode at either end and in the middle.
TEST_P(DenseShapes, LongModes) {
  for (const td_type type : {TD_F32, TD_F64}) {
    Random random(9);
    for (const auto &dims : std::vector<std::vector<int64_t>>{
             {4001, 3, 2}, {3, 4001, 2}, {2, 3, 4001}, {1, 5000}, {5000, 1}, {65, 33, 17}}) {
      const Entries cells = random_cells(random, dims, TD_F32);
      expect_right(context(), make_dense(context(), cells, type), cells, 6, type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseShapes, testing::ValuesIn(places({"dense"})), place_name);

} // namespace
