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
tidemark_headers(thrust ${TIDEMARK_THRUST_INCLUDE_DIR})
# nvcc has its own: the GPU.
target_compile_definitions(tidemark_thrust INTERFACE
  THRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP
  $<$<COMPILE_LANGUAGE:CXX>:THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_OMP>)
target_link_libraries(tidemark_thrust INTERFACE OpenMP::OpenMP_CXX)

# These two have no CMake file.
find_path(TIDEMARK_UTF8PROC_INCLUDE_DIR utf8proc.h DOC "Folder that holds utf8proc.h" REQUIRED)
find_library(TIDEMARK_UTF8PROC_LIBRARY utf8proc DOC "libutf8proc" REQUIRED)
tidemark_headers(utf8proc ${TIDEMARK_UTF8PROC_INCLUDE_DIR})
target_link_libraries(tidemark_utf8proc INTERFACE
  $<BUILD_INTERFACE:${TIDEMARK_UTF8PROC_LIBRARY}> $<INSTALL_INTERFACE:utf8proc>)
set_property(GLOBAL APPEND PROPERTY TIDEMARK_LIBRARIES tidemark_flags)
find_path(TIDEMARK_PCRE2_INCLUDE_DIR pcre2.h DOC "Folder that holds pcre2.h (Debian: libpcre2-dev)" REQUIRED)
find_library(TIDEMARK_PCRE2_LIBRARY pcre2-8 DOC "libpcre2-8 (Debian: libpcre2-dev)" REQUIRED)
tidemark_headers(pcre2 ${TIDEMARK_PCRE2_INCLUDE_DIR})
target_link_libraries(tidemark_pcre2 INTERFACE
  $<BUILD_INTERFACE:${TIDEMARK_PCRE2_LIBRARY}> $<INSTALL_INTERFACE:pcre2-8>)
