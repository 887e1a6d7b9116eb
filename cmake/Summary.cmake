# SPDX-License-Identifier: MIT
# What this build is, in a few lines at the end of configuring.
get_property(present GLOBAL PROPERTY TN_PRESENT)
get_property(absent GLOBAL PROPERTY TN_ABSENT)
list(JOIN present " " present)
list(FILTER absent INCLUDE REGEX "^(src|cli|examples|bench)")
list(JOIN absent " " absent)
message(STATUS "Tenon ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} "
               "${CMAKE_C_COMPILER_VERSION}")
foreach(setting SAN STRESS COVERAGE FUZZ)
  if(TN_${setting})
    message(STATUS "  ${setting}: ${TN_${setting}}")
  endif()
endforeach()
message(STATUS "  OpenBLAS: ${TN_HAVE_OPENBLAS}, oneDNN: ${TN_HAVE_ONEDNN} (1: used, 0: done without)")
message(STATUS "  layers: ${present}")
if(absent)
  message(STATUS "  not there yet: ${absent}")
endif()
