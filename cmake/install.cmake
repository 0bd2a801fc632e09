include(CMakePackageConfigHelpers)

# What is installed may not have been built: scripts/demo builds two targets. What is missing is made then.
set(td_installed td td_static)
if(TD_BUILD_CLI)
  list(APPEND td_installed td_cli)
endif()
if(TD_CUDA)
  list(APPEND td_installed td_cuda)
endif()
foreach(target IN LISTS td_installed)
  set(component "")
  if(target STREQUAL td_cuda)
    set(component COMPONENT cuda)
  endif()
  install(CODE "
    if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
      message(STATUS \"Building ${target}, which is to be installed and is not there\")
      execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --config \"$<CONFIG>\" --target ${target}
        COMMAND_ERROR_IS_FATAL ANY)
    endif()" ${component})
endforeach()

install(TARGETS td td_static EXPORT tdTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TD_CUDA)
  # A component of its own: who has no GPU can do without its 3 MB and without CUDA's libraries.
  install(TARGETS td_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda NAMELINK_SKIP)
endif()
install(FILES include/td/td.h include/td/td.hpp include/td/td_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/td)
install(EXPORT tdTargets NAMESPACE td:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)
if(TD_BUILD_CLI)
  install(TARGETS td_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  configure_file(cli/td.1.in ${PROJECT_BINARY_DIR}/td.1 @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/td.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES cli/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME td)
  install(FILES cli/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _td)
  install(FILES cli/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME td.fish)
endif()

configure_package_config_file(cmake/tdConfig.cmake.in ${PROJECT_BINARY_DIR}/tdConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tdConfig.cmake ${PROJECT_BINARY_DIR}/tdConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)

# td.pc finds the prefix from its own place, so that an installed tree can be moved. A folder that was given as an
# absolute path stays where it is.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE td_pc_folder)
cmake_path(APPEND td_pc_folder pkgconfig)
file(RELATIVE_PATH td_pc_to_prefix ${td_pc_folder} ${CMAKE_INSTALL_PREFIX})
foreach(folder LIBDIR INCLUDEDIR)
  set(td_pc_${folder} "\${prefix}")
  cmake_path(APPEND td_pc_${folder} "${CMAKE_INSTALL_${folder}}")
endforeach()
configure_file(cmake/td.pc.in ${PROJECT_BINARY_DIR}/td.pc @ONLY)
configure_file(cmake/td-static.pc.in ${PROJECT_BINARY_DIR}/td-static.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/td.pc ${PROJECT_BINARY_DIR}/td-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md SECURITY.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
# In folders of the same names, so that README's links hold.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg PATTERN *.png)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE PATTERN run_*.sh EXCLUDE)

# cpack -G DEB: package td, with dependencies on what the library and the command were linked with, and package td-cuda
# where the backend for GPUs was built.
# What a Debian system has elsewhere than under a prefix of one's own: component "debian", which only the package takes.
install(DIRECTORY bindings/python/src/td DESTINATION lib/python3/dist-packages COMPONENT debian EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE)
if(TD_BUILD_CLI)
  install(FILES cli/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _td
          COMPONENT debian EXCLUDE_FROM_ALL)
endif()
set(CPACK_PACKAGE_NAME td)
set(CPACK_PACKAGE_VENDOR "the td authors")
set(CPACK_PACKAGE_CONTACT "the td authors <td@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "CP decomposition of sparse and dense tensors by alternating least squares: a C library, \
its header, a Fortran module and a Julia package as source, a Python package, the command td, documentation and examples.")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Where libtd is found, which other packages of td link.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/c_api)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified debian)
set(CPACK_COMPONENT_UNSPECIFIED_GROUP main)
set(CPACK_COMPONENT_DEBIAN_GROUP main)
set(CPACK_DEBIAN_MAIN_PACKAGE_NAME td)
set(CPACK_COMPONENT_MAIN_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
# The library and the command need none of these: what `import td` needs, and what linking libtd.a needs.
set(CPACK_DEBIAN_MAIN_PACKAGE_RECOMMENDS "python3, python3-numpy")
set(CPACK_DEBIAN_MAIN_PACKAGE_SUGGESTS "pkg-config, g++, libfmt-dev, libhwy-dev, zlib1g-dev, gfortran")
if(TD_MPI AND TD_BUILD_CLI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "The plug-in by which mpirun makes one run of several processes of the command td.")
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME td-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "td (= ${PROJECT_VERSION})")
endif()
if(TD_CUDA)
  # CUDA's libraries are in NVIDIA's packages, which not everybody who has them has them from: recommended, not needed.
  # All else that the backend links, td depends on.
  set(td_cuda_release ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "The backend of td for NVIDIA GPUs, which td loads when it is asked for one. It \
needs a driver and CUDA's runtime, cuBLAS and cuSOLVER.")
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME td-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "td (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "cuda-cudart-${td_cuda_release}, libcublas-${td_cuda_release}, libcusolver-${td_cuda_release}")
endif()
# The loader is told of the library.
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
include(CPack)
