// What the steps of building sorted copies and BLCO on a GPU take, and the same on the host, for entries in no order
// that are drawn as in bench/README.md. Prints milliseconds. usage: gpu_build SCALE NAME...    NAME: uber, nell2, vast
// or delicious; SCALE multiplies the number of entries
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "core/clock.hpp"
#include "core/parallel.hpp"
#include "formats/gpu_tiles.hpp"
#include "kernels/loader.hpp"
#include "plan/tensor.hpp"

namespace {

using namespace td;
using kernels::BitMove;

/// Adds up what each step takes. All have ended when they return.
class Timed final : public kernels::Building {
  template <class F> decltype(auto) timed(const char *step, F &&f) {
    struct Add {
      double &to;
      Clock::time_point since = Clock::now();
      ~Add() { to += seconds_since(since); }
    } add{seconds[step]};
    return f();
  }

public:
  explicit Timed(std::unique_ptr<kernels::Building> steps) : steps_(std::move(steps)) {}
  std::map<std::string, double> seconds;

  i64 size() const noexcept override { return steps_->size(); }
  i64 first_outside() override {
    return timed("check", [&] { return steps_->first_outside(); });
  }
  i64 first_not_finite() override {
    return timed("check", [&] { return steps_->first_not_finite(); });
  }
  void mark_rows(int mode, u64 *words) override {
    timed("mark rows", [&] { steps_->mark_rows(mode, words); });
  }
  void encode(int bytes, std::span<const std::vector<BitMove>> moves,
              std::span<const kernels::RowNumbers> numbers) override {
    timed("encode", [&] { steps_->encode(bytes, moves, numbers); });
  }
  void sort() override {
    timed("sort", [&] { steps_->sort(); });
  }
  i64 first_repeat() override {
    return timed("merge", [&] { return steps_->first_repeat(); });
  }
  i64 merge() override {
    return timed("merge", [&] { return steps_->merge(); });
  }
  std::vector<u128> keys(std::span<const i64> entries) override { return steps_->keys(entries); }
  void recode(int bytes, std::span<const BitMove> moves) override {
    timed("recode", [&] { steps_->recode(bytes, moves); });
  }
  std::vector<i64> runs(u128 mask) override {
    return timed("recode", [&] { return steps_->runs(mask); });
  }
  void sum_values(double scale, i64 block, kernels::ValueSums *sums) override {
    timed("facts", [&] { steps_->sum_values(scale, block, sums); });
  }
  void count_fields(int shift, int bits, std::span<i64> counts) override {
    timed("copies", [&] { steps_->count_fields(shift, bits, counts); });
  }
  void download_keys(void *keys) override {
    timed("download", [&] { steps_->download_keys(keys); });
  }
  void download_values(void *values) override {
    timed("download", [&] { steps_->download_values(values); });
  }
  i64 make_copy(const kernels::CopyPlan &plan) override {
    return timed("copies", [&] { return steps_->make_copy(plan); });
  }
  void download_copy(const CopyArrays &to) override {
    timed("download", [&] { steps_->download_copy(to); });
  }

private:
  std::unique_ptr<kernels::Building> steps_;
};

struct Shape {
  std::vector<i64> dims;
  double entries;
};

const std::map<std::string, Shape> shapes{
    {"uber", {{183, 24, 1140, 1717}, 3309490}},
    {"nell2", {{12092, 9184, 28818}, 76879419}},
    {"vast", {{165427, 11374, 2}, 26021945}},
    {"delicious", {{532924, 17262471, 2480308, 1443}, 140126181}},
};

struct Drawn {
  std::vector<Buffer<std::int32_t>> columns;
  std::vector<const void *> pointers;
  Buffer<double> values;
};

Drawn draw(const Shape &shape, i64 nnz) {
  Drawn x;
  x.values = Buffer<double>(nnz, "values");
  for (std::size_t m = 0; m < shape.dims.size(); ++m)
    x.pointers.push_back(x.columns.emplace_back(nnz, "indices").data());
  parallel_ranges(available_threads(), nnz, 1 << 16, [&](Range r) {
    std::mt19937_64 random(static_cast<u64>(r.begin));
    std::uniform_real_distribution<double> uniform(0, 1);
    for (i64 k = r.begin; k < r.end; ++k) {
      for (std::size_t m = 0; m < shape.dims.size(); ++m) {
        const double u = uniform(random);
        const auto index = static_cast<i64>(static_cast<double>(shape.dims[m]) * u * u);
        // Scattered: 2^31 - 1 is a prime and no factor of any dim.
        x.columns[m][k] = static_cast<std::int32_t>(index * 2147483647 % shape.dims[m]);
      }
      x.values[k] = 1 + uniform(random);
    }
  });
  return x;
}

void measure(kernels::Backend &gpu, const std::string &name, double scale) {
  const Shape &shape = shapes.at(name);
  const auto nnz = static_cast<i64>(shape.entries * scale);
  const Drawn x = draw(shape, nnz);
  const EntriesView e{shape.dims, nnz, IndexType::i32, x.pointers.data(), 0, ValueType::f64, x.values.data()};
  const int threads = available_threads();
  for (const char *format : {"sorted", "blco"}) {
    std::map<std::string, double> steps;
    double upload = 0;
    double all = 0;
    for (int repeat = 0; repeat < 2; ++repeat) { // the second is shown: the first loads kernels and fills the pool
      auto since = Clock::now();
      const auto whole = since;
      Timed building(gpu.begin_building(e));
      upload = seconds_since(since);
      formats::check_entries(e, building);
      const formats::Numbering numbering(e, formats::EmptyRows::few, building, threads);
      const auto packed = formats::build_packed(building, e, numbering, false);
      plan::facts_of(building);
      if (std::string(format) == "blco")
        formats::build_blco(packed);
      else
        for (int mode = 0; mode < e.order(); ++mode)
          formats::build_sorted(packed, mode, formats::gpu_tile_bits(packed.dims, mode, building.size()));
      all = seconds_since(whole);
      steps = building.seconds;
    }
    Options options;
    options.set_text("format", format);
    auto since = Clock::now();
    plan::Tensor::make_sparse(e, options, threads, "", plan::Target::gpu);
    const double host = seconds_since(since);
    double device = 0;
    std::printf("%s, %lld entries, %s: upload %.1f (%.1f GB/s)", name.c_str(), static_cast<long long>(nnz), format,
                1e3 * upload, static_cast<double>(nnz * (4 * e.order() + 8)) / upload / 1e9);
    for (const auto &[step, seconds] : steps) {
      std::printf(", %s %.1f", step.c_str(), 1e3 * seconds);
      device += step == "download" ? 0 : seconds;
    }
    std::printf("; on the GPU %.1f, with all transfers and lists %.1f; on %d host threads %.1f\n", 1e3 * device,
                1e3 * all, threads, 1e3 * host);
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: gpu_build SCALE NAME...\n");
    return 2;
  }
  const auto gpu = kernels::open_backends(kernels::parse_devices("cuda"), available_threads()).front();
  for (int k = 2; k < argc; ++k)
    measure(*gpu, argv[k], std::atof(argv[1]));
  return 0;
}
