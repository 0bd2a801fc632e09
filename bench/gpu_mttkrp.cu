// MTTKRP on a GPU: td's kernels, and a plain one to compare with, on tensors of known shapes. Each result is compared
// with one that is summed entry by entry in f64 and, in some rows, with the same on the host.
// usage: gpu_mttkrp [RANK [NAME,NAME,... [PATH,PATH,...]]]     32, all tensors ("" too), and all paths but "tiles"
// NAME may be a shape: 40000x30000x20000:1000000 has that many entries.
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>

#include "formats/tiles.hpp"
#include "gpu_tensors.cuh"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/mttkrp.hpp"

namespace bench {

using kernels::Conflicts;
using kernels::MttkrpArgs;
using kernels::cuda::CudaBackend;
using kernels::cuda::Gpu;

constexpr double copy_rate = 4.30e12; // bytes a second, read and written, of an H200

const std::vector<Shape> shapes = {
    {"uber", {183, 24, 1140, 1717}, 3'300'000},        {"nips", {2482, 2862, 14036, 17}, 3'100'000},
    {"nell2-small", {12092, 9184, 28818}, 15'000'000}, {"nell2", {12092, 9184, 28818}, 76'900'000},
    {"vast", {165427, 11374, 2}, 26'000'000},          {"delicious", {532924, 17262471, 2480308, 1443}, 140'000'000},
};

/// Whether a list with commas has the name; an empty one has all.
bool listed(const std::string &list, const std::string &name) {
  return list.empty() || ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// The shape that "40000x30000x20000:1000000" names; any other name gives none.
Shape shape_of(const std::string &name) {
  Shape shape{name, {}, 0};
  const char *at = name.c_str();
  for (char *end = nullptr; *at >= '0' && *at <= '9'; at = *end == 'x' ? end + 1 : end) {
    shape.dims.push_back(std::strtoll(at, &end, 10));
    if (*end == ':') {
      shape.drawn = std::strtoll(end + 1, nullptr, 10);
      break;
    }
  }
  return shape;
}

__host__ __device__ double factor_element(int mode, i64 at) { return uniform(static_cast<u64>(mode) << 40 ^ at); }

template <class T> __global__ void fill_factor(int mode, i64 n, T *a) {
  FOR_EACH(k, n) a[k] = static_cast<T>(factor_element(mode, k));
}

struct Pointers {
  const void *of[max_order];
};

__global__ void sum_by_entry(int order, int mode, i64 n, Columns index, const double *values, Pointers factors,
                             i64 rank, double *out) {
  FOR_EACH(w, n * rank) {
    const i64 k = w / rank;
    const i64 r = w % rank;
    double x = values[k];
    for (int m = 0; m < order; ++m)
      if (m != mode)
        x *= static_cast<const double *>(factors.of[m])[i64{index.index[m][k]} * rank + r];
    atomicAdd(out + i64{index.index[mode][k]} * rank + r, x);
  }
}

template <class T> __global__ void largest_error(i64 n, const double *expected, const T *found, double *worst) {
  double mine = 0;
  FOR_EACH(k, n) {
    const double e = fabs(expected[k] - static_cast<double>(found[k])) / fmax(fabs(expected[k]), 1e-300);
    mine = e <= mine ? mine : e; // NaN too
  }
  atomicMax(reinterpret_cast<unsigned long long *>(worst), static_cast<unsigned long long>(__double_as_longlong(mine)));
}

/// What anyone would write first for entries sorted by the mode: a warp walks some of them, a lane a column, and adds
/// to the result at the end of each row.
template <class T, int Others>
__global__ void walk_plainly(i64 n, const u32 *rows, Pointers index, Pointers factors, const T *values, int each,
                             i64 rank, T *out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const i64 begin = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / 32 * each;
  const i64 end = min(n, begin + each);
  if (begin >= end)
    return;
  for (i64 r0 = 0; r0 < rank; r0 += 32) {
    const i64 r = min(r0 + lane, rank - 1);
    u32 current = rows[begin];
    T sum = 0;
    const auto flush = [&] {
      if (r0 + lane < rank)
        atomicAdd(out + current * rank + r, sum);
    };
    for (i64 k0 = begin; k0 < end; k0 += 32) {
      const i64 k = min(k0 + lane, end - 1);
      const u32 my_row = rows[k];
      const T my_value = k0 + lane < end ? values[k] : T{0};
      u32 my_index[Others];
      for (int m = 0; m < Others; ++m)
        my_index[m] = static_cast<const u32 *>(index.of[m])[k];
#pragma unroll
      for (int j = 0; j < 32; j += 4) {
        T term[4];
        u32 row[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          term[i] = __shfl_sync(0xffffffffu, my_value, j + i);
          row[i] = __shfl_sync(0xffffffffu, my_row, j + i);
#pragma unroll
          for (int m = 0; m < Others; ++m)
            term[i] *= static_cast<const T *>(factors.of[m])[__shfl_sync(0xffffffffu, my_index[m], j + i) * rank + r];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (row[i] != current) {
            flush();
            sum = 0;
            current = row[i];
          }
          sum += term[i];
        }
      }
    }
    flush();
  }
}

class Run {
public:
  Run(CudaBackend &backend, const Shape &shape, i64 rank, const std::string &paths)
      : backend_(backend), device_(backend.gpu()), paths_(paths), x_(make_entries(shape)), rank_(rank) {
    if (asked("blco") || asked("blco-64"))
      blco_ = make_blco(x_);
    for (std::size_t m = 0; m < shape.dims.size(); ++m) {
      const i64 size = shape.dims[m] * rank;
      f64_.emplace_back(size);
      f32_.emplace_back(size);
      fill_factor<<<grid, block>>>(static_cast<int>(m), size, f64_[m].data());
      fill_factor<<<grid, block>>>(static_cast<int>(m), size, f32_[m].data());
      index_.push_back(x_.index[m].host());
    }
    values_ = x_.values.host();
  }

  void all_modes() {
    std::printf("\n%s, %lld entries, rank %lld\n", x_.shape.name.c_str(), static_cast<long long>(x_.nnz),
                static_cast<long long>(rank_));
    std::printf("  %-4s %-5s %-8s %9s %9s %8s %8s %8s %8s %9s\n", "mode", "type", "path", "tiles", "ms", "G nnz/s",
                "x floor", "x plain", "x BLCO", "error");
    for (int mode = 0; mode < x_.layout.order; ++mode) {
      expect(mode);
      one_type<double>(mode, f64_, 1e-11);
      one_type<float>(mode, f32_, 1e-3);
    }
  }

private:
  bool asked(const char *path) const { return listed(paths_, path); }
  bool named(const char *path) const { return !paths_.empty() && asked(path); }
  i64 cells(int mode) const { return x_.shape.dims[static_cast<std::size_t>(mode)] * rank_; }

  /// The result in f64, entry by entry, and three of its rows on the host besides.
  void expect(int mode) {
    expected_ = Array<double>(cells(mode));
    cudaMemset(expected_.data(), 0, static_cast<std::size_t>(cells(mode)) * sizeof(double));
    Pointers factors{};
    for (std::size_t m = 0; m < f64_.size(); ++m)
      factors.of[m] = f64_[m].data();
    sum_by_entry<<<8 * grid, block>>>(x_.layout.order, mode, x_.nnz, x_.columns(), x_.values.data(), factors, rank_,
                                      expected_.data());
    check(cudaDeviceSynchronize(), "summing entry by entry");
    const auto &rows = index_[static_cast<std::size_t>(mode)];
    const std::array<u32, 3> sample = {rows.front(), rows[rows.size() / 3], rows.back()};
    for (const u32 row : sample) {
      std::vector<double> sum(static_cast<std::size_t>(rank_), 0);
      for (std::size_t k = 0; k < rows.size(); ++k)
        for (i64 r = 0; r < rank_ && rows[k] == row; ++r) {
          double term = values_[k];
          for (std::size_t m = 0; m < index_.size(); ++m)
            if (static_cast<int>(m) != mode)
              term *= factor_element(static_cast<int>(m), i64{index_[m][k]} * rank_ + r);
          sum[static_cast<std::size_t>(r)] += term;
        }
      std::vector<double> found(static_cast<std::size_t>(rank_));
      check(cudaMemcpy(found.data(), expected_.data() + i64{row} * rank_, found.size() * sizeof(double),
                       cudaMemcpyDeviceToHost),
            "copying");
      for (std::size_t r = 0; r < found.size(); ++r)
        if (!(std::abs(found[r] - sum[r]) <= 1e-9 * std::abs(sum[r])))
          std::printf("  WRONG: row %u, column %zu is %.17g on the GPU and %.17g on the host\n", row, r, found[r],
                      sum[r]);
    }
  }

  template <class T> void one_type(int mode, const std::vector<Array<T>> &factors, double tolerance) {
    constexpr ValueType type = sizeof(T) == 8 ? ValueType::f64 : ValueType::f32;
    const Array<T> out(cells(mode));
    std::vector<ConstMatrix> matrices;
    for (std::size_t m = 0; m < factors.size(); ++m)
      matrices.push_back({factors[m].data(), type, x_.shape.dims[m], rank_, rank_});
    const i64 rows = x_.shape.dims[static_cast<std::size_t>(mode)];
    MttkrpArgs args{mode, matrices, {out.data(), type, rows, rank_, rank_}, {0, rows}, {0, x_.nnz}};
    double plain = std::numeric_limits<double>::quiet_NaN();
    double blco = plain;
    double most = tolerance; // that an error may be
    const auto report = [&](const char *path, i64 tiles, i64 tensor_bytes, double ms) {
      double moved = static_cast<double>(tensor_bytes);
      for (const auto &f : factors)
        moved += static_cast<double>(f.size()) * sizeof(T);
      const double error = worst(out);
      std::printf("  %-4d %-5s %-8s %9lld %9.3f %8.2f %8.2f %8.2f %8.2f %9.1e%s\n", mode,
                  sizeof(T) == 8 ? "f64" : "f32", path, static_cast<long long>(tiles), ms,
                  static_cast<double>(x_.nnz) / ms / 1e6, ms / (1e3 * moved / copy_rate), plain / ms, blco / ms, error,
                  error <= most ? "" : " WRONG");
      std::fflush(stdout);
    };
    const auto time = [&](const std::function<void()> &call) {
      cudaMemset(out.data(), 0xff, static_cast<std::size_t>(cells(mode)) * sizeof(T));
      check(cudaDeviceSynchronize(), "waiting");
      std::this_thread::sleep_for(std::chrono::milliseconds(200)); // what came before may have made the GPU slower
      return median_ms(device_.stream(), call, 9);
    };

    std::vector<int> whole;
    for (const i64 d : x_.shape.dims)
      whole.push_back(index_bits(d));
    if (asked("plain")) {
      const SortedCopy copy = sort_entries(x_, mode, whole);
      plain = std::numeric_limits<double>::infinity();
      const auto run = plain_run<T>(copy, mode, factors, out);
      for (const int each : {64, 128, 256, 512})
        plain = std::min(plain, time([&] { run(each); }));
      report("plain", 1, x_.nnz * static_cast<i64>(4 * factors.size() + sizeof(T)), plain);
    }
    kernels::BlcoView view = blco_.view;
    view.type = type;
    view.values = sizeof(T) == 8 ? static_cast<const void *>(x_.values.data()) : blco_.values32.data();
    if (asked("blco")) {
      blco = time([&] { mttkrp_blco(device_, view, args); });
      report("blco", 1, x_.nnz * static_cast<i64>(8 + sizeof(T)), blco);
    }

    const auto bits_for = [&](ValueType row_type, ValueType term_type) {
      return formats::gpu_tile_bits(backend_.chip(), std::span(x_.shape.dims.data(), x_.shape.dims.size()), mode,
                                    x_.nnz, row_type, term_type);
    };
    const auto bits = bits_for(type, type);
    const auto mixed_bits = bits_for(ValueType::f32, ValueType::f64);
    // Rows in f32: the copies of the other factors, which CP-ALS makes once an update, and the product.
    const bool gather = sizeof(T) == 8 && asked("gather");
    const i64 columns = kernels::gathered_columns(rank_);
    std::vector<Array<float>> copies;
    std::vector<Array<double>> powers;
    MttkrpArgs narrow = args;
    std::vector<ConstMatrix> narrow_rows;
    std::vector<const double *> exponents;
    for (const ConstMatrix &a : matrices) {
      copies.emplace_back(gather ? a.rows * columns : 0);
      powers.emplace_back(rank_);
      narrow_rows.push_back({copies.back().data(), ValueType::f32, a.rows, rank_, columns});
      exponents.push_back(powers.back().data());
    }
    narrow.factors = narrow_rows;
    narrow.exponents = exponents;
    if (gather)
      std::printf("  %-4d %-5s copies of the other factors in f32: %.3f ms\n", mode, "f64", time([&] {
                    for (std::size_t m = 0; m < matrices.size(); ++m)
                      if (static_cast<int>(m) != mode)
                        backend_.to_f32(matrices[m],
                                        {copies[m].data(), ValueType::f32, matrices[m].rows, columns, columns},
                                        powers[m].data());
                  }));
    const Array<double> sums(sizeof(T) == 4 ? cells(mode) : 0);
    MttkrpArgs wide = args;
    wide.out = {sums.data(), ValueType::f64, rows, rank_, rank_};
    const auto rounded = [&](const auto &product) {
      return time([&] {
        product();
        backend_.to_f32(wide.out, args.out, nullptr);
      });
    };

    // What the cost model chose for each precision, and no tiles: with path "tiles" each kernel on all of these.
    const bool mixed = gather || (sizeof(T) == 4 && asked("f64-sum"));
    std::vector<std::vector<int>> cuts{bits};
    for (const auto &cut :
         {mixed_bits, bits_for(ValueType::f64, ValueType::f64), bits_for(ValueType::f32, ValueType::f32), whole})
      if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
        cuts.push_back(cut);
    for (const std::vector<int> &cut : cuts) {
      const bool own = cut == bits;
      const bool own_mixed = cut == mixed_bits;
      if (!own && !(own_mixed && mixed) && !named("tiles"))
        continue;
      const SortedCopy copy = sort_entries(x_, mode, cut);
      kernels::SortedView sorted = copy.view;
      sorted.type = type;
      sorted.values = sizeof(T) == 8 ? static_cast<const void *>(copy.values.data()) : copy.values32.data();
      const i64 bytes = x_.nnz * static_cast<i64>(sorted.key_bytes + static_cast<int>(sizeof(T))) + 16 * sorted.rows;
      const auto run = [&](const std::string &path, bool chosen, const MttkrpArgs &how) {
        if (!asked(path.c_str()) || !(chosen || named("tiles")))
          return;
        const auto product = [&] { mttkrp_sorted(device_, sorted, how); };
        const double ms = path == "f64-sum" ? rounded(product) : time(product);
        report((path + (chosen ? "" : "-o")).c_str(), sorted.tiles, bytes, ms);
      };
      run("sorted", own, args);
      MttkrpArgs fixed = args;
      fixed.conflicts = Conflicts::owner;
      run("fixed", own, fixed);
      if (sizeof(T) == 4)
        run("f64-sum", own_mixed, wide);
      most = 1e-6;
      if (gather)
        run("gather", own_mixed, narrow);
      most = tolerance;
    }
    if (sizeof(T) == 4 && asked("blco-64"))
      report("blco-64", 1, x_.nnz * static_cast<i64>(8 + sizeof(T)),
             rounded([&] { mttkrp_blco(device_, view, wide); }));
  }

  template <class T> double worst(const Array<T> &out) const {
    const Array<double> error(1);
    cudaMemset(error.data(), 0, sizeof(double));
    largest_error<<<grid, block>>>(out.size(), expected_.data(), out.data(), error.data());
    return error.host()[0];
  }

  template <class T>
  std::function<void(int)> plain_run(const SortedCopy &copy, int mode, const std::vector<Array<T>> &factors,
                                     const Array<T> &out) {
    plain_.clear();
    Pointers index{}, rows{};
    int others = 0;
    const u32 *target = nullptr;
    for (std::size_t m = 0; m < factors.size(); ++m) {
      gather<<<grid, block>>>(x_.nnz, copy.number.data(), x_.index[m].data(), plain_.emplace_back(x_.nnz).data());
      if (static_cast<int>(m) == mode) {
        target = plain_.back().data();
        continue;
      }
      index.of[others] = plain_.back().data();
      rows.of[others++] = factors[m].data();
    }
    const T *values = nullptr;
    if constexpr (sizeof(T) == 8)
      values = copy.values.data();
    else
      values = copy.values32.data();
    return [=, this, &out](int each) {
      const auto blocks = static_cast<unsigned>((x_.nnz + 8 * each - 1) / (8 * each));
      cudaMemsetAsync(out.data(), 0, static_cast<std::size_t>(out.size()) * sizeof(T), device_.stream());
      const auto kernel = others == 2 ? walk_plainly<T, 2> : walk_plainly<T, 3>;
      kernel<<<blocks, 256, 0, device_.stream()>>>(x_.nnz, target, index, rows, values, each, rank_, out.data());
    };
  }

  CudaBackend &backend_;
  Gpu &device_;
  std::string paths_;
  Entries x_;
  BlcoCopy blco_;
  i64 rank_;
  std::vector<Array<double>> f64_;
  std::vector<Array<float>> f32_;
  std::vector<std::vector<u32>> index_; // on the host
  std::vector<double> values_;
  std::vector<Array<u32>> plain_;
  Array<double> expected_;
};

} // namespace bench

int main(int argc, char **argv) {
  using namespace bench;
  const i64 rank = argc > 1 ? std::atoll(argv[1]) : 32;
  const std::string names = argc > 2 ? argv[2] : "";
  const std::string paths = argc > 3 ? argv[3] : "";
  cudaMemPool_t pool;
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "finding the memory pool");
  u64 keep_all = ~u64{0};
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all), "setting up the memory pool");
  CudaBackend backend(0, 0, {});
  int driver = 0;
  cudaDriverGetVersion(&driver);
  std::printf("%s, CUDA of the driver %d.%d; medians of 9; floor: each byte of tensor and factors once at %.2f TB/s\n",
              backend.gpu().name().c_str(), driver / 1000, driver % 1000 / 10, copy_rate / 1e12);
  for (const Shape &shape : shapes)
    if (listed(names, shape.name))
      Run(backend, shape, rank, paths).all_modes();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');)
    if (const Shape shape = shape_of(name); shape.dims.size() > 1 && shape.drawn > 0)
      Run(backend, shape, rank, paths).all_modes();
  return 0;
}
