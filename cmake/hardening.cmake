# What makes defects harder to use. Sanitizers see more and replace some of it.
if(NOT TD_SANITIZE AND NOT TD_BUILD_FUZZERS)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  include(CheckCXXCompilerFlag)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "td_has${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      add_compile_options($<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C,CXX>>:${flag}>)
    endif()
  endforeach()
  # Some distributions' compilers define it by themselves, as 2 or 3: a second definition would be a warning.
  add_compile_options("$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C,CXX>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
endif()
