# Every warning that our own code is held to.
add_library(td_warnings INTERFACE)
target_compile_options(td_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
# g++ 12 sees overlapping copies in operator+(const char *, std::string &&): https://gcc.gnu.org/PR105651.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(td_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(TD_WARNINGS_AS_ERRORS)
  target_compile_options(td_warnings INTERFACE -Werror)
endif()
