// The library handles of one GPU, shared by all CUDA kernels that run on it.
//
// Handles are made at their first use, as making one takes milliseconds and device memory of
// its own (which lies outside the arena and is counted in the device's reserve, see
// cuda_device.h). Workspaces are always ours: a kernel states its workspace when it is
// prepared, and passes the library KernelArgs::workspace; no handle is left with a workspace of
// the library's choosing.
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
  // Of the GPU that is current on this thread (a CUDA device makes its GPU current when it is
  // made and before it runs work). Throws DeviceError where there is no GPU.
  static CudaContext& current();
  // REQUIRES: 0 <= gpu < number of GPUs.
  static CudaContext& of(int gpu);

  // What KernelArgs::native_stream is.
  static cudaStream_t stream(void* native_stream) {
    return static_cast<cudaStream_t>(native_stream);
  }

  int gpu() const { return gpu_; }
  int compute_capability() const { return capability_; }  // 90 for 9.0
  int multiprocessors() const { return multiprocessors_; }

  // For queries and heuristics; work issued through it goes to the stream that it was last
  // bound to, so kernels use the overload below.
  cudnnHandle_t cudnn();
  // Bound to `native_stream`. Costs nothing while the stream stays the same.
  cudnnHandle_t cudnn(void* native_stream);

  // Takes stream and workspace with each call, so it needs no binding; to be preferred.
  cublasLtHandle_t cublas_lt();

  // Bound to `native_stream`, with `workspace` (aligned to 256; may be null if `bytes` is 0)
  // for the calls that follow: never the library's own pool. Deterministic while the
  // workspace's size is part of the kernel's signature.
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
