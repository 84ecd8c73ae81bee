# Whether the CUDA device and its kernels are built, and with what.
#
#   TIDEMARK_CUDA   AUTO (default): if there is a GPU, and what TOOLKIT asks for
#                   TOOLKIT: if there is an nvcc, a cuDNN and a cuBLAS; says what is missing
#                   ON: or configuring fails; asking for CUDA never gives a build without it
#                   OFF: the programs say that they have no CUDA device
#   CMAKE_CUDA_ARCHITECTURES (or CUDAARCHS in the environment): for which GPUs; else the list below
#   CUDNN_ROOT, CUBLAS_ROOT: where to look first; each holds include/ and lib/. Then: the toolkit,
#                   and the packages that PyTorch brings (nvidia/ in Python's search path)
#
# Defines TIDEMARK_CUDA_FOUND and, when true, the target tidemark::cuda: headers, and the CUDA runtime
# by its full path, so that nothing has to be found again by those who link an installed Tidemark.
# cuDNN and cuBLAS are not linked but loaded when they are first used, from where they were found
# (runtime/device/cuda/lazy_libraries.cc).
#
# Host-side logic of the CUDA device is built and tested in either case: it reaches the driver
# through an interface (runtime/device/cuda/driver.h).
set(TIDEMARK_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, TOOLKIT, ON or OFF")
set_property(CACHE TIDEMARK_CUDA PROPERTY STRINGS AUTO TOOLKIT ON OFF)
set(CUDNN_ROOT "" CACHE PATH "Folder that holds cuDNN's include/ and lib/")
set(CUBLAS_ROOT "" CACHE PATH "Folder that holds cuBLAS's include/ and lib/")
# Data-centre and consumer GPUs from Ampere on, and PTX for those after them.
set(TIDEMARK_CUDA_ARCHITECTURES 80-real 86-real 89-real 90)

string(TOUPPER "${TIDEMARK_CUDA}" tidemark_cuda_wish)
if(tidemark_cuda_wish MATCHES "^(ON|TRUE|YES|1)$")
  set(tidemark_cuda_wish ON)
elseif(tidemark_cuda_wish MATCHES "^(OFF|FALSE|NO|0)$")
  set(tidemark_cuda_wish OFF)
elseif(NOT tidemark_cuda_wish MATCHES "^(AUTO|TOOLKIT)$")
  message(FATAL_ERROR "TIDEMARK_CUDA is '${TIDEMARK_CUDA}': it takes AUTO, TOOLKIT, ON or OFF")
endif()

# Missing something: the end if CUDA was asked for, else a build without it that says so.
macro(tidemark_no_cuda reason)
  if(tidemark_cuda_wish STREQUAL "ON")
    message(FATAL_ERROR "CUDA was asked for (TIDEMARK_CUDA=ON), but ${reason}")
  endif()
  message(STATUS "CUDA: off, as ${reason}")
  set(TIDEMARK_CUDA_FOUND FALSE)
  return()
endmacro()

set(TIDEMARK_CUDA_FOUND FALSE)
if(tidemark_cuda_wish STREQUAL "OFF")
  message(STATUS "CUDA: off, as TIDEMARK_CUDA=OFF")
  return()
endif()
# NVIDIA's driver, or Windows' for Linux: compiling for a GPU that is not there takes most of the
# time of a build.
if(tidemark_cuda_wish STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl AND NOT EXISTS /dev/dxg)
  tidemark_no_cuda("there is no GPU; -DTIDEMARK_CUDA=TOOLKIT builds it all the same")
endif()

# 1. The compiler.
if(NOT CMAKE_CUDA_COMPILER)
  find_program(TIDEMARK_NVCC nvcc
    HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH ${CUDAToolkit_ROOT} /usr/local/cuda
    PATH_SUFFIXES bin DOC "The CUDA compiler")
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
  elseif(TIDEMARK_NVCC)
    set(CMAKE_CUDA_COMPILER ${TIDEMARK_NVCC})
  else()
    tidemark_no_cuda("there is no nvcc: set CMAKE_CUDA_COMPILER or CUDA_HOME")
  endif()
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  # CMake reads CUDAARCHS only where it looks for the compiler: in a new build folder.
  if(NOT "$ENV{CUDAARCHS}" STREQUAL "")
    set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}" CACHE STRING "CUDA architectures")
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${TIDEMARK_CUDA_ARCHITECTURES})
  endif()
endif()
# nvcc takes the host compiler from the path otherwise; flags below are for one that is like ours.
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
enable_language(CUDA)
# CMake 3.25 does not know yet that nvcc takes it.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

