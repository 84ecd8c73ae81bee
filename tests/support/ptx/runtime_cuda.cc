// The functions of the CUDA runtime that launches go through, in place of the runtime's own: a
// program that links this object runs its kernels on the interpreter, from the very objects
// that nvcc made, with the host code that nvcc generated for them. It needs no GPU and no
// driver. Everything else comes from the runtime itself, so the program is linked with
// --allow-multiple-definition, and this object before the runtime.
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/support/ptx/library.h"

// Names with leading underscores are the runtime's own.
// NOLINTBEGIN(clang-diagnostic-reserved-identifier)

namespace {

using tidemark::ptx::Extents;
using tidemark::ptx::Library;

// Host functions of kernels, by the name of the kernel on the device.
std::map<const void*, std::string>& registered() {
  static auto& names = *new std::map<const void*, std::string>;
  return names;
}

// The most shared memory that a launch may add, where the program has set it.
std::map<const void*, size_t>& most_shared() {
  static auto& bytes = *new std::map<const void*, size_t>;
  return bytes;
}

Extents extents(dim3 d) { return {d.x, d.y, d.z}; }

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   size_t shared) {
  const auto found = registered().find(function);
  if (found == registered().end()) return cudaErrorInvalidDeviceFunction;
  if (shared > most_shared()[function]) return cudaErrorInvalidValue;
  return Library::shipped().run(found->second, extents(grid), extents(block), arguments,
                                static_cast<int64_t>(shared))
             ? cudaSuccess
             : cudaErrorLaunchFailure;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
};
thread_local Configuration configuration;

}  // namespace

extern "C" {

// Called by objects that nvcc made, when the program starts.
void** __cudaRegisterFatBinary(void* binary) { return static_cast<void**>(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  registered()[host] = name;
}

// cudaLaunchKernelEx(), and kernel<<<...>>>().
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return launch(function, config->gridDim, config->blockDim, arguments,
                config->dynamicSmemBytes);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t) {
  configuration = {grid, block, shared};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  std::memcpy(kernel, &function, sizeof function);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t) {
  return launch(kernel, grid, block, arguments, shared);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t) {
  return launch(function, grid, block, arguments, shared);
}

// A GPU, for those who ask what it can do.
cudaError_t cudaGetDevice(int* gpu) { return *gpu = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const int architecture = Library::architecture();
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? architecture / 10
           : attribute == cudaDevAttrComputeCapabilityMinor ? architecture % 10
                                                            : 108;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorInvalidValue;
  most_shared()[function] = static_cast<size_t>(value);
  return cudaSuccess;
}

// Device memory is the host's.
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(clang-diagnostic-reserved-identifier)
