#include "runtime/device/cuda/context.h"

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/check.h"

namespace tidemark {

void throw_cuda(cudaError_t status, const char* call) {
  (void)cudaGetLastError();
  throw DeviceError(std::string(call) + ": " + cudaGetErrorString(status) + " (" +
                    cudaGetErrorName(status) + ")");
}

void throw_cudnn(cudnnStatus_t status, const char* call) {
  // cuDNN keeps further details of the error for the calling thread.
  std::array<char, 1024> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  throw DeviceError(std::string(call) + ": " + cudnnGetErrorString(status) +
                    (more[0] != '\0' ? std::string(": ") + more.data() : std::string()));
}

void throw_cublas(cublasStatus_t status, const char* call) {
  throw DeviceError(std::string(call) + ": " + cublasGetStatusString(status) + " (" +
                    cublasGetStatusName(status) + ")");
}

CudaContext& CudaContext::current() {
  int gpu = 0;
  TIDEMARK_CUDA_CALL(cudaGetDevice(&gpu));
  thread_local CudaContext* last = nullptr;
  if (!last || last->gpu() != gpu) last = &of(gpu);
  return *last;
}

CudaContext& CudaContext::of(int gpu) {
  constexpr int kMaxGpus = 64;
  // Never destroyed, see the header.
  static auto& contexts = *new std::array<CudaContext*, kMaxGpus>{};
  static std::mutex mutex;
  int count = 0;
  TIDEMARK_CUDA_CALL(cudaGetDeviceCount(&count));
  TIDEMARK_CHECK(gpu >= 0 && gpu < count && gpu < kMaxGpus, "gpu " + std::to_string(gpu));
  const std::scoped_lock lock(mutex);
  CudaContext*& context = contexts[static_cast<size_t>(gpu)];
  if (!context) context = new CudaContext(gpu);
  return *context;
}

CudaContext::CudaContext(int gpu) : gpu_(gpu) {
  int major = 0;
  int minor = 0;
  TIDEMARK_CUDA_CALL(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
  TIDEMARK_CUDA_CALL(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu));
  TIDEMARK_CUDA_CALL(
      cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, gpu));
  capability_ = major * 10 + minor;
}

cudnnHandle_t CudaContext::cudnn() {
  if (!cudnn_) TIDEMARK_CUDNN_CALL(cudnnCreate(&cudnn_));
  return cudnn_;
}

cudnnHandle_t CudaContext::cudnn(void* native_stream) {
  cudnn();
  if (!cudnn_bound_ || cudnn_stream_ != native_stream) {
    TIDEMARK_CUDNN_CALL(cudnnSetStream(cudnn_, stream(native_stream)));
    cudnn_stream_ = native_stream;
    cudnn_bound_ = true;
  }
  return cudnn_;
}

cublasLtHandle_t CudaContext::cublas_lt() {
  if (!cublas_lt_) TIDEMARK_CUBLAS_CALL(cublasLtCreate(&cublas_lt_));
  return cublas_lt_;
}

cublasHandle_t CudaContext::cublas(void* native_stream, std::byte* workspace, Bytes bytes) {
  if (!cublas_) TIDEMARK_CUBLAS_CALL(cublasCreate(&cublas_));
  // cublasSetStream() resets the workspace to the library's own, so it must be called first.
  TIDEMARK_CUBLAS_CALL(cublasSetStream(cublas_, stream(native_stream)));
  TIDEMARK_CUBLAS_CALL(
      cublasSetWorkspace(cublas_, workspace, static_cast<size_t>(bytes.count())));
  return cublas_;
}

}  // namespace tidemark
