#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace td::kernels::cpu {

std::shared_ptr<Backend> make_backend(int threads);

} // namespace td::kernels::cpu
