#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/dense_variants.hpp"
#include "kernels/cuda/early.cuh"
#include "kernels/cuda/khatri_rao.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/mttkrp_fused.hpp"

namespace td::kernels::cuda {

namespace {

using fused::Job;
using fused::Mode;
using fused::quotient;

/// maxima[m, r] := the bits of the largest magnitude in a column, which are in the order of their numbers; zeros
/// before.
__global__ void find_maxima(const __grid_constant__ DepthModes<float> depth, u32 *maxima) {
  const i64 r = i64{blockIdx.x} * 32 + threadIdx.x % 32;
  if (r >= depth.rank)
    return;
  for (int m = 0; m < depth.count; ++m) {
    const Mode<float> &mode = depth.modes[m];
    u32 most = 0;
    for (i64 i = i64{blockIdx.y} * (blockDim.x / 32) + threadIdx.x / 32; i < mode.dim;
         i += i64{gridDim.y} * (blockDim.x / 32))
      most = max(most, __float_as_uint(mode.data[i * mode.ld + r]) & 0x7fffffffu);
    if (most > 0)
      atomicMax(maxima + m * depth.rank + r, most);
  }
}

/// 2 to so many.
__device__ double power_of_two(int exponent) { return __hiloint2double((1023 + exponent) << 20, 0); }
/// A power of two above numbers of f32 with these bits.
__device__ int exponent_above(u32 bits) { return static_cast<int>(bits >> 23) - 126; }

/// The same for products in TensorFloat-32 (pair_rows), whose columns are brought into [-1, 1] by powers of two.
__global__ void multiply_depth_pairs(const __grid_constant__ DepthModes<float> depth, i64 first, i64 rows,
                                     const u32 *maxima, double *scales, float *products) {
  await_kernel_before();
  let_next_start();
  const i64 whole_rows = (rows + 7) / 8 * 8;
  for (i64 n = i64{blockIdx.x} * blockDim.x + threadIdx.x; n < whole_rows * depth.ld;
       n += i64{gridDim.x} * blockDim.x) {
    const auto k = static_cast<i64>(quotient(n, depth.ld));
    const i64 r = n - k * depth.ld;
    i64 rest = first + k;
    const bool there = k < rows && r < depth.rank;
    double product = there ? 1 : 0;
    int exponent = 0;
    for (int m = 0; m < depth.count && there; ++m) {
      const Mode<float> &mode = depth.modes[m];
      const auto upper = static_cast<i64>(quotient(rest, mode.dim));
      const int above = exponent_above(maxima[m * depth.rank + r]);
      exponent += above;
      product *= static_cast<double>(mode.data[(rest - upper * mode.dim) * mode.ld + r]) * power_of_two(-above);
      rest = upper;
    }
    const u32 high = tf32_of(static_cast<float>(product));
    const auto low = static_cast<float>(product - static_cast<double>(__uint_as_float(high)));
    float *const to = products + (k / 8 * 4 + k % 4) * depth.ld * 4 + r * 4 + k % 8 / 4;
    to[0] = __uint_as_float(high);
    to[2] = __uint_as_float(tf32_of(low));
    if (first + k == 0 && there)
      scales[r] = power_of_two(exponent);
  }
}

/// products[k, r] := row first + k of the Khatri-Rao product, for k < rows; 0 in columns beyond the rank.
template <class T>
__global__ void multiply_depth(const __grid_constant__ DepthModes<T> depth, i64 first, i64 rows, double *products) {
  await_kernel_before();
  make_khatri_rao(depth, first, rows, products);
  let_next_start(); // the next kernel's blocks would take room from this one's
}

/// The block that holds a unit that is shared, as part_of deals them out.
template <class T> __device__ i64 holder_of(const Job<T> &job, i64 unit) {
  const i64 first = i64{job.own_tiles} * job.chunks;
  const auto each = static_cast<i64>(quotient(job.units - first, job.blocks));
  const i64 more = job.units - first - each * job.blocks;
  const i64 long_ones = more * (each + 1);
  const i64 at = unit - first;
  return at < long_ones ? static_cast<i64>(quotient(at, each + 1))
                        : more + static_cast<i64>(quotient(at - long_ones, each));
}

/// The blocks whose sums have some of a row's, where the rows of the result follow each other in the product.
template <class T> __device__ Range blocks_with(const Job<T> &job, i64 i) {
  const i64 last_tile = ((i + 1) * job.inner - 1) / dense_rows;
  return {holder_of(job, i * job.inner / dense_rows * job.chunks),
          holder_of(job, (last_tile + 1) * job.chunks - 1) + 1};
}

/// The first row that a block meets: its slots begin there, and go round.
template <class T> __device__ i64 first_row(const Job<T> &job, i64 block) {
  const i64 tile = static_cast<i64>(quotient(fused::shared_units(job, block).begin, i64{job.chunks}));
  return fused::remainder(static_cast<i64>(quotient(tile * dense_rows, job.inner)), job.count);
}

constexpr int warps_of_sums = 8;
constexpr int most_warps_of_sums = 32;
constexpr i64 most_blocks_of_a_tile = 16;

/// Threads of a block that adds up sums, where so many warps have a row and 32 columns.
constexpr unsigned threads_of_sums(int warps) { return 32u * static_cast<unsigned>(std::max(warps, warps_of_sums)); }

/// out := the sums of blocks, or grows by them, in a fixed order: of all blocks, or `in_order` of those whose rows are
/// near. So many warps look at them in turn for a row and 32 columns, each for 32 blocks at a time: where these have
/// the row takes divisions, which its lanes do beside each other. What it takes is the latency of numbers that a thread
/// asks for one after the other: several are asked for at once.
template <class T, class Out, int Warps>
__global__ void __launch_bounds__(threads_of_sums(Warps))
    add_blocks(const __grid_constant__ Job<T> job, Rows<Out> out, bool in_order, bool add) {
  __shared__ double sums[Warps][32];
  await_kernel_before();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(threadIdx.x) / 32 % Warps;
  constexpr int together = threads_of_sums(Warps) / (32 * Warps);
  const i64 across = (job.rank + 31) / 32;
  const i64 work_of_all = job.count * across;
  for (i64 work = i64{blockIdx.x} * together + threadIdx.x / (32 * Warps); work < work_of_all;
       work += i64{gridDim.x} * together) {
    const auto i = static_cast<i64>(quotient(work, across));
    const i64 r = (work - i * across) * 32 + lane;
    const i64 tile = min(r, job.rank - 1) / job.columns;
    const double *const partial = job.partial + tile * job.slots * job.columns + (r - tile * job.columns);
    const i64 stride = job.column_tiles * job.slots * job.columns;
    const Range blocks = in_order ? blocks_with(job, i) : Range{0, job.blocks};
    double sum = 0;
    for (i64 b = blocks.begin + part; b < blocks.end; b += 32 * Warps) {
      i64 slot = b + Warps * lane < blocks.end ? i - first_row(job, b + Warps * lane) : 0;
      if (slot < 0)
        slot += job.count;
      const auto there = static_cast<int>(min(i64{32}, (blocks.end - b + Warps - 1) / Warps));
      constexpr int at_once = 8;
      for (int first = 0; first < there; first += at_once) {
        double numbers[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
          const i64 at = __shfl_sync(0xffffffffu, slot, first + j);
          const bool has = first + j < there && at < job.slots && r < job.rank;
          numbers[j] = has ? partial[(b + Warps * (first + j)) * stride + at * job.columns] : 0.0;
        }
#pragma unroll
        for (int j = 0; j < at_once; ++j)
          sum += numbers[j];
      }
    }
    if constexpr (Warps > 1) {
      sums[part][lane] = sum;
      __syncthreads();
      if (part == 0)
#pragma unroll
        for (int p = 1; p < Warps; ++p)
          sum += sums[p][lane];
    }
    if (part == 0 && r < job.rank) {
      Out &to = out(job.first + i, r);
      to = static_cast<Out>(add ? static_cast<double>(to) + sum : sum);
    }
    if constexpr (Warps > 1)
      __syncthreads();
  }
}

/// Blocks of threads that add up a tile, each some of its rows: many, since what each takes is the latency of cells
/// that a thread has one after the other, but no more than a GPU has at a time.
inline i64 blocks_of_a_tile(const Gpu &device, i64 tiles) {
  const i64 at_a_time = 8 * i64{device.chip().multiprocessors};
  i64 blocks = most_blocks_of_a_tile;
  while (blocks > 1 && blocks * tiles > at_a_time)
    blocks /= 2;
  return blocks;
}

/// The same for tiles of rows of the result that several blocks share. A thread asks for so many cells at once.
template <class T, class Out, int Cells>
__global__ void __launch_bounds__(32 * warps_of_sums)
    add_shared_tiles(const __grid_constant__ Job<T> job, Rows<Out> out, bool add) {
  __shared__ i64 first_block, last_block, first_slot;
  await_kernel_before();
  let_next_start();
  const i64 tile = i64{job.own_tiles} + blockIdx.x;
  if (threadIdx.x == 0) {
    first_block = holder_of(job, tile * job.chunks);
    last_block = holder_of(job, (tile + 1) * job.chunks - 1);
    // Sums of a block's first tile are behind those of its second; blocks after the first one begin in the tile.
    first_slot = fused::shared_units(job, first_block).begin < tile * job.chunks ? 0 : dense_rows;
  }
  __syncthreads();
  if (first_block == last_block) // which has written it
    return;
  const i64 stride = job.column_tiles * job.slots * job.columns;
  const int rows = dense_rows / static_cast<int>(gridDim.y);
  const int first_row = static_cast<int>(blockIdx.y) * rows;
  const auto columns = static_cast<int>(min(i64{job.columns}, job.rank - i64{blockIdx.z} * job.columns));
  const int cells = static_cast<int>(min(i64{rows}, job.rows - tile * dense_rows - first_row)) * columns;
  constexpr int threads = 32 * warps_of_sums;
  for (int n = static_cast<int>(threadIdx.x); n < cells; n += Cells * threads) {
    double sum[Cells];
    const double *partial[Cells];
#pragma unroll
    for (int j = 0; j < Cells; ++j) {
      const int cell = n + j * threads;
      const i64 k = first_row + cell / columns;
      partial[j] = job.partial + (blockIdx.z * job.slots + k) * job.columns + cell % columns;
      sum[j] = cell < cells ? partial[j][first_block * stride + first_slot * job.columns] : 0;
    }
#pragma unroll 4
    for (i64 b = first_block + 1; b <= last_block; ++b)
#pragma unroll
      for (int j = 0; j < Cells; ++j)
        if (j == 0 || n + j * threads < cells)
          sum[j] += partial[j][b * stride + dense_rows * job.columns];
#pragma unroll
    for (int j = 0; j < Cells; ++j) {
      const int cell = n + j * threads;
      if (cell < cells) {
        Out &to = out(job.first + tile * dense_rows + first_row + cell / columns,
                      i64{blockIdx.z} * job.columns + cell % columns);
        to = static_cast<Out>(add ? static_cast<double>(to) + sum[j] : sum[j]);
      }
    }
  }
}

template <class T> Mode<T> mode_of(const DenseView &x, const MttkrpArgs &args, int m) {
  const auto at = static_cast<std::size_t>(m);
  return {static_cast<const T *>(args.factors[at].data), args.factors[at].ld, x.dims[at]};
}

/// The job on all of the depth, as far as the layout says.
template <class T> Job<T> sized_job(const DenseView &x, const DenseLayout &l, i64 rank) {
  Job<T> job{};
  job.values = static_cast<const T *>(x.values);
  job.tensor = job.values;
  job.tensor_end = job.values + entries_of(x);
  job.rows = l.rows();
  job.inner = l.inner;
  job.count = l.count;
  job.row_step = l.leading ? 1 : l.leading_size;
  job.depth_step = l.leading ? l.leading_size : 1;
  job.low = l.leading_size;
  job.gap = l.apart() ? l.leading_size * (l.middle - 1) : 0;
  job.depth_whole = l.depth;
  job.whole_tiles = static_cast<u32>(job.rows / dense_rows);
  job.rank = rank;
  job.columns = static_cast<int>(l.columns);
  job.column_tiles = static_cast<int>(l.column_tiles);
  job.slots = l.slots;
  job.direct = l.direct;
  return job;
}

/// Where a result is written: all of it, of which the job has rows from its first on.
template <class T> void write_to(Job<T> &job, const Matrix &result) {
  job.out_f64 = result.type == ValueType::f64;
  job.out = result.slice(job.first, job.first + 1).data;
  job.out_ld = result.ld;
}

template <class T> Job<T> job_of(const DenseView &x, const MttkrpArgs &args, const DenseLayout &l) {
  Job<T> job = sized_job<T>(x, l, args.out.cols);
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m)
    if (l.of_rows(m))
      job.modes[job.row_modes++] = m == args.mode ? Mode<T>{nullptr, 0, l.count} : mode_of<T>(x, args, m);
  job.dim = x.dims[static_cast<std::size_t>(args.mode)];
  job.first = args.rows.begin;
  write_to(job, args.out);
  constexpr i64 wide = 16 / static_cast<i64>(sizeof(T));
  const i64 first = job.row_step * l.inner * job.first;
  const bool neighbours = l.count == job.dim || l.outer == 1; // rows follow each other in memory
  const auto address = static_cast<i64>(reinterpret_cast<std::uintptr_t>(x.values) / sizeof(T));
  const auto begin_at = [&](i64 vector) { return l.leading_size % vector == 0 && (address + first) % vector == 0; };
  const bool begin_lines = l.depth % l.chunk() == 0 && (address + first) % l.chunk() == 0;
  job.copies = fused::Copies::elements;
  if (l.apart()) {
    if (l.leading_size % wide == 0 && address % wide == 0 && first % wide == 0 && (neighbours || !l.leading))
      job.copies = fused::Copies::wide;
  } else if (reinterpret_cast<std::uintptr_t>(x.values) % 16 == 0) {
    if (dense_in_lines(l.leading, l.width(), l.multiply, size_of(l.type)) && neighbours && !begin_lines)
      job.copies = fused::Copies::lines;
    else if (begin_at(dense_unit(l.width(), size_of(l.type))) && (neighbours || !l.leading))
      job.copies = fused::Copies::wide;
    else if (neighbours && !dense_in_lines(l.leading, l.width(), l.multiply, size_of(l.type)) &&
             (wide > 2 || !l.leading || l.width() == 96)) // in other widths two f64 by themselves are faster (H200)
      job.copies = fused::Copies::shifted;
    else if (begin_at(wide) && !l.leading)
      job.copies = fused::Copies::wide;
  }
  if (job.copies == fused::Copies::lines || job.copies == fused::Copies::shifted) {
    job.shift = static_cast<int>((address + first) % l.chunk());
    job.line_shift = static_cast<u32>(l.depth % l.chunk());
  }
  return job;
}

template <class T> DepthModes<T> depth_of(const DenseView &x, const MttkrpArgs &args, const DenseLayout &l) {
  DepthModes<T> depth{0, args.out.cols, dense_product_ld(args.out.cols), {}};
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m)
    if (!l.of_rows(m))
      depth.modes[depth.count++] = mode_of<T>(x, args, m);
  return depth;
}

