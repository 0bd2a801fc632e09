// Instances of walk_sorted: two and three other modes and keys of 4 and 8 bytes have kernels of their own, which hold
// the rows of all modes in registers at once; all else takes one that goes from mode to mode.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sorted_kernel.cuh"

namespace td::kernels::cuda {

// 128 registers a thread hold three modes' rows of four entries; more threads with fewer entries each spilled registers
// and were slower (H200).
inline constexpr int entries_ahead = 4;

template <class Row, class Term, class Key, int Factors, int Lanes, int Size>
void start(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared) {
  constexpr int threads = walk_threads(sizeof(Row) != sizeof(Term), sizeof(Key), Factors);
  const auto kernel = walk_sorted<Row, Term, Key, Factors, Lanes, Size, threads, entries_ahead>;
  allow_shared(kernel, layout.most_shared);
  kernel<<<static_cast<unsigned>(layout.blocks), threads, static_cast<std::size_t>(shared), device.stream()>>>(job);
  check_launch("MTTKRP of a sorted copy");
}

template <class Row, class Term, class Key, int Factors>
void start_lanes(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared) {
  constexpr int size = 16 / sizeof(Row);
  constexpr int most = most_lanes(sizeof(Row) != sizeof(Term));
  if (layout.lanes == 8)
    start<Row, Term, Key, Factors, 8, size>(device, job, layout, shared);
  else if (most == 16 || layout.lanes == 16)
    start<Row, Term, Key, Factors, 16, size>(device, job, layout, shared);
  else if constexpr (most == 32)
    start<Row, Term, Key, Factors, 32, size>(device, job, layout, shared);
}

template <class Row, class Term, class Key>
void start_any(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared) {
  if (layout.size > 1)
    start_lanes<Row, Term, Key, 0>(device, job, layout, shared);
  else
    start<Row, Term, Key, 0, 32, 1>(device, job, layout, shared);
}

template <class Row, class Term>
void start_walk(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared) {
  if (layout.key_bytes == 16)
    return start_any<Row, Term, u128>(device, job, layout, shared);
  if (layout.factors == 0)
    return layout.key_bytes == 4 ? start_any<Row, Term, u32>(device, job, layout, shared)
                                 : start_any<Row, Term, u64>(device, job, layout, shared);
  if (layout.factors == 2)
    return layout.key_bytes == 4 ? start_lanes<Row, Term, u32, 2>(device, job, layout, shared)
                                 : start_lanes<Row, Term, u64, 2>(device, job, layout, shared);
  return layout.key_bytes == 4 ? start_lanes<Row, Term, u32, 3>(device, job, layout, shared)
                               : start_lanes<Row, Term, u64, 3>(device, job, layout, shared);
}

} // namespace td::kernels::cuda
