if(TD_SANITIZE)
  add_compile_options(-fsanitize=${TD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TD_SANITIZE})
endif()
if(TD_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link) # the library too tells libFuzzer where it has been
endif()
