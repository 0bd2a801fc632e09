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

constexpr u64 mask_of(int bits) { return (u64{1} << bits) - 1; } // bits <= 63

void fill(i64 count, i64 value, i64 *HWY_RESTRICT to) {
  for (i64 k = 0; k < count; ++k)
    to[k] = value;
}

void decode_u64(const u64 *HWY_RESTRICT keys, i64 count, Field field, i64 *HWY_RESTRICT to) {
  if (field.bits == 0) // its shift may be the key's width, which no shift instruction takes
    return fill(count, field.base * field.scale, to);
  const u64 mask = mask_of(field.bits);
  for (i64 k = 0; k < count; ++k)
    to[k] = (static_cast<i64>(keys[k] >> field.shift & mask) + field.base) * field.scale;
}

// A field lies in the low word, in the high word, or in both.
void decode_u128(const u128 *HWY_RESTRICT wide, i64 count, Field field, i64 *HWY_RESTRICT to) {
  if (field.bits == 0)
    return fill(count, field.base * field.scale, to);
  const u64 mask = mask_of(field.bits);
  if (field.shift < 64 && field.shift + field.bits > 64) {
    for (i64 k = 0; k < count; ++k)
      to[k] = (static_cast<i64>(static_cast<u64>(wide[k] >> field.shift) & mask) + field.base) * field.scale;
    return;
  }
  const int shift = field.shift % 64;
  if (field.shift >= 64) {
    for (i64 k = 0; k < count; ++k)
      to[k] = (static_cast<i64>(static_cast<u64>(wide[k] >> 64) >> shift & mask) + field.base) * field.scale;
  } else {
    for (i64 k = 0; k < count; ++k)
      to[k] = (static_cast<i64>(static_cast<u64>(wide[k]) >> shift & mask) + field.base) * field.scale;
  }
}

void scale_indices(const i64 *HWY_RESTRICT indices, i64 count, Field field, i64 *HWY_RESTRICT to) {
  for (i64 k = 0; k < count; ++k)
    to[k] = (indices[k] + field.base) * field.scale;
}

} // namespace
} // namespace td::kernels::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace td::kernels::cpu::simd {

HWY_EXPORT(decode_u64);
HWY_EXPORT(decode_u128);
HWY_EXPORT(scale_indices);

void decode(const u64 *keys, i64 count, Field field, i64 *to) {
  HWY_DYNAMIC_DISPATCH(decode_u64)(keys, count, field, to);
}
void decode(const u128 *keys, i64 count, Field field, i64 *to) {
  HWY_DYNAMIC_DISPATCH(decode_u128)(keys, count, field, to);
}
void decode(const i64 *indices, i64 count, Field field, i64 *to) {
  HWY_DYNAMIC_DISPATCH(scale_indices)(indices, count, field, to);
}

} // namespace td::kernels::cpu::simd
#endif
