// Kernels of backends with memory of their own against the reference, for each device string in TD_TEST_DEVICES.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/error.hpp"
#include "kernels/loader.hpp"
#include "tensor/resident.hpp"
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::Backend;
using kernels::DeviceBuffer;
using kernels::SolveFailure;
using kernels::SolveRecord;
using Numbers = std::vector<double>;

/// Calls compute(out) for `size` numbers in the backend's memory, which begin as NaN.
template <class F> Numbers numbers(Backend &backend, i64 size, F &&compute) {
  Numbers host(static_cast<std::size_t>(size), std::nan(""));
  const DeviceBuffer out(backend, size * 8, "a test");
  backend.upload(out.data(), host.data(), out.bytes());
  compute(out.f64());
  backend.download(host.data(), out.data(), out.bytes());
  return host;
}

DeviceBuffer upload(Backend &backend, const double *from, i64 size) {
  DeviceBuffer to(backend, size * 8, "a test");
  backend.upload(to.data(), from, to.bytes());
  return to;
}

std::vector<i64> ranks() { return light() ? std::vector<i64>{3, 33} : test_ranks; }

class KernelsDevice : public testing::Test {
protected:
  static std::vector<std::shared_ptr<Backend>> open(int threads) {
    std::vector<std::shared_ptr<Backend>> all;
    const char *devices = std::getenv("TD_TEST_DEVICES");
    std::istringstream words(devices == nullptr ? "" : devices);
    for (std::string word; words >> word;)
      try {
        for (auto &backend : kernels::open_backends(kernels::parse_devices(word, true), threads))
          if (backend->has_own_memory())
            all.push_back(std::move(backend));
      } catch (const Error &error) {
        EXPECT_EQ(error.status(), Status::backend_unavailable) << error.what();
      }
    return all;
  }
  void SetUp() override {
    backends_ = open(1);
    if (backends_.empty())
      GTEST_SKIP() << "TD_TEST_DEVICES names no device with memory of its own that is there";
  }
  const std::shared_ptr<Backend> reference_ = kernels::reference::make_backend();
  std::vector<std::shared_ptr<Backend>> backends_;
};

void expect_near(const Numbers &got, const Numbers &expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    ASSERT_NEAR(got[k], expected[k], tolerance) << "at " << k;
}

// f64 sums of n terms of at most 1 in any order, and the same in the reference.
double allowed_sum(i64 n) { return 2.0 * static_cast<double>(n * n) * 0x1p-53; }

template <class T> void check_sums(Backend &reference, Backend &device) {
  for (const i64 rank : ranks())
    for (const i64 rows : {i64{1}, i64{27}, i64{3001}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank << ", " << name_of(value_type_of<T>));
      const auto a = TestMatrix<T>::random(rows, rank, rank % 3, 41);
      const auto b = TestMatrix<T>::random(rows, rank, 2, 42);
      const Placed<T> on_a(device, a), on_b(device, b);
      const auto check = [&](i64 size, auto &&compute) {
        const auto expected =
            numbers(reference, size, [&](double *out) { compute(reference, a.view(), b.view(), out); });
        const auto run = [&] {
          return numbers(device, size, [&](double *out) { compute(device, on_a.view(), on_b.view(), out); });
        };
        const Numbers got = run();
        expect_near(got, expected, allowed_sum(rows));
        EXPECT_EQ(got, run()) << "twice is not the same";
      };
      using M = ConstMatrix;
      check(rank * rank, [](Backend &k, M x, M, double *out) { k.gram(x, out); });
      check(rank, [](Backend &k, M x, M, double *out) { k.column_norms(x, kernels::NormKind::two, out); });
      check(rank, [](Backend &k, M x, M, double *out) { k.column_norms(x, kernels::NormKind::max, out); });
      check(rank, [](Backend &k, M x, M y, double *out) { k.column_dots(x, y, out); });
    }
}

TEST_F(KernelsDevice, SumsOverRows) {
  for (const auto &device : backends_) {
    check_sums<float>(*reference_, *device);
    check_sums<double>(*reference_, *device);
  }
}

// So many pairs of column tiles are more than a grid has blocks in its second dimension.
TEST_F(KernelsDevice, GramOfManyColumns) {
  constexpr i64 rank = 11600, rows = 2;
  TestMatrix<float> a(rows, rank, 0);
  for (i64 r = 0; r < rank; ++r) {
    a.at(0, r) = static_cast<float>(r % 1000);
    a.at(1, r) = static_cast<float>(r % 7 - 3);
  }
  for (const auto &device : backends_) {
    const Placed<float> on_a(*device, a);
    const DeviceBuffer gram(*device, rank * rank * 8, "a test");
    device->set_zero({gram.data(), ValueType::f64, rank, rank, rank});
    device->gram(on_a.view(), gram.f64());
    Numbers got(rank), expected(rank);
    for (const i64 row : {i64{0}, i64{5800}, rank - 33, rank - 1}) {
      for (i64 r = 0; r < rank; ++r)
        expected[static_cast<std::size_t>(r)] =
            double{a.at(0, row)} * double{a.at(0, r)} + double{a.at(1, row)} * double{a.at(1, r)};
      device->download(got.data(), gram.f64() + row * rank, rank * 8);
      EXPECT_EQ(got, expected) << "row " << row;
    }
  }
}

TEST_F(KernelsDevice, NoRowsGiveZeros) {
  for (const auto &device : backends_) {
    const ConstMatrix none(nullptr, ValueType::f64, 0, 3, 3);
    EXPECT_EQ(numbers(*device, 9, [&](double *out) { device->gram(none, out); }), Numbers(9, 0.0));
    EXPECT_EQ(numbers(*device, 3, [&](double *out) { device->column_dots(none, none, out); }), Numbers(3, 0.0));
    EXPECT_EQ(numbers(*device, 3, [&](double *out) { device->column_norms(none, kernels::NormKind::max, out); }),
              Numbers(3, 0.0));
  }
}

