// What a person should know before trusting a model, in sentences.
#pragma once

#include "pages/run.hpp"

namespace td::pages {

/// `columns` has the model's components with columns of length 1 or 0.
std::vector<std::string> findings_of(const Run &run, const Ktensor &columns);

} // namespace td::pages
