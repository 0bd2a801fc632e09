# TD_PYTHON: the first Python that has NumPy, to run the package's tests and examples with, or nothing; what /usr/bin holds
# is the distribution's. A sanitizer has to be in the program that loads the library, and Python is not ours to build.
set(TD_PYTHON "")
if(NOT TD_SANITIZE AND (TD_BUILD_TESTS OR TD_BUILD_EXAMPLES))
  foreach(candidate python3 /usr/bin/python3)
    if(NOT TD_PYTHON)
      execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE lacks_numpy OUTPUT_QUIET ERROR_QUIET)
      if(lacks_numpy EQUAL 0)
        set(TD_PYTHON ${candidate})
      endif()
    endif()
  endforeach()
endif()
