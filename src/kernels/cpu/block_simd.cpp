// A block of a tensor's unfolding, in place, times rows of a Khatri-Rao product in panels. A panel has 1 to 3 registers
// of columns; the block's rows are taken as many at a time as leave 24 sums in registers (12 where there are 16
// registers): enough chains of multiply-adds to hide their latency, and at most as many loads as multiply-adds.
// An element of c is one chain over depth, whatever rows are asked for, and whether registers hold columns of the
// Khatri-Rao product or, in add_fibers, rows of the tensor: there the two change their places.
#include "kernels/cpu/simd.hpp"

#include <algorithm>

#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/block_simd.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int sums = HWY_MAX_BYTES >= 64 ? 24 : 12;
constexpr int panel_registers = 3;
constexpr i64 rows_of_panels = 16;
constexpr i64 bytes_ahead = 6144; // between asking for a row of a factor and reading it
static_assert(panel_registers == fiber_registers);

template <class T> constexpr i64 width_of() { return static_cast<i64>(hn::MaxLanes(hn::ScalableTag<T>())); }

/// Calls body(panel) for each of the panels' ranges of columns.
template <class T, class Body> HWY_INLINE void for_each_panel(i64 columns, Body &&body) {
  const i64 registers = (columns + width_of<T>() - 1) / width_of<T>();
  const i64 panels = (registers + panel_registers - 1) / panel_registers;
  for (i64 j = 0; j < panels; ++j) {
    const Range part = part_of({0, registers}, j, panels);
    body(Range{part.begin * width_of<T>(), part.end * width_of<T>()});
  }
}

/// What the tiles of a block have in common; a, b and c as in Block, registers of b and of c so far from each other.
struct Steps {
  i64 depth = 0;
  i64 segment = 0;
  i64 a_row = 0;
  i64 a_step = 0;
  i64 a_segment = 0;
  i64 b_step = 0;
  i64 c_row = 0;
  i64 c_register = 0;
  bool first = false;
  bool scales_rows = false; // instead of columns
};

/// c += sum * scale, or c := that. In f64 with one rounding, said explicitly: else the compiler would contract where it
/// likes, and the bits would depend on the rows that share a tile.
template <class T, class Vec> HWY_INLINE void add_scaled(Vec sum, Vec scale, bool first, double *HWY_RESTRICT c) {
  const hn::ScalableTag<T> d;
  if constexpr (sizeof(T) == sizeof(double)) {
    hn::StoreU(first ? hn::Mul(sum, scale) : hn::MulAdd(sum, scale, hn::LoadU(d, c)), d, c);
  } else {
    HWY_ALIGN T lanes_of_sum[width_of<T>()];
    hn::Store(hn::Mul(sum, scale), d, lanes_of_sum);
    const hn::ScalableTag<double> wide;
    const hn::Rebind<T, decltype(wide)> narrow;
    for (i64 j = 0; j < width_of<T>(); j += width_of<double>()) {
      const auto more = hn::PromoteTo(wide, hn::Load(narrow, lanes_of_sum + j));
      hn::StoreU(first ? more : hn::Add(hn::LoadU(wide, c + j), more), wide, c + j);
    }
  }
}

/// What a segment asks for.
HWY_INLINE void ask_for(const Ahead &ahead) {
  const char *at = ahead.at;
  if (ahead.far) // Highway has no name for this
    for (i64 line = 0; line < ahead.lines; ++line, at += ahead.line)
      __builtin_prefetch(at, 0, 2);
  else
    for (i64 line = 0; line < ahead.lines; ++line, at += ahead.line)
      for (i64 beside = 0; beside < ahead.beside; ++beside)
        hwy::Prefetch(at + 64 * beside);
}

