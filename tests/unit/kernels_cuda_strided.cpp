// Subtensors of a tensor with gaps, gathered one by one, give what the whole one gives.
#include <vector>

#include <gtest/gtest.h>

#include "core/runs.hpp"
#include "kernels/cuda/strided.hpp"
#include "kernels/reference/backend.hpp"

namespace {

using namespace td;
using namespace td::kernels;

struct Lying {
  std::vector<i64> dims, strides;
};

class CudaStrided : public testing::TestWithParam<Lying> {
protected:
  CudaStrided() {
    i64 last = 0;
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      last += (x.dims[m] - 1) * x.strides[m];
    for (i64 k = 0; k <= last; ++k)
      values.push_back(static_cast<double>((k * 37) % 101));
    view = {x.dims, ValueType::f64, values.data(), x.strides};
  }
  const Lying &x = GetParam();
  std::vector<double> values;
  DenseView view;
};

TEST_P(CudaStrided, pieces_are_all_elements_in_the_order_of_memory) {
  const InMemoryOrder ordered(view);
  const auto strides = strides_of(ordered.view());
  std::vector<i64> expected;
  for_each_run(ordered.view().dims, std::span(strides).first(x.dims.size()), {0, entries_of(view)},
               [&](i64, i64 offset, i64 count) {
                 for (i64 n = 0; n < count; ++n)
                   expected.push_back(offset + n * strides[0]);
               });
  for (const i64 bytes : {1, 50, 200, 1 << 20}) {
    SCOPED_TRACE(bytes);
    const cuda::Subtensors subtensors(ordered.view(), bytes);
    std::vector<i64> places;
    i64 count = 0;
    subtensors.each([&](const cuda::Subtensor &subtensor) {
      EXPECT_EQ(subtensor.first, std::ssize(places));
      const i64 before = std::ssize(places);
      for_each_run(subtensor.dims, std::span(strides).first(subtensor.dims.size()),
                   {0, entries_of(DenseView{subtensor.dims})}, [&](i64, i64 offset, i64 n) {
                     for (i64 k = 0; k < n; ++k)
                       places.push_back(subtensor.place + offset + k * strides[0]);
                   });
      EXPECT_LE(std::ssize(places) - before, subtensors.most());
      ++count;
    });
    EXPECT_EQ(places, expected);
    EXPECT_EQ(count, subtensors.count());
  }
}

// Small whole numbers, so that sums are exact in any order.
TEST_P(CudaStrided, steps_add_up_to_the_whole) {
  constexpr i64 rank = 3;
  reference::ReferenceBackend backend;
  std::vector<std::vector<double>> numbers;
  std::vector<ConstMatrix> factors;
  for (const i64 dim : x.dims) {
    auto &a = numbers.emplace_back();
    for (i64 k = 0; k < dim * rank; ++k)
      a.push_back(static_cast<double>(k % 5 - 2));
    factors.emplace_back(a.data(), ValueType::f64, dim, rank, rank);
  }
  for (std::size_t mode = 0; mode < x.dims.size(); ++mode)
    for (const i64 skipped : {0, 1}) { // of the rows
      const i64 dim = x.dims[mode];
      const Range rows{std::min(skipped, dim - 1), dim};
      std::vector<double> whole(static_cast<std::size_t>(dim * rank), 7), sums = whole;
      MttkrpArgs args{static_cast<int>(mode),
                      factors,
                      {whole.data(), ValueType::f64, dim, rank, rank},
                      rows,
                      {0, entries_of(view)}};
      backend.mttkrp(view, args);
      args.out.data = sums.data();
      const InMemoryOrder ordered(view, args);
      const auto strides = strides_of(ordered.view());
      const cuda::Subtensors subtensors(ordered.view(), 100);
      subtensors.each([&](const cuda::Subtensor &subtensor) {
        const cuda::SubtensorStep step(ordered.args(), subtensor);
        std::vector<double> gathered;
        for_each_run(subtensor.dims, std::span(strides).first(subtensor.dims.size()),
                     {0, entries_of(DenseView{subtensor.dims})}, [&](i64, i64 offset, i64 n) {
                       for (i64 k = 0; k < n; ++k)
                         gathered.push_back(
                             values[static_cast<std::size_t>(subtensor.place + offset + k * strides[0])]);
                     });
        if (step.args().rows.size() > 0)
          backend.mttkrp(DenseView{subtensor.dims, ValueType::f64, gathered.data()}, step.args());
      });
      EXPECT_EQ(sums, whole) << "mode " << mode;
    }
}

INSTANTIATE_TEST_SUITE_P(all, CudaStrided,
                         testing::Values(Lying{{4, 3, 2}, {1, 6, 20}}, Lying{{4, 3, 2}, {13, 4, 1}},
                                         Lying{{5, 1, 7, 3}, {2, 99, 11, 80}}, Lying{{9, 8}, {1, 10}},
                                         Lying{{3, 4, 2, 3, 2}, {1, 3, 13, 30, 100}}));

} // namespace
