# MPI where there is one, for the command's plug-in, tests and examples: libtd needs none, and td_mpi.h is compiled by
# whoever uses it.
option(TD_BUILD_MPI "Compile the command's plug-in, tests and examples that use MPI, if it is found" ON)
set(TD_MPI OFF)
if(TD_BUILD_MPI AND NOT TD_SANITIZE AND (TD_BUILD_CLI OR TD_BUILD_TESTS OR TD_BUILD_EXAMPLES))
  enable_language(C)
  find_package(MPI COMPONENTS C)
  set(TD_MPI ${MPI_C_FOUND})
  if(TD_MPI AND TD_FORTRAN)
    find_package(MPI COMPONENTS C Fortran)
  endif()
endif()

# td_set_mpi_test(name environment): the test may be run by root and on fewer cores, which Open MPI asks to hear.
function(td_set_mpi_test name environment)
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 PROCESSORS 2 ENVIRONMENT
    "${environment};OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;\
OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_btl=self,vader;OMPI_MCA_hwloc_base_binding_policy=none")
endfunction()

# td_add_mpi_test(name processes program)
function(td_add_mpi_test name processes program)
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${processes} $<TARGET_FILE:${program}>)
  td_set_mpi_test(${name} "")
endfunction()