template <class T> void check_products(Backend &reference, Backend &device) {
  for (const i64 rank : ranks())
    for (const i64 rows : {i64{1}, i64{1025}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
      const auto m = TestMatrix<T>::random(rows, rank, 3, 51);
      const auto p = TestMatrix<double>::random(rank, rank, 0, 52);
      auto d = TestMatrix<double>::random(1, rank, 0, 53);
      d.at(0, rank / 2) = 0;
      auto expected = m;
      reference.multiply(m.view(), &p.at(0, 0), expected.view());
      auto divided = m;
      reference.divide_columns(divided.view(), &d.at(0, 0));

      const Placed<T> on_m(device, m);
      const DeviceBuffer on_p = upload(device, &p.at(0, 0), rank * rank);
      const DeviceBuffer on_d = upload(device, &d.at(0, 0), rank);
      Placed<T> apart(device, TestMatrix<T>(rows, rank, 1)), in_place(device, m), quotient(device, m);
      device.multiply(on_m.view(), on_p.f64(), apart.view());
      device.multiply(in_place.view(), on_p.f64(), in_place.view());
      device.divide_columns(quotient.view(), on_d.f64());
      const auto a = apart.download(), b = in_place.download(), q = quotient.download();
      // rank terms of at most 1 in f64, rounded once to T
      const double tolerance = static_cast<double>(rank * rank) * (0x1p-52 + epsilon_of(value_type_of<T>));
      for (i64 i = 0; i < rows; ++i)
        for (i64 r = 0; r < rank; ++r) {
          ASSERT_NEAR(a.at(i, r), expected.at(i, r), tolerance);
          ASSERT_EQ(b.at(i, r), a.at(i, r));
          ASSERT_EQ(q.at(i, r), divided.at(i, r));
        }
      EXPECT_TRUE(a.padding_untouched());
      EXPECT_TRUE(b.padding_untouched());
      EXPECT_TRUE(q.padding_untouched());
    }
}

TEST_F(KernelsDevice, TransposedRowsAndNotFinite) {
  for (const auto &device : backends_) {
    check_transposed<float>(*device);
    check_transposed<double>(*device);
    check_rows_of_lists<float>(*device);
    check_rows_of_lists<double>(*device);
    check_first_not_finite<float>(*device);
    check_first_not_finite<double>(*device);
  }
}

TEST_F(KernelsDevice, MultiplyAndDivide) {
  for (const auto &device : backends_) {
    check_products<float>(*reference_, *device);
    check_products<double>(*reference_, *device);
  }
}

template <class T> void check_random(Backend &reference, Backend &device) {
  TestMatrix<T> expected(301, 7, 2);
  reference.random_uniform(expected.view(), 5, 1, 0);
  Placed<T> got(device, TestMatrix<T>(301, 7, 2));
  device.random_uniform(got.view().slice(0, 100), 5, 1, 0);
  device.random_uniform(got.view().slice(100, 301), 5, 1, 100);
  EXPECT_TRUE(got.download().same_bits(expected));
}

TEST_F(KernelsDevice, RandomIsTheSameEverywhere) {
  for (const auto &device : backends_) {
    check_random<float>(*reference_, *device);
    check_random<double>(*reference_, *device);
  }
}

TEST_F(KernelsDevice, Hadamard) {
  for (const auto &device : backends_)
    for (const i64 rank : ranks())
      for (const std::size_t modes : {3U, 6U}) { // kernels may take some modes at a time
        const auto a = TestMatrix<double>::random(rank, rank, 0, 54);
        const DeviceBuffer on_a = upload(*device, &a.at(0, 0), rank * rank);
        const std::vector<const double *> host(modes, &a.at(0, 0)), placed(modes, on_a.f64());
        EXPECT_EQ(numbers(*device, rank * rank, [&](double *v) { device->hadamard(placed, rank, 0.5, v); }),
                  numbers(*reference_, rank * rank, [&](double *v) { reference_->hadamard(host, rank, 0.5, v); }));
      }
}

struct Factored {
  Numbers f, p; // p = f^T f
  SolveRecord record;
};

Factored factor(Backend &device, const Numbers &v, double cutoff = 1e-12) {
  const auto rank = static_cast<i64>(std::lround(std::sqrt(static_cast<double>(v.size()))));
  const DeviceBuffer on_v = upload(device, v.data(), rank * rank);
  const DeviceBuffer record(device, sizeof(SolveRecord), "a test");
  Factored out;
  out.f = numbers(device, rank * rank, [&](double *f) {
    device.factor_normal(on_v.f64(), rank, cutoff, f, static_cast<SolveRecord *>(record.data()));
  });
  out.p.assign(out.f.size(), 0.0);
  for (i64 k = 0; k < rank; ++k)
    for (i64 i = 0; i < rank; ++i)
      for (i64 j = 0; j < rank; ++j)
        out.p[static_cast<std::size_t>(i * rank + j)] +=
            out.f[static_cast<std::size_t>(k * rank + i)] * out.f[static_cast<std::size_t>(k * rank + j)];
  device.download(&out.record, record.data(), sizeof out.record);
  return out;
}

TEST_F(KernelsDevice, FactorNormal) {
  const std::vector<Numbers> cases{{4, 2, 2, 3},         {1, 1, 1, 1}, {2, 0, 0, 0},       {0, 0, 0, 0},
                                   {1, 1, 1, 1 + 1e-14}, {3},          {0x1p-40, 0, 0, 4}, {1, 0, 0, -1}};
  for (const auto &device : backends_)
    for (const Numbers &v : cases)
      for (const double scale : {1.0, 0x1p-960, 0x1p1000}) {
        Numbers scaled = v;
        for (double &x : scaled)
          x *= scale;
        Factored got = factor(*device, scaled), expected = factor(*reference_, scaled);
        SCOPED_TRACE(testing::Message() << v[0] << " " << v.back() << ", scale " << scale);
        for (std::size_t k = 0; k < v.size(); ++k)
          EXPECT_NEAR(got.p[k] * scale, expected.p[k] * scale, 4e-15 * std::max(1.0, std::abs(expected.p[k] * scale)));
        EXPECT_EQ(got.record.effective_rank, expected.record.effective_rank);
        EXPECT_EQ(got.record.used_eigen, expected.record.used_eigen);
        EXPECT_NEAR(got.record.condition / expected.record.condition, 1, 0.1);
      }
}

TEST_F(KernelsDevice, FactorNormalOfGrams) {
  for (const auto &device : backends_)
    for (const i64 rank : light() ? std::vector<i64>{5, 33} : std::vector<i64>{2, 5, 31, 32, 33, 63, 64, 65, 150}) {
      for (const i64 rows : {4 * rank, rank / 2}) { // of full rank, and not
        SCOPED_TRACE(testing::Message() << "rank " << rank << ", " << rows << " rows");
        const auto a = TestMatrix<double>::random(rows, rank, 0, 61);
        const Numbers v = numbers(*reference_, rank * rank, [&](double *g) { reference_->gram(a.view(), g); });
        const Factored got = factor(*device, v), expected = factor(*reference_, v);
        EXPECT_EQ(got.record.effective_rank, expected.record.effective_rank);
        EXPECT_EQ(got.record.used_eigen, expected.record.used_eigen);
        // Nonzero eigenvalues of these are above 0.01 and conditions below 1e4.
        expect_near(got.p, expected.p, 1e5 * static_cast<double>(rank) * 0x1p-53);
        EXPECT_EQ(factor(*device, v).f, got.f);
      }
    }
}

// Ranks are those of the kernel for small ones, and beyond.
TEST_F(KernelsDevice, FactorNormalRecordsWhatIsNotFinite) {
  for (const auto &device : backends_)
    for (const i64 rank : {i64{2}, i64{70}}) {
      Numbers v(static_cast<std::size_t>(rank * rank), 0.0);
      for (i64 r = 0; r < rank; ++r)
        v[static_cast<std::size_t>(r * rank + r)] = 4;
      EXPECT_EQ(factor(*device, v).f[0], 0.5);
      for (const double bad : {static_cast<double>(NAN), -static_cast<double>(INFINITY)}) {
        v.back() = bad;
        const Factored got = factor(*device, v);
        EXPECT_TRUE(std::all_of(got.f.begin(), got.f.end(), [](double x) { return std::isnan(x); }));
        EXPECT_EQ(got.record.failure, SolveFailure::not_finite);
        EXPECT_EQ(got.record.at, rank * rank - 1);
        EXPECT_TRUE(got.record.value == bad || (std::isnan(bad) && std::isnan(got.record.value)));
      }
    }
}

template <class T> void expect_same_solution(Backend &reference, Backend &device, i64 rank, bool singular) {
  const i64 rows = 67; // two tiles of rows and a rest
  const auto a = TestMatrix<double>::random(singular ? std::max<i64>(rank / 2, 1) : 4 * rank, rank, 0, 61);
  const Numbers v = numbers(reference, rank * rank, [&](double *g) { reference.gram(a.view(), g); });
  Numbers weights(static_cast<std::size_t>(rank));
  for (i64 r = 0; r < rank; ++r)
    weights[static_cast<std::size_t>(r)] = 1 + 0.25 * static_cast<double>(r % 5);
  for (const bool weighted : {false, true}) {
    SCOPED_TRACE(testing::Message() << "rank " << rank << (singular ? ", singular" : "")
                                    << (weighted ? ", weights" : ""));
    const auto solve = [&](Backend &backend) {
      const DeviceBuffer on_v = upload(backend, v.data(), rank * rank);
      const DeviceBuffer f(backend, rank * rank * 8, "a test"), record(backend, sizeof(SolveRecord), "a test");
      backend.factor_normal(on_v.f64(), rank, 1e-12, f.f64(), static_cast<SolveRecord *>(record.data()));
      const DeviceBuffer on_weights = upload(backend, weights.data(), rank);
      const Placed<T> on_m(backend, TestMatrix<T>::random(rows, rank, 3, 62));
      Placed<T> on_x(backend, TestMatrix<T>::random(rows, rank, 5, 63));
      backend.solve_normal({rank, on_v.f64(), f.f64(), static_cast<const SolveRecord *>(record.data())}, on_m.view(),
                           {nullptr, weighted ? on_weights.f64() : nullptr}, on_x.view());
      return on_x.download();
    };
    const auto expected = solve(reference), got = solve(device);
    // Eigenvalues above 0.01 and entries near 1: values up to 100 * rank, in T.
    const double tolerance = 1e4 * static_cast<double>(rank) * epsilon_of(value_type_of<T>);
    for (i64 i = 0; i < rows; ++i)
      for (i64 r = 0; r < rank; ++r)
        ASSERT_NEAR(static_cast<double>(got.at(i, r)), static_cast<double>(expected.at(i, r)), tolerance)
            << i << " " << r;
    EXPECT_TRUE(got.padding_untouched());
  }
}

TEST_F(KernelsDevice, SolveNormal) {
  for (const auto &device : backends_)
    for (const i64 rank : light() ? std::vector<i64>{5, 33} : std::vector<i64>{1, 2, 7, 16, 31, 32, 33, 64, 65, 150})
      for (const bool singular : {false, true}) {
        expect_same_solution<double>(*reference_, *device, rank, singular);
        expect_same_solution<float>(*reference_, *device, rank, singular);
      }
}

/// A solve as an update of CP-ALS asks for it, of columns that are scaled.
struct Update {
  Numbers v, f, scales, sums, gram, finished;
  SolveRecord record;
  std::vector<double> a; // [rows][rank]
};

template <class T> Update update_by(Backend &backend, i64 rows, i64 rank, bool singular) {
  const auto n = static_cast<std::size_t>(rank);
  const auto a = TestMatrix<double>::random(singular ? std::max<i64>(rank / 2, 1) : 4 * rank, rank, 0, 61);
  const Numbers ones(n * n, 1.0);
  Numbers gram_of_a(n * n), scales(4 * n);
  kernels::reference::make_backend()->gram(a.view(), gram_of_a.data());
  for (std::size_t k = 0; k < scales.size(); ++k)
    scales[k] = 1 + 0.25 * static_cast<double>(k % 7);
  const DeviceBuffer first = upload(backend, gram_of_a.data(), rank * rank),
                     second = upload(backend, ones.data(), rank * rank);
  const DeviceBuffer columns = upload(backend, scales.data(), 4 * rank);
  const double *const grams[] = {first.f64(), second.f64()};
  const double *const of_others[] = {columns.f64(), columns.f64() + rank};
  const auto room = [&](i64 count) { return DeviceBuffer(backend, count * 8, "a test"); };
  const DeviceBuffer v = room(rank * rank), f = room(rank * rank), vectors = room(3 * rank),
                     record(backend, sizeof(SolveRecord), "a test");
  const kernels::SolveScalesOut out{vectors.f64(), vectors.f64() + rank, vectors.f64() + 2 * rank};
  {
    const kernels::Beside beside(backend);
    backend.prepare_solve({grams, of_others, columns.f64() + 2 * rank, columns.f64() + 3 * rank, rank}, 0, 1e-12,
                          {v.f64(), f.f64(), static_cast<SolveRecord *>(record.data()), out});
  }
  backend.join_beside();
  const Placed<T> m(backend, TestMatrix<T>::random(rows, rank, 3, 62));
  Placed<T> x(backend, TestMatrix<T>::random(rows, rank, 5, 63));
  const DeviceBuffer gram = room(rank * rank), sums = room(2 * rank), finished = room(2 * rank);
  backend.solve_and_sum({rank, v.f64(), f.f64(), static_cast<const SolveRecord *>(record.data())}, m.view(), out.read(),
                        x.view(), {gram.f64(), sums.f64(), sums.f64() + rank});
  const auto brought = [&](const DeviceBuffer &from) {
    Numbers to(static_cast<std::size_t>(from.bytes() / 8));
    backend.download(to.data(), from.data(), from.bytes());
    return to;
  };
  Update u;
  const auto solved = x.download();
  EXPECT_TRUE(solved.padding_untouched());
  for (i64 i = 0; i < rows; ++i)
    for (i64 r = 0; r < rank; ++r)
      u.a.push_back(static_cast<double>(solved.at(i, r)));
  u.gram = brought(gram);
  EXPECT_EQ(numbers(backend, rank * rank, [&](double *g) { backend.gram(x.view(), g); }), u.gram);
  u.sums = brought(sums);
  EXPECT_EQ(numbers(backend, rank, [&](double *g) { backend.column_norms(x.view(), kernels::NormKind::max, g); }),
            Numbers(u.sums.begin(), u.sums.begin() + rank));
  u.v = brought(v);
  u.f = brought(f);
  u.scales = brought(vectors);
  backend.download(&u.record, record.data(), record.bytes());
  backend.finish_columns(rank, out.solved, sums.f64(), finished.f64(), finished.f64() + rank, gram.f64());
  u.finished = brought(finished);
  const Numbers normalized = brought(gram);
  u.finished.insert(u.finished.end(), normalized.begin(), normalized.end());

  Placed<T> again(backend, TestMatrix<T>::random(rows, rank, 5, 63));
  const DeviceBuffer at_once = room(2 * rank);
  backend.solve_and_sum({rank, v.f64(), f.f64(), static_cast<const SolveRecord *>(record.data())}, m.view(), out.read(),
                        again.view(), {gram.f64(), sums.f64(), sums.f64() + rank, at_once.f64(), at_once.f64() + rank});
  Numbers finished_at_once = brought(at_once);
  const Numbers normalized_at_once = brought(gram);
  finished_at_once.insert(finished_at_once.end(), normalized_at_once.begin(), normalized_at_once.end());
  EXPECT_EQ(finished_at_once, u.finished);
  EXPECT_EQ(brought(sums), u.sums);
  return u;
}

template <class T> void expect_same_update(Backend &reference, Backend &device, i64 rows, i64 rank, bool singular) {
  SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank << (singular ? ", singular" : ""));
  const Update got = update_by<T>(device, rows, rank, singular),
               expected = update_by<T>(reference, rows, rank, singular);
  EXPECT_EQ(got.v, expected.v);
  EXPECT_EQ(got.scales, expected.scales);
  EXPECT_EQ(got.record.effective_rank, expected.record.effective_rank);
  // The tolerance is SolveNormal's; sums are of products of two such numbers.
  const double tolerance = 1e4 * static_cast<double>(rank) * epsilon_of(value_type_of<T>);
  expect_near(got.a, expected.a, tolerance);
  const double largest = 1 + *std::max_element(expected.sums.begin(), expected.sums.begin() + rank);
  expect_near(got.sums, expected.sums, tolerance * static_cast<double>(rows));
  expect_near(got.gram, expected.gram, 2 * tolerance * largest * static_cast<double>(rows));
  for (std::size_t k = 0; k < got.finished.size(); ++k) // scales are above 0.1
    EXPECT_NEAR(got.finished[k], expected.finished[k], 300 * tolerance * largest * static_cast<double>(rows)) << k;
  EXPECT_EQ(update_by<T>(device, rows, rank, singular).gram, got.gram) << "twice is not the same";
}

