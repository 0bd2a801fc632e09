if(TD_SANITIZE)
  add_compile_options(-fsanitize=${TD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TD_SANITIZE})
  # A quarter of the compiler's time, for what AddressSanitizer finds: pointers that are null or past their object. And for
  # what is around libtd, tests and the command, almost half of it: TD_AROUND_LIBTD.
  if(TD_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=null,object-size)
    set(TD_AROUND_LIBTD -fno-sanitize=undefined)
  endif()
endif()
if(TD_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link) # the library too tells libFuzzer where it has been
endif()
