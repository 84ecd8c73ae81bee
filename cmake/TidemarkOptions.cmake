option(TIDEMARK_BUILD_COMPARE "Build compare_heuristics, which needs libmicrohttpd and D3" ON)
option(TIDEMARK_BUILD_EXAMPLES "Build the programs in examples/" ON)
option(TIDEMARK_BUILD_TESTS "Build the tests" ON)
option(TIDEMARK_BUILD_BENCHMARKS "Build the benchmarks in bench/" ON)
option(TIDEMARK_WERROR "Treat warnings as errors" OFF)
# Most of compiling is reading headers. The presets release, cuda, arm64 and the sanitizers' join
# the sources of runtime/, examples/, parts of models/ and test programs: two files of a library or
# a program there must not define the same name in an anonymous namespace.
option(TIDEMARK_JOIN_SOURCES "Compile several files of a library, or of a test program, as one" OFF)
set(TIDEMARK_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address,undefined' or 'thread'")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# What was compiled in one checkout is found again from any other.
find_program(TIDEMARK_CCACHE ccache)
if(TIDEMARK_CCACHE)
  foreach(language CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
          env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TIDEMARK_CCACHE})
    endif()
  endforeach()
endif()

add_library(tidemark_flags INTERFACE)
add_library(tidemark::flags ALIAS tidemark_flags)
target_include_directories(tidemark_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/tidemark>)
target_compile_features(tidemark_flags INTERFACE cxx_std_20)
# Warnings are ours alone: they do not reach those who link an installed Tidemark.
target_compile_options(tidemark_flags INTERFACE
  "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor>>")
# GCC 12 sees overlapping copies in string concatenations that have none (GCC bug 105651).
target_compile_options(tidemark_flags INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>>)
# Elsewhere GCC fuses a product and a sum into one rounding wherever it likes, so that the bits
# would depend on how a loop was compiled. x86-64's baseline has no such instruction; only the
# loops that are compiled for AVX2 and AVX-512 as well do.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(tidemark_flags INTERFACE
    "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>>")
endif()
if(TIDEMARK_WERROR)
  target_compile_options(tidemark_flags INTERFACE
    "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Werror>>")
endif()
if(TIDEMARK_SANITIZE)
  # Without no-recover, undefined behaviour would be printed and the test would still pass.
  add_compile_options(-fsanitize=${TIDEMARK_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TIDEMARK_SANITIZE})
endif()
