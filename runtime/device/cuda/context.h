// The library handles of one GPU, shared by all CUDA kernels that run on it.
//
// Handles are made at first use, because making one takes milliseconds and device memory of its
// own (outside the arena, counted in the device's reserve, see cuda_device.h). Workspaces
// always come from the arena: a kernel states its workspace when it is prepared, and passes
// KernelArgs::workspace to the library; no handle keeps a workspace of the library's choice.
//
// Owned by the process, one per GPU, never destroyed: handles that outlive the driver's
// shutdown could not be destroyed safely. Threads: the issuing thread; two sessions that issue
// to one GPU from two threads are not supported.
//
//   PreparedKernel matmul_cuda(const OpQuery& q) {
//     CudaContext& gpu = CudaContext::current();        // also while a dry run prepares
//     ...heuristics with gpu.cublas_lt()...
//     return {workspace, [plan](const KernelArgs& a) {
//       CudaContext& gpu = CudaContext::current();
//       cublasLtMatmul(gpu.cublas_lt(), ..., a.workspace, plan->workspace_bytes,
//                      CudaContext::stream(a.native_stream));
//     }};
//   }
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>

#include "runtime/core/units.h"

namespace tidemark {

class CudaContext {
 public:
  // The context of the GPU that is current on this thread (a CUDA device makes its GPU current
  // when it is made and before it runs work). Throws DeviceError if there is no GPU.
  static CudaContext& current();
  // REQUIRES: 0 <= gpu < number of GPUs.
  static CudaContext& of(int gpu);

  // Converts KernelArgs::native_stream.
  static cudaStream_t stream(void* native_stream) {
    return static_cast<cudaStream_t>(native_stream);
  }

  int gpu() const { return gpu_; }
  int compute_capability() const { return capability_; }  // 90 for 9.0
  int multiprocessors() const { return multiprocessors_; }

  // For queries and heuristics. Work issued through this handle goes to its last bound stream,
  // so kernels use the overload below.
  cudnnHandle_t cudnn();
  // Binds the handle to `native_stream`; free if the stream is unchanged.
  cudnnHandle_t cudnn(void* native_stream);

  // Takes stream and workspace with each call, so needs no binding; preferred.
  cublasLtHandle_t cublas_lt();

  // Binds the handle to `native_stream` and `workspace` (aligned to 256; may be null if `bytes`
  // is 0) for the following calls, so the library's own pool is never used. Deterministic if
  // the workspace's size is part of the kernel's signature.
  cublasHandle_t cublas(void* native_stream, std::byte* workspace, Bytes bytes);

  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

 private:
  explicit CudaContext(int gpu);

  const int gpu_;
  int capability_ = 0;
  int multiprocessors_ = 0;
  cudnnHandle_t cudnn_ = nullptr;
  void* cudnn_stream_ = nullptr;
  bool cudnn_bound_ = false;
  cublasLtHandle_t cublas_lt_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
};

}  // namespace tidemark
