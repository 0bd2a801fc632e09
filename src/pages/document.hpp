// The data of a page: what a run was, came to and took, as one JSON document.
#pragma once

#include "pages/run.hpp"

namespace td::pages {

/// One line of JSON, in UTF-8 and without '<', so that it can stand in a page as it is.
std::string document_of(const Run &run);

} // namespace td::pages
