# SPDX-License-Identifier: MIT
# Code from ops/*.op. One run of tools/opgen/opgen.py writes everything into <build>/gen:
# include/tenon/*.h (public, installed), *.h (internal, included as "gen/x.h") and *.c, each taken by
# the layer that names it: tn_layer(op SOURCES … GENERATED op_table.c).

# The distribution's own interpreter where there is one: it is what packages of the distribution serve.
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

set(TN_GEN_DIR ${CMAKE_BINARY_DIR}/gen)
set(opgen ${CMAKE_SOURCE_DIR}/tools/opgen/opgen.py)
# The generator reads whatever is in ops/, so what it depends on is whatever is there too.
file(GLOB op_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/*.op)
file(GLOB opgen_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/opgen/*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${opgen_files})
execute_process(
  COMMAND ${Python3_EXECUTABLE} -B ${opgen} --list-outputs
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  OUTPUT_VARIABLE outputs
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" TN_GEN_OUTPUTS "${outputs}")
list(TRANSFORM TN_GEN_OUTPUTS PREPEND ${TN_GEN_DIR}/ OUTPUT_VARIABLE output_paths)
# The outputs are by-products of a stamp: a file whose text did not change keeps its time, and what
# depends on it is not built again.
add_custom_command(
  OUTPUT ${TN_GEN_DIR}/stamp
  BYPRODUCTS ${output_paths}
  COMMAND ${Python3_EXECUTABLE} -B ${opgen} --ops ${CMAKE_SOURCE_DIR}/ops --out ${TN_GEN_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${TN_GEN_DIR}/stamp
  DEPENDS ${op_files} ${opgen_files}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  COMMENT "Generating from ops/*.op"
  VERBATIM)
add_custom_target(tn_gen DEPENDS ${TN_GEN_DIR}/stamp)

# tn_generated(<out-variable> a.c b.c): full paths of generated sources, or an error that says who
# asked for a file that the generator does not write.
function(tn_generated out)
  set(paths "")
  foreach(name IN LISTS ARGN)
    if(NOT name IN_LIST TN_GEN_OUTPUTS)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt takes the generated source "
                          "${name}, which tools/opgen/opgen.py --list-outputs does not list")
    endif()
    list(APPEND paths ${TN_GEN_DIR}/${name})
  endforeach()
  set_source_files_properties(${paths} PROPERTIES GENERATED TRUE)
  set(${out} ${paths} PARENT_SCOPE)
endfunction()
