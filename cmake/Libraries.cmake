# SPDX-License-Identifier: MIT
# Libraries of others. Each is optional: AUTO takes what is there, ON insists, OFF does without.
# The result is one target, tn_libraries, and a definition TN_WITH_<NAME>=0/1 for the sources.
# Why these: docs/decisions/0009-dependencies.md

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(tn_libraries INTERFACE)
target_link_libraries(tn_libraries INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

# tn_optional_library(OPENBLAS openblas HEADER cblas.h): what the linker and the compiler find is what
# counts, wherever it was installed from. LOADED: the sources open the library at run time, when they
# first need it, so that it is not linked and need not be there on the machine that runs the program.
function(tn_optional_library name library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "LOADED" "HEADER" "HEADER_DIRS")
  set(found 0)
  if(NOT TN_WITH_${name} STREQUAL "OFF")
    find_library(TN_${name}_LIBRARY ${library})
    find_path(TN_${name}_INCLUDE ${arg_HEADER} PATH_SUFFIXES ${arg_HEADER_DIRS})
    mark_as_advanced(TN_${name}_LIBRARY TN_${name}_INCLUDE)
    if(TN_${name}_LIBRARY AND TN_${name}_INCLUDE)
      set(found 1)
      target_include_directories(tn_libraries SYSTEM INTERFACE ${TN_${name}_INCLUDE})
      if(NOT arg_LOADED)
        target_link_libraries(tn_libraries INTERFACE ${TN_${name}_LIBRARY})
      endif()
    elseif(TN_WITH_${name} STREQUAL "ON")
      message(FATAL_ERROR "TN_WITH_${name}=ON, but lib${library} or ${arg_HEADER} was not found")
    endif()
  endif()
  target_compile_definitions(tn_libraries INTERFACE TN_WITH_${name}=${found})
  set(TN_HAVE_${name} ${found} PARENT_SCOPE)
endfunction()

tn_optional_library(OPENBLAS openblas LOADED HEADER cblas.h HEADER_DIRS
                    ${CMAKE_LIBRARY_ARCHITECTURE} openblas)
tn_optional_library(ONEDNN dnnl HEADER dnnl.h)