/// M rows by V registers.
template <int M, int V, class T>
HWY_NOINLINE void tile(const Steps &p, const T *a, const T *HWY_RESTRICT b, double *c, const T *scale, Ahead ahead) {
  const hn::ScalableTag<T> d;
  constexpr i64 width = width_of<T>();
  // Every fourth row has a pointer of its own; an address holds one and one, two or three times the distance.
  constexpr int pointers = (M + 3) / 4;
  const i64 row = p.a_row * static_cast<i64>(sizeof(T));
  const i64 step = p.a_step * static_cast<i64>(sizeof(T));
  const i64 next_segment = (p.a_segment - p.segment * p.a_step) * static_cast<i64>(sizeof(T));
  const char *four[pointers];
#pragma GCC unroll 6
  for (int j = 0; j < pointers; ++j)
    four[j] = reinterpret_cast<const char *>(a) + 4 * j * row;

  hn::Vec<decltype(d)> sum[M][V];
#pragma GCC unroll 24
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v)
      sum[i][v] = hn::Zero(d);

  for (i64 rest = p.depth; rest > 0; rest -= p.segment) {
    if (--ahead.segments >= 0)
      ask_for(ahead);
    ahead.at += ahead.segment;
    for (i64 k = rest < p.segment ? rest : p.segment; k > 0; --k, b += p.b_step) {
      hn::Vec<decltype(d)> right[V];
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v)
        right[v] = hn::LoadU(d, b + v * width);
#pragma GCC unroll 24
      for (int i = 0; i < M; ++i) {
        const auto left = hn::Set(d, *reinterpret_cast<const T *>(four[i / 4] + (i % 4) * row));
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v)
          sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
      }
#pragma GCC unroll 6
      for (int j = 0; j < pointers; ++j) {
        four[j] += step;
        __asm__("" : "+r"(four[j])); // or the compiler keeps a pointer for each row, and runs out of registers
      }
    }
#pragma GCC unroll 6
    for (int j = 0; j < pointers; ++j)
      four[j] += next_segment;
  }

  if (p.first || p.scales_rows) { // seldom, and kept out of the loop below
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) {
      const bool by_columns = scale != nullptr && !p.scales_rows;
      const auto factor = by_columns ? hn::LoadU(d, scale + v * width) : hn::Set(d, T{1});
#pragma GCC unroll 24
      for (int i = 0; i < M; ++i)
        add_scaled<T>(sum[i][v], p.scales_rows ? hn::Set(d, scale[i]) : factor, p.first,
                      c + i * p.c_row + v * p.c_register);
    }
    return;
  }
#pragma GCC unroll 3
  for (int v = 0; v < V; ++v) {
    const auto factor = scale != nullptr ? hn::LoadU(d, scale + v * width) : hn::Set(d, T{1});
#pragma GCC unroll 24
    for (int i = 0; i < M; ++i)
      add_scaled<T>(sum[i][v], factor, false, c + i * p.c_row + v * p.c_register);
  }
}

template <int M, int V, class T>
HWY_INLINE void with_rows(const Steps &p, i64 rows, const T *a, const T *b, double *c, const T *scale,
                          const Ahead &ahead) {
  if constexpr (M > 1)
    if (rows < M)
      return with_rows<M - 1, V>(p, rows, a, b, c, scale, ahead);
  tile<M, V>(p, a, b, c, scale, ahead);
}

/// Each tile of a block asks ahead for a part: of one segment of memory for a segment, since hardware foresees those.
class AheadByTile {
public:
  AheadByTile(const Ahead &ahead, i64 tiles) : ahead_(ahead), tiles_(tiles) {}
  Ahead next() {
    Ahead own = ahead_;
    const i64 tile = tile_++;
    if (ahead_.segment == ahead_.lines * ahead_.line) {
      own.lines = (ahead_.lines + tiles_ - 1) / tiles_;
      own.segment = own.lines * ahead_.line;
      own.at += tile * ahead_.segments * own.segment;
    } else {
      const Range lines = part_of({0, ahead_.lines}, tile, tiles_);
      own.lines = lines.size();
      own.at += lines.begin * ahead_.line;
    }
    return own;
  }

private:
  const Ahead &ahead_;
  i64 tiles_;
  i64 tile_ = 0;
};

