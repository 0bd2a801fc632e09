// The page as the build put it together (page.cmake), with a place for the document.
#pragma once

#include <string_view>

namespace td::pages {

extern const std::string_view template_text;

} // namespace td::pages