void find_all_maxima(Gpu &device, const DepthModes<float> &depth, u32 *maxima) {
  i64 rows = 1;
  for (int m = 0; m < depth.count; ++m)
    rows = std::max(rows, depth.modes[m].dim);
  check(cudaMemsetAsync(maxima, 0, static_cast<std::size_t>(depth.count * depth.rank) * sizeof(u32), device.stream()),
        "setting numbers to zero");
  constexpr i64 rows_at_once = 8 * block_threads / 32;
  const dim3 blocks(static_cast<unsigned>((depth.rank + 31) / 32),
                    static_cast<unsigned>(std::clamp<i64>(rows / rows_at_once, 1, 4 * device.chip().multiprocessors)));
  find_maxima<<<blocks, block_threads, 0, device.stream()>>>(depth, maxima);
  check_launch("the largest numbers of factors");
}

/// Adds the part of the depth whose products are there.
template <class T> void add_part(Gpu &device, Job<T> job, const DenseLayout &l, Range part, Matrix result, bool grows) {
  if (!l.leading && l.apart())
    job.depth_first = part.begin;
  else
    job.values += part.begin * job.depth_step;
  job.depth = part.end - part.begin;
  job.chunks = static_cast<u32>((job.depth + l.chunk() - 1) / l.chunk());
  job.whole_chunks = static_cast<u32>(job.depth / l.chunk());
  job.units = l.row_tiles() * job.chunks;
  job.blocks = std::min(l.blocks, job.units);
  job.own_tiles = static_cast<u32>(l.direct ? l.row_tiles() / job.blocks * job.blocks : 0);
  if (job.copies == fused::Copies::lines) { // the last row of a tile has as many behind it as its lines go on
    const i64 last =
        job.tensor_end - job.values - (i64{job.chunks} + 1) * l.chunk() - job.row_step * l.inner * job.first;
    job.whole_tiles = static_cast<u32>(std::min<i64>(job.rows, last < 0 ? 0 : last / job.row_step + 1) / dense_rows);
  }
  job.grows = grows || part.begin > 0;
  fused::start(device, job, l);
  dispatch(result.type, [&](auto zero) {
    using Out = decltype(zero);
    const Rows<Out> out = rows_of<Out>(result);
    const bool add = job.grows;
    const i64 across = (job.rank + 31) / 32;
    const i64 work = l.count * across;
    if (const i64 shared_tiles = l.row_tiles() - job.own_tiles; l.direct && shared_tiles > 0) {
      const i64 blocks = blocks_of_a_tile(device, shared_tiles * l.column_tiles);
      launch_early(device, blocks < most_blocks_of_a_tile ? add_shared_tiles<T, Out, 4> : add_shared_tiles<T, Out, 1>,
                   dim3(static_cast<unsigned>(shared_tiles), static_cast<unsigned>(blocks),
                        static_cast<unsigned>(l.column_tiles)),
                   32 * warps_of_sums, 0, job, out, add);
    } else if (l.direct) {
      return;
    } else {
      const bool in_order = l.outer == 1 && l.count >= l.blocks;
      const i64 of_a_row = in_order ? job.blocks * (l.inner + dense_rows) / l.rows() : job.blocks;
      const auto add_by = [&](auto warps) {
        constexpr int each = decltype(warps)::value;
        launch_early(device, add_blocks<T, Out, each>, blocks_for(device, work, std::max(warps_of_sums / each, 1)),
                     threads_of_sums(each), 0, job, out, in_order, add);
      };
      if (of_a_row <= 4)
        add_by(std::integral_constant<int, 1>{});
      else if (of_a_row <= 128 || work > 2 * i64{device.chip().multiprocessors})
        add_by(std::integral_constant<int, warps_of_sums>{});
      else
        add_by(std::integral_constant<int, most_warps_of_sums>{});
    }
  });
}