// What an update of CP-ALS asks for, in kernels of their own up to rank 32 and 64.
TEST_F(KernelsDevice, UpdateOfScaledColumns) {
  for (const auto &device : backends_)
    for (const i64 rank : light() ? std::vector<i64>{5, 32} : std::vector<i64>{1, 2, 7, 16, 31, 32, 33, 64, 65})
      for (const i64 rows : light() ? std::vector<i64>{67} : std::vector<i64>{1, 67, 1025, 70000})
        for (const bool singular : {false, true}) {
          if (rows == 70000 && (rank != 31 || singular))
            continue; // one rank where warps have more than one tile of rows
          expect_same_update<double>(*reference_, *device, rows, rank, singular);
          expect_same_update<float>(*reference_, *device, rows, rank, singular);
        }
}

template <class T> void expect_same_combination(Backend &reference, Backend &device, i64 rows, i64 cols) {
  const auto parts = TestMatrix<T>::random(rows, cols, 3, 71);
  for (const auto how : {kernels::Combine::sum, kernels::Combine::max}) {
    std::vector<T> expected(static_cast<std::size_t>(cols)), got(expected.size());
    reference.combine_rows(parts.view(), how, expected.data());
    const Placed<T> there(device, parts);
    const DeviceBuffer out(device, cols * static_cast<i64>(sizeof(T)), "a test's sums");
    device.combine_rows(there.view(), how, out.data());
    device.download(got.data(), out.data(), out.bytes());
    EXPECT_EQ(got, expected) << rows << " x " << cols;
  }
}

