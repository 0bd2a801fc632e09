// What building sorted copies and BLCO on a GPU takes, for entries in no order that are drawn as in bench/README.md:
// each step from host memory on; a tensor that is ready there, beside a bare copy of the same bytes to the GPU and a
// sweep (MTTKRP in all modes at rank 32); and the copy to the host that is made when it is first needed there. Prints
// milliseconds, of the fastest of several. usage: gpu_build SCALE NAME...    NAME: uber, nell2, vast or delicious;
// SCALE multiplies the number of entries. A tensor for which there is too little memory is left out, with a word
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "comm/workers.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "formats/tiles.hpp"
#include "kernels/loader.hpp"
#include "solvers/worker.hpp"
#include "tensor/joint_building.hpp"
#include "tensor/tensor.hpp"

namespace {

using namespace td;
using kernels::BitMove;

/// Adds up what each step takes, until the GPUs have done it.
class Timed final : public kernels::Building {
  template <class F> decltype(auto) timed(const char *step, F &&f) {
    struct Add {
      const tensor::Builders &gpus;
      double &to;
      Clock::time_point since = Clock::now();
      ~Add() {
        for (kernels::Backend *gpu : gpus)
          gpu->wait();
        to += seconds_since(since);
      }
    } add{gpus_, seconds[step]};
    return f();
  }

public:
  Timed(const tensor::Builders &gpus, const EntriesView &e) : gpus_(gpus) {
    const auto known = formats::known_keys(e, formats::EmptyRows::few);
    const kernels::KeyMoves *keys = known ? &*known : nullptr;
    timed("upload", [&] {
      if (gpus.size() > 1)
        steps_ = tensor::JointBuilding::begin(gpus, e, plan::ShardingRule::automatic, keys);
      else
        steps_ = gpus.front()->begin_building(e, false, keys);
    });
    if (steps_ == nullptr)
      throw_error(Status::device_memory, "too little memory is free on the GPU to build {} entries there", e.nnz);
  }
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
  void encode(const kernels::KeyMoves &keys, std::span<const kernels::RowNumbers> numbers) override {
    timed("encode", [&] { steps_->encode(keys, numbers); });
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
  void sum_values(double scale, i64 block, Range entries, kernels::ValueSums *sums) override {
    timed("facts", [&] { steps_->sum_values(scale, block, entries, sums); });
  }
  void count_fields(int shift, int bits, std::span<i64> counts) override {
    timed("copies", [&] { steps_->count_fields(shift, bits, counts); });
  }
  kernels::Copy make_copy(const kernels::CopyPlan &plan) override {
    return timed("copies", [&] { return steps_->make_copy(plan); });
  }
  std::shared_ptr<const kernels::DeviceArrays> take_entries() override { return steps_->take_entries(); }

private:
  const tensor::Builders &gpus_;
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

constexpr int repeats = 4; // the first loads kernels and fills the pool
constexpr i64 rank = 32;

/// The least of the seconds that f gives.
template <class F> double least(F &&f) {
  double least = HUGE_VAL;
  for (int k = 0; k < repeats; ++k)
    least = std::min(least, f());
  return least;
}

/// Seconds of f, the least. before() is not counted.
template <class F, class Before> double fastest(F &&f, Before &&before) {
  return least([&] {
    before();
    const auto since = Clock::now();
    f();
    return seconds_since(since);
  });
}

/// Seconds of each step, the least of several. What several GPUs make is dropped copy by copy.
std::map<std::string, double> steps_of(const tensor::Builders &gpus, const EntriesView &e, bool blco) {
  std::map<std::string, double> steps;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const formats::Given given(e);
    Timed building(gpus, e);
    formats::check_entries(given, building);
    const formats::Numbering numbering(e, formats::EmptyRows::few, building, available_threads());
    const auto packed = formats::build_packed(building, given, numbering, false);
    tensor::facts_of(building);
    if (blco)
      formats::build_blco(packed);
    for (int mode = 0; mode < e.order() && !blco; ++mode)
      formats::build_sorted(
          packed, mode,
          formats::gpu_tile_bits(gpus.front()->chip(), packed.dims, mode, building.size(), e.value_type, e.value_type));
    for (const auto &[step, seconds] : building.seconds)
      steps[step] = repeat == 0 ? seconds : std::min(steps[step], seconds);
  }
  return steps;
}

/// MTTKRP in all modes, of factors of ones.
double sweep_of(kernels::Backend &gpu, const tensor::Tensor &x) {
  std::vector<kernels::DeviceBuffer> memory;
  std::vector<ConstMatrix> factors;
  i64 longest = 0;
  for (const i64 rows : x.stored_dims()) {
    const std::vector<double> ones(static_cast<std::size_t>(rows * rank), 1.0);
    memory.emplace_back(gpu, rows * rank * 8, "a factor");
    gpu.upload(memory.back().data(), ones.data(), rows * rank * 8);
    factors.emplace_back(memory.back().data(), ValueType::f64, rows, rank, rank);
    longest = std::max(longest, rows);
  }
  const kernels::DeviceBuffer out(gpu, longest * rank * 8, "a product");
  double least = HUGE_VAL;
  for (int k = 0; k < repeats; ++k) {
    gpu.mark(0);
    for (int mode = 0; mode < x.order(); ++mode) {
      const i64 rows = x.stored_dims()[static_cast<std::size_t>(mode)];
      x.view(mode, gpu).mttkrp(
          gpu, {mode, factors, {out.data(), ValueType::f64, rows, rank, rank}, {0, rows}, {0, x.facts().nnz}});
    }
    gpu.mark(1);
    least = std::min(least, gpu.seconds_between(0, 1));
  }
  return least;
}

void measure(kernels::Backend &gpu, const std::string &name, double scale) {
  const Shape &shape = shapes.at(name);
  const auto nnz = static_cast<i64>(shape.entries * scale);
  const Drawn x = draw(shape, nnz);
  const EntriesView e{shape.dims, nnz, IndexType::i32, x.pointers.data(), 0, ValueType::f64, x.values.data()};
  const int threads = available_threads();
  std::vector<kernels::DeviceBuffer> there;
  for (int m = 0; m < e.order(); ++m)
    there.emplace_back(gpu, nnz * 4, "indices");
  there.emplace_back(gpu, nnz * 8, "values");
  std::vector<const void *> columns;
  for (int m = 0; m < e.order(); ++m)
    columns.push_back(there[static_cast<std::size_t>(m)].data());
  EntriesView on_gpu = e;
  on_gpu.indices = columns.data();
  on_gpu.values = there.back().data();
  const double bare = fastest(
      [&] {
        for (int m = 0; m < e.order(); ++m)
          gpu.upload(there[static_cast<std::size_t>(m)].data(), e.indices[m], nnz * 4);
        gpu.upload(there.back().data(), e.values, nnz * 8);
      },
      [] {});
  for (const char *format : {"sorted", "blco"}) {
    const bool blco = std::string(format) == "blco";
    Options options;
    options.set_text("format", format);
    std::shared_ptr<const tensor::Tensor> made;
    const auto make = [&](const formats::Given &given, kernels::Backend *builder) {
      made = tensor::Tensor::make_sparse(given, options, threads, "", tensor::Target::gpu,
                                         builder != nullptr ? tensor::Builders{builder} : tensor::Builders{});
    };
    auto since = Clock::now();
    make(formats::Given(e), nullptr);
    const double host = seconds_since(since);
    const auto drop = [&] { made = nullptr; };
    const double from_host = fastest([&] { make(formats::Given(e), &gpu); }, drop);
    const double from_gpu = fastest([&] { make(formats::Given(on_gpu, gpu), &gpu); }, drop);
    const double sweep = sweep_of(gpu, *made);
    const int copies = blco ? 1 : e.order();
    since = Clock::now();
    for (int mode = 0; mode < copies; ++mode)
      made->view(mode);
    const double to_host = seconds_since(since);

    double device = 0;
    std::printf("%s, %lld entries, %s, steps:", name.c_str(), static_cast<long long>(nnz), format);
    for (const auto &[step, seconds] : steps_of({&gpu}, e, blco)) {
      std::printf(" %s %.2f,", step.c_str(), 1e3 * seconds);
      device += step == "upload" ? 0 : seconds;
    }
    std::printf(" together but for upload %.2f; a sweep %.2f, steps are %.2f sweeps a copy\n", 1e3 * device,
                1e3 * sweep, device / copies / sweep);
    std::printf("  ready from coordinates on the GPU %.2f, %.2f sweeps a copy\n", 1e3 * from_gpu,
                from_gpu / copies / sweep);
    std::printf("  bare upload %.1f (%.1f GB/s); ready from host coordinates %.1f, %.2f times that; later copy of "
                "%.2f GB to the host %.1f; on %d host threads %.1f\n",
                1e3 * bare, static_cast<double>(nnz * (4 * e.order() + 8)) / bare / 1e9, 1e3 * from_host,
                from_host / bare, static_cast<double>(made->bytes()) / 1e9, 1e3 * to_host, threads, 1e3 * host);
    std::fflush(stdout);
  }
}

/// Seconds from host coordinates to a part in each device's memory: the tensor is made, and MTTKRP in all modes asks
/// for all of it; what these take alone, when they are called again, is not counted.
double ready(const std::vector<std::shared_ptr<kernels::Backend>> &devices, const EntriesView &e,
             const tensor::Builders &builders) {
  Options options;
  options.set_text("format", "sorted");
  const auto since = Clock::now();
  double first = 0, again = 0;
  const auto x =
      tensor::Tensor::make_sparse(formats::Given(e), options, available_threads(), "", tensor::Target::gpu, builders);
  const tensor::Sharding sharding(*x, static_cast<int>(devices.size()), false);
  run_workers(devices, [&](kernels::Backend &device, Communicator &others) {
    const solvers::Worker worker(*x, sharding, device, others);
    constexpr i64 few = 2;
    std::vector<kernels::DeviceBuffer> memory;
    std::vector<ConstMatrix> factors;
    for (const i64 rows : x->stored_dims()) {
      memory.emplace_back(device, rows * few * 8, "a factor");
      factors.emplace_back(memory.back().data(), ValueType::f64, rows, few, few);
      device.set_zero({memory.back().data(), ValueType::f64, rows, few, few});
    }
    const auto sweep = [&] {
      for (int mode = 0; mode < x->order(); ++mode) {
        const i64 rows = x->stored_dims()[static_cast<std::size_t>(mode)];
        const kernels::DeviceBuffer out(device, rows * few * 8, "a product");
        worker.mttkrp(mode, factors, {out.data(), ValueType::f64, rows, few, few});
      }
      device.wait();
      others.barrier();
    };
    sweep();
    if (others.rank() == 0)
      first = seconds_since(since);
    sweep();
    if (others.rank() == 0)
      again = seconds_since(since) - first;
  });
  return first - again;
}

void measure_together(const std::string &words, const std::string &name, double scale) {
  const auto devices = kernels::open_backends(kernels::parse_devices(words, true), available_threads());
  const Shape &shape = shapes.at(name);
  const auto nnz = static_cast<i64>(shape.entries * scale);
  const Drawn x = draw(shape, nnz);
  const EntriesView e{shape.dims, nnz, IndexType::i32, x.pointers.data(), 0, ValueType::f64, x.values.data()};
  tensor::Builders all;
  for (const auto &device : devices)
    all.push_back(device.get());
  std::printf("%s on %s, from host coordinates to parts:", name.c_str(), words.c_str());
  const double one = least([&] { return ready(devices, e, {all.front()}); });
  std::printf("; built by the first %.1f;", 1e3 * one);
  const double together = least([&] { return ready(devices, e, all); });
  std::printf("; built together %.1f; steps:", 1e3 * together);
  for (const auto &[step, seconds] : steps_of(all, e, false))
    std::printf(" %s %.1f,", step.c_str(), 1e3 * seconds);
  std::printf(" each until all GPUs have done it\n");
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: gpu_build SCALE NAME...\n       gpu_build SCALE NAME... DEVICES\n"
                         "DEVICES: several, as in cuda:0,1; cuda:0,0 is one that stands for two\n");
    return 2;
  }
  if (const std::string last = argv[argc - 1]; last.find(':') != std::string::npos) {
    for (int k = 2; k + 1 < argc; ++k)
      measure_together(last, argv[k], std::atof(argv[1]));
    return 0;
  }
  const auto gpu = kernels::open_backends(kernels::parse_devices("cuda"), available_threads()).front();
  int left_out = 0;
  for (int k = 2; k < argc; ++k)
    try {
      measure(*gpu, argv[k], std::atof(argv[1]));
    } catch (const Error &e) {
      std::printf("%s: %s\n", argv[k], e.what());
      ++left_out;
    }
  return left_out == 0 ? 0 : 1;
}