template <class T>
void run(Gpu &device, Job<T> job, const DepthModes<T> &depth, const DenseLayout &l, Matrix result, bool add) {
  const Scratch<double> partial(device, static_cast<i64>(l.partials()), "sums of a dense MTTKRP");
  const Scratch<double> products(device, static_cast<i64>(l.products(depth.rank)), "rows of a Khatri-Rao product");
  const Scratch<double> scales(device, static_cast<i64>(l.scales(depth.rank)), "scales of a Khatri-Rao product");
  auto *const maxima = reinterpret_cast<u32 *>(scales.data() + depth.rank);
  job.partial = partial.data();
  if constexpr (std::is_same_v<T, float>)
    if (l.multiply == Multiply::tf32_pairs) {
      job.scales = scales.data();
      find_all_maxima(device, depth, maxima);
    }
  for (i64 begin = 0; begin < l.depth; begin += l.depth_part) {
    const Range part{begin, std::min(begin + l.depth_part, l.depth)};
    if (l.makes_products) {
      if constexpr (std::is_same_v<T, float>)
        if (l.multiply == Multiply::tf32_pairs)
          launch_early(device, multiply_depth_pairs, blocks_for(device, part.size() * depth.ld, block_threads),
                       block_threads, 0, depth, part.begin, part.size(), maxima, scales.data(),
                       reinterpret_cast<float *>(products.data()));
      if (l.multiply == Multiply::f64)
        launch_early(device, multiply_depth<T>, khatri_rao_blocks(device, part.size(), depth.ld), block_threads, 0,
                     depth, part.begin, part.size(), products.data());
      job.products = products.data();
      job.product_ld = depth.ld;
    } else { // there is one mode, whose factor it is
      if constexpr (std::is_same_v<T, double>)
        job.products = depth.modes[0].data;
      else
        job.narrow = depth.modes[0].data;
      job.product_ld = depth.modes[0].ld;
    }
    const auto address = l.makes_products ? reinterpret_cast<std::uintptr_t>(job.products)
                                          : reinterpret_cast<std::uintptr_t>(depth.modes[0].data);
    job.pairs = address % (l.makes_products ? 16 : 2 * sizeof(T)) == 0 && job.product_ld % 2 == 0 &&
                (l.makes_products || job.rank % 2 == 0);
    add_part(device, job, l, part, result, add);
  }
}

} // namespace

