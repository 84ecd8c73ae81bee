// Records what PyTorch's own CUDA caching allocator does, on a machine without a GPU: the
// allocator of an installed PyTorch over a CUDA runtime that only counts addresses up. The test
// of our model of it (runtime/planner/baselines/caching_allocator.h) replays the record.
//
//   torch=$(python -c 'import torch; print(torch.__path__[0])')
//   g++ -std=c++20 -rdynamic -I$torch/include -I/usr/local/cuda/include
//     bench/peers/torch_allocator_cuda.cc -o torch_allocator
//     -L$torch/lib -lc10_cuda -lc10 -Wl,-rpath,$torch/lib
//   (./torch_allocator 0; ./torch_allocator 32) > tests/golden/torch_allocator.txt
//
// The argument is PyTorch's max_split_size_mb, 0 for none. Output, a line each:
//
//   max_split_size BYTES       a new allocator; 0: no such limit
//   + BYTES STREAM ADDRESS     allocated; addresses from 0, segments side by side
//   - INDEX                    freed: the allocation of that index, from 0
//   = RESERVED ALLOCATED SEGMENTS
//
// Some blocks are also used on another stream (record_stream), whose events are done at once.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {
constexpr uintptr_t kBase = uintptr_t{1} << 40;
uintptr_t end_of_device = kBase;
}  // namespace

// In the library, but in no header.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(DeviceIndex));
}

// The program's functions come before those of the CUDA runtime that PyTorch links.
extern "C" {
cudaError_t cudaMalloc(void** pointer, size_t size) {
  *pointer = reinterpret_cast<void*>(end_of_device);
  end_of_device += size;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *available = *total = size_t{1} << 40;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->totalGlobalMem = size_t{1} << 40;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(kBase);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
}

namespace {

c10::cuda::CUDAStream stream(uintptr_t number) {
  return c10::cuda::getStreamFromExternal(reinterpret_cast<cudaStream_t>(16 * number), 0);
}

// Of any order of magnitude, or just at a limit of the allocator's.
size_t random_size(std::mt19937_64& random) {
  constexpr size_t kMiB = 1 << 20;
  constexpr size_t kLimits[] = {512,       kMiB,      2 * kMiB,  10 * kMiB,
                                11 * kMiB, 32 * kMiB, 40 * kMiB, 60 * kMiB};
  if (random() % 4 == 0) return kLimits[random() % std::size(kLimits)] - 1 + random() % 3;
  return 1 + random() % (size_t{1} << (4 + random() % 23));
}

}  // namespace

int main(int, char** arguments) {
  const size_t max_split_mib = std::strtoull(arguments[1], nullptr, 10);
  const std::string setting = "max_split_size_mb:" + std::string(arguments[1]);
  if (max_split_mib > 0) setenv("PYTORCH_ALLOC_CONF", setting.c_str(), 1);
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::CUDACachingAllocator::init(1);
  c10::Allocator& allocator = *c10::cuda::CUDACachingAllocator::get();
  std::printf("max_split_size %zu\n", max_split_mib << 20);

  std::mt19937_64 random(5);
  std::vector<std::pair<size_t, c10::DataPtr>> live;
  size_t allocations = 0;
  for (int i = 0; i < 800; ++i) {
    // Grows and shrinks by turns.
    if (live.empty() || random() % 8 < (i / 100 % 2 == 0 ? 5 : 3)) {
      const size_t size = random_size(random), on = random() % 4 / 2;
      c10::cuda::setCurrentCUDAStream(stream(on));
      c10::DataPtr block = allocator.allocate(size);
      std::printf("+ %zu %zu %zu\n", size, on,
                  static_cast<size_t>(reinterpret_cast<uintptr_t>(block.get()) - kBase));
      if (random() % 8 == 0) {
        c10::cuda::CUDACachingAllocator::recordStream(block, stream(1 - on));
      }
      live.emplace_back(allocations++, std::move(block));
    } else {
      std::swap(live[random() % live.size()], live.back());
      std::printf("- %zu\n", live.back().first);
      live.pop_back();
    }
    if (i % 50 == 49) {
      const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
      std::printf("= %lld %lld %lld\n", static_cast<long long>(stats.reserved_bytes[0].current),
                  static_cast<long long>(stats.allocated_bytes[0].current),
                  static_cast<long long>(stats.segment[0].current));
    }
  }
  std::fflush(stdout);
  std::_Exit(0);  // not through PyTorch's destructors, which ask the device
}
