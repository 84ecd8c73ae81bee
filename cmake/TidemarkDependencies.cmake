# Where each dependency comes from and why it is here: BUILDING.md, "Dependencies".
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(dnnl REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
if(TIDEMARK_BUILD_EXAMPLES)
  find_package(CLI11 REQUIRED)
endif()
if(TIDEMARK_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(TIDEMARK_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# Thrust with its OpenMP back end: from a CUDA toolkit if there is one, else Debian's package.
find_path(TIDEMARK_THRUST_INCLUDE_DIR thrust/version.h
  HINTS /usr/local/cuda/include/cccl /usr/local/cuda/include
  DOC "Folder that holds thrust/version.h" REQUIRED)
add_library(tidemark_thrust INTERFACE)
add_library(tidemark::thrust ALIAS tidemark_thrust)
set_target_properties(tidemark_thrust PROPERTIES EXPORT_NAME thrust)
target_include_directories(tidemark_thrust SYSTEM INTERFACE
  $<BUILD_INTERFACE:${TIDEMARK_THRUST_INCLUDE_DIR}>)
# nvcc has its own: the GPU.
target_compile_definitions(tidemark_thrust INTERFACE
  THRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP
  $<$<COMPILE_LANGUAGE:CXX>:THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_OMP>)
target_link_libraries(tidemark_thrust INTERFACE OpenMP::OpenMP_CXX)

# It has no CMake file.
find_path(TIDEMARK_UTF8PROC_INCLUDE_DIR utf8proc.h DOC "Folder that holds utf8proc.h" REQUIRED)
find_library(TIDEMARK_UTF8PROC_LIBRARY utf8proc DOC "libutf8proc" REQUIRED)
add_library(tidemark_utf8proc INTERFACE)
add_library(tidemark::utf8proc ALIAS tidemark_utf8proc)
set_target_properties(tidemark_utf8proc PROPERTIES EXPORT_NAME utf8proc)
target_include_directories(tidemark_utf8proc SYSTEM INTERFACE
  $<BUILD_INTERFACE:${TIDEMARK_UTF8PROC_INCLUDE_DIR}>)
target_link_libraries(tidemark_utf8proc INTERFACE
  $<BUILD_INTERFACE:${TIDEMARK_UTF8PROC_LIBRARY}> $<INSTALL_INTERFACE:utf8proc>)
set_property(GLOBAL APPEND PROPERTY TIDEMARK_LIBRARIES tidemark_flags tidemark_thrust
                                                       tidemark_utf8proc)
