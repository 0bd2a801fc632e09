// MTTKRP on partial products against the reference: every mode, type and rank, parts of the rows and of the cells; on
// the CPU the same bits for any number of threads and any rows, and on each device with memory of its own.
#include <cstdlib>
#include <sstream>

#include "core/error.hpp"
#include "kernels/loader.hpp"
#include "unit/kernels_copies.hpp"

namespace td::test {
namespace {

using kernels::Backend;

struct Shape {
  std::vector<i64> dims;
  unsigned seed;
};

// A mode alone before and behind, short and long modes, more rows of the result than fit a group, and many parts; rows
// that keep all multiprocessors busy.
const Shape shapes[] = {{{7, 9}, 1},   {{1, 5, 3}, 2},       {{70, 4, 6}, 3},  {{3, 4, 70}, 4}, {{2, 3, 4, 5}, 5},
                        {{700, 3}, 6}, {{3, 5, 2, 2, 3}, 7}, {{400, 2, 9}, 8}, {{3, 4300}, 9}};

i64 count_of(const std::vector<i64> &dims) {
  i64 count = 1;
  for (const i64 d : dims)
    count *= d;
  return count;
}

template <class T> struct Numbers {
  std::vector<i64> dims;
  TestMatrix<T> rows;
  std::vector<TestMatrix<T>> factors;

  Numbers(const Shape &shape, i64 rank)
      : dims(shape.dims), rows(TestMatrix<T>::random(count_of(dims), rank, rank % 2, shape.seed)),
        factors(random_factors<T>(dims, rank, 1, shape.seed + 10)) {}
};

/// The matrices in the backend's memory.
std::vector<ConstMatrix> copied(const Backend &backend, Copies &copies, std::vector<ConstMatrix> matrices) {
  for (ConstMatrix &a : matrices)
    if (backend.has_own_memory())
      a.data = copies.of_bytes(a.data, a.rows * a.ld * size_of(a.type));
  return matrices;
}

template <class T> TestMatrix<T> product(Backend &backend, const Numbers<T> &x, int mode, Range rows, Range cells) {
  Copies copies(backend);
  std::vector<ConstMatrix> factors = copied(backend, copies, views(x.factors));
  const auto &own = x.factors[static_cast<std::size_t>(mode)];
  Placed<T> out(backend, TestMatrix<T>(own.rows(), own.cols(), 2));
  backend.mttkrp_cells({x.dims, copied(backend, copies, {x.rows.view()}).front()},
                       {mode, factors, out.view(), rows, cells});
  return out.download();
}

/// n terms of at most 1, of some roundings each in T and summed in f64, whatever their order.
template <class T> double allowed(i64 n) {
  return static_cast<double>(n) * (8 * epsilon_of(value_type_of<T>) + static_cast<double>(n) * 0x1p-52);
}

template <class T> void expect_near(const TestMatrix<T> &got, const TestMatrix<T> &expected, Range rows, i64 terms) {
  for (i64 i = 0; i < got.rows(); ++i)
    for (i64 r = 0; r < got.cols(); ++r) {
      if (i < rows.begin || i >= rows.end)
        ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
      else
        ASSERT_NEAR(got.at(i, r), expected.at(i, r), allowed<T>(terms)) << "row " << i << ", column " << r;
    }
  EXPECT_TRUE(got.padding_untouched());
}

/// Calls check(numbers, mode, rows, cells) for all that is to be compared.
template <class T, class Check> void for_all(Check &&check) {
  for (const Shape &shape : shapes)
    for (const i64 rank : test_ranks) {
      const Numbers<T> x(shape, rank);
      const i64 count = x.rows.rows();
      for (int mode = 0; mode < static_cast<int>(shape.dims.size()); ++mode) {
        const i64 n = shape.dims[static_cast<std::size_t>(mode)];
        for (const Range rows : {Range{0, n}, Range{n / 3, n}})
          for (const Range cells :
               {Range{0, count}, Range{count / 3, count - count / 4}, Range{count / 2, count / 2}}) {
            SCOPED_TRACE(testing::Message() << shape.dims.size() << " modes, shape of seed " << shape.seed << ", mode "
                                            << mode << ", rank " << rank << ", rows from " << rows.begin << ", cells "
                                            << cells.begin << " to " << cells.end);
            check(x, mode, rows, cells);
          }
      }
    }
}

TEST(KernelsCells, ByHand) {
  // Cells (0, 0), (1, 0), (0, 1), (1, 1) of one column: rows 1, 2, 3, 4; factors (5, 6) and (7, 8).
  const std::vector<double> rows{1, 2, 3, 4}, first{5, 6}, second{7, 8};
  const std::vector<i64> dims{2, 2};
  const auto matrix = [](const std::vector<double> &a) {
    return ConstMatrix{a.data(), ValueType::f64, std::ssize(a), 1, 1};
  };
  const std::vector<ConstMatrix> factors{matrix(first), matrix(second)};
  for (const auto &backend : {kernels::reference::make_backend(), cpu_backend(2)}) {
    std::vector<double> out(2);
    const Matrix to{out.data(), ValueType::f64, 2, 1, 1};
    backend->mttkrp_cells({dims, matrix(rows)}, {0, factors, to, {0, 2}, {0, 4}});
    EXPECT_EQ(out, (std::vector<double>{1 * 7 + 3 * 8, 2 * 7 + 4 * 8}));
    backend->mttkrp_cells({dims, matrix(rows)}, {1, factors, to, {0, 2}, {1, 4}});
    EXPECT_EQ(out, (std::vector<double>{2 * 6, 3 * 5 + 4 * 6}));
  }
}

template <class T> void check_cpu() {
  const auto reference = kernels::reference::make_backend();
  for_all<T>([&](const Numbers<T> &x, int mode, Range rows, Range cells) {
    const auto expected = product(*reference, x, mode, rows, cells);
    const auto one = product(*cpu_backend(1), x, mode, rows, cells);
    expect_near(one, expected, rows, x.rows.rows());
    EXPECT_TRUE(product(*cpu_backend(3), x, mode, rows, cells).same_bits(one));
    const auto all = product(*cpu_backend(2), x, mode, {0, one.rows()}, cells);
    for (i64 i = rows.begin; i < rows.end; ++i)
      for (i64 r = 0; r < one.cols(); ++r)
        ASSERT_EQ(all.at(i, r), one.at(i, r)) << "row " << i << " depends on which are asked for";
  });
}

TEST(KernelsCells, Cpu) {
  check_cpu<double>();
  check_cpu<float>();
}

template <class T> void check_device(Backend &device) {
  const auto reference = kernels::reference::make_backend();
  for_all<T>([&](const Numbers<T> &x, int mode, Range rows, Range cells) {
    const auto got = product(device, x, mode, rows, cells);
    expect_near(got, product(*reference, x, mode, rows, cells), rows, x.rows.rows());
    EXPECT_TRUE(product(device, x, mode, rows, cells).same_bits(got)) << "twice is not the same";
  });
}

template <class T> TestMatrix<T> slabs(Backend &backend, const Numbers<T> &x, const std::vector<T> &values) {
  Copies copies(backend);
  std::vector<ConstMatrix> factors = copied(backend, copies, views(x.factors));
  factors.front() = factors.back() = {}; // not read
  const kernels::TensorView dense = kernels::DenseView{x.dims, value_type_of<T>, values.data()};
  const auto there = std::get<kernels::DenseView>(backend.has_own_memory() ? copies.of(dense) : dense);
  Placed<T> out(backend, TestMatrix<T>(x.dims.front() * x.dims.back(), x.rows.cols(), 1));
  backend.mttkrp_slabs(there, factors, out.view());
  return out.download();
}

/// Against the reference, which takes one slab after the other.
template <class T> void check_slabs(const std::vector<std::shared_ptr<Backend>> &backends) {
  const auto reference = kernels::reference::make_backend();
  for (const Shape &shape :
       {Shape{{7, 9, 3}, 21}, Shape{{1, 5, 3}, 22}, Shape{{70, 4, 6, 5}, 23}, Shape{{5, 300, 4}, 24},
        Shape{{30, 1, 1}, 25}, Shape{{3, 2, 90, 7, 2}, 26}, Shape{{300, 3, 2}, 27}})
    for (const i64 rank : test_ranks) {
      SCOPED_TRACE(testing::Message() << "shape of seed " << shape.seed << ", rank " << rank);
      const Numbers<T> x(shape, rank);
      std::vector<T> values;
      for (i64 k = 0; k < count_of(shape.dims); ++k)
        values.push_back(static_cast<T>((k * 7 + shape.seed) % 13) / 13 - static_cast<T>(0.4));
      const auto expected = slabs(*reference, x, values);
      const i64 depth = count_of(shape.dims) / expected.rows();
      TestMatrix<T> first = expected;
      for (std::size_t k = 0; k < backends.size(); ++k) {
        const auto got = slabs(*backends[k], x, values);
        // Sums of a CPU are in T over at most 256 terms.
        for (i64 i = 0; i < got.rows(); ++i)
          for (i64 r = 0; r < rank; ++r)
            ASSERT_NEAR(got.at(i, r), expected.at(i, r),
                        static_cast<double>((depth + 8) * depth) * epsilon_of(value_type_of<T>));
        EXPECT_TRUE(got.padding_untouched());
        EXPECT_TRUE(slabs(*backends[k], x, values).same_bits(got)) << "twice is not the same";
        first = k == 0 ? got : first;
        EXPECT_TRUE(got.same_bits(first)) << "the bits depend on the threads";
      }
    }
}

TEST(KernelsSlabs, Cpu) {
  const std::vector<std::shared_ptr<Backend>> backends{cpu_backend(1), cpu_backend(2), cpu_backend(3)};
  check_slabs<double>(backends);
  check_slabs<float>(backends);
}

TEST(KernelsCells, Devices) {
  const char *devices = std::getenv("TD_TEST_DEVICES");
  std::istringstream words(devices == nullptr ? "" : devices);
  int found = 0;
  for (std::string word; words >> word;)
    try {
      for (const auto &backend : kernels::open_backends(kernels::parse_devices(word), 1))
        if (backend->has_own_memory()) {
          check_device<double>(*backend);
          check_device<float>(*backend);
          check_slabs<double>({backend});
          check_slabs<float>({backend});
          ++found;
        }
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::backend_unavailable) << error.what();
    }
  if (found == 0)
    GTEST_SKIP() << "TD_TEST_DEVICES names no device with memory of its own that is there";
}

} // namespace
} // namespace td::test
