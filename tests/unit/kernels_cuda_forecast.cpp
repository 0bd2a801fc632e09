// Forecasts for a GPU against what was measured on one, from its rates: bench/results/2026-11-21-NVIDIA-H200.md, shapes
// of ../bench, rank 32, f64. No GPU is needed.
#include "kernels/cuda/forecast.hpp"

#include <gtest/gtest.h>

#include "formats/footprint.hpp"
#include "formats/formats.hpp"

namespace td::test {
namespace {

using kernels::Conflicts;
using kernels::Forecast;
using kernels::MttkrpArgs;
using kernels::Rates;
using kernels::TensorView;

constexpr Rates rates{4.3e12, 33e12, 8.5e12, 4.6e12, 30e12};
const kernels::cuda::Chip chip{132, 232448, 62914560};

Forecast forecast(const TensorView &x, int mode, i64 rank = 32, Conflicts conflicts = Conflicts::automatic,
                  const Rates &at = rates) {
  std::vector<ConstMatrix> factors;
  for (const i64 dim : kernels::dims_of(x))
    factors.emplace_back(nullptr, kernels::type_of(x), dim, rank, rank);
  const ConstMatrix &own = factors[static_cast<std::size_t>(mode)];
  MttkrpArgs args;
  args.mode = mode;
  args.factors = factors;
  args.out = {nullptr, own.type, own.rows, own.cols, own.ld};
  args.rows = {0, own.rows};
  args.entries = {0, kernels::entries_of(x)};
  args.conflicts = conflicts;
  return kernels::cuda::forecast_mttkrp(x, args, at, chip);
}

/// A copy sorted by a mode as the plan would make it, if entries are spread evenly.
class PlannedCopy {
public:
  PlannedCopy(std::vector<i64> dims, i64 nnz, int mode) : dims_(std::move(dims)) {
    const formats::CopySize copy =
        formats::copy_size({dims_, nnz, ValueType::f64}, std::vector<int>{mode}, {formats::TileRule::Kind::gpu}, 1);
    view_.dims = dims_;
    view_.mode = mode;
    view_.nnz = nnz;
    view_.key_bytes = copy.key_bytes;
    view_.rows = static_cast<i64>(copy.rows);
    view_.tiles = static_cast<i64>(copy.tiles);
    view_.layout.order = static_cast<int>(dims_.size());
    for (std::size_t m = 0; m < dims_.size(); ++m)
      view_.layout.bits[m] = static_cast<std::uint8_t>(copy.bits[m]);
  }
  const kernels::SortedView &view() const { return view_; }

private:
  std::vector<i64> dims_;
  kernels::SortedView view_;
};

struct Measured {
  const char *name;
  std::vector<i64> dims;
  i64 nnz;
  std::vector<double> sorted, blco; // ms, by mode
};
const std::vector<Measured> measured{
    {"uber", {183, 24, 1140, 1717}, 3283881, {0.134, 0.139, 0.136, 0.135}, {0.265, 0.265, 0.263, 0.262}},
    {"nips", {2482, 2862, 14036, 17}, 3099840, {0.143, 0.143, 0.159, 0.142}, {0.302, 0.295, 0.293, 0.269}},
    {"nell2-small", {12092, 9184, 28818}, 14998721, {0.566, 0.573, 0.620}, {1.370, 1.447, 1.139}},
    {"vast", {165427, 11374, 2}, 25319564, {0.871, 0.954, 0.833}, {1.628, 1.731, 1.332}},
    {"delicious",
     {532924, 17262471, 2480308, 1443},
     140000000,
     {17.266, 17.903, 17.490, 16.923},
     {39.171, 39.312, 39.306, 30.316}}};

void near(double predicted, double came, double factor) {
  EXPECT_LT(predicted, came * factor);
  EXPECT_GT(predicted, came / factor);
}

TEST(KernelsCudaForecast, IsNearWhatWasMeasured) {
  for (const Measured &x : measured)
    for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode) {
      SCOPED_TRACE(testing::Message() << x.name << ", mode " << mode);
      const auto at = static_cast<std::size_t>(mode);
      const PlannedCopy copy(x.dims, x.nnz, mode);
      near(1e3 * forecast(copy.view(), mode).seconds, x.sorted[at], 1.2);
      kernels::BlcoView blco;
      blco.dims = x.dims;
      blco.nnz = x.nnz;
      blco.blocks = 1;
      near(1e3 * forecast(blco, mode).seconds, x.blco[at], 1.45);
    }
  // bench/results/2026-11-22-NVIDIA-H200.md: Gram matrix, product, norms and division of ten million rows.
  near(1e3 * kernels::cuda::forecast_update(10000000, 32, ValueType::f64, rates, chip).seconds,
       1.04 + 1.67 + 0.58 + 1.30, 1.1);
}

TEST(KernelsCudaForecast, TellsNoSecondsWithoutRates) {
  const PlannedCopy copy({12092, 9184, 28818}, 1000000, 0);
  const std::vector<i64> dims{50, 40, 30};
  for (const TensorView &x : {TensorView(copy.view()), TensorView(kernels::DenseView{dims}),
                              TensorView(kernels::CooView{dims, 1000, ValueType::f32, nullptr, nullptr})}) {
    const Forecast f = forecast(x, 0, 16, Conflicts::automatic, {});
    EXPECT_EQ(f.seconds, 0);
    EXPECT_FALSE(f.kernel.empty());
    EXPECT_FALSE(f.conflicts.empty());
    EXPECT_GT(forecast(x, 0, 16).seconds, 0);
  }
  EXPECT_EQ(kernels::cuda::forecast_update(1000, 16, ValueType::f64, {}, chip).seconds, 0);
}

TEST(KernelsCudaForecast, TellsWhatKernelsTake) {
  const std::vector<i64> dims{50, 40000, 30000};
  const kernels::CooView coo{dims, 100000, ValueType::f64, nullptr, nullptr};
  EXPECT_EQ(forecast(coo, 0).bytes, 0);
  EXPECT_EQ(forecast(coo, 0, 32, Conflicts::owner).bytes, 100000 * 48); // three pairs of a row and a number
  kernels::BlcoView blco;
  blco.dims = dims;
  blco.nnz = 100000;
  EXPECT_EQ(forecast(blco, 0).bytes, 32 * 50 * 32 * 8); // fewer rows than multiprocessors: copies of the result
  EXPECT_EQ(forecast(blco, 1).bytes, 0);
  EXPECT_EQ(forecast(blco, 1, 32, Conflicts::privatize).bytes, 32.0 * 40000 * 32 * 8);
  EXPECT_EQ(forecast(blco, 1, 33, Conflicts::privatize).bytes, 32.0 * 40000 * 36 * 8); // rows of 16 bytes
  const std::vector<i64> few{30, 40, 50}, more{30, 400, 50};
  EXPECT_EQ(forecast(kernels::DenseView{few}, 0).bytes, 30 * 32 * 8); // 2000 cells a row: one part of 1024 or more
  EXPECT_EQ(forecast(kernels::DenseView{more}, 0).bytes, 18 * 30 * 32 * 8); // 18 parts: 4 blocks a multiprocessor
  // A Gram matrix's tile by each of three blocks, for 256 rows and more each.
  EXPECT_EQ(kernels::cuda::forecast_update(1000, 32, ValueType::f64, rates, chip).bytes, 3 * 32 * 32 * 8);
}

} // namespace
} // namespace td::test
