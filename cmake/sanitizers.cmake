if(TD_SANITIZE)
  add_compile_options(-fsanitize=${TD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TD_SANITIZE})
endif()
