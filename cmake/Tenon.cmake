# SPDX-License-Identifier: MIT
# What the CMakeLists.txt of a folder says:
#
#   tn_layer(cpu SOURCES copy.c blas.c GENERATED cpu_kernels.c
#            OPTIONS -O3 "kern_avx2.c=-mavx2 -mfma")     a layer of the library
#   tn_layer_variant(cpu avx2 SOURCES kern.c OPTIONS -mavx2)  the same sources once more, other flags
#   tn_test(test_x.c [SOURCES more.c] [GENERATED g.c] [LABELS threads] [TIMEOUT s] [PUBLIC])
#   tn_fuzz(fuzz_x.c)      LLVMFuzzerTestOneInput; corpus: tests/fuzz/corpus/x; see `make fuzz`
#   tn_example(hello.c)                                  a program that also runs as a test
#   tn_program(tenon SOURCES main.c)                     a command, placed at the top of the build tree
#
# Sources are listed, never globbed: a file that nobody lists is not part of Tenon.

set(TN_INTERNAL_INCLUDES ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}
                         ${TN_GEN_DIR}/include)
set(TN_PUBLIC_INCLUDES ${CMAKE_SOURCE_DIR}/include ${TN_GEN_DIR}/include)

# For layers that every call goes through: where in a line of the cache a function begins changes what a small call from Python
# takes by up to a quarter (Zen 5), which else any unrelated line of code decides.
set(TN_ALIGNED -falign-functions=64)

# TN_LAYERS in order, and TN_LEVEL_<layer>.
function(tn_read_layers)
  set(file ${CMAKE_SOURCE_DIR}/tools/layers.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^[a-z]+ +[0-9]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+) +([0-9]+)" _ "${line}")
    list(APPEND layers ${CMAKE_MATCH_1})
    set(TN_LEVEL_${CMAKE_MATCH_1} ${CMAKE_MATCH_2} PARENT_SCOPE)
  endforeach()
  set(TN_LAYERS ${layers} PARENT_SCOPE)
endfunction()

