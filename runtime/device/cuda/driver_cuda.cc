#include <cuda.h>
#include <cuda_runtime_api.h>

#include <map>
#include <new>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/move_cuda.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

static_assert(kDriverOk.code == cudaSuccess);
static_assert(kDriverInvalidValue.code == cudaErrorInvalidValue);
static_assert(kDriverOutOfMemory.code == cudaErrorMemoryAllocation);
static_assert(kDriverUnloading.code == cudaErrorCudartUnloading);
static_assert(kDriverNotReady.code == cudaErrorNotReady);
static_assert(kDriverLaunchFailure.code == cudaErrorLaunchFailure);

cudaStream_t as_stream(DriverStream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t as_event(DriverEvent event) { return static_cast<cudaEvent_t>(event); }

// Clears an error that is returned, so that the next check of a launch does not find it again.
DriverStatus status(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) (void)cudaGetLastError();
  return {static_cast<int>(error)};
}

class Driver final : public CudaDriver {
 public:
  explicit Driver(int gpu) : gpu_(gpu) {}

  std::string describe(DriverStatus s) const override {
    const auto error = static_cast<cudaError_t>(s.code);
    return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
  }

  DriverStatus use() override { return status(cudaSetDevice(gpu_)); }

  DriverStatus properties(GpuProperties* out) override {
    cudaDeviceProp found{};
    if (const auto error = cudaGetDeviceProperties(&found, gpu_)) return status(error);
    int clock_khz = 0;
    int memory_clock_khz = 0;
    if (const auto error = cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, gpu_)) {
      return status(error);
    }
    if (const auto error =
            cudaDeviceGetAttribute(&memory_clock_khz, cudaDevAttrMemoryClockRate, gpu_)) {
      return status(error);
    }
    out->name = found.name;
    out->capability = found.major * 10 + found.minor;
    out->multiprocessors = found.multiProcessorCount;
    out->clock_hz = clock_khz * 1e3;
    out->memory_clock_hz = memory_clock_khz * 1e3;
    out->memory_bus_bits = found.memoryBusWidth;
    out->memory = Bytes(static_cast<int64_t>(found.totalGlobalMem));
    return kDriverOk;
  }

  int host_node() override {
    int node = -1;
    const DriverStatus found =
        status(cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, gpu_));
    return found.ok() ? node : -1;
  }

  DriverStatus memory_info(Bytes* free, Bytes* total) override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const DriverStatus result = status(cudaMemGetInfo(&free_bytes, &total_bytes));
    *free = Bytes(static_cast<int64_t>(free_bytes));
    *total = Bytes(static_cast<int64_t>(total_bytes));
    return result;
  }

  DriverStatus last_error() override { return {static_cast<int>(cudaGetLastError())}; }

  void warm_up() override {
    (void)status(load_move());
    try {
      CudaContext& gpu = CudaContext::of(gpu_);
      gpu.cudnn();
      gpu.cublas_lt();
    } catch (const DeviceError& error) {
      // A kernel that needs a library will say so itself.
      log().debug("no handles are made in advance: {}", error.what());
    }
  }

  DriverStatus create_stream(DriverStream* out) override {
    cudaStream_t stream = nullptr;
    auto error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return status(error);
    void* words = nullptr;
    error = cudaMalloc(&words, kMoveProgressBytes);
    if (error == cudaSuccess) error = cudaMemsetAsync(words, 0, kMoveProgressBytes, stream);
    if (error != cudaSuccess) {
      (void)cudaFree(words);
      (void)cudaStreamDestroy(stream);
      return status(error);
    }
    moves_[stream].words = static_cast<uint32_t*>(words);
    *out = stream;
    return kDriverOk;
  }
  DriverStatus destroy_stream(DriverStream stream) override {
    const auto error = cudaStreamDestroy(as_stream(stream));
    if (const auto found = moves_.find(stream); found != moves_.end()) {
      (void)cudaFree(found->second.words);
      moves_.erase(found);
    }
    return status(error);
  }
  DriverStatus synchronize_stream(DriverStream stream) override {
    return status(cudaStreamSynchronize(as_stream(stream)));
  }

  DriverStatus create_event(DriverEvent* out, bool timed) override {
    cudaEvent_t event = nullptr;
    // Blocking waits leave the core to other threads, such as those that read the next batch.
    const unsigned flags =
        timed ? cudaEventBlockingSync : cudaEventBlockingSync | cudaEventDisableTiming;
    const auto error = cudaEventCreateWithFlags(&event, flags);
    *out = event;
    return status(error);
  }
  DriverStatus destroy_event(DriverEvent event) override {
    return status(cudaEventDestroy(as_event(event)));
  }
  DriverStatus record(DriverEvent event, DriverStream stream) override {
    return status(cudaEventRecord(as_event(event), as_stream(stream)));
  }
  DriverStatus query(DriverEvent event) override {
    const DriverStatus result = status(cudaEventQuery(as_event(event)));
    // "Not ready" is no error, but cudaGetLastError() would report it.
    if (result == kDriverNotReady) (void)cudaGetLastError();
    return result;
  }
  DriverStatus synchronize_event(DriverEvent event) override {
    return status(cudaEventSynchronize(as_event(event)));
  }
  DriverStatus wait(DriverStream stream, DriverEvent event) override {
    return status(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0));
  }
  DriverStatus elapsed_ms(float* out, DriverEvent start, DriverEvent end) override {
    return status(cudaEventElapsedTime(out, as_event(start), as_event(end)));
  }

  DriverStatus copy(void* to, const void* from, size_t bytes, DriverStream stream) override {
    return status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)));
  }
  DriverStatus move(void* to, const void* from, size_t bytes, DriverStream stream) override {
    return status(move_on_gpu(to, from, bytes, moves_[stream], as_stream(stream)));
  }
  DriverStatus fill(void* to, std::byte value, size_t bytes, DriverStream stream) override {
    return status(cudaMemsetAsync(to, static_cast<int>(value), bytes, as_stream(stream)));
  }
  DriverStatus launch_host_func(DriverStream stream, void (*run)(void*),
                                void* argument) override {
    return status(cudaLaunchHostFunc(as_stream(stream), run, argument));
  }

  DriverStatus create_counter(std::atomic<uint32_t>** out) override {
    void* address = nullptr;
    const auto error = cudaHostAlloc(&address, sizeof(**out), cudaHostAllocDefault);
    if (error == cudaSuccess) *out = new (address) std::atomic<uint32_t>(0);
    return status(error);
  }
  DriverStatus destroy_counter(std::atomic<uint32_t>* counter) override {
    return status(cudaFreeHost(counter));
  }
  DriverStatus wait_counter(DriverStream stream, std::atomic<uint32_t>* counter,
                            uint32_t least) override {
    // The runtime has no such call; the driver has had this version since CUDA 11.7.
    static const auto wait = [] {
      void* function = nullptr;
      cudaDriverEntryPointQueryResult found{};
      (void)cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 11070,
                                             cudaEnableDefault, &found);
      return reinterpret_cast<decltype(&cuStreamWaitValue32)>(function);
    }();
    if (!wait) return status(cudaErrorNotSupported);
    // Host memory that CUDA allocated has one address for the host and the GPU. The driver's
    // codes are the runtime's.
    return status(
        static_cast<cudaError_t>(wait(as_stream(stream), reinterpret_cast<CUdeviceptr>(counter),
                                      least, CU_STREAM_WAIT_VALUE_GEQ)));
  }

  DriverStatus allocate(DriverMemory kind, void** out, size_t bytes) override {
    return status(kind == DriverMemory::kDevice
                      ? cudaMalloc(out, bytes)
                      : cudaHostAlloc(out, bytes, cudaHostAllocDefault));
  }
  DriverStatus free(DriverMemory kind, void* address) override {
    return status(kind == DriverMemory::kDevice ? cudaFree(address) : cudaFreeHost(address));
  }
  DriverStatus pin(void* address, size_t bytes) override {
    return status(cudaHostRegister(address, bytes, cudaHostRegisterDefault));
  }
  DriverStatus unpin(void* address) override { return status(cudaHostUnregister(address)); }

 private:
  const int gpu_;
  std::map<DriverStream, MoveProgress> moves_;
};

}  // namespace

std::shared_ptr<CudaDriver> make_cuda_driver(int gpu) {
  int count = 0;
  if (const auto error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    (void)cudaGetLastError();
    throw NoGpuError(std::string("no CUDA device can be used: ") + cudaGetErrorString(error) +
                     " (" + cudaGetErrorName(error) + ")");
  }
  if (gpu < 0 || gpu >= count) {
    throw UsageError("there is no cuda:" + std::to_string(gpu) + "; this machine has " +
                     std::to_string(count) + (count == 1 ? " GPU" : " GPUs"));
  }
  return std::make_shared<Driver>(gpu);
}

}  // namespace tidemark
