#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace td::kernels::reference {

/// Serial, literal, never tuned: the definition.
std::shared_ptr<Backend> make_backend();

} // namespace td::kernels::reference
