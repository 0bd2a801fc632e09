// The inner loops are compiled for these instruction sets, by a header that comes before Highway. AVX-512, AVX2 and the
// baseline cover the x86-64 machines in use; the ones in between cost compile time for little. Vectors of unknown size
// cannot stand in arrays, which is how the loops hold their accumulators.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
