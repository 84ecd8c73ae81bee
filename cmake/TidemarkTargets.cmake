# tidemark_library(runtime_core SOURCES a.cc b.cc DEPS runtime_x PUBLIC_LIBS lib PRIVATE_LIBS lib
#                  CUDA_SOURCES a_cuda.cu NO_CUDA_SOURCES no_cuda.cc NOT_INSTALLED)
#   One folder, one target: tidemark_runtime_core, alias tidemark::runtime_core. CUDA_SOURCES are
#   part of it, and it links tidemark::cuda, in builds with CUDA; NO_CUDA_SOURCES in others. Without
#   a word of sources they are all of the folder: *.cc, and *.cu for CUDA.
function(tidemark_library name)
  cmake_parse_arguments(ARG "NOT_INSTALLED" ""
    "SOURCES;CUDA_SOURCES;NO_CUDA_SOURCES;DEPS;PUBLIC_LIBS;PRIVATE_LIBS" ${ARGN})
  set(target tidemark_${name})
  if(NOT ARG_SOURCES AND NOT ARG_CUDA_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
    file(GLOB ARG_CUDA_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cu)
  endif()
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

# tidemark_headers(thrust FOLDER...)
#   The headers of others, needed to build alone: an interface, tidemark::thrust, that is installed
#   without them.
function(tidemark_headers name)
  set(target tidemark_${name})
  add_library(${target} INTERFACE)
  add_library(tidemark::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} SYSTEM INTERFACE "$<BUILD_INTERFACE:${ARGN}>")
  set_property(GLOBAL APPEND PROPERTY TIDEMARK_LIBRARIES ${target})
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

include(${CMAKE_CURRENT_LIST_DIR}/TidemarkDiscoverTests.cmake)

# The flags of all test programs: alike, so that they can share precompiled headers.
function(tidemark_compile_as_test target)
  # Little of a test's time passes in its own code, and most of a build's in compiling it.
  set(level $<$<CONFIG:Release>:-O1>)
  if(TIDEMARK_SANITIZE)
    set(level -O0)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${level}>)
  target_link_libraries(${target} PRIVATE tidemark::flags GTest::gmock)
  if(TARGET OpenMP::OpenMP_CXX)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# tidemark_tests(DEPS runtime_core [LIBS lib] [SOURCES a_test.cc] [EXCEPT b_test.cc] [NAME long]
#                [DEFINES TIDEMARK_X=path] [PROGRAMS train_resnet] [LABELS long] [COST 100])
#   All *_test.cc of the folder that calls it, below tests/: one program, and each of its test
#   suites one ctest entry named after the folder, runtime.core.Shape. SOURCES replaces that list of
#   files; EXCEPT leaves some out. A second program of a folder has a NAME. PROGRAMS are built first,
#   and the tests get their paths as TIDEMARK_TRAIN_RESNET. The first folder is a label too; for each
#   label L there is a target tests_L that builds its tests and nothing else. A higher COST starts
#   earlier: what takes minutes is not to be what the others have ended before.
function(tidemark_tests)
  cmake_parse_arguments(ARG "" "COST;NAME" "DEFINES;DEPS;EXCEPT;LABELS;LIBS;PROGRAMS;SOURCES"
                        ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *_test.cc)
    list(REMOVE_ITEM ARG_SOURCES "" ${ARG_EXCEPT})
  endif()
  if(ARG_NAME)
    string(APPEND folder /${ARG_NAME})
  endif()
  string(REPLACE "/" "_" target ${folder}_test)
  add_executable(${target} ${ARG_SOURCES})
  # Fewer than eight at a time: one program's sources are not to be what the others wait for.
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${TIDEMARK_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 5)
  list(TRANSFORM ARG_DEPS PREPEND tidemark::)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} ${ARG_LIBS} GTest::gtest_main)
  tidemark_compile_as_test(${target})
  if(TIDEMARK_PRECOMPILE_TESTS)
    target_precompile_headers(${target} REUSE_FROM tests_precompiled)
  endif()
  foreach(program ${ARG_PROGRAMS})
    string(TOUPPER TIDEMARK_${program} name)
    list(APPEND ARG_DEFINES ${name}=$<TARGET_FILE:${program}>)
    add_dependencies(${target} ${program})
  endforeach()
  list(TRANSFORM ARG_DEFINES REPLACE "^([^=]+)=(.*)$" "\\1=\"\\2\"")
  target_compile_definitions(${target} PRIVATE ${ARG_DEFINES})
  string(REGEX REPLACE "/.*" "" top ${folder})
  set(labels ${top} ${ARG_LABELS})
  # What ThreadSanitizer has nothing to look at in: pure functions in one thread.
  if("runtime" IN_LIST labels AND (folder MATCHES "/roam" OR
     NOT folder MATCHES "^runtime/(cost|planner|policy|schedule)"))
    list(APPEND labels threads)
  endif()
  tidemark_add_tests(${target} ${folder} LABELS ${labels} COST ${ARG_COST})
endfunction()

# tidemark_add_tests(TARGET FOLDER LABELS l... COST 100 FIXTURE f): its test suites as ctest
# entries, which set up the fixture. With the label cuda the program is one entry: a GPU takes long
# to be set up, and is not shared.
function(tidemark_add_tests target folder)
  cmake_parse_arguments(ARG "" "COST;FIXTURE" "LABELS" ${ARGN})
  string(REPLACE "/" "." prefix ${folder})
  list(REMOVE_DUPLICATES ARG_LABELS)
  if("cuda" IN_LIST ARG_LABELS)
    add_test(NAME ${prefix} COMMAND ${target})
    tidemark_test_properties(${prefix} "${ARG_LABELS}")
    set_tests_properties(${prefix} PROPERTIES RESOURCE_LOCK gpu)
  else()
    set(program ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}>)
    set(suites ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
    file(GENERATE OUTPUT ${suites} CONTENT
"include(\"${PROJECT_SOURCE_DIR}/cmake/TidemarkDiscoverTests.cmake\")
tidemark_discover_tests(\"${program}\" ${prefix} \"${ARG_LABELS}\"
                        COST \"${ARG_COST}\" FIXTURE \"${ARG_FIXTURE}\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
  endif()
  foreach(label ${ARG_LABELS})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()
