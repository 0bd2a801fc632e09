// The door of libtd_cuda, which libtd loads when a context asks for a GPU. Both libraries come from one source tree and
// pass C++ objects, so they must be of one version: that is what `build` is for, and it is looked at before anything
// else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/loader.hpp"

namespace td::kernels {

/// extern "C" std::int32_t td_cuda_open(build, spec, out, seen, why)
///
///   build  version of libtd, such as "0.1.0"; refused unless it is the library's own
///   spec   devices: ordinals in this order, empty for every GPU
///   out    one backend a GPU; null: none is opened
///   seen   a number for each GPU that this process sees, in the order of their ordinals; of one GPU it is the same in
///          all processes. Null: not asked for
///   why    a sentence, if the result is not 0
///
/// Gives 0 or the number of a Status. Throws nothing.
using CudaOpen = std::int32_t(const char *build, const DeviceSpec *spec, std::vector<std::shared_ptr<Backend>> *out,
                              std::vector<i64> *seen, std::string *why);
inline constexpr const char *cuda_open_symbol = "td_cuda_open";

} // namespace td::kernels
