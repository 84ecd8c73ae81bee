// Checks every CUDA, cuDNN and cuBLAS call: TIDEMARK_CUDA_CALL(cudaFoo(x)) throws DeviceError
// with the call and the library's error text. The caller of a kernel prepends the operator's
// name.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace tidemark {

// REQUIRES: the status is not success.
[[noreturn]] void throw_cuda(cudaError_t status, const char* call);
[[noreturn]] void throw_cudnn(cudnnStatus_t status, const char* call);
[[noreturn]] void throw_cublas(cublasStatus_t status, const char* call);

inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw_cuda(status, call);
}
inline void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw_cudnn(status, call);
}
inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_cublas(status, call);
}

}  // namespace tidemark

#define TIDEMARK_CUDA_CALL(call) ::tidemark::check_cuda((call), #call)
#define TIDEMARK_CUDNN_CALL(call) ::tidemark::check_cudnn((call), #call)
#define TIDEMARK_CUBLAS_CALL(call) ::tidemark::check_cublas((call), #call)
