# Every warning that our own code is held to.
add_library(td_warnings INTERFACE)
target_compile_options(td_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
if(TD_WARNINGS_AS_ERRORS)
  target_compile_options(td_warnings INTERFACE -Werror)
endif()