# Add a folder when it is there. A folder with sources and without a CMakeLists.txt is a mistake, not
# something to skip.
function(tn_add_folder folder)
  set(path ${CMAKE_SOURCE_DIR}/${folder})
  if(EXISTS ${path}/CMakeLists.txt)
    add_subdirectory(${path})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${path}/*.c)
  if(sources)
    message(FATAL_ERROR "${folder} has sources but no CMakeLists.txt")
  endif()
  set_property(GLOBAL APPEND PROPERTY TN_ABSENT ${folder})
endfunction()

function(tn_layer_objects target layer)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;GENERATED;OPTIONS;PRIVATE_INCLUDES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${layer}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  tn_generated(generated ${arg_GENERATED})
  add_library(${target} OBJECT ${arg_SOURCES} ${generated})
  add_dependencies(${target} tn_gen)
  target_include_directories(${target} PRIVATE ${TN_INTERNAL_INCLUDES} ${arg_PRIVATE_INCLUDES})
  target_compile_definitions(${target} PRIVATE TN_BUILDING)
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
  target_link_libraries(${target} PRIVATE tn_warnings tn_flags tn_libraries)
  foreach(option IN LISTS arg_OPTIONS)
    if(option MATCHES "^([A-Za-z0-9_/.]+\\.c)=(.*)$")
      separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_2}")
      set(file ${CMAKE_MATCH_1})
      if(file IN_LIST arg_GENERATED)
        set(file ${TN_GEN_DIR}/${file})
      endif()
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${flags})
    else()
      target_compile_options(${target} PRIVATE ${option})
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TN_OBJECTS ${target})
  set_property(GLOBAL APPEND PROPERTY TN_OBJECTS_${layer} ${target})
endfunction()

function(tn_layer layer)
  if(NOT layer IN_LIST TN_LAYERS)
    message(FATAL_ERROR "${layer} is not in tools/layers.txt")
  endif()
  set_property(GLOBAL APPEND PROPERTY TN_PRESENT ${layer})
  tn_layer_objects(tn_${layer} ${layer} ${ARGN})
endfunction()

function(tn_layer_variant layer variant)
  tn_layer_objects(tn_${layer}_${variant} ${layer} ${ARGN})
endfunction()

# libtenon.a and libtenon.so from the objects of all layers, and the target that proves the layering.
function(tn_library)
  get_property(targets GLOBAL PROPERTY TN_OBJECTS)
  set(objects "")
  foreach(target IN LISTS targets)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()

  foreach(kind static shared)
    string(TOUPPER ${kind} KIND)
    add_library(tenon_${kind} ${KIND} ${objects})
    set_target_properties(tenon_${kind} PROPERTIES OUTPUT_NAME tenon LINKER_LANGUAGE C
                                                   EXPORT_NAME tenon_${kind})
    add_dependencies(tenon_${kind} tn_gen)
    target_include_directories(
      tenon_${kind} PUBLIC "$<BUILD_INTERFACE:${TN_PUBLIC_INCLUDES}>"
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  set_target_properties(tenon_shared PROPERTIES EXPORT_NAME tenon VERSION ${PROJECT_VERSION}
                                                SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_libraries(tenon_static PRIVATE tn_flags tn_libraries)
  # Programs that compute with numbers of their own call libm, too: they need not know to ask for it.
  target_link_libraries(tenon_shared PRIVATE tn_flags tn_libraries INTERFACE m)
  set(map ${CMAKE_SOURCE_DIR}/cmake/tenon.map)
  # nodelete: a thread that used the library calls it again when it ends, also after dlclose().
  target_link_options(
    tenon_shared PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions -Wl,--as-needed
    -Wl,-z,relro,-z,now,-z,nodelete)
  # Tables of operators are full of pointers: relocations that are packed take a twentieth of the room.
  include(CheckLinkerFlag)
  check_linker_flag(C -Wl,-z,pack-relative-relocs TN_HAS_RELR)
  if(TN_HAS_RELR)
    target_link_options(tenon_shared PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
  # clang's sanitizers resolve in the program, not in the library.
  if(NOT TN_SAN AND NOT TN_FUZZ)
    target_link_options(tenon_shared PRIVATE -Wl,--no-undefined)
  endif()
  set_property(TARGET tenon_shared APPEND PROPERTY LINK_DEPENDS ${map})
  add_library(Tenon::tenon ALIAS tenon_shared)
  add_library(Tenon::tenon_static ALIAS tenon_static)

  tn_whitebox_library(${objects})
  tn_layer_check()
endfunction()

# tn_whitebox: what white-box tests link to reach names that libtenon.so hides. It is the static library.
# An instrumented program with its debugging information takes 120 MB, and there are over a hundred: a
# sanitizer's build is one shared library that shows every name, so that it takes 1 GB and not 13.
function(tn_whitebox_library)
  if(TN_SAN AND NOT TN_FUZZ)
    add_library(tn_whitebox SHARED EXCLUDE_FROM_ALL ${ARGN})
    set_target_properties(tn_whitebox PROPERTIES OUTPUT_NAME tenon_whitebox LINKER_LANGUAGE C)
    add_dependencies(tn_whitebox tn_gen)
    target_include_directories(tn_whitebox PUBLIC ${TN_PUBLIC_INCLUDES})
    target_link_libraries(tn_whitebox PRIVATE tn_flags PUBLIC tn_libraries)
    target_link_options(tn_whitebox PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,nodelete)
  else()
    add_library(tn_whitebox INTERFACE)
    target_link_libraries(tn_whitebox INTERFACE tenon_static tn_libraries)
  endif()
endfunction()

# Link each layer as a shared library with the objects of strictly lower levels and nothing else. A
# call upwards, or to a neighbour, is an undefined reference; no #include scan finds a hand-written
# extern. The one inversion, tni_boot, is written down in decision 0001.
function(tn_layer_check)
  get_property(present GLOBAL PROPERTY TN_PRESENT)
  add_custom_target(layer_check)
  if(TN_SAN OR TN_COVERAGE OR TN_FUZZ)
    return()
  endif()
  foreach(layer IN LISTS present)
    set(objects "")
    foreach(other IN LISTS present)
      if(other STREQUAL layer OR TN_LEVEL_${other} LESS TN_LEVEL_${layer})
        get_property(targets GLOBAL PROPERTY TN_OBJECTS_${other})
        foreach(target IN LISTS targets)
          list(APPEND objects $<TARGET_OBJECTS:${target}>)
        endforeach()
      endif()
    endforeach()
    if(TN_LEVEL_${layer} GREATER_EQUAL TN_LEVEL_dispatch AND TN_LEVEL_${layer} LESS TN_LEVEL_runtime)
      list(APPEND objects ${CMAKE_SOURCE_DIR}/tests/layers/boot_stub.c)
    endif()
    set(target layer_check_${layer})
    add_library(${target} SHARED EXCLUDE_FROM_ALL ${objects})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY
                                                                 ${CMAKE_BINARY_DIR}/layer_check)
    target_include_directories(${target} PRIVATE ${TN_INTERNAL_INCLUDES})
    target_link_libraries(${target} PRIVATE tn_warnings tn_flags tn_libraries)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
    add_dependencies(layer_check ${target})
  endforeach()
endfunction()

# Programs see the public headers alone.
function(tn_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE tn_warnings tn_flags tenon_static ${arg_LIBRARIES})
endfunction()

# An example is compiled as a user would compile it, against the shared library, and must exit 0.
function(tn_example source)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                                       ${CMAKE_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE tn_warnings tn_flags tenon_shared)
  if(TN_TESTS)
    add_test(NAME examples/${name} COMMAND ${TN_TEST_LAUNCHER} $<TARGET_FILE:example_${name}>)
    tn_test_properties(examples/${name})
  endif()
endfunction()

# Newer kernels place programs where gcc 12's thread sanitizer does not expect them; without address
# randomisation they lie where it does.
set(TN_TEST_LAUNCHER "")
if(TN_SAN MATCHES "thread")
  find_program(TN_SETARCH setarch)
  mark_as_advanced(TN_SETARCH)
  if(TN_SETARCH)
    execute_process(COMMAND ${TN_SETARCH} -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(TN_TEST_LAUNCHER ${TN_SETARCH} -R)
    endif()
  endif()
endif()

function(tn_test_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1500) # only what hangs takes so long
  endif()
  if(TN_SAN OR TN_COVERAGE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 2")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  set(environment "TENON_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "TENON_BUILD_DIR=${CMAKE_BINARY_DIR}")
  if(TN_SAN)
    # GCC 13 looks for uses after return by default, on stacks of its own that are not aligned for the widest registers.
    list(APPEND environment
         "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=0"
         "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0")
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
endfunction()

# White-box by default: sees src/ and links tn_whitebox, where hidden names can be reached.
# PUBLIC: sees include/ alone and links the shared library, as a user's program would.
function(tn_test source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PUBLIC" "TIMEOUT;NAME" "SOURCES;GENERATED;LABELS;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${source}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  get_filename_component(stem ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "" stem ${stem})
  if(arg_NAME)
    set(stem ${arg_NAME})
  endif()
  set(target test_${folder}_${stem})
  tn_generated(generated ${arg_GENERATED})
  add_executable(${target} ${source} ${arg_SOURCES} ${generated})
  add_dependencies(${target} tn_gen)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE tn_warnings tn_flags)
  if(arg_PUBLIC)
    target_link_libraries(${target} PRIVATE tn_harness tenon_shared ${arg_LIBRARIES})
  else()
    target_include_directories(${target} PRIVATE ${TN_INTERNAL_INCLUDES})
    target_link_libraries(${target} PRIVATE tn_harness tn_whitebox ${arg_LIBRARIES})
  endif()
  add_test(NAME ${folder}/${stem} COMMAND ${TN_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
  set(timeout "")
  if(arg_TIMEOUT)
    set(timeout TIMEOUT ${arg_TIMEOUT})
  endif()
  tn_test_properties(${folder}/${stem} ${timeout} LABELS ${arg_LABELS})
endfunction()

add_custom_target(fuzzers)
# With TN_FUZZ the target is a libFuzzer program. Otherwise a small main of our own runs the corpus and
# a fixed number of mutations of it, so that every `make test` exercises the target.
function(tn_fuzz source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LABELS")
  get_filename_component(stem ${source} NAME_WE)
  set(target ${stem})
  add_executable(${target} ${source} ${arg_SOURCES})
  add_dependencies(${target} tn_gen)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${TN_INTERNAL_INCLUDES})
  target_link_libraries(${target} PRIVATE tn_warnings tn_flags tn_whitebox)
  add_dependencies(fuzzers ${target})
  if(TN_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/standalone.c)
  string(REGEX REPLACE "^fuzz_" "" short ${stem})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${short})
  if(NOT EXISTS ${corpus})
    set(corpus "")
  endif()
  add_test(NAME fuzz/${short} COMMAND ${TN_TEST_LAUNCHER} $<TARGET_FILE:${target}> ${corpus})
  tn_test_properties(fuzz/${short} LABELS fuzz ${arg_LABELS})
endfunction()
