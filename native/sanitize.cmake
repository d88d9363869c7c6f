# What a target is compiled and linked with for a sanitizer. A finding of UndefinedBehaviorSanitizer ends the process, as one of the others does.
function(sanitize target)
  set(kinds ${ONESIDED_SANITIZE})
  if(kinds STREQUAL "address")
    # Conversions of numbers that the type cannot hold are not in the group "undefined": what comes from JavaScript is a double.
    set(kinds address,undefined,float-cast-overflow)
    target_compile_options(${target} PRIVATE -fsanitize-address-use-after-scope)
  endif()
  target_compile_options(${target} PRIVATE -fsanitize=${kinds} -fno-sanitize-recover=all -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls)
  # The types of objects that Node has made cannot be checked: it is compiled without run-time type information.
  if(kinds MATCHES undefined)
    target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
  endif()
  target_link_options(${target} PRIVATE -fsanitize=${kinds})
endfunction()