/// `count` arrays of other widths, which lie in one matrix, each combined as combine_rows does.
void expect_combined_together(Backend &device, std::size_t count) {
  constexpr i64 rows = 3, width = 400;
  const Placed<double> parts(device, TestMatrix<double>::random(rows, static_cast<i64>(count) * width, 0, 72));
  const ConstMatrix all = parts.view();
  std::vector<DeviceBuffer> out, expected;
  std::vector<kernels::Combined> together;
  for (std::size_t k = 0; k < count; ++k) {
    const i64 columns = k == 1 ? width : 32;
    ConstMatrix some = all;
    some.data = static_cast<const double *>(all.data) + static_cast<i64>(k) * width;
    some.cols = columns;
    const auto how = k == 1 ? kernels::Combine::max : kernels::Combine::sum;
    out.emplace_back(device, columns * 8, "a test's sums");
    expected.emplace_back(device, columns * 8, "a test's sums");
    device.combine_rows(some, how, expected.back().data());
    together.push_back({some, how, out.back().data()});
  }
  device.combine_all(together);
  for (std::size_t k = 0; k < count; ++k) {
    Numbers numbers(static_cast<std::size_t>(out[k].bytes() / 8)), wanted(numbers.size());
    device.download(numbers.data(), out[k].data(), out[k].bytes());
    device.download(wanted.data(), expected[k].data(), out[k].bytes());
    EXPECT_EQ(numbers, wanted) << k << " of " << count;
  }
}

