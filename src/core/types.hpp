// Number types and codes that every layer shares. Values equal those in td.h; c_api checks that at compile time.
#pragma once

#include <cstdint>
#include <string_view>

namespace td {

using i64 = std::int64_t;
using u64 = std::uint64_t;
__extension__ typedef unsigned __int128 u128;

enum class ValueType : std::int32_t { f32 = 1, f64 = 2 };
enum class IndexType : std::int32_t { i32 = 11, i64 = 12 };

/// Tensors have 2 to max_order modes: the bound lets kernels keep per-mode state on the stack.
inline constexpr int min_order = 2;
inline constexpr int max_order = 64;

constexpr i64 size_of(ValueType t) noexcept { return t == ValueType::f32 ? 4 : 8; }
constexpr i64 size_of(IndexType t) noexcept { return t == IndexType::i32 ? 4 : 8; }
constexpr std::string_view name_of(ValueType t) noexcept { return t == ValueType::f32 ? "f32" : "f64"; }

/// Unit roundoff times two (the spacing of numbers at 1).
constexpr double epsilon_of(ValueType t) noexcept { return t == ValueType::f32 ? 0x1p-23 : 0x1p-52; }

/// Calls f with a value of the C++ type that a code stands for: `dispatch(type, [&](auto zero) { using T =
/// decltype(zero); ... })`.
template <class F> decltype(auto) dispatch(ValueType t, F &&f) {
  if (t == ValueType::f32)
    return f(float{});
  return f(double{});
}

template <class F> decltype(auto) dispatch(IndexType t, F &&f) {
  if (t == IndexType::i32)
    return f(std::int32_t{});
  return f(i64{});
}

template <class T> inline constexpr ValueType value_type_of = sizeof(T) == 4 ? ValueType::f32 : ValueType::f64;

} // namespace td
