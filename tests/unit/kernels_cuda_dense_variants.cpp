// How the variants of a dense MTTKRP are cut, and the memory that they take. No GPU is needed.
#include "kernels/cuda/dense_variants.hpp"

#include <random>

#include <gtest/gtest.h>

#include "kernels/cuda/prediction.hpp"

namespace td::test {
namespace {

using kernels::Chip;
using kernels::DenseChoice;
using kernels::DenseKernel;
using kernels::Prediction;
using kernels::cuda::gemm_blas_bytes;
using kernels::cuda::gemm_layout;
using kernels::cuda::GemmLayout;
using kernels::cuda::tile_layout;
using kernels::cuda::TileLayout;

constexpr Chip chip; // an H200
constexpr kernels::Rates rates{4.3e12, 33e12, 8.5e12, 4.6e12, 30e12};

TileLayout tiles(const std::vector<i64> &dims, int mode, i64 rank, const DenseChoice &choice,
                 ValueType type = ValueType::f64) {
  return tile_layout(dims, mode, dims[static_cast<std::size_t>(mode)], rank, type, choice, chip);
}

Prediction predict(const std::vector<i64> &dims, int mode, i64 rank, const DenseChoice &choice,
                   const kernels::Rates &at = rates, ValueType type = ValueType::f64, ValueType sums = ValueType::f64) {
  std::vector<ConstMatrix> factors;
  for (const i64 dim : dims)
    factors.emplace_back(nullptr, type, dim, rank, rank);
  const i64 rows = dims[static_cast<std::size_t>(mode)];
  kernels::MttkrpArgs args{mode, factors, {nullptr, sums, rows, rank, rank}, {0, rows}, {0, 0}};
  args.dense = choice;
  return kernels::cuda::predict_mttkrp(kernels::DenseView{dims, type, nullptr}, args, at, chip);
}

TEST(KernelsCudaDenseVariants, ATileOfOneIsElemAndTheWholeSliceIsSlice) {
  const std::vector<i64> dims{200, 150, 12, 250};
  const TileLayout elem = tiles(dims, 1, 32, {DenseKernel::elem});
  EXPECT_EQ(elem.width, 1);
  EXPECT_EQ(elem.tiles, 200 * 12 * 250);
  const TileLayout slice = tiles(dims, 1, 32, {DenseKernel::slice});
  EXPECT_EQ(slice.tiles, 1);
  EXPECT_EQ(slice.parts, 1);
  const TileLayout tile = tiles(dims, 1, 32, {DenseKernel::tile, 6});
  EXPECT_EQ(tile.width, 6);
  EXPECT_EQ(tile.tiles, 34 * 2 * 42); // the last ones of modes 0 and 3 are narrower
  EXPECT_EQ(tiles(dims, 1, 32, {DenseKernel::tile, i64{1} << 53}).tiles, 1) << "a width is cut to the modes' lengths";
}

// 227 KB for sixteen groups: 14528 bytes, of which an index of three modes with 32 columns in f64 takes 768.
TEST(KernelsCudaDenseVariants, RowsOfATileFitNearMemory) {
  const std::vector<i64> dims{401, 201, 12, 501};
  EXPECT_EQ(tiles(dims, 0, 32, {DenseKernel::tile}).width, 18);
  EXPECT_EQ(tiles(dims, 0, 32, {DenseKernel::tile}, ValueType::f32).width, 37);
  EXPECT_EQ(tiles(dims, 0, 100, {DenseKernel::tile}).width, 9); // 64 columns
  EXPECT_EQ(tiles(dims, 0, 2000, {DenseKernel::tile}).width, 9);
  // Narrower where the multiprocessors would have nothing to do: three slices are one row of groups.
  EXPECT_LT(tiles({3, 40, 50}, 0, 32, {DenseKernel::tile}).width, 12);
}

TEST(KernelsCudaDenseVariants, EachTileHasOnePart) {
  constexpr u64 seed = 20261123;
  std::mt19937_64 random(seed);
  const auto up_to = [&](i64 n) { return 1 + static_cast<i64>(random() % static_cast<u64>(n)); };
  for (int k = 0; k < 300; ++k) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << k);
    std::vector<i64> dims;
    for (i64 m = 1 + up_to(5); m > 0; --m)
      dims.push_back(up_to(40));
    const auto mode = static_cast<int>(random() % dims.size());
    const i64 rank = up_to(k % 2 == 0 ? 40 : 300);
    const DenseChoice choice{k % 3 == 0 ? DenseKernel::elem : DenseKernel::tile, k % 3 == 1 ? up_to(9) : 0};
    const TileLayout l = tiles(dims, mode, rank, choice);
    i64 found = 1;
    for (std::size_t m = 0; m < dims.size(); ++m)
      if (static_cast<int>(m) != mode)
        found *= (dims[m] + l.width - 1) / l.width;
    EXPECT_EQ(l.tiles, found);
    EXPECT_GE(l.parts, 1);
    EXPECT_LE(l.parts, l.tiles);
    EXPECT_GE(l.columns() * l.column_tiles, rank);
    EXPECT_LT(l.columns() * (l.column_tiles - 1), rank);
    EXPECT_GE(l.row_groups() * kernels::cuda::tile_rows, l.rows);
  }
}