TEST_F(KernelsDevice, CombineAll) {
  for (const auto &device : backends_)
    for (const std::size_t count : {0U, 1U, 2U, 3U, 4U})
      expect_combined_together(*device, count);
}

TEST_F(KernelsDevice, CombineRows) {
  for (const auto &device : backends_)
    for (const i64 rows : {1, 2, 7})
      for (const i64 cols : {1, 33, 5000}) {
        expect_same_combination<double>(*reference_, *device, rows, cols);
        expect_same_combination<float>(*reference_, *device, rows, cols);
      }
}

TEST_F(KernelsDevice, WeightsFromNorms) {
  const Numbers norms{4, 0, 0.25, 1e300, INFINITY, 2};
  for (const auto &device : backends_)
    for (const auto kind : {kernels::NormKind::two, kernels::NormKind::max}) {
      Numbers expected = norms;
      reference_->weights_from_norms(kind, 6, expected.data());
      const DeviceBuffer on_device = upload(*device, norms.data(), 6);
      device->weights_from_norms(kind, 6, on_device.f64());
      Numbers got(6);
      device->download(got.data(), on_device.data(), on_device.bytes());
      EXPECT_EQ(got, expected);
      const double nan = std::nan("");
      device->upload(on_device.data(), &nan, 8);
      device->weights_from_norms(kind, 1, on_device.f64());
      device->download(got.data(), on_device.data(), 8);
      EXPECT_TRUE(std::isnan(got[0]));
    }
}

TEST_F(KernelsDevice, MarksMeasureTheDevicesWork) {
  for (const auto &device : backends_) {
    const Placed<double> a(*device, TestMatrix<double>::random(4096, 64, 0, 3));
    const DeviceBuffer g(*device, 64 * 64 * 8, "a test");
    const auto grams = [&](int count) {
      device->mark(3);
      for (int k = 0; k < count; ++k)
        device->gram(a.view(), g.f64());
      device->mark(0);
      return device->seconds_between(3, 0);
    };
    grams(1); // the first loads the kernels
    const double few = grams(2), many = grams(200);
    EXPECT_GT(few, 0);
    EXPECT_GT(many, 10 * few);
    EXPECT_EQ(device->seconds_between(0, 0), 0);
  }
}

/// A form's copy in a backend's memory.
class Copy {
public:
  Copy(Backend &backend, const kernels::TensorView &host) : form_(resident_.on(backend, 0, host).whole("a test")) {}
  kernels::TensorView view() const { return form_.view(); }

private:
  tensor::Resident resident_;
  tensor::FormView form_;
};

template <class T> struct PlacedFactors {
  std::vector<std::unique_ptr<Placed<T>>> memory;
  std::vector<ConstMatrix> views;
  PlacedFactors(Backend &device, const std::vector<TestMatrix<T>> &factors) {
    for (const auto &f : factors)
      views.push_back(memory.emplace_back(std::make_unique<Placed<T>>(device, f))->view());
  }
};