void mttkrp_dense(Gpu &device, const DenseView &x, const MttkrpArgs &args) {
  const DenseKernel kernel = dense_kernel(x, args, device.chip());
  if (is_tiled(kernel))
    return mttkrp_tile(device, x, args);
  // What nobody asked for by name evicts nothing, unless results may not depend on what is free.
  const bool may_be_other = args.dense.kernel == DenseKernel::automatic && args.conflicts != Conflicts::owner;
  if (kernel == DenseKernel::gemm && mttkrp_gemm(device, x, args, may_be_other))
    return;
  const DenseLayout l =
      dense_layout(x.dims, args.mode, args.rows.size(), args.out.cols, x.type, dense_multiply(x, args), device.chip());
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    run<T>(device, job_of<T>(x, args, l), depth_of<T>(x, args, l), l, args.out, args.add);
  });
}

void mttkrp_slabs(Gpu &device, const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) {
  const DenseLayout l = slab_layout(x.dims, out.cols, x.type, device.chip());
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    Job<T> job = sized_job<T>(x, l, out.cols);
    job.row_modes = 1; // nothing of the rows' side is multiplied by or summed over
    job.dim = 1;
    constexpr i64 wide = 16 / static_cast<i64>(sizeof(T));
    const bool aligned = reinterpret_cast<std::uintptr_t>(x.values) % 16 == 0 && l.inner % wide == 0;
    job.copies = aligned ? fused::Copies::wide : fused::Copies::elements;
    write_to(job, out);
    DepthModes<T> depth{0, out.cols, dense_product_ld(out.cols), {}};
    for (std::size_t m = 1; m + 1 < x.dims.size(); ++m)
      depth.modes[depth.count++] = {static_cast<const T *>(factors[m].data), factors[m].ld, x.dims[m]};
    run<T>(device, job, depth, l, out, false);
  });
}

} // namespace td::kernels::cuda
