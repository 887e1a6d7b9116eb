# SPDX-License-Identifier: MIT
# Compiler and linker flags, as targets: tn_warnings (how strict), tn_flags (what the C means and how
# it is instrumented). Reasons: docs/decisions/0002-c-standard-and-flags.md

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# One set of objects serves the static and the shared library.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The cpu layer adds -O3 for itself: at -O2 gcc 12 vectorises next to nothing, and elsewhere -O3 only
# makes the code larger.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

# Instrumented code draws warnings that the plain code does not: gcc folds less of it and then sees
# conversions that are not there. The plain build is where warnings count.
add_library(tn_warnings INTERFACE)
if(NOT TN_SAN AND NOT TN_COVERAGE)
  target_compile_options(
    tn_warnings
    INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall
              -Wextra
              -Wshadow
              -Wconversion
              -Wstrict-prototypes
              -Wmissing-prototypes
              -Wundef
              -Wvla
              -Wcast-qual
              -Wwrite-strings
              -Wpointer-arith
              -Wdouble-promotion>)
  if(TN_WERROR)
    target_compile_options(tn_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
  endif()
endif()

add_library(tn_flags INTERFACE)
set(visibility hidden)
if(TN_SAN)
  # The tests of an instrumented build reach what they test through one shared library (tn_whitebox_library).
  # What libtenon.so shows is said by its version script.
  set(visibility default)
  target_compile_definitions(tn_flags INTERFACE TNI_ALL_VISIBLE)
endif()
target_compile_options(
  tn_flags
  INTERFACE -fno-common
            -fvisibility=${visibility}
            -fno-strict-aliasing
            -fno-math-errno
            -fno-trapping-math
            -ffp-contract=off
            -fno-semantic-interposition
            # __FILE__ is part of error messages: relative, so that builds in two places are equal.
            -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
            -fmacro-prefix-map=${CMAKE_BINARY_DIR}/=)
target_compile_definitions(tn_flags INTERFACE TN_STRESS=$<BOOL:${TN_STRESS}>)

if(TN_SAN)
  target_compile_options(tn_flags INTERFACE -fsanitize=${TN_SAN} -fno-omit-frame-pointer -g
                                            -fno-sanitize-recover=all)
  target_link_options(tn_flags INTERFACE -fsanitize=${TN_SAN})
  if(TN_SAN MATCHES "undefined")
    # gcc tests the address of a thread-local variable by the flags of an addition that the linker then
    # replaces by an instruction without flags: a false alarm. NULL is caught by the address sanitizer.
    target_compile_options(tn_flags INTERFACE -fno-sanitize=null)
  endif()
endif()
if(TN_COVERAGE)
  target_compile_options(tn_flags INTERFACE --coverage -g)
  target_link_options(tn_flags INTERFACE --coverage)
endif()
if(TN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TN_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  target_compile_options(tn_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