template <class T> void check_mttkrp(Backend &reference, Backend &device, const Stored<T> &x, i64 rank) {
  const auto factors = random_factors<T>(x.dims, rank, 2, 91);
  const PlacedFactors<T> placed(device, factors);
  const PlacedFactors<T> sizes(reference, magnitudes(factors));
  for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode) {
    const i64 n = x.dims[static_cast<std::size_t>(mode)];
    for (const auto &[name, host] : x.views(mode)) {
      const Copy copy(device, host);
      const i64 nnz = kernels::entries_of(host);
      std::vector<Range> parts{{0, nnz}};
      if (std::string_view(name) != "dense")
        parts.insert(parts.end(), {{nnz / 4, nnz / 4 * 3}, {nnz / 3, nnz / 3}});
      for (const Range rows : {Range{0, n}, Range{n / 3, n}})
        for (const Range entries : parts)
          for (const bool stored_order : {false, true}) {
            SCOPED_TRACE(testing::Message() << name << ", mode " << mode << " of " << x.dims.size() << ", rank " << rank
                                            << ", stored order " << stored_order);
            TestMatrix<T> expected(n, rank, 1), magnitude(n, rank, 1);
            const auto f = views(factors);
            reference.mttkrp(host, {mode, f, expected.view(), rows, entries});
            reference.mttkrp(host, {mode, sizes.views, magnitude.view(), rows, entries});
            const auto run = [&] {
              Placed<T> out(device, TestMatrix<T>(n, rank, 1));
              device.mttkrp(copy.view(), {mode, placed.views, out.view(), rows, entries,
                                          stored_order ? kernels::Conflicts::owner : kernels::Conflicts::automatic});
              return out.download();
            };
            const auto got = run();
            EXPECT_TRUE(got.padding_untouched());
            for (i64 i = 0; i < n; ++i)
              for (i64 r = 0; r < rank; ++r)
                if (i < rows.begin || i >= rows.end)
                  ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
                else // nnz terms of order + 1 roundings, added in any order
                  ASSERT_NEAR(got.at(i, r), expected.at(i, r),
                              static_cast<double>(nnz + std::ssize(x.dims) + 1) * epsilon_of(value_type_of<T>) *
                                  static_cast<double>(magnitude.at(i, r)))
                      << "row " << i << ", column " << r;
            if (stored_order) {
              EXPECT_TRUE(run().same_bits(got)) << "twice is not the same";
            }
          }
    }
  }
}

template <class T> void check_all_mttkrp(Backend &reference, Backend &device) {
  for (const i64 rank : light() ? std::vector<i64>{3, 33} : std::vector<i64>{1, 3, 16, 32, 50})
    check_mttkrp(reference, device, Stored<T>(random_entries<i64, T>({23, 9, 14}, 1500, 0, 7), true), rank);
  if (light())
    return;
  for (const auto &dims :
       std::vector<std::vector<i64>>{{70, 65}, {1, 1}, {130, 3, 2}, {5, 1, 6, 3, 4}, {3, 2, 3, 2, 3, 2}})
    check_mttkrp(reference, device, Stored<T>(random_entries<i64, T>(dims, 900, 0, 5), true), 10);
  const std::vector<i64> wide(6, 16384); // keys of 128 bits
  check_mttkrp(reference, device, Stored<T>(random_entries<i64, T>(wide, 3000, 0, 21), false), 3);
  check_mttkrp(reference, device, Stored<T>(random_entries<i64, T>({4, 5, 6}, 0, 0, 1), true), 3);
}

TEST_F(KernelsDevice, Mttkrp) {
  for (const auto &device : backends_) {
    check_all_mttkrp<float>(*reference_, *device);
    check_all_mttkrp<double>(*reference_, *device);
  }
}

/// A dense tensor of which a kernel takes several tiles of rows, columns and depth, and parts of tiles.
struct DenseCase {
  std::vector<i64> dims;
  i64 rank;
  i64 offset = 0; // elements from where memory begins: copies of 16 bytes are aligned only if it is 0
  double largest = 0;
  kernels::DenseChoice choice = {};
  i64 padding = 0; // of factors, beside what makes their leading dimensions odd
};

/// The variants of a dense MTTKRP; widths of tiles that modes are, and are not, multiples of.
constexpr kernels::DenseChoice dense_choices[] = {
    {},
    {kernels::DenseKernel::elem},
    {kernels::DenseKernel::slice},
    {kernels::DenseKernel::tile},
    {kernels::DenseKernel::tile, 4},
    {kernels::DenseKernel::tile, 1000000},
    {kernels::DenseKernel::gemm},
    {kernels::DenseKernel::fused},
};

template <class T, class Out>
void check_dense(Backend &reference, Backend &device, const DenseCase &dense, const char *what) {
  i64 size = 1;
  for (const i64 d : dense.dims)
    size *= d;
  const auto elements = TestMatrix<T>::random(1, dense.offset + size, 0, 5).magnitudes();
  const Placed<T> there(device, elements);
  const kernels::DenseView host{dense.dims, value_type_of<T>, &elements.at(0, dense.offset)};
  const kernels::DenseView x{
      dense.dims, value_type_of<T>, static_cast<const T *>(there.view().data) + dense.offset, {}, dense.largest};
  const auto factors = magnitudes(random_factors<T>(dense.dims, dense.rank, 1 + dense.rank % 2 + dense.padding, 92));
  const auto f = views(factors);
  const PlacedFactors<T> placed(device, factors);
  for (int mode = 0; mode < static_cast<int>(dense.dims.size()); ++mode) {
    const i64 n = dense.dims[static_cast<std::size_t>(mode)];
    TestMatrix<Out> expected(n, dense.rank, 1);
    reference.mttkrp(host, {mode, f, expected.view(), {0, n}, {0, size}});
    for (const bool add : {false, true}) {
      SCOPED_TRACE(testing::Message() << what << ", order " << dense.dims.size() << " from " << dense.dims[0]
                                      << ", mode " << mode << ", rank " << dense.rank << ", add " << add << ", kernel "
                                      << static_cast<int>(dense.choice.kernel) << " of tiles "
                                      << dense.choice.tile_width);
      const Range rows = add ? Range{n / 3, n - n / 4} : Range{0, n};
      const auto run = [&] {
        TestMatrix<Out> before(n, dense.rank, 1);
        set_before(before, rows);
        Placed<Out> out(device, before);
        device.mttkrp(
            x, {mode, placed.views, out.view(), rows, {0, size}, kernels::Conflicts::automatic, add, {}, dense.choice});
        return std::pair(std::move(before), out.download());
      };
      const auto [before, got] = run();
      EXPECT_TRUE(got.padding_untouched());
      // Nothing cancels, so errors are relative: of a term's products and of as many sums as there are terms, in f64
      // but for the reference's, the last one of f32, those of a few thousand terms of pairs of TensorFloat-32, and all
      // of f32 matrix products.
      const bool all_f32 = sizeof(Out) == 4 && dense.choice.kernel == kernels::DenseKernel::gemm;
      const double most = static_cast<double>(size / n + 8) * (all_f32 ? 0x1p-24 : 0x1p-52) +
                          (sizeof(Out) == 4 ? 0x1p-20 : 0) + (dense.largest > 0 ? 0x1p-20 : 0);
      for (i64 i = rows.begin; i < rows.end; ++i)
        for (i64 r = 0; r < dense.rank; ++r) {
          const auto sum = static_cast<double>(expected.at(i, r));
          const double sum_before = add ? static_cast<double>(before.at(i, r)) : 0;
          ASSERT_NEAR(got.at(i, r), sum + sum_before, most * (sum + 2)) << "row " << i << ", column " << r;
        }
      for (const i64 i : {rows.begin - 1, rows.end}) {
        if (i >= 0 && i < n) {
          EXPECT_TRUE(std::isnan(got.at(i, 0))) << "row " << i << " is not one of those asked for";
        }
      }
      EXPECT_TRUE(run().second.same_bits(got)) << "twice is not the same";
    }
  }
}

