// Reading indices out of keys. Plain loops: the compiler turns them into each instruction set's vectors.
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/decode_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace td::kernels::cpu::simd::HWY_NAMESPACE {
namespace {

constexpr u64 mask_of(int bits) { return (u64{1} << bits) - 1; } // bits <= 32

void fill(i64 count, i64 value, Index *HWY_RESTRICT to) {
  for (i64 k = 0; k < count; ++k)
    to[k] = static_cast<Index>(value);
}

void decode_u32(const std::uint32_t *HWY_RESTRICT keys, i64 count, Field field, Index *HWY_RESTRICT to) {
  if (field.bits == 0) // its shift may be the key's width, which no shift instruction takes
    return fill(count, field.base, to);
  const auto mask = static_cast<std::uint32_t>(mask_of(field.bits));
  const auto base = static_cast<std::uint32_t>(field.base);
  for (i64 k = 0; k < count; ++k)
    to[k] = (keys[k] >> field.shift & mask) + base;
}

void decode_u64(const u64 *HWY_RESTRICT keys, i64 count, Field field, Index *HWY_RESTRICT to) {
  if (field.bits == 0)
    return fill(count, field.base, to);
  const u64 mask = mask_of(field.bits);
  const auto base = static_cast<u64>(field.base);
  for (i64 k = 0; k < count; ++k)
    to[k] = static_cast<Index>((keys[k] >> field.shift & mask) + base);
}

// A field lies in the low word, in the high word, or in both.
void decode_u128(const u128 *HWY_RESTRICT wide, i64 count, Field field, Index *HWY_RESTRICT to) {
  if (field.bits == 0)
    return fill(count, field.base, to);
  const u64 mask = mask_of(field.bits);
  const auto base = static_cast<u64>(field.base);
  if (field.shift < 64 && field.shift + field.bits > 64) {
    for (i64 k = 0; k < count; ++k)
      to[k] = static_cast<Index>((static_cast<u64>(wide[k] >> field.shift) & mask) + base);
    return;
  }
  const int shift = field.shift % 64;
  if (field.shift >= 64) {
    for (i64 k = 0; k < count; ++k)
      to[k] = static_cast<Index>((static_cast<u64>(wide[k] >> 64) >> shift & mask) + base);
  } else {
    for (i64 k = 0; k < count; ++k)
      to[k] = static_cast<Index>((static_cast<u64>(wide[k]) >> shift & mask) + base);
  }
}

void narrow_indices(const i64 *HWY_RESTRICT indices, i64 count, Index *HWY_RESTRICT to) {
  for (i64 k = 0; k < count; ++k)
    to[k] = static_cast<Index>(indices[k]);
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(decode_u32);
HWY_EXPORT(decode_u64);
HWY_EXPORT(decode_u128);
HWY_EXPORT(narrow_indices);

void decode(const std::uint32_t *keys, i64 count, Field field, Index *to) {
  HWY_DYNAMIC_DISPATCH(decode_u32)(keys, count, field, to);
}
void decode(const u64 *keys, i64 count, Field field, Index *to) {
  HWY_DYNAMIC_DISPATCH(decode_u64)(keys, count, field, to);
}
void decode(const u128 *keys, i64 count, Field field, Index *to) {
  HWY_DYNAMIC_DISPATCH(decode_u128)(keys, count, field, to);
}
void decode(const i64 *indices, i64 count, Index *to) { HWY_DYNAMIC_DISPATCH(narrow_indices)(indices, count, to); }

} // namespace td::kernels::cpu::simd
#endif
