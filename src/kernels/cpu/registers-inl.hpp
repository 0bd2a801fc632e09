// A block of a row's columns in registers. Included once for each instruction set, hence the guard.
#if defined(TD_KERNELS_CPU_REGISTERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TD_KERNELS_CPU_REGISTERS_INL
#undef TD_KERNELS_CPU_REGISTERS_INL
#else
#define TD_KERNELS_CPU_REGISTERS_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// So many registers at most hold the columns of a block: half of what AVX2 has; the rest is for products and addresses.
constexpr int most_registers = 8;

template <class D, class T> HWY_INLINE hn::Vec<D> load(D d, const T *from) {
  if constexpr (sizeof(T) == sizeof(hn::TFromD<D>))
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), from));
}

/// A copy of x that no store can change, with the factors where the compiler sees that there are F of them.
template <int F, class T> class Local {
public:
  explicit HWY_INLINE Local(const RowProducts<T> &x) : x_(x) {
    if constexpr (F > 0) {
#pragma GCC unroll 3
      for (int f = 0; f < F; ++f)
        factor_[f] = x.factor[f];
    }
  }
  HWY_INLINE RowProducts<T> get() const {
    RowProducts<T> x = x_;
    if constexpr (F > 0) {
      x.factors = F;
      x.factor = factor_;
    }
    return x;
  }

private:
  RowProducts<T> x_;
  const T *factor_[F > 0 ? F : 1];
};

/// Where columns of a nonzero's row begin. The compiler must not take the address apart: it would keep factor + column
/// + v * lanes for every v in registers of their own, run out of them, and spill (R = 16, order 4: 10 cycles, then 7).
template <class T> HWY_INLINE const T *columns_of(const RowProducts<T> &x, int f, i64 k, i64 column) {
  const T *row = x.row(f, k) + column;
  __asm__("" : "+r"(row));
  return row;
}

/// V whole registers of `Lanes`, then one of Tail lanes (0: none) at column `tail`. It ends where the columns end and
/// so may overlap the register before it; both then hold the same numbers, bit for bit. So there is neither a remainder
/// loop nor a load beyond the row, and a tail of few lanes rarely crosses a cache line.
template <class S, i64 Lanes, int V, i64 Tail> struct Registers {
  using D = hn::CappedTag<S, static_cast<std::size_t>(Lanes)>;
  using TailD = hn::CappedTag<S, static_cast<std::size_t>(Tail > 0 ? Tail : 1)>;
  static constexpr i64 columns = V * Lanes + Tail; // as many as are held, or a few more
  static constexpr int count = V + (Tail > 0 ? 1 : 0);
  hn::Vec<D> whole[V];
  hn::Vec<TailD> rest;

  HWY_INLINE void clear() {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      whole[v] = hn::Zero(D());
    rest = hn::Zero(TailD());
  }
  template <class T> HWY_INLINE void set(const T *HWY_RESTRICT row, i64 tail) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      whole[v] = load(D(), row + v * Lanes);
    if constexpr (Tail > 0)
      rest = load(TailD(), row + tail);
  }
  template <class T> HWY_INLINE void multiply(const T *HWY_RESTRICT row, i64 tail) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      whole[v] = hn::Mul(whole[v], load(D(), row + v * Lanes));
    if constexpr (Tail > 0)
      rest = hn::Mul(rest, load(TailD(), row + tail));
  }
  HWY_INLINE void add_scaled(S value, const Registers &product) {
    const auto factor = hn::Set(D(), value);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      whole[v] = hn::MulAdd(factor, product.whole[v], whole[v]);
    if constexpr (Tail > 0)
      rest = hn::MulAdd(hn::Set(TailD(), value), product.rest, rest);
  }
  HWY_INLINE void add(const Registers &other) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      whole[v] = hn::Add(whole[v], other.whole[v]);
    if constexpr (Tail > 0)
      rest = hn::Add(rest, other.rest);
  }
  HWY_INLINE void store(S *HWY_RESTRICT row, i64 tail) const {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      hn::StoreU(whole[v], D(), row + v * Lanes);
    if constexpr (Tail > 0)
      hn::StoreU(rest, TailD(), row + tail);
  }
  /// := product over the factors of nonzero k's rows. F factors; 0: as many as x says.
  template <int F, class T> HWY_INLINE void set_product(const RowProducts<T> &x, i64 column, i64 k, i64 tail) {
    const int factors = F > 0 ? F : x.factors;
    set(columns_of(x, 0, k, column), tail);
#pragma GCC unroll 3
    for (int f = 1; f < factors; ++f)
      multiply(columns_of(x, f, k, column), tail);
  }
};

