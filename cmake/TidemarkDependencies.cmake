# Where each dependency comes from and why it is here: README.md, "Dependencies".
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
set_property(GLOBAL APPEND PROPERTY TIDEMARK_LIBRARIES tidemark_flags tidemark_thrust)
