# Target td::fortran: module td, compiled from source by the project that uses it, with that project's Fortran compiler,
# since module files of one compiler are no use to another. Needs the target td::td and Fortran among the languages.
if(NOT TARGET td::fortran)
  set(td_fortran_folder ${CMAKE_CURRENT_LIST_DIR}/src)
  if(NOT EXISTS ${td_fortran_folder}/td.f90)
    set(td_fortran_folder ${TD_FORTRAN_SOURCES}) # installed: tdConfig.cmake says where the sources are
  endif()
  file(GLOB td_fortran_sources ${td_fortran_folder}/*.f90)
  add_library(td_fortran STATIC EXCLUDE_FROM_ALL ${td_fortran_sources})
  add_library(td::fortran ALIAS td_fortran)
  set(td_fortran_modules ${CMAKE_CURRENT_BINARY_DIR}/td_fortran_modules)
  set_target_properties(td_fortran PROPERTIES Fortran_MODULE_DIRECTORY ${td_fortran_modules}
    POSITION_INDEPENDENT_CODE ON)
  target_include_directories(td_fortran PUBLIC ${td_fortran_modules})
  target_link_libraries(td_fortran PUBLIC td::td)
endif()
