# tidemark_library(runtime_core SOURCES a.cc b.cc DEPS runtime_x PUBLIC_LIBS lib PRIVATE_LIBS lib
#                  CUDA_SOURCES a_cuda.cu NO_CUDA_SOURCES no_cuda.cc NOT_INSTALLED)
#   One folder, one target: tidemark_runtime_core, alias tidemark::runtime_core. CUDA_SOURCES are
#   part of it, and it links tidemark::cuda, in builds with CUDA; NO_CUDA_SOURCES in others.
function(tidemark_library name)
  cmake_parse_arguments(ARG "NOT_INSTALLED" ""
    "SOURCES;CUDA_SOURCES;NO_CUDA_SOURCES;DEPS;PUBLIC_LIBS;PRIVATE_LIBS" ${ARGN})
  set(target tidemark_${name})
  if(TIDEMARK_CUDA_FOUND)
    list(APPEND ARG_SOURCES ${ARG_CUDA_SOURCES})
    if(ARG_CUDA_SOURCES)
      list(APPEND ARG_DEPS cuda)
    endif()
  else()
    list(APPEND ARG_SOURCES ${ARG_NO_CUDA_SOURCES})
  endif()
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${ARG_PRIVATE_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(tidemark::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  list(TRANSFORM ARG_DEPS PREPEND tidemark::)
  target_link_libraries(${target} ${scope} tidemark::flags ${ARG_DEPS} ${ARG_PUBLIC_LIBS})
  if(NOT ARG_NOT_INSTALLED)
    set_property(GLOBAL APPEND PROPERTY TIDEMARK_LIBRARIES ${target})
  endif()
endfunction()

# tidemark_program(train_resnet SOURCES train_resnet.cc DEPS models_resnet LIBS CLI11::CLI11)
#   An example or a benchmark: BUILD/bin/train_resnet.
function(tidemark_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND tidemark::)
  target_link_libraries(${name} PRIVATE tidemark::flags ${ARG_DEPS} ${ARG_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# tidemark_test(runtime/core/shape_test.cc DEPS runtime_core [LIBS lib] [LABELS long] [TIMEOUT 300])
#   One file, one program, one ctest entry named after the path; call it from a CMakeLists.txt
#   below tests/, with the path relative to tests/. The first folder of the path is a label too.
#   For each label L there is a target tests_L that builds its tests and nothing else.
function(tidemark_test path)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS;LABELS;LIBS" ${ARGN})
  string(REGEX REPLACE "\\.cc$" "" name ${path})
  string(REPLACE "/" "." test_name ${name})
  string(REPLACE "/" "_" target ${name})
  string(REGEX REPLACE "/.*" "" top ${path})
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/${path})
  list(TRANSFORM ARG_DEPS PREPEND tidemark::)
  target_link_libraries(${target} PRIVATE tidemark::flags ${ARG_DEPS} ${ARG_LIBS} GTest::gmock
                                          GTest::gtest_main)
  # Little of a test's time passes in its own code, and most of a build's in compiling it.
  set(level $<$<CONFIG:Release>:-O1>)
  if(TIDEMARK_SANITIZE)
    set(level -O0)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${level}>)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(labels ${top} ${ARG_LABELS})
  # What ThreadSanitizer has nothing to look at in: pure functions in one thread.
  if("runtime" IN_LIST labels AND (path MATCHES "/roam/" OR
     NOT path MATCHES "^runtime/(cost|planner|policy|schedule)/"))
    list(APPEND labels threads)
  endif()
  list(REMOVE_DUPLICATES labels)
  add_test(NAME ${test_name} COMMAND ${target})
  # Tests run side by side, so idle OpenMP threads must not spin.
  set_tests_properties(${test_name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${labels}"
                                               ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
  if("cuda" IN_LIST labels)  # without a GPU every one of them skips; ctest says so too
    set_tests_properties(${test_name} PROPERTIES
      SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests")
  endif()
  foreach(label ${labels})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()