# 2. The runtime and the libraries. nvcc's folder comes first, Python's packages last.
get_filename_component(tidemark_cuda_root ${CMAKE_CUDA_COMPILER} REALPATH)
get_filename_component(tidemark_cuda_root ${tidemark_cuda_root} DIRECTORY)
get_filename_component(tidemark_cuda_root ${tidemark_cuda_root} DIRECTORY)
set(tidemark_cuda_hints ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
list(TRANSFORM tidemark_cuda_hints REPLACE "/include$" "")
list(APPEND tidemark_cuda_hints ${tidemark_cuda_root} ${tidemark_cuda_root}/targets/x86_64-linux
     ${tidemark_cuda_root}/targets/sbsa-linux)
find_program(TIDEMARK_PYTHON NAMES python3 DOC "Its nvidia packages may hold cuDNN and cuBLAS")
set(tidemark_python_nvidia "")
if(TIDEMARK_PYTHON)
  execute_process(
    COMMAND ${TIDEMARK_PYTHON} -c "import nvidia; print(';'.join(nvidia.__path__))"
    OUTPUT_VARIABLE tidemark_python_nvidia OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
string(REGEX MATCH "^[0-9]+" tidemark_cuda_major "${CMAKE_CUDA_COMPILER_VERSION}")
set(tidemark_cublas_hints ${CUBLAS_ROOT} ${tidemark_cuda_hints})
set(tidemark_cudnn_hints ${CUDNN_ROOT} ${tidemark_cuda_hints})
foreach(folder ${tidemark_python_nvidia})
  list(APPEND tidemark_cublas_hints ${folder}/cu${tidemark_cuda_major} ${folder}/cublas)
  list(APPEND tidemark_cudnn_hints ${folder}/cudnn)
endforeach()

# tidemark_find_cuda(CUBLAS "cublas_v2.h" "cublas;libcublas.so.13" HINTS): TIDEMARK_CUBLAS_LIBRARY,
# TIDEMARK_CUBLAS_INCLUDE_DIR (if a header is named). Python's packages have no libx.so, only
# libx.so.N.
function(tidemark_find_cuda what header names hints)
  find_library(TIDEMARK_${what}_LIBRARY NAMES ${names} HINTS ${hints}
               PATH_SUFFIXES lib lib64 lib/x64)
  if(header)
    find_path(TIDEMARK_${what}_INCLUDE_DIR ${header} HINTS ${hints} PATH_SUFFIXES include)
  endif()
  mark_as_advanced(TIDEMARK_${what}_LIBRARY TIDEMARK_${what}_INCLUDE_DIR)
endfunction()
tidemark_find_cuda(CUDART cuda_runtime_api.h cudart_static "${tidemark_cuda_hints}")
tidemark_find_cuda(CUBLAS cublas_v2.h "cublas;libcublas.so.${tidemark_cuda_major}"
                   "${tidemark_cublas_hints}")
tidemark_find_cuda(CUBLASLT "" "cublasLt;libcublasLt.so.${tidemark_cuda_major}"
                   "${tidemark_cublas_hints}")
tidemark_find_cuda(CUDNN cudnn.h "cudnn;libcudnn.so.9" "${tidemark_cudnn_hints}")
foreach(part CUDART_LIBRARY CUDART_INCLUDE_DIR CUBLAS_LIBRARY CUBLAS_INCLUDE_DIR CUBLASLT_LIBRARY
             CUDNN_LIBRARY CUDNN_INCLUDE_DIR)
  if(NOT TIDEMARK_${part})
    tidemark_no_cuda("${part} was not found: set CUDNN_ROOT, CUBLAS_ROOT or TIDEMARK_${part}")
  endif()
endforeach()
file(STRINGS ${TIDEMARK_CUDNN_INCLUDE_DIR}/cudnn_version.h tidemark_cudnn_version
     REGEX "#define CUDNN_MAJOR")
if(NOT tidemark_cudnn_version)
  file(STRINGS ${TIDEMARK_CUDNN_INCLUDE_DIR}/cudnn_version_v9.h tidemark_cudnn_version
       REGEX "#define CUDNN_MAJOR")
endif()
string(REGEX REPLACE "[^0-9]" "" tidemark_cudnn_version "${tidemark_cudnn_version}")
if(NOT tidemark_cudnn_version EQUAL 9)
  tidemark_no_cuda("cuDNN in ${TIDEMARK_CUDNN_INCLUDE_DIR} is version '${tidemark_cudnn_version}', not 9")
endif()

set(tidemark_cuda_includes ${TIDEMARK_CUDART_INCLUDE_DIR} ${TIDEMARK_CUBLAS_INCLUDE_DIR}
    ${TIDEMARK_CUDNN_INCLUDE_DIR})
list(REMOVE_DUPLICATES tidemark_cuda_includes)
tidemark_headers(cuda ${tidemark_cuda_includes})
target_link_libraries(tidemark_cuda INTERFACE
  ${TIDEMARK_CUDART_LIBRARY} Threads::Threads rt ${CMAKE_DL_LIBS})

# The same warnings as for C++, less -Wpedantic, which nvcc's own output does not pass.
target_compile_options(tidemark_flags INTERFACE
  "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wshadow,-Wno-restrict>>")
if(TIDEMARK_WERROR)
  target_compile_options(tidemark_flags INTERFACE
    "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>>")
endif()
set(TIDEMARK_CUDA_FOUND TRUE)
message(STATUS "CUDA: on, nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}; "
               "${TIDEMARK_CUDNN_LIBRARY}, ${TIDEMARK_CUBLAS_LIBRARY}")