template <int V> i64 tiles_of(i64 rows) { return (rows + sums / V - 1) / (sums / V); }

template <int V, class T> void add_panel(const Block<T> &p, i64 column, AheadByTile &ahead) {
  const i64 tiles = tiles_of<V>(p.rows);
  const Steps steps{p.depth,           p.segment, p.a_row,       p.a_step, p.a_segment,
                    V * width_of<T>(), p.columns, width_of<T>(), p.first,  false};
  for (i64 t = 0; t < tiles; ++t) {
    const Range rows = part_of({0, p.rows}, t, tiles);
    with_rows<sums / V, V>(steps, rows.size(), p.a + rows.begin * p.a_row, p.b + p.depth * column,
                           p.c + rows.begin * p.columns + column, p.scale != nullptr ? p.scale + column : nullptr,
                           ahead.next());
  }
}

template <class T> void add_block_of(const Block<T> &p) {
  i64 tiles = 0;
  for_each_panel<T>(p.columns, [&](Range panel) {
    const i64 registers = panel.size() / width_of<T>();
    tiles += registers == 1 ? tiles_of<1>(p.rows) : registers == 2 ? tiles_of<2>(p.rows) : tiles_of<3>(p.rows);
  });
  AheadByTile ahead(p.ahead, tiles);
  for_each_panel<T>(p.columns, [&](Range panel) {
    const i64 registers = panel.size() / width_of<T>();
    if (registers == 1)
      add_panel<1>(p, panel.begin, ahead);
    else if (registers == 2)
      add_panel<2>(p, panel.begin, ahead);
    else
      add_panel<3>(p, panel.begin, ahead);
  });
}

template <int V, class T> void add_fibers_of(const FiberBlock<T> &p) {
  const i64 padded = (p.columns + width_of<T>() - 1) / width_of<T>() * width_of<T>();
  const auto columns_of = [&](Range panel) { return std::min(panel.end, p.columns) - panel.begin; };
  i64 tiles = 0;
  for_each_panel<T>(padded, [&](Range panel) { tiles += tiles_of<V>(columns_of(panel)); });
  AheadByTile ahead(p.ahead, tiles);
  for_each_panel<T>(padded, [&](Range panel) {
    const Steps steps{p.depth,
                      p.segment,
                      1,
                      panel.size(),
                      p.segment * panel.size(),
                      p.a_step,
                      width_of<T>(),
                      padded * width_of<T>(),
                      p.first,
                      p.scale != nullptr};
    const i64 parts = tiles_of<V>(columns_of(panel));
    for (i64 t = 0; t < parts; ++t) {
      const Range columns = part_of({0, columns_of(panel)}, t, parts);
      with_rows<sums / V, V>(steps, columns.size(), p.b + p.depth * panel.begin + columns.begin, p.a,
                             p.c + (panel.begin + columns.begin) * width_of<T>(),
                             p.scale != nullptr ? p.scale + panel.begin + columns.begin : nullptr, ahead.next());
    }
  });
}

template <class T> void add_fibers_by(const FiberBlock<T> &p) {
  if (p.registers == 1)
    add_fibers_of<1>(p);
  else if (p.registers == 2)
    add_fibers_of<2>(p);
  else
    add_fibers_of<3>(p);
}

