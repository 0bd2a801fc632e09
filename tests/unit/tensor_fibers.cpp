// X_(n) X_(n)^T omega and the start nvecs on a device that has room for all of a tensor, for some, and for nothing.
#include "kernels/cpu/backend.hpp"
#include "plan/nvecs.hpp"
#include "solvers/eigenvectors.hpp"
#include "solvers/start.hpp"
#include "tensor/resident.hpp"
#include "tensor/spans.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

template <class T> class PlanFibers : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PlanFibers, Types);

template <class T> Stored<T> stored() { return {random_entries<i64, T>({23, 9, 14}, 1500, 0, 7), true}; }

bool differ_only_in(const kernels::CooView &x, int mode, i64 a, i64 b) {
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m)
    if (m != mode && x.indices[m][a] != x.indices[m][b])
      return false;
  return true;
}

TYPED_TEST(PlanFibers, SpansMakeAllAndCutNoFiber) {
  const auto x = stored<TypeParam>();
  for (int mode = 0; mode < 3; ++mode) {
    const auto fibers = formats::build_fibers(x.coo.view(), mode, 1);
    const kernels::CooView host = fibers.view();
    for (const i64 most : {i64{1}, i64{10}, i64{200}, host.nnz, host.nnz + 1}) {
      i64 next = 0;
      for (const Range &span : tensor::fiber_spans(host, mode, most)) {
        EXPECT_EQ(span.begin, next);
        ASSERT_GT(span.size(), 0);
        EXPECT_TRUE(span.begin == 0 || !differ_only_in(host, mode, span.begin - 1, span.begin));
        EXPECT_TRUE(span.size() <= most || differ_only_in(host, mode, span.begin, span.end - 1));
        next = span.end;
      }
      EXPECT_EQ(next, host.nnz);
    }
  }
}

TYPED_TEST(PlanFibers, TheSameBitsHoweverMuchIsKept) {
  const auto x = stored<TypeParam>();
  const auto reference = kernels::reference::make_backend();
  for (int mode = 0; mode < 3; ++mode) {
    const auto fibers = formats::build_fibers(x.coo.view(), mode, 1);
    for (const kernels::TensorView &host : {kernels::TensorView(fibers.view()), kernels::TensorView(x.dense.view())}) {
      const bool dense = host.index() == kernels::TensorView(x.dense.view()).index();
      if (dense && mode == 2)
        continue; // takes all at once
      const i64 n = x.dims[static_cast<std::size_t>(mode)];
      TestMatrix<double> omega(n, 4, 2);
      omega.fill([](i64 i, i64 s) { return (3 * i + s) % 5 - 2; }); // sums are exact in any order
      TestMatrix<double> expected(n, 4, 1);
      reference->unfolding_normal(host, mode, omega.view(), expected.view(), false);
      const i64 bytes = tensor::bytes_of(host).entries;
      for (const i64 limit : {2 * bytes, bytes / 2, i64{1}})
        for (const i64 most : {i64{1}, i64{100}, i64{5000}}) {
          SCOPED_TRACE(testing::Message() << "format " << host.index() << ", mode " << mode << ", " << limit
                                          << " bytes, spans of " << most);
          SmallDevice device(limit);
          tensor::Resident resident(70);
          const auto placement = resident.on(device, 0, host);
          TestMatrix<double> y(n, 4, 1);
          placement.unfolding_normal(device, mode, omega.view(), y.view(), most);
          EXPECT_TRUE(y.same_bits(expected));
          EXPECT_EQ(device.take_fetched() > 0, placement.streamed());
          EXPECT_EQ(placement.streamed(), limit < bytes);
        }
    }
  }
}

TEST(PlanFibers, NoEntriesGiveZeros) {
  const auto none = formats::build_canonical(random_entries<i64, double>({5, 4}, 0, 0, 1).view(), false, 1).coo;
  for (const i64 limit : {i64{1} << 20, i64{0}}) {
    SmallDevice device(limit);
    tensor::Resident resident;
    TestMatrix<double> y(5, 2, 0);
    const auto omega = TestMatrix<double>::random(5, 2, 0, 1);
    resident.on(device, 0, none.view()).unfolding_normal(device, 0, omega.view(), y.view(), 10);
    for (i64 i = 0; i < 5; ++i)
      for (i64 s = 0; s < 2; ++s)
        EXPECT_EQ(y.at(i, s), 0);
  }
}

// Short modes and one that takes iterations.
TEST(PlanFibers, NvecsOfATensorThatDoesNotFit) {
  const std::vector<i64> dims{4, plan::longest_whole_mode + 8, 6};
  std::vector<double> values = full_array(random_ktensor(dims, 5, 62));
  for (std::size_t k = 0; k < values.size(); k += 3)
    values[k] = 0;
  for (const TensorPointer &x :
       {sparse_tensor(dims, values, "sorted"), sparse_tensor(dims, values, "blco"), dense_tensor(dims, values)}) {
    std::optional<Ktensor> whole;
    std::vector<std::unique_ptr<SmallDevice>> devices; // the tensor's copies are told apart by where these are
    for (const i64 bytes : {i64{1} << 30, i64{60000}, i64{16000}}) {
      SCOPED_TRACE(testing::Message() << name_of(x->format()) << ", " << bytes << " bytes");
      SmallDevice &device = *devices.emplace_back(std::make_unique<SmallDevice>(bytes));
      const Ktensor start = solvers::nvecs_start(device, *x, 3, 1);
      EXPECT_EQ(device.take_fetched() > 0, bytes < i64{1} << 30);
      if (!whole)
        whole = start.copy();
      for (int m = 0; m < 3; ++m)
        for (i64 r = 0; r < 3; ++r)
          if (x->sparse() || m < 2) {
            EXPECT_EQ(column(start, m, r), column(*whole, m, r)) << "mode " << m << ", column " << r;
          } else { // of a dense tensor that does not fit, the last mode is summed in another order
            for (i64 i = 0; i < dims[2]; ++i)
              EXPECT_NEAR(start.factor(2).row<double>(i)[r], whole->factor(2).row<double>(i)[r], 1e-9);
          }
    }
  }
}

} // namespace
} // namespace td::test