/// Asks for the lines that hold columns of a row.
template <class R, class T> HWY_INLINE void prefetch_row(const T *row) {
  constexpr i64 line = 64 / static_cast<i64>(sizeof(T));
#pragma GCC unroll 8
  for (i64 c = 0; c < R::columns; c += line)
    hwy::Prefetch(row + c);
  hwy::Prefetch(row + R::columns - 1);
}

/// Asks for the rows that a nonzero some way ahead will need.
template <class R, class T> HWY_INLINE void prefetch_rows(const RowProducts<T> &x, i64 column, i64 k) {
  for (int f = 0; f < x.far; ++f)
    prefetch_row<R>(x.row(f, k + prefetch_distance) + column);
}

/// Calls Kernel::run<Registers, F>(x, column, tail, args...) for each block of columns.
template <class Kernel, class S> struct Blocks {
  static constexpr i64 lanes = static_cast<i64>(hn::MaxLanes(hn::ScalableTag<S>()));

  template <class T, class... Args> static void run(const RowProducts<T> &x, const Args &...args) {
    if (x.rank < lanes)
      return narrow<lanes / 2>(x, args...);
    const i64 left_over = x.rank % lanes;
    const i64 registers = x.rank / lanes + (left_over > 0 ? 1 : 0);
    const i64 blocks = (registers + most_registers - 1) / most_registers;
    for (i64 block = 0; block < blocks; ++block) {
      const Range part = part_of({0, registers}, block, blocks);
      const i64 column = part.begin * lanes;
      if (block + 1 < blocks || left_over == 0)
        whole<0>(x, static_cast<int>(part.size()), column, 0, args...);
      else
        with_tail(x, static_cast<int>(part.size()) - 1, left_over, column, args...);
    }
  }

private:
  // The narrowest register that holds what is left over.
  template <class T, class... Args>
  static void with_tail(const RowProducts<T> &x, int registers, i64 left_over, i64 column, const Args &...args) {
    const i64 width = x.rank - column;
    if (lanes > 4 && left_over <= lanes / 4)
      return whole<(lanes > 4 ? lanes / 4 : lanes)>(x, registers, column, width - lanes / 4, args...);
    if (lanes > 2 && left_over <= lanes / 2)
      return whole<(lanes > 2 ? lanes / 2 : lanes)>(x, registers, column, width - lanes / 2, args...);
    whole<lanes>(x, registers, column, width - lanes, args...);
  }

  template <i64 Tail, class T, class... Args>
  static void whole(const RowProducts<T> &x, int registers, i64 column, i64 tail, const Args &...args) {
    switch (registers) {
    case 1:
      return with_factors<Registers<S, lanes, 1, Tail>>(x, column, tail, args...);
    case 2:
      return with_factors<Registers<S, lanes, 2, Tail>>(x, column, tail, args...);
    case 3:
      return with_factors<Registers<S, lanes, 3, Tail>>(x, column, tail, args...);
    case 4:
      return with_factors<Registers<S, lanes, 4, Tail>>(x, column, tail, args...);
    case 5:
      return with_factors<Registers<S, lanes, 5, Tail>>(x, column, tail, args...);
    case 6:
      return with_factors<Registers<S, lanes, 6, Tail>>(x, column, tail, args...);
    case 7:
      return with_factors<Registers<S, lanes, 7, Tail>>(x, column, tail, args...);
    default: // there is no tail then
      return with_factors<Registers<S, lanes, Tail == 0 ? most_registers : 1, Tail>>(x, column, tail, args...);
    }
  }

  // Orders 3 and 4 are what most tensors have, order 2 what is left of them when modes are merged. The baseline, where
  // speed is not to be had, does without.
  template <class R, class T, class... Args>
  static void with_factors(const RowProducts<T> &x, i64 column, i64 tail, const Args &...args) {
    if constexpr (HWY_TARGET != HWY_STATIC_TARGET) {
      if (x.factors == 1)
        return Kernel::template run<R, 1>(x, column, tail, args...);
      if (x.factors == 2)
        return Kernel::template run<R, 2>(x, column, tail, args...);
      if (x.factors == 3)
        return Kernel::template run<R, 3>(x, column, tail, args...);
    }
    Kernel::template run<R, 0>(x, column, tail, args...);
  }

  // Ranks below a whole register take a narrower one, at most half of it twice.
  template <i64 Width, class T, class... Args> static void narrow(const RowProducts<T> &x, const Args &...args) {
    if constexpr (Width > 0) {
      if (x.rank < Width)
        return narrow<Width / 2>(x, args...);
      if (x.rank == Width)
        Kernel::template run<Registers<S, Width, 1, 0>, 0>(x, 0, 0, args...);
      else
        Kernel::template run<Registers<S, Width, 1, Width>, 0>(x, 0, x.rank - Width, args...);
    }
  }
};

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