/// Rows of one panel. With Asks the rows `ahead` elements further on are asked for, of `bytes` each.
template <bool Asks, class T>
HWY_INLINE void write_panel(const Panels<T> &to, Range panel, const T *HWY_RESTRICT rows, i64 ld, i64 count,
                            const T *HWY_RESTRICT factor, T *HWY_RESTRICT out, i64 ahead, i64 bytes) {
  const hn::ScalableTag<T> d;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(to.columns % width_of<T>()));
  for (i64 k = 0; k < count; ++k, out += panel.size()) {
    const T *HWY_RESTRICT row = rows + k * ld;
    if constexpr (Asks)
      for (i64 byte = 0; byte < bytes; byte += 64)
        __builtin_prefetch(reinterpret_cast<const char *>(row + ahead) + byte, 0, 2);
    i64 r = panel.begin;
    for (; r + width_of<T>() <= std::min(panel.end, to.columns); r += width_of<T>()) {
      const auto x = hn::LoadU(d, row + r);
      hn::StoreU(factor != nullptr ? hn::Mul(x, hn::LoadU(d, factor + r)) : x, d, out + r - panel.begin);
    }
    if constexpr (!HWY_MEM_OPS_MIGHT_FAULT) // a masked load reads nothing beyond the row
      if (r < panel.end) {
        const auto x = hn::MaskedLoad(rest, d, row + r);
        hn::StoreU(factor != nullptr ? hn::Mul(x, hn::MaskedLoad(rest, d, factor + r)) : x, d, out + r - panel.begin);
        continue;
      }
    for (; r < panel.end; ++r)
      out[r - panel.begin] = r >= to.columns ? T{0} : factor != nullptr ? row[r] * factor[r] : row[r];
  }
}

template <class T> void write_panels_of(const Panels<T> &to, i64 at, const PanelRows<T> &from) {
  const i64 bytes = to.columns * static_cast<i64>(sizeof(T));
  const i64 ahead = (bytes_ahead + bytes - 1) / bytes * from.ld;
  // A few rows at a time: each panel but the first finds them in the first-level cache.
  const i64 some = to.columns > panel_registers * width_of<T>() ? rows_of_panels : from.count;
  const T *factor = from.factor;
  for (i64 n = 0; n < from.factors; ++n, at += from.count, factor += from.factor_ld)
    for (i64 begin = 0; begin < from.count; begin += some)
      for_each_panel<T>(to.columns, [&](Range panel) {
        T *const out = to.to + to.rows * panel.begin + (at + begin) * panel.size();
        const T *const rows = from.rows + begin * from.ld;
        const i64 now = std::min(some, from.count - begin);
        if (to.far && panel.begin == 0)
          write_panel<true>(to, panel, rows, from.ld, now, factor, out, ahead, bytes);
        else
          write_panel<false>(to, panel, rows, from.ld, now, factor, out, 0, 0);
      });
}

void add_block_f32(const Block<float> &p) { add_block_of(p); }
void add_block_f64(const Block<double> &p) { add_block_of(p); }
void add_fibers_f32(const FiberBlock<float> &p) { add_fibers_by(p); }
void add_fibers_f64(const FiberBlock<double> &p) { add_fibers_by(p); }
void write_panels_f32(const Panels<float> &to, i64 at, const PanelRows<float> &from) { write_panels_of(to, at, from); }
void write_panels_f64(const Panels<double> &to, i64 at, const PanelRows<double> &from) {
  write_panels_of(to, at, from);
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(add_block_f32);
HWY_EXPORT(add_block_f64);
HWY_EXPORT(add_fibers_f32);
HWY_EXPORT(add_fibers_f64);
HWY_EXPORT(write_panels_f32);
HWY_EXPORT(write_panels_f64);

void add_block(const Block<float> &p) { HWY_DYNAMIC_DISPATCH(add_block_f32)(p); }
void add_block(const Block<double> &p) { HWY_DYNAMIC_DISPATCH(add_block_f64)(p); }
void add_fibers(const FiberBlock<float> &p) { HWY_DYNAMIC_DISPATCH(add_fibers_f32)(p); }
void add_fibers(const FiberBlock<double> &p) { HWY_DYNAMIC_DISPATCH(add_fibers_f64)(p); }
void write_panels(const Panels<float> &to, i64 at, const PanelRows<float> &from) {
  HWY_DYNAMIC_DISPATCH(write_panels_f32)(to, at, from);
}
void write_panels(const Panels<double> &to, i64 at, const PanelRows<double> &from) {
  HWY_DYNAMIC_DISPATCH(write_panels_f64)(to, at, from);
}

} // namespace td::kernels::cpu::simd
#endif
