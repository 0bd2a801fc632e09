// Loops that use the widest vectors of the machine they run on (Highway picks at run time), to find out what it can do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cli::loops {

/// The sum of n numbers, which reads them once.
double sum(const double *a, std::size_t n);

/// Writes n numbers with ordinary stores.
void fill(double *a, std::size_t n, double value);

/// A loop of `steps` steps that multiplies and adds in registers alone. Gives a number that depends on all of it.
double multiply_add_f64(std::int64_t steps);
float multiply_add_f32(std::int64_t steps);

/// Operations in a step: a multiplication and an addition count one each.
std::int64_t operations_f64();
std::int64_t operations_f32();

/// "AVX3" (AVX-512), "AVX2", "NEON", ...: Highway's name of the instructions in use.
const char *instructions();

} // namespace cli::loops