// Pins are of whole pages, so copies may begin or end beyond them.
TEST_F(KernelsDevice, HalfPinnedMemoryIsCopied) {
  constexpr i64 count = 100000;
  for (const auto &device : backends_) {
    Numbers host(count), back(count, 0.0);
    for (std::size_t k = 0; k < host.size(); ++k)
      host[k] = static_cast<double>(k);
    const auto pinned = device->pin(host.data() + 1000, 50001 * 8), more = device->pin(back.data() + 777, 40003 * 8);
    EXPECT_NE(pinned, nullptr);
    const DeviceBuffer there(*device, count * 8, "a test");
    device->upload(there.data(), host.data() + 2000, (count - 2000) * 8);
    device->download(back.data() + 2000, there.data(), (count - 2000) * 8);
    EXPECT_TRUE(std::equal(back.begin() + 2000, back.end(), host.begin() + 2000));
  }
}

TEST_F(KernelsDevice, DenseOfManyTiles) {
  // A long mode's f32 factor is widened while it is multiplied by, two numbers of it or one copied at a time.
  std::vector<DenseCase> cases{
      {{150, 41, 37}, 33}, {{5, 7, 150, 9}, 97}, {{129, 67, 45}, 17}, {.dims = {43700, 3}, .rank = 96, .padding = 1}};
  if (!light())
    cases.insert(cases.end(), {{{96, 64, 36}, 32},
                               {{96, 64, 36}, 70, 1},
                               {{150, 41, 37}, 8, 1},
                               {{2, 129, 1, 260}, 200},
                               {{3000, 40}, 31},
                               {{3, 33, 3, 35, 5, 2}, 64},
                               // More tiles of rows than blocks: most are written by one, some have several.
                               {{85000, 3, 5}, 10},
                               {{37001, 37}, 33, 1},
                               {{41, 37001}, 65},
                               // As many blocks for each tile, and rows that begin anywhere in lines: long, short
                               // and shorter ones than a line.
                               {{16700, 60}, 32},
                               {{401, 35000}, 16, 2},
                               {{19, 34001}, 33, 6},
                               {{3, 9, 1300}, 7, 4},
                               {{3, 5, 131077}, 32},
                               {.dims = {5, 419500}, .rank = 10, .padding = 1},
                               {.dims = {131077, 3}, .rank = 32, .padding = 1},
                               {{131088, 3}, 31, 1},
                               {.dims = {84001, 3}, .rank = 50, .padding = 1},
                               {{42801, 3}, 99},
                               {{70, 70, 128}, 1000}}); // parts of a Khatri-Rao product
  for (const auto &device : backends_)
    for (const DenseCase &dense : cases) {
      check_dense<double, double>(*reference_, *device, dense, "f64");
      if (dense.rank > 200)
        continue;
      check_dense<float, double>(*reference_, *device, dense, "f32 with f64 sums");
      check_dense<float, float>(*reference_, *device, dense, "f32");
      DenseCase pairs = dense;
      pairs.largest = 1;
      pairs.choice.kernel = kernels::DenseKernel::fused_tf32;
      check_dense<float, float>(*reference_, *device, pairs, "f32 by pairs");
    }
}

// Modes shorter than the rows that a group has, first and last modes, and rows of factors that are not aligned.
TEST_F(KernelsDevice, DenseByEachVariant) {
  std::vector<DenseCase> cases{{{9, 6, 7}, 5}, {{3, 5, 2, 11}, 33}};
  if (!light())
    cases.insert(cases.end(), {{{13, 9}, 1},
                               {{2, 300}, 64, 1},
                               {{1, 1, 17, 1}, 3},
                               {{37, 3, 70}, 16},
                               {{70, 40, 20}, 70, 1},
                               {{6, 31, 3, 8, 5}, 128},
                               {{5, 130, 4}, 300},
                               {{2, 3, 2, 1, 2, 3, 2, 2}, 10}});
  for (const auto &device : backends_)
    for (DenseCase dense : cases)
      for (const kernels::DenseChoice &choice : dense_choices) {
        dense.choice = choice;
        check_dense<double, double>(*reference_, *device, dense, "f64");
        check_dense<float, double>(*reference_, *device, dense, "f32 with f64 sums");
        check_dense<float, float>(*reference_, *device, dense, "f32");
      }
}

// So many columns that rows go by boxes, and the depth by parts, where the tensor is small.
TEST_F(KernelsDevice, DenseByGemmInBoxes) {
  if (light())
    GTEST_SKIP() << "many columns";
  for (const auto &device : backends_)
    for (const i64 rank : {1000000, 1000003}) {
      const DenseCase dense{{7, 6, 3, 3}, rank, 0, 0, {kernels::DenseKernel::gemm}};
      rank % 2 == 0 ? check_dense<double, double>(*reference_, *device, dense, "f64")
                    : check_dense<float, double>(*reference_, *device, dense, "f32 with f64 sums");
    }
}

