#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "kernels/memory_order.hpp"
#include "tensor/tensor.hpp"

namespace td::tensor {

namespace {

/// Sums of blocks of so many values are added in the order of the blocks: neither threads nor devices change anything.
/// Each value waits for the one before it, so a GPU wants many blocks.
i64 block_for(i64 nnz) {
  return std::clamp(static_cast<i64>(std::bit_ceil(static_cast<u64>(nnz) / 8192)), i64{256}, i64{4096});
}

using Sums = kernels::ValueSums;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Sums nothing{0, 0, infinity, -infinity, 0};

template <class T> Sums sums_of_block(const T *values, Range r, double scale) {
  Sums s = nothing;
  for (i64 k = r.begin; k < r.end; ++k)
    s.add(static_cast<double>(values[k]), scale);
  return s;
}

template <class T> void sums_of(const T *values, i64 n, i64 block, double scale, Buffer<Sums> &of_blocks, int threads) {
  parallel_ranges(threads, of_blocks.size(), 32768 / block, [&](Range r) {
    for (i64 b = r.begin; b < r.end; ++b)
      of_blocks[b] = sums_of_block(values, {b * block, std::min(n, (b + 1) * block)}, scale);
  });
}

Sums total_of(const Buffer<Sums> &partial) {
  Sums total = nothing;
  for (const Sums &s : partial) {
    total.sum += s.sum;
    total.squares += s.squares;
    total.min = std::min(total.min, s.min);
    total.max = std::max(total.max, s.max);
    total.zeros += s.zeros;
  }
  return total;
}

/// Whether squares have neither overflowed nor lost digits below the smallest normal number: a sum this large is off
/// by at most its rounding, whatever terms have vanished, for any n < 2^60.
bool squares_are_good(double squares) { return std::isfinite(squares) && squares > 0x1p-900; }

/// fill(scale, block, of_blocks) sums over blocks.
template <class Fill> Facts facts_from(i64 nnz, Fill &&fill) {
  Facts facts;
  facts.nnz = nnz;
  if (nnz == 0)
    return facts;
  const i64 block = block_for(nnz);
  Buffer<Sums> of_blocks((nnz + block - 1) / block, "sums of a tensor's values");
  fill(1.0, block, of_blocks);
  Sums s = total_of(of_blocks);
  facts.min = s.min;
  facts.max = s.max;
  facts.zeros = s.zeros;
  double back = 1;
  const double largest = std::max(std::abs(s.min), std::abs(s.max));
  if (largest > 0 && (!squares_are_good(s.squares) || !std::isfinite(s.sum))) {
    // A power of two, so that scaling rounds nothing; clamped so that it and its inverse are normal numbers.
    const int exponent = std::clamp(std::ilogb(largest), -1022, 1022);
    back = std::ldexp(1.0, exponent);
    fill(1.0 / back, block, of_blocks);
    s = total_of(of_blocks);
  }
  facts.sum = s.sum * back;
  facts.norm = std::sqrt(s.squares) * back;
  return facts;
}

} // namespace

Facts facts_of(const ValueBuffer &values, int threads) {
  return facts_from(values.size(), [&](double scale, i64 block, Buffer<Sums> &of_blocks) {
    dispatch(values.type(),
             [&](auto zero) { sums_of(values.as<decltype(zero)>(), values.size(), block, scale, of_blocks, threads); });
  });
}

Facts facts_of_lent(const kernels::DenseView &x, int threads, kernels::Backend *device) {
  const i64 nnz = kernels::entries_of(x);
  return facts_from(nnz, [&](double scale, i64 block, Buffer<Sums> &of_blocks) {
    Buffer<kernels::ElementSums> found(of_blocks.size(), "sums of a tensor's values");
    if (device != nullptr)
      device->sum_elements(x, scale, block, found.data());
    else
      parallel_ranges(threads, found.size(), 32768 / block, [&](Range r) {
        for (i64 b = r.begin; b < r.end; ++b)
          found[b] = kernels::sums_of(x, {b * block, std::min(nnz, (b + 1) * block)}, scale);
      });
    for (i64 b = 0; b < found.size(); ++b) {
      if (found[b].not_finite >= 0)
        formats::refuse_element(x, found[b].not_finite, found[b].value);
      of_blocks[b] = found[b].sums;
    }
  });
}

Facts facts_of_all(const Facts &here, Processes &processes) {
  const bool any = here.nnz > 0;
  std::vector<double> most{here.norm, any ? here.max : -infinity, any ? -here.min : -infinity};
  processes.all_reduce(most, Reduction::max);
  const double norm = most[0];
  const double relative = norm > 0 && std::isfinite(norm) ? here.norm / norm : 0;
  std::vector<double> sums{static_cast<double>(here.nnz), static_cast<double>(here.duplicates),
                           static_cast<double>(here.zeros), here.sum, relative * relative};
  processes.all_reduce(sums, Reduction::sum);
  Facts all;
  all.nnz = static_cast<i64>(sums[0]);
  all.duplicates = static_cast<i64>(sums[1]);
  all.zeros = static_cast<i64>(sums[2]);
  all.sum = sums[3];
  all.norm = std::isfinite(norm) ? norm * std::sqrt(sums[4]) : norm;
  if (all.nnz > 0) {
    all.max = most[1];
    all.min = -most[2];
  }
  return all;
}

Facts facts_of(kernels::Building &building) {
  return facts_from(building.size(), [&](double scale, i64 block, Buffer<Sums> &of_blocks) {
    building.sum_values(scale, block, {0, building.size()}, of_blocks.data());
  });
}

} // namespace td::tensor