GemmLayout gemm(const std::vector<i64> &dims, int mode, i64 rows, i64 rank, ValueType type = ValueType::f64,
                ValueType sums = ValueType::f64) {
  return gemm_layout(dims, mode, rows, rank, type, sums, chip);
}

// Whatever the cut, each row of it is in one box, boxes follow each other in memory, and what the first of a row of the
// result writes the others add to.
TEST(KernelsCudaDenseVariants, EachRowIsInOneBox) {
  constexpr u64 seed = 20261124;
  std::mt19937_64 random(seed);
  const auto up_to = [&](i64 n) { return 1 + static_cast<i64>(random() % static_cast<u64>(n)); };
  i64 most_boxes = 0;
  for (int k = 0; k < 300; ++k) {
    std::vector<i64> dims;
    for (i64 m = 1 + up_to(4); m > 0; --m)
      dims.push_back(up_to(12));
    const auto mode = static_cast<int>(random() % dims.size());
    const i64 wanted = up_to(dims[static_cast<std::size_t>(mode)]);
    const GemmLayout l =
        gemm(dims, mode, wanted, up_to(3000000), ValueType::f32, k % 2 == 0 ? ValueType::f32 : ValueType::f64);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << k << ", cut " << l.cut << ", mode " << mode);
    ASSERT_EQ(l.row_dims[l.place], wanted);
    i64 next = 0;
    i64 boxes = 0;
    std::vector<bool> written(static_cast<std::size_t>(wanted), false);
    kernels::cuda::GemmBox box(l);
    do {
      i64 at = 0;
      i64 step = 1;
      for (std::size_t m = 0; m < l.row_dims.size(); ++m) {
        at += box.first[m] * step;
        step *= l.row_dims[m];
      }
      ASSERT_EQ(at, next);
      ASSERT_LE(box.rows(), l.box_rows());
      next += box.rows();
      ++boxes;
      for (i64 i = box.first[l.place]; i < box.first[l.place] + box.dims[l.place]; ++i) {
        ASSERT_EQ(written[static_cast<std::size_t>(i)], box.comes_later(l.place)) << "row " << i;
        written[static_cast<std::size_t>(i)] = true;
      }
    } while (box.next(l));
    i64 rows = 1;
    for (const i64 d : l.row_dims)
      rows *= d;
    EXPECT_EQ(next, rows);
    EXPECT_EQ(static_cast<double>(boxes), l.boxes());
    most_boxes = std::max(most_boxes, boxes);
  }
  EXPECT_GT(most_boxes, 10);
}

TEST(KernelsCudaDenseVariants, GemmTakesBoundedWorkspace) {
  const auto numbers = [](const GemmLayout &l, i64 rank) {
    return (l.bytes(rank) - static_cast<double>(gemm_blas_bytes) - 8 * l.parts) / 8;
  };
  // A matrix needs no product, whatever the mode.
  EXPECT_EQ(gemm({40, 50}, 1, 50, 10).bytes(10), static_cast<double>(gemm_blas_bytes));
  // The product of two modes is made, and the result is written by cuBLAS.
  const GemmLayout direct = gemm({300000, 16, 16}, 0, 300000, 64);
  EXPECT_EQ(direct.cut, 1);
  EXPECT_EQ(numbers(direct, 64), 256 * 64);
  // 40000 x 500 sums at a time, and a Khatri-Rao product of 300 x 200.
  const GemmLayout inner = gemm({200, 200, 300, 200}, 1, 200, 64);
  EXPECT_EQ(inner.cut, 2);
  EXPECT_EQ(numbers(inner, 64), (40000 + 60000) * 64);
  // Sums of f32 terms in f64: the other factor of the rows' side is widened, and so is the tensor, piece by piece.
  const GemmLayout wide = gemm({200, 200, 300, 200}, 1, 200, 64, ValueType::f32);
  EXPECT_EQ(wide.widened() > 0 && wide.widened() <= static_cast<double>(kernels::cuda::gemm_most_sums), true);
  EXPECT_EQ(wide.factors(64), 200 * 64);
  for (const i64 rank : {64, 500, 2000, 20000})
    for (int mode = 0; mode < 5; ++mode)
      EXPECT_LT(gemm({129, 129, 129, 12, 39}, mode, 12, rank).bytes(rank), 5e8);
}

