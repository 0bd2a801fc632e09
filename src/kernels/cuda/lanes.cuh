// Groups of lanes that hold the columns of a row together, some neighbouring columns a lane, loaded 16 bytes at a time
// where rows are aligned.
#pragma once

#include <algorithm>

#include "core/types.hpp"

namespace td::kernels::cuda {

using u32 = std::uint32_t;

template <class T, int Size> struct alignas(sizeof(T) * Size) Vector { T v[Size]; };

/// What a kernel reads of a mode that it multiplies by: its field in the keys and its factor's rows.
struct FactorRows {
  const unsigned char *rows;
  u32 stride; // bytes from row to row
  int shift;
  u64 mask;
  int mode;
  i64 dim;
  int staged;    // rows in shared memory, 0 for none
  u32 staged_at; // where, in bytes
};

inline constexpr int most_factors = max_order - 1;

template <class Key> __device__ inline u32 field_of(Key key, const FactorRows &f) {
  return static_cast<u32>(key >> f.shift) & static_cast<u32>(f.mask);
}
template <class Key> __device__ inline i64 wide_field_of(Key key, const FactorRows &f) {
  return static_cast<i64>(static_cast<u64>(key >> f.shift) & f.mask);
}

template <int Lanes> __device__ inline u32 group_mask() {
  if constexpr (Lanes == 32)
    return 0xffffffffu;
  else
    return ((1u << Lanes) - 1) << (threadIdx.x % 32 / Lanes * Lanes);
}

/// The last k in [begin, end) for which holds(k), all lanes of a group together, one probe each at a time. It must hold
/// for begin, and for no k after one for which it does not.
template <int Lanes, class Holds> __device__ inline i64 last_where(i64 begin, i64 end, Holds &&holds) {
  const int lane = static_cast<int>(threadIdx.x % Lanes);
  const u32 mask = group_mask<Lanes>();
  while (end - begin > 1) {
    const i64 step = (end - begin + Lanes - 1) / Lanes;
    const i64 at = begin + step * lane;
    const int count = __popc(__ballot_sync(mask, at < end && holds(at)) & mask);
    begin += step * (count - 1);
    end = min(end, begin + step);
  }
  return begin;
}

/// The columns of a pass over `cols` columns that this lane holds are [at, at + Size), of which those below cols count.
/// T is the type of what is loaded.
template <class T, int Lanes, int Size> struct LaneColumns {
  int at;
  int cols;

  __device__ explicit LaneColumns(int columns) : at(static_cast<int>(threadIdx.x % Lanes) * Size), cols(columns) {}
  __device__ bool any() const { return at < cols; }
  /// The byte to load from: a lane without columns reads the first ones, so that all lanes load alike.
  __device__ u32 bytes() const { return any() ? static_cast<u32>(at) * static_cast<u32>(sizeof(T)) : 0; }

  /// Writes to a row; if `aligned`, 16 bytes at a time.
  template <class Out> __device__ void put(Out *row, const double (&v)[Size], bool aligned) const {
    constexpr int each = sizeof(Out) * Size <= 16 ? Size : 16 / static_cast<int>(sizeof(Out));
    if (aligned && at + Size <= cols) {
#pragma unroll
      for (int c = 0; c < Size; c += each) {
        Vector<Out, each> some;
#pragma unroll
        for (int i = 0; i < each; ++i)
          some.v[i] = static_cast<Out>(v[c + i]);
        *reinterpret_cast<Vector<Out, each> *>(row + at + c) = some;
      }
      return;
    }
#pragma unroll
    for (int c = 0; c < Size; ++c)
      if (at + c < cols)
        row[at + c] = static_cast<Out>(v[c]);
  }

  /// Writes to any row.
  __device__ void keep(double *row, const double (&v)[Size]) const {
#pragma unroll
    for (int c = 0; c < Size; ++c)
      if (at + c < cols)
        row[at + c] = v[c];
  }

  template <class Out> __device__ void add(Out *row, const double (&v)[Size]) const {
#if __CUDA_ARCH__ >= 900 // four floats at once from there
    if constexpr (sizeof(Out) == 4 && Size == 4) {
      if (at + Size <= cols) {
        atomicAdd(reinterpret_cast<float4 *>(row + at),
                  make_float4(static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                              static_cast<float>(v[3])));
        return;
      }
    }
#endif
#pragma unroll
    for (int c = 0; c < Size; ++c)
      if (at + c < cols)
        atomicAdd(row + at + c, static_cast<Out>(v[c]));
  }
};

} // namespace td::kernels::cuda
