# TD_JULIA: a julia to run the package's tests and examples with, or nothing. build/tools is where need_julia of
# scripts/common.sh leaves one. It has to survive an exception: Julia 1.5 crashes there with the libunwind of newer
# systems than its own. A sanitizer has to be in the program that loads the library, and julia is not ours to build.
set(TD_JULIA "")
if(NOT TD_SANITIZE AND (TD_BUILD_TESTS OR TD_BUILD_EXAMPLES))
  find_program(TD_JULIA_FOUND julia HINTS ${PROJECT_SOURCE_DIR}/build/tools)
  if(TD_JULIA_FOUND)
    execute_process(COMMAND ${TD_JULIA_FOUND} --startup-file=no -e "try; open(\"/nowhere\"); catch; end"
      RESULT_VARIABLE crashed OUTPUT_QUIET ERROR_QUIET)
    if(crashed EQUAL 0)
      set(TD_JULIA ${TD_JULIA_FOUND})
    else()
      message(STATUS "Julia is left out: ${TD_JULIA_FOUND} crashes at exceptions; see need_julia in scripts/common.sh")
    endif()
  endif()
endif()