// cuBLAS multiplies faster where all of a tile's columns are there; with few of them memory bounds both.
TEST(KernelsCudaDenseVariants, AutoTakesWhatIsPredictedToBeFaster) {
  for (const std::vector<i64> &dims : {std::vector<i64>{200, 150, 12, 250}, {128, 64, 96, 50}, {1000, 1000, 1000}})
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode) {
      for (const i64 rank : {1, 10, 32}) {
        EXPECT_EQ(predict(dims, mode, rank, {}).dense, DenseKernel::fused) << "rank " << rank << ", mode " << mode;
      }
      for (const i64 rank : {64, 128, 500, 2000}) {
        SCOPED_TRACE(testing::Message() << "rank " << rank << ", mode " << mode);
        const Prediction taken = predict(dims, mode, rank, {});
        const Prediction fused = predict(dims, mode, rank, {DenseKernel::fused});
        const Prediction gemm = predict(dims, mode, rank, {DenseKernel::gemm});
        EXPECT_EQ(taken.kernel, taken.dense == DenseKernel::gemm ? gemm.kernel : fused.kernel);
        EXPECT_LT(taken.seconds, 1.05 * std::min(fused.seconds, gemm.seconds)) << "by other rates of the chip";
        // Sums of f32 are in f64, which cuBLAS has none of.
        EXPECT_EQ(predict(dims, mode, rank, {}, rates, ValueType::f32, ValueType::f32).dense, DenseKernel::fused);
      }
    }
  EXPECT_EQ(predict({200, 150, 12, 250}, 0, 100, {}).dense, DenseKernel::fused);
  EXPECT_EQ(predict({200, 150, 12, 250}, 0, 500, {}).dense, DenseKernel::gemm) << "where the rank fills wide tiles";
}

/// Milliseconds on an H200, f64 (bench/results, 2026-11-29-NVIDIA-H200-dense-middle): of each mode by fused, then by
/// gemm.
struct Measured {
  std::vector<i64> dims;
  i64 rank;
  std::vector<double> fused;
  std::vector<double> gemm;
  double within = 1.08; // of the faster one, what auto takes
};

