# td.spdx.json: what td is made of and linked with, with the versions that this build found (SPDX 2.3).
set(td_sbom_packages "")
set(td_sbom_relations "")

# td_sbom_add(NAME VERSION LICENCE RELATION): RELATION as in SPDX, DYNAMIC_LINK or STATIC_LINK (headers) by td.
function(td_sbom_add name version licence relation)
  if("${version}" STREQUAL "")
    set(version NOASSERTION)
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9.]" "-" id "SPDXRef-${name}")
  set(package "    {\"name\": \"${name}\", \"SPDXID\": \"${id}\", \"versionInfo\": \"${version}\", \"downloadLocation\": \
\"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\", \
\"copyrightText\": \"NOASSERTION\"}")
  set(link "    {\"spdxElementId\": \"SPDXRef-td\", \"relationshipType\": \"${relation}\", \"relatedSpdxElement\": \"${id}\"}")
  set(td_sbom_packages "${td_sbom_packages},\n${package}" PARENT_SCOPE)
  set(td_sbom_relations "${td_sbom_relations},\n${link}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE td_libc ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^glibc " "" td_libc "${td_libc}")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(td_runtime "${CMAKE_CXX_COMPILER_VERSION}")
endif()
td_sbom_add(libgomp "${td_runtime}" "GPL-3.0-or-later WITH GCC-exception-3.1" DYNAMIC_LINK)
td_sbom_add(libstdc++ "${td_runtime}" "GPL-3.0-or-later WITH GCC-exception-3.1" DYNAMIC_LINK)
td_sbom_add(glibc "${td_libc}" LGPL-2.1-or-later DYNAMIC_LINK)
td_sbom_add(fmt "${fmt_VERSION}" MIT DYNAMIC_LINK)
td_sbom_add(highway "${HWY_VERSION}" Apache-2.0 DYNAMIC_LINK)
td_sbom_add(zlib "${ZLIB_VERSION_STRING}" Zlib DYNAMIC_LINK)
td_sbom_add(eigen "${Eigen3_VERSION}" MPL-2.0 STATIC_LINK)
td_sbom_add(fast_float "${FastFloat_VERSION}" "Apache-2.0 OR MIT" STATIC_LINK)
if(TD_D3)
  file(STRINGS ${TD_D3} td_d3_notice LIMIT_COUNT 1 REGEX "^// .* v[0-9.]+")
  string(REGEX REPLACE ".* v([0-9.]+).*" "\\1" td_d3_version "${td_d3_notice}")
  td_sbom_add(d3 "${td_d3_version}" BSD-3-Clause STATIC_LINK)
endif()
if(TD_BUILD_CLI)
  foreach(header CLI11 nlohmann_json)
    find_package(${header} QUIET)
  endforeach()
  td_sbom_add(CLI11 "${CLI11_VERSION}" BSD-3-Clause STATIC_LINK)
  td_sbom_add(nlohmann-json "${nlohmann_json_VERSION}" MIT STATIC_LINK)
endif()
if(TD_CUDA)
  td_sbom_add(cuda "${CUDAToolkit_VERSION}" NOASSERTION DYNAMIC_LINK)
endif()

string(TIMESTAMP td_sbom_time UTC) # SOURCE_DATE_EPOCH where that is set
string(UUID td_sbom_id NAMESPACE 6ba7b811-9dad-11d1-80b4-00c04fd430c8 NAME "${td_sbom_packages}" TYPE SHA1)
file(WRITE ${PROJECT_BINARY_DIR}/td.spdx.json "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"td-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/td-${PROJECT_VERSION}-${td_sbom_id}\",
  \"creationInfo\": {\"created\": \"${td_sbom_time}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\"]},
  \"packages\": [
    {\"name\": \"td\", \"SPDXID\": \"SPDXRef-td\", \"versionInfo\": \"${PROJECT_VERSION}\", \"downloadLocation\": \
\"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"BSD-3-Clause\", \"licenseDeclared\": \"BSD-3-Clause\", \
\"copyrightText\": \"NOASSERTION\"}${td_sbom_packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-td\"}${td_sbom_relations}
  ]
}
")
install(FILES ${PROJECT_BINARY_DIR}/td.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