template <class T> void check_compare(Backend &reference, Backend &device) {
  const Stored<T> x(random_entries<i64, T>({23, 9, 14}, 1500, 0, 7), true);
  for (const i64 rank : ranks()) {
    const auto factors = random_factors<T>(x.dims, rank, 1, 71);
    const PlacedFactors<T> placed(device, factors);
    const auto f = views(factors);
    const auto weights = TestMatrix<double>::random(1, rank, 0, 72);
    const DeviceBuffer w = upload(device, &weights.at(0, 0), rank);
    for (int mode = 0; mode < 3; ++mode)
      for (const auto &[name, host] : x.views(mode)) {
        const Copy copy(device, host);
        const i64 all = kernels::entries_of(host);
        for (const Range range : {Range{0, all}, Range{all / 4, all / 4 * 3}, Range{5, 5}}) {
          const Numbers expected = numbers(reference, 3, [&, &host = host](double *out) {
            reference.compare(host, &weights.at(0, 0), f, range, out);
          });
          const auto run = [&] {
            return numbers(device, 3,
                           [&](double *out) { device.compare(copy.view(), w.f64(), placed.views, range, out); });
          };
          // Values are below 1e3 and |model| <= rank, all in f64: each of n terms of at most (1e3 + rank)^2 has about
          // rank roundings, and the sum n more.
          const double n = static_cast<double>(range.size()), r = static_cast<double>(rank);
          SCOPED_TRACE(testing::Message() << name << ", rank " << rank);
          const Numbers got = run();
          expect_near(got, expected, n * (n + r) * (1e3 + r) * (1e3 + r) * 0x1p-53);
          EXPECT_EQ(run(), got) << "twice is not the same";
        }
      }
  }
}

TEST_F(KernelsDevice, ResidualSums) {
  for (const auto &device : backends_) {
    check_compare<float>(*reference_, *device);
    check_compare<double>(*reference_, *device);
  }
}

template <class T> void check_unfolding(Backend &reference, Backend &device) {
  for (const auto &dims : std::vector<std::vector<i64>>{{23, 9, 14}, {7, 300}, {3, 4, 5, 6}}) {
    const Stored<T> x(random_entries<i64, T>(dims, 700, 0, 7), true);
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode) {
      const i64 n = dims[static_cast<std::size_t>(mode)];
      const auto fibers = formats::build_fibers(x.coo.view(), mode, 1);
      for (const i64 columns : {i64{1}, i64{5}, i64{40}}) {
        const auto omega = TestMatrix<double>::random(n, columns, 2, 81);
        const Placed<double> on_omega(device, omega);
        TestMatrix<double> expected(n, columns, 0);
        reference.unfolding_normal(x.dense.view(), mode, omega.view(), expected.view(), false);
        for (const kernels::TensorView &host :
             {kernels::TensorView(fibers.view()), kernels::TensorView(x.dense.view())}) {
          const Copy copy(device, host);
          const auto run = [&] {
            Placed<double> y(device, TestMatrix<double>(n, columns, 1));
            device.unfolding_normal(copy.view(), mode, on_omega.view(), y.view(), false);
            return y.download();
          };
          const auto y = run();
          EXPECT_TRUE(y.padding_untouched());
          EXPECT_TRUE(run().same_bits(y)) << "twice is not the same";
          for (i64 i = 0; i < n; ++i)
            for (i64 s = 0; s < columns; ++s) // 700 products of two values below 1e3, in f64
              ASSERT_NEAR(y.at(i, s), expected.at(i, s), 1e6 * 700 * 700 * 0x1p-53)
                  << "format " << host.index() << ", mode " << mode;
          Placed<double> twice(device, y);
          device.unfolding_normal(copy.view(), mode, on_omega.view(), twice.view(), true);
          const auto sum = twice.download();
          for (i64 i = 0; i < n; ++i)
            for (i64 s = 0; s < columns; ++s)
              ASSERT_NEAR(sum.at(i, s), 2 * y.at(i, s), 1e6 * 700 * 700 * 0x1p-53) << "added to what was there";
        }
      }
    }
  }
}

TEST_F(KernelsDevice, UnfoldingNormal) {
  for (const auto &device : backends_) {
    check_unfolding<float>(*reference_, *device);
    check_unfolding<double>(*reference_, *device);
  }
}

// Large ones go by several threads and buffers; every byte must come to its place, whatever the ends.
TEST_F(KernelsDevice, CopiesOfAllSizes) {
  for (const int threads : {1, 3, 16})
    for (const auto &device : open(threads))
      for (const i64 size :
           light() ? std::vector<i64>{9 << 20} : std::vector<i64>{1, (8 << 20) - 1, (8 << 20) + 3, 75000001}) {
        std::vector<unsigned char> from(static_cast<std::size_t>(size)), to(from.size(), 0);
        u64 state = 1;
        for (unsigned char &byte : from)
          byte = static_cast<unsigned char>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
        const DeviceBuffer there(*device, size, "a test");
        device->upload(there.data(), from.data(), size);
        device->download(to.data(), there.data(), size);
        EXPECT_TRUE(to == from) << size << " bytes, " << threads << " threads";
      }
}

TEST_F(KernelsDevice, MemoryErrorsSayHowMuchForWhat) {
  for (const auto &device : backends_) {
    for (const i64 bytes : {i64{-8}, i64{1} << 50})
      try {
        device->release(device->allocate(bytes, "a test"));
        FAIL() << bytes << " bytes were allocated";
      } catch (const Error &error) {
        EXPECT_EQ(error.status(), Status::device_memory);
        EXPECT_TRUE(std::string_view(error.what())
                        .starts_with("out of device memory: " + std::to_string(bytes) + " bytes for a test; "))
            << error.what();
      }
    EXPECT_EQ(factor(*device, {4}).p, Numbers{0.25}); // and it works on
  }
}

} // namespace
} // namespace td::test
