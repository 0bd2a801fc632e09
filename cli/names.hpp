// Names of a tensor's modes and labels of their indices, and files that do not hold them.
#pragma once

#include <string>

#include "flags.hpp"

namespace cli {

bool has_names(const td_tensor *x);

/// Gives a tensor the names of another one of the same dims.
void copy_names(const td_tensor *from, td_tensor *to);

/// What is said where something with names was written to a file: nothing if it holds them.
std::string lost_names(const std::string &path, const TableFlags &table);

} // namespace cli