// Where the two are about as fast as each other, auto may take either.
TEST(KernelsCudaDenseVariants, AutoTakesWhatWasFaster) {
  const Measured all[] = {
      {{200, 150, 12, 250}, 64, {0.305, 0.304, 0.302, 0.294}, {0.303, 0.301, 0.306, 0.289}},
      {{200, 150, 12, 250}, 100, {0.427, 0.42, 0.444, 0.433}, {0.483, 0.473, 0.473, 0.47}},
      {{200, 150, 12, 250}, 200, {0.807, 0.796, 0.871, 0.821}, {0.908, 0.913, 0.81, 0.818}},
      {{200, 150, 12, 250}, 500, {1.831, 1.802, 2.039, 1.884}, {1.799, 1.802, 1.811, 1.81}},
      {{77, 91, 303, 17}, 64, {0.155, 0.156, 0.17, 0.158}, {0.196, 0.187, 0.199, 0.2}},
      {{77, 91, 303, 17}, 100, {0.221, 0.219, 0.264, 0.217}, {0.269, 0.262, 0.346, 0.345}},
      {{77, 91, 303, 17}, 200, {0.345, 0.34, 0.445, 0.358}, {0.461, 0.462, 0.608, 0.609}},
      {{77, 91, 303, 17}, 500, {0.808, 0.796, 0.832, 0.797}, {1.117, 1.124, 1.093, 1.093}},
      {{3, 5, 7, 2, 300000}, 64, {0.254, 0.251, 0.252, 0.251, 0.284}, {0.267, 0.243, 0.267, 0.234, 0.221}},
      {{3, 5, 7, 2, 300000}, 100, {0.362, 0.362, 0.362, 0.354, 0.431}, {0.439, 0.447, 0.464, 0.44, 0.35}},
      {{3, 5, 7, 2, 300000}, 200, {0.681, 0.681, 0.678, 0.674, 0.779}, {0.821, 0.827, 0.824, 0.819, 0.671}},
      {{3, 5, 7, 2, 300000}, 500, {1.641, 1.642, 1.637, 1.631, 1.85}, {1.826, 1.793, 1.832, 1.861, 1.412}},
      {{80601, 3001}, 64, {0.714, 0.761}, {0.86, 1.001}},
      {{80601, 3001}, 100, {1.049, 1.169}, {1.313, 1.608}},
      {{80601, 3001}, 200, {2.077, 2.336}, {2.627, 3.066}},
      {{80601, 3001}, 500, {5.145, 5.164}, {5.556, 5.957}},
      {{401, 201, 12, 501}, 64, {1.418, 1.404, 1.519, 1.439}, {1.886, 1.83, 1.927, 1.943}},
      {{401, 201, 12, 501}, 100, {2.191, 2.135, 2.45, 2.19}, {2.611, 2.589, 3.197, 3.232}},
      {{401, 201, 12, 501}, 200, {4.205, 4.151, 4.768, 4.321}, {5.744, 5.74, 6.689, 6.791}},
      {{401, 201, 12, 501}, 500, {11.47, 11.23, 11.31, 11.06}, {11.53, 11.55, 12.75, 12.53}},
      {{1000, 1000, 1000}, 64, {3.164, 3.09, 3.499}, {2.868, 2.876, 2.934}},
      {{1000, 1000, 1000}, 100, {5.531, 4.67, 4.993}, {5.144, 5.075, 4.989}},
      {{1000, 1000, 1000}, 200, {9.877, 9.682, 11.61}, {10.01, 13.22, 10.72}, 1.15},
      {{1000, 1000, 1000}, 500, {24.32, 23.05, 24.76}, {23.15, 25.51, 26.76}},
      {{12, 12000, 12000}, 64, {4.689, 4.725, 5.072}, {4.391, 4.546, 4.878}},
      {{12, 12000, 12000}, 100, {7.122, 7.276, 7.382}, {8.434, 7.978, 8.524}},
      {{12, 12000, 12000}, 200, {14.2, 15.22, 15.79}, {15.27, 15.2, 16.54}},
      {{12, 12000, 12000}, 500, {39.47, 40.08, 42.95}, {32.18, 32.3, 36.39}},
      {{129, 129, 129, 12, 39}, 64, {2.871, 2.862, 3.047, 2.875, 2.877}, {3.157, 3.367, 4.16, 4.157, 4.222}},
      {{129, 129, 129, 12, 39}, 100, {4.297, 4.347, 4.66, 4.284, 4.269}, {5.469, 5.173, 6.777, 6.852, 6.951}},
      {{129, 129, 129, 12, 39}, 200, {8.637, 8.679, 9.744, 8.641, 9.061}, {10.93, 11.03, 12.46, 12.69, 12.53}},
      {{129, 129, 129, 12, 39}, 500, {23.5, 23.71, 25.96, 23.41, 23.64}, {23.23, 24.39, 26.77, 26.85, 26.69}},
      {{1000, 1000, 300}, 65, {1.234, 1.146, 1.069}, {2.228, 1.913, 1.896}},
      {{1000, 1000, 300}, 130, {2.131, 2.331, 2.242}, {2.401, 2.568, 2.53}},
      {{1000, 1000, 300}, 300, {4.589, 4.634, 4.566}, {4.158, 4.198, 4.208}, 1.11},
      {{600, 2, 200000}, 65, {0.842, 0.808, 0.792}, {1.311, 1.66, 1.407}},
      {{600, 2, 200000}, 130, {1.587, 1.543, 1.558}, {1.797, 2.122, 1.762}},
      {{600, 2, 200000}, 300, {3.134, 3.07, 3.04}, {2.749, 2.748, 3.003}},
      {{33, 65, 129, 257}, 65, {0.293, 0.282, 0.279, 0.289}, {0.435, 0.436, 0.456, 0.455}},
      {{33, 65, 129, 257}, 130, {0.482, 0.466, 0.466, 0.475}, {0.773, 0.743, 0.841, 0.857}},
      {{33, 65, 129, 257}, 300, {0.919, 1.122, 1.118, 0.914}, {1.263, 1.281, 1.452, 1.447}},
      {{30000, 9000}, 65, {0.828, 0.839}, {1.328, 1.556}},
      {{30000, 9000}, 130, {1.614, 1.649}, {2.035, 1.875}},
      {{30000, 9000}, 300, {3.168, 3.333}, {3.288, 3.225}},
      {{17, 19, 700001}, 65, {0.941, 0.927, 1.042}, {1.679, 1.69, 1.621}},
      {{17, 19, 700001}, 130, {1.821, 1.784, 2.15}, {2.128, 2.166, 3.004}},
      {{17, 19, 700001}, 300, {3.479, 3.476, 3.829}, {4.364, 4.347, 5.194}},
  };
  double lost = 0;
  double count = 0;
  for (const Measured &m : all)
    for (std::size_t mode = 0; mode < m.dims.size(); ++mode) {
      const bool by_gemm = predict(m.dims, static_cast<int>(mode), m.rank, {}).dense == DenseKernel::gemm;
      const double taken = (by_gemm ? m.gemm[mode] : m.fused[mode]) / std::min(m.fused[mode], m.gemm[mode]);
      EXPECT_LT(taken, m.within) << m.dims.front() << "x.. at rank " << m.rank << ", mode " << mode;
      lost += taken - 1;
      ++count;
    }
  EXPECT_LT(lost / count, 0.01);
}

