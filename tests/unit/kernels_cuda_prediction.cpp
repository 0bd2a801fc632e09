// Predictions for a GPU against what was measured on one, from its rates:
// bench/results/2026-11-22-NVIDIA-H200-tiles.md, shapes of ../bench, rank 32. No GPU is needed.
#include "kernels/cuda/prediction.hpp"

#include <gtest/gtest.h>

#include "formats/footprint.hpp"
#include "formats/formats.hpp"
#include "kernels/cuda/sorted_layout.hpp"

namespace td::test {
namespace {

using kernels::Conflicts;
using kernels::MttkrpArgs;
using kernels::Prediction;
using kernels::Rates;
using kernels::TensorView;

constexpr Rates rates{4.3e12, 33e12, 8.5e12, 4.6e12, 30e12};
const kernels::Chip chip; // an H200

/// The types of factor rows and of terms.
struct Types {
  ValueType rows = ValueType::f64;
  ValueType terms = ValueType::f64;
};
constexpr Types f64{};
constexpr Types f32{ValueType::f32, ValueType::f32};
constexpr Types mixed{ValueType::f32, ValueType::f64};

/// MTTKRP in a mode of a tensor, whose factors have no numbers.
struct Call {
  Call(const TensorView &x, int mode, i64 rank, Types types) {
    for (const i64 dim : kernels::dims_of(x))
      factors.emplace_back(nullptr, types.rows, dim, rank, rank);
    const ConstMatrix &own = factors[static_cast<std::size_t>(mode)];
    args.mode = mode;
    args.factors = factors;
    args.out = {nullptr, types.terms, own.rows, own.cols, own.ld};
    args.rows = {0, own.rows};
    args.entries = {0, kernels::entries_of(x)};
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  std::vector<ConstMatrix> factors;
  MttkrpArgs args;
};

Prediction predict(const TensorView &x, int mode, i64 rank = 32, Conflicts conflicts = Conflicts::automatic,
                   const Rates &at = rates, Types types = f64, kernels::DenseChoice dense = {}) {
  Call call(x, mode, rank, types);
  call.args.conflicts = conflicts;
  call.args.dense = dense;
  return kernels::cuda::predict_mttkrp(x, call.args, at, chip);
}

/// A copy sorted by a mode as the plan would make it, if entries are spread evenly.
class PlannedCopy {
public:
  PlannedCopy(std::vector<i64> dims, i64 nnz, int mode, ValueType values = ValueType::f64, Types types = f64)
      : dims_(std::move(dims)) {
    const formats::CopySize copy =
        formats::copy_size({dims_, nnz, values}, std::vector<int>{mode},
                           {formats::TileRule::Kind::gpu, 0, values, types.rows != values, types.terms != values}, 1);
    view_.type = values;
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
  std::vector<double> f64, f32, gather, f64_sums, blco; // ms, by mode
};
const std::vector<Measured> measured = {
    {"uber",
     {183, 24, 1140, 1717},
     3283881,
     {0.137, 0.135, 0.133, 0.138},
     {0.085, 0.089, 0.084, 0.082},
     {0.148, 0.150, 0.139, 0.142},
     {0.150, 0.157, 0.148, 0.147},
     {0.262, 0.263, 0.257, 0.259}},
    {"nips",
     {2482, 2862, 14036, 17},
     3099840,
     {0.141, 0.137, 0.151, 0.144},
     {0.085, 0.085, 0.093, 0.098},
     {0.147, 0.158, 0.152, 0.161},
     {0.147, 0.144, 0.147, 0.181},
     {0.302, 0.294, 0.292, 0.264}},
    {"nell2-small",
     {12092, 9184, 28818},
     14998721,
     {0.564, 0.571, 0.627},
     {0.322, 0.335, 0.349},
     {0.488, 0.493, 0.474},
     {0.514, 0.518, 0.510},
     {1.373, 1.430, 1.132}},
    {"nell2",
     {12092, 9184, 28818},
     76869512,
     {2.573, 2.561, 2.619},
     {1.408, 1.391, 1.427},
     {2.224, 2.199, 2.281},
     {2.631, 2.623, 2.682},
     {5.107, 5.420, 5.022}},
    {"vast",
     {165427, 11374, 2},
     25319564,
     {0.889, 0.973, 0.860},
     {0.505, 0.475, 0.482},
     {0.769, 0.719, 0.765},
     {0.910, 0.866, 0.912},
     {1.630, 1.694, 1.333}},
    {"delicious",
     {532924, 17262471, 2480308, 1443},
     140000000,
     {17.033, 17.822, 16.120, 16.660},
     {9.170, 9.542, 8.378, 8.764},
     {9.790, 13.955, 10.288, 9.790},
     {11.399, 17.540, 12.338, 11.212},
     {39.013, 39.292, 38.973, 29.541}},
};

void near(double predicted, double came, double factor) {
  EXPECT_LT(predicted, came * factor);
  EXPECT_GT(predicted, came / factor);
}

TEST(KernelsCudaPrediction, IsNearWhatWasMeasured) {
  for (const Measured &x : measured)
    for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode) {
      SCOPED_TRACE(testing::Message() << x.name << ", mode " << mode);
      const auto at = static_cast<std::size_t>(mode);
      const auto sorted = [&](ValueType values, Types types, const std::vector<double> &came, double factor) {
        const PlannedCopy copy(x.dims, x.nnz, mode, values, types);
        near(1e3 * predict(copy.view(), mode, 32, Conflicts::automatic, rates, types).seconds, came[at], factor);
      };
      sorted(ValueType::f64, f64, x.f64, 1.2);
      sorted(ValueType::f32, f32, x.f32, 1.2);
      sorted(ValueType::f64, mixed, x.gather, 1.15);
      sorted(ValueType::f32, mixed, x.f64_sums, 1.25);
      kernels::BlcoView blco;
      blco.dims = x.dims;
      blco.nnz = x.nnz;
      blco.blocks = 1;
      near(1e3 * predict(blco, mode).seconds, x.blco[at], 1.45);
    }
  // bench/results/2026-11-22-NVIDIA-H200.md: Gram matrix, product, norms and division of ten million rows took six
  // passes; a third of these are left up to rank 32, two thirds beyond, counted at the rate of those.
  const double six = 1.04 + 1.67 + 0.58 + 1.30;
  near(1e3 * kernels::cuda::predict_update(10000000, 32, rates, chip).seconds, six / 3, 1.1);
  near(1e3 * kernels::cuda::predict_update(10000000, 64, rates, chip).seconds, 2 * six * 2 / 3, 1.1);
}

// The model that cuts a mode into tiles counts on their rows in shared memory: the launch has to put them there.
TEST(KernelsCudaPrediction, RowsOfTilesAreStaged) {
  for (const Measured &x : measured)
    for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode)
      for (const Types types : {f64, f32, mixed}) {
        SCOPED_TRACE(testing::Message() << x.name << ", mode " << mode);
        const PlannedCopy copy(x.dims, x.nnz, mode, types.terms, types);
        const Call call(copy.view(), mode, 32, types);
        for (const auto &m : kernels::cuda::SortedLayout(copy.view(), call.args, chip).pass(0).modes)
          if (m.rows < x.dims[static_cast<std::size_t>(m.mode)]) {
            EXPECT_EQ(m.staged, m.rows) << "of mode " << m.mode;
          }
      }
}

// bench/results/2026-11-29-NVIDIA-H200-dense-middle.md, f64, ranks 10 and 32 of the older tensors
// 2026-11-28-NVIDIA-H200-dense-chunks.md. Small tensors, where starting kernels counts, are told least well.
TEST(KernelsCudaPrediction, DenseTensorsAreWithinAThird) {
  struct Dense {
    std::vector<i64> dims;
    i64 rank;
    std::vector<double> ms; // by mode
  };
  const std::vector<Dense> measured_dense = {
      {{200, 150, 12, 250}, 10, {0.212, 0.203, 0.209, 0.208}},
      {{200, 150, 12, 250}, 32, {0.21, 0.202, 0.225, 0.216}},
      {{200, 150, 12, 250}, 64, {0.305, 0.304, 0.302, 0.294}},
      {{200, 150, 12, 250}, 100, {0.417, 0.408, 0.435, 0.423}},
      {{200, 150, 12, 250}, 500, {1.83, 1.8, 2.04, 1.88}},
      {{401, 201, 12, 501}, 10, {0.99, 0.964, 0.929, 0.927}},
      {{401, 201, 12, 501}, 32, {1.05, 0.976, 0.988, 0.984}},
      {{401, 201, 12, 501}, 64, {1.42, 1.4, 1.52, 1.44}},
      {{401, 201, 12, 501}, 100, {2.07, 2.04, 2.36, 2.13}},
      {{401, 201, 12, 501}, 500, {11.5, 11.2, 11.3, 11.1}},
      {{129, 129, 129, 12, 39}, 10, {2.02, 2.00, 1.88, 1.86, 1.87}},
      {{129, 129, 129, 12, 39}, 32, {2.07, 2.04, 2.01, 2.00, 2.00}},
      {{129, 129, 129, 12, 39}, 64, {2.87, 2.86, 3.05, 2.88, 2.88}},
      {{129, 129, 129, 12, 39}, 100, {4.3, 4.35, 4.66, 4.28, 4.27}},
      {{129, 129, 129, 12, 39}, 500, {23.5, 23.7, 26, 23.4, 23.6}},
      {{77, 91, 303, 17}, 10, {0.124, 0.111, 0.108, 0.103}},
      {{77, 91, 303, 17}, 32, {0.118, 0.116, 0.121, 0.115}},
      {{77, 91, 303, 17}, 64, {0.155, 0.156, 0.17, 0.158}},
      {{77, 91, 303, 17}, 100, {0.221, 0.219, 0.264, 0.217}},
      {{77, 91, 303, 17}, 500, {0.808, 0.796, 0.832, 0.797}},
      {{80601, 3001}, 10, {0.481, 0.477}},
      {{80601, 3001}, 32, {0.521, 0.529}},
      {{80601, 3001}, 64, {0.714, 0.761}},
      {{80601, 3001}, 100, {1.05, 1.17}},
      {{80601, 3001}, 500, {5.14, 5.16}},
      {{1000, 1000, 1000}, 10, {2.06, 1.87, 1.90}},
      {{1000, 1000, 1000}, 32, {2.17, 2.06, 2.34}},
      {{1000, 1000, 1000}, 64, {3.16, 3.09, 3.5}},
      {{1000, 1000, 1000}, 100, {5.53, 4.67, 4.99}},
      {{1000, 1000, 1000}, 500, {24.3, 23.1, 24.8}},
      {{12, 12000, 12000}, 10, {3.15, 3.16, 3.43}},
      {{12, 12000, 12000}, 32, {3.17, 3.23, 3.72}},
      {{12, 12000, 12000}, 64, {4.69, 4.72, 5.07}},
      {{12, 12000, 12000}, 100, {7.12, 7.28, 7.38}},
      {{12, 12000, 12000}, 500, {39.5, 40.1, 42.9}},
      {{3, 5, 7, 2, 300000}, 10, {0.177, 0.177, 0.174, 0.178, 0.196}},
      {{3, 5, 7, 2, 300000}, 32, {0.197, 0.197, 0.195, 0.194, 0.229}},
      {{3, 5, 7, 2, 300000}, 64, {0.254, 0.251, 0.252, 0.251, 0.284}},
      {{3, 5, 7, 2, 300000}, 100, {0.362, 0.362, 0.362, 0.354, 0.431}},
      {{3, 5, 7, 2, 300000}, 500, {1.64, 1.64, 1.64, 1.63, 1.85}},
      {{19, 700001, 17}, 10, {0.522, 0.917, 0.509}},
      {{19, 700001, 17}, 32, {0.571, 0.994, 0.574}},
      {{19, 700001, 17}, 100, {1.14, 1.52, 1.12}},
      {{8, 500000, 10}, 10, {0.112, 0.138, 0.109}},
      {{8, 500000, 10}, 32, {0.131, 0.171, 0.128}},
      {{8, 500000, 10}, 100, {0.281, 0.386, 0.272}},
      {{64, 12000, 64}, 10, {0.122, 0.131, 0.12}},
      {{64, 12000, 64}, 32, {0.124, 0.143, 0.124}},
      {{64, 12000, 64}, 100, {0.236, 0.247, 0.237}},
      {{200, 1500, 150}, 10, {0.129, 0.115, 0.118}},
      {{200, 1500, 150}, 32, {0.129, 0.128, 0.121}},
      {{200, 1500, 150}, 100, {0.238, 0.244, 0.233}},
      {{12, 2001, 60, 500}, 10, {1.44, 1.44, 1.35, 1.35}},
      {{12, 2001, 60, 500}, 32, {1.45, 1.44, 1.4, 1.4}},
      {{12, 2001, 60, 500}, 100, {2.89, 2.91, 2.97, 3.11}},
      {{1000, 1000, 300}, 10, {0.645, 0.667, 0.587}},
      {{1000, 1000, 300}, 32, {0.744, 0.783, 0.618}},
      {{1000, 1000, 300}, 100, {1.49, 1.53, 1.42}},
      {{4, 7, 300000, 5, 6}, 10, {0.56, 0.56, 0.599, 0.55, 0.554}},
      {{4, 7, 300000, 5, 6}, 32, {0.644, 0.639, 0.675, 0.637, 0.639}},
      {{4, 7, 300000, 5, 6}, 100, {1.16, 1.15, 1.18, 1.15, 1.15}},
  };
  for (const Dense &x : measured_dense)
    for (std::size_t mode = 0; mode < x.ms.size(); ++mode) {
      SCOPED_TRACE(testing::Message() << x.dims.front() << " .. " << x.dims.back() << ", rank " << x.rank << ", mode "
                                      << mode);
      near(1e3 * predict(kernels::DenseView{x.dims}, static_cast<int>(mode), x.rank, Conflicts::automatic, rates, f64,
                         {kernels::DenseKernel::fused})
                     .seconds,
           x.ms[mode], 1.33);
    }
}

// There are few entries, so that hardly anything else takes time: 8 bytes read and 4 written for each number.
TEST(KernelsCudaPrediction, RoundsSumsInF64AtTheEnd) {
  const std::vector<i64> dims{50000000, 10, 10};
  const kernels::CooView x{dims, 10, ValueType::f32, nullptr, nullptr};
  const auto seconds = [&](Types types) { return predict(x, 0, 32, Conflicts::automatic, rates, types).seconds; };
  near(seconds(mixed) - seconds(f32), 12.0 * 50000000 * 32 / rates.read, 1.01);
}

// Rows that are widened have kernels for up to 64 columns: one more reads the entries again.
TEST(KernelsCudaPrediction, WidenedRowsTakeAPassForEach64Columns) {
  const PlannedCopy copy({20000, 20000, 20000}, 40000000, 0, ValueType::f32, mixed);
  ASSERT_EQ(copy.view().tiles, 1); // staged rows would come and go with the columns of a pass
  const auto seconds = [&](i64 rank) {
    return predict(copy.view(), 0, rank, Conflicts::automatic, rates, mixed).seconds;
  };
  const double entries = 40000000.0 * (copy.view().key_bytes + 4) / rates.read;
  EXPECT_GT(seconds(65) - seconds(64), entries);
  EXPECT_LT(seconds(64) - seconds(63), entries);
}

TEST(KernelsCudaPrediction, TellsNoSecondsWithoutRates) {
  const PlannedCopy copy({12092, 9184, 28818}, 1000000, 0);
  const std::vector<i64> dims{50, 40, 30};
  for (const TensorView &x : {TensorView(copy.view()), TensorView(kernels::DenseView{dims}),
                              TensorView(kernels::CooView{dims, 1000, ValueType::f32, nullptr, nullptr})}) {
    const Prediction f = predict(x, 0, 16, Conflicts::automatic, {});
    EXPECT_EQ(f.seconds, 0);
    EXPECT_FALSE(f.kernel.empty());
    EXPECT_FALSE(f.conflicts.empty());
    EXPECT_GT(predict(x, 0, 16).seconds, 0);
  }
  EXPECT_EQ(kernels::cuda::predict_update(1000, 16, {}, chip).seconds, 0);
}

TEST(KernelsCudaPrediction, TellsWhatKernelsTake) {
  const std::vector<i64> dims{50, 40000, 30000};
  const kernels::CooView coo{dims, 100000, ValueType::f64, nullptr, nullptr};
  EXPECT_EQ(predict(coo, 0).bytes, 0);
  EXPECT_EQ(predict(coo, 0, 32, Conflicts::owner).bytes, 100000 * 48); // three pairs of a row and a number
  kernels::BlcoView blco;
  blco.dims = dims;
  blco.nnz = 100000;
  EXPECT_EQ(predict(blco, 0).bytes, 32 * 50 * 32 * 8); // fewer rows than multiprocessors: copies of the result
  EXPECT_EQ(predict(blco, 1).bytes, 0);
  EXPECT_EQ(predict(blco, 1, 32, Conflicts::privatize).bytes, 32.0 * 40000 * 32 * 8);
  EXPECT_EQ(predict(blco, 1, 33, Conflicts::privatize).bytes, 32.0 * 40000 * 36 * 8); // rows of 16 bytes
  // Sums of f32 terms in f64 take as much as those of f64.
  blco.type = ValueType::f32;
  EXPECT_EQ(predict(blco, 0, 32, Conflicts::automatic, rates, mixed).bytes, 32 * 50 * 32 * 8);
  // A dense tensor's sums of blocks: as many as there are chunks, of 16 or of f32 of 32, each with all of the tile's
  // rows. Its factors are in f64 where a Khatri-Rao product of several, or of f32, is made.
  const std::vector<i64> matrix{30, 40};
  EXPECT_EQ(predict(kernels::DenseView{matrix}, 0).bytes, 3 * 30 * 32 * 8);
  EXPECT_EQ(predict(kernels::DenseView{matrix, ValueType::f32}, 0, 31, Conflicts::automatic, rates, f32).bytes,
            2 * 30 * 32 * 8 + 40 * 32 * 8);
  // Two chunks of 32 in pairs of TensorFloat-32, and for each column a scale and the largest number of a mode.
  EXPECT_EQ(predict(kernels::DenseView{matrix, ValueType::f32, nullptr, {}, 1}, 0, 31, Conflicts::automatic, rates, f32,
                    {kernels::DenseKernel::fused_tf32})
                .bytes,
            2 * 30 * 32 * 8 + 40 * 32 * 8 + 31 * 2 * 8);
  // Two sums of the columns of a pass, and whose they are, for each block; with `owner` a sum for each segment besides.
  const PlannedCopy copy({12092, 9184, 28818}, 76869512, 0);
  const auto segments = static_cast<double>(copy.view().rows);
  EXPECT_EQ(predict(copy.view(), 0).bytes, 2 * 132 * (32 + 1) * 8);
  EXPECT_EQ(predict(copy.view(), 0, 33).bytes, 2 * 132 * (17 + 1) * 8); // not aligned: two passes of at most 32
  EXPECT_EQ(predict(copy.view(), 0, 32, Conflicts::owner).bytes, 2 * 132 * (32 + 1) * 8 + 8 * 32 * segments);
  // A Gram matrix's tile and two rows of sums by each block, for 96 rows each; of more columns three tiles by each of
  // three blocks, for 256 rows and more.
  EXPECT_EQ(kernels::cuda::predict_update(1000, 32, rates, chip).bytes, 11 * (32 + 2) * 32 * 8);
  EXPECT_EQ(kernels::cuda::predict_update(1000, 33, rates, chip).bytes, 3 * 3 * 32 * 32 * 8);
}

} // namespace
} // namespace td::test