TEST(KernelsCudaDenseVariants, PredictionsTellWhichAndWhatItTakes) {
  const std::vector<i64> dims{200, 150, 12, 250};
  const TileLayout l = tiles(dims, 2, 32, {DenseKernel::tile});
  const Prediction tile = predict(dims, 2, 32, {DenseKernel::tile});
  EXPECT_EQ(tile.bytes, 8.0 * static_cast<double>(l.parts) * 12 * 32);
  EXPECT_NE(tile.kernel.find("tiles of slices"), std::string::npos) << tile.kernel;
  const Prediction gemm = predict(dims, 2, 32, {DenseKernel::gemm});
  EXPECT_EQ(gemm.bytes, kernels::cuda::gemm_layout(dims, 2, 12, 32, ValueType::f64, ValueType::f64, chip).bytes(32));
  EXPECT_NE(gemm.kernel.find("cuBLAS"), std::string::npos) << gemm.kernel;
  EXPECT_EQ(predict(dims, 2, 32, {}).kernel, predict(dims, 2, 32, {DenseKernel::fused}).kernel);
  for (const DenseKernel kernel : {DenseKernel::elem, DenseKernel::slice, DenseKernel::tile, DenseKernel::gemm})
    for (int mode = 0; mode < 4; ++mode) {
      SCOPED_TRACE(testing::Message() << "kernel " << static_cast<int>(kernel) << ", mode " << mode);
      EXPECT_EQ(predict(dims, mode, 32, {kernel}, {}).seconds, 0) << "without rates";
      // Not below one read of the tensor, and not below its multiplications at 34 TFLOP/s twice over.
      EXPECT_GT(predict(dims, mode, 32, {kernel}).seconds, 8 * 90e6 / rates.read);
      EXPECT_GT(predict(dims, mode, 2000, {kernel}).seconds, 2 * 90e6 * 2000 / 68e12);
      EXPECT_FALSE(predict(dims, mode, 32, {kernel}).conflicts.empty());
    }
  // Twelve slices are three groups of lanes, which leave most of a GPU idle.
  EXPECT_GT(predict(dims, 2, 32, {DenseKernel::slice}).seconds, 20 * predict(dims, 2, 32, {DenseKernel::tile}).seconds);
  // What is not there to be reused is fetched once more.
  EXPECT_GT(predict(dims, 1, 32, {DenseKernel::elem}).seconds, predict(dims, 1, 32, {DenseKernel::tile}).seconds);
}

// Plans are made of these too.
TEST(KernelsCudaDenseVariants, SizesThatNothingHasAreNoTrouble) {
  for (const std::vector<i64> &dims :
       {std::vector<i64>{i64{1} << 20, i64{1} << 20, i64{1} << 20}, {i64{1} << 61, 2}, {3, i64{1} << 59}})
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode)
      for (const DenseKernel kernel : {DenseKernel::elem, DenseKernel::slice, DenseKernel::tile, DenseKernel::gemm}) {
        const Prediction f = predict(dims, mode, i64{1} << 62, {kernel});
        const bool factor_serves = kernel == DenseKernel::gemm && dims.size() == 2;
        EXPECT_GE(f.bytes, factor_serves ? static_cast<double>(gemm_blas_bytes) : 0x1p60);
        EXPECT_GT(f.seconds, 1e9);
      }
}

} // namespace
} // namespace td::test
