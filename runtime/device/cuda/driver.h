// The CUDA runtime calls used by the CUDA device, as an interface. driver_cuda.cc makes the
// real calls; tests/support/fake_cuda_driver.h uses host memory, delays and reorders, and fails
// on demand. The interface contains no CUDA type, so the device's own logic can be built and
// tested anywhere.
//
// Meanings are CUDA's. Calls return a status; none throws. Threads: the issuing thread, except
// that functions given to launch_host_func() run on the driver's threads and call nothing here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/units.h"

namespace tidemark {

using DriverStream = void*;  // cudaStream_t
using DriverEvent = void*;   // cudaEvent_t

// A cudaError_t.
struct DriverStatus {
  int code = 0;
  constexpr bool ok() const { return code == 0; }
  constexpr bool operator==(const DriverStatus&) const = default;
};
inline constexpr DriverStatus kDriverOk{0};
inline constexpr DriverStatus kDriverInvalidValue{1};
inline constexpr DriverStatus kDriverOutOfMemory{2};
inline constexpr DriverStatus kDriverUnloading{4};  // the process is ending
inline constexpr DriverStatus kDriverNotReady{600};
inline constexpr DriverStatus kDriverLaunchFailure{719};

// A GPU's own properties.
struct GpuProperties {
  std::string name;    // "NVIDIA H100 80GB HBM3"
  int capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  double clock_hz = 0;         // of the multiprocessors, maximum
  double memory_clock_hz = 0;  // data moves on both edges
  int memory_bus_bits = 0;
  Bytes memory{0};
};

// The most that CudaDriver::move() moves.
inline constexpr size_t kMaxMove = size_t{64} << 20;

enum class DriverMemory : uint8_t { kDevice, kPinned };

class CudaDriver {
 public:
  virtual ~CudaDriver() = default;

  // "out of memory (cudaErrorMemoryAllocation)".
  virtual std::string describe(DriverStatus status) const = 0;

  // Makes the GPU current on this thread. The calls below are for that GPU.
  virtual DriverStatus use() = 0;
  virtual DriverStatus properties(GpuProperties* out) = 0;
  // The NUMA node of host memory that is nearest to the GPU; -1: unknown, or there is only one.
  virtual int host_node() = 0;
  virtual DriverStatus memory_info(Bytes* free, Bytes* total) = 0;
  // The error of the last launch on this thread; resets it.
  virtual DriverStatus last_error() = 0;
  // Makes what CUDA may make only while its streams are idle: the libraries' handles, and the
  // code of move().
  virtual void warm_up() = 0;

  virtual DriverStatus create_stream(DriverStream* out) = 0;  // non-blocking
  virtual DriverStatus destroy_stream(DriverStream stream) = 0;
  virtual DriverStatus synchronize_stream(DriverStream stream) = 0;

  virtual DriverStatus create_event(DriverEvent* out, bool timed) = 0;
  virtual DriverStatus destroy_event(DriverEvent event) = 0;
  virtual DriverStatus record(DriverEvent event, DriverStream stream) = 0;
  // kDriverNotReady while the recorded work is unfinished.
  virtual DriverStatus query(DriverEvent event) = 0;
  virtual DriverStatus synchronize_event(DriverEvent event) = 0;
  virtual DriverStatus wait(DriverStream stream, DriverEvent event) = 0;
  // REQUIRES: both events are timed and done.
  virtual DriverStatus elapsed_ms(float* out, DriverEvent start, DriverEvent end) = 0;

  // Either side may be device or pinned host memory; the ranges do not overlap.
  virtual DriverStatus copy(void* to, const void* from, size_t bytes, DriverStream stream) = 0;
  // Within device memory, as memmove(), in one launch. REQUIRES: 16-byte alignment, and a
  // multiple of 16 bytes, at most kMaxMove.
  virtual DriverStatus move(void* to, const void* from, size_t bytes, DriverStream stream) = 0;
  // Within device memory.
  virtual DriverStatus fill(void* to, std::byte value, size_t bytes, DriverStream stream) = 0;
  // CUDA may run such functions one at a time, whatever their streams: they must be short.
  virtual DriverStatus launch_host_func(DriverStream stream, void (*run)(void*),
                                        void* argument) = 0;
  // A number, 0 at first, that the host raises and streams wait for.
  virtual DriverStatus create_counter(std::atomic<uint32_t>** out) = 0;
  virtual DriverStatus destroy_counter(std::atomic<uint32_t>* counter) = 0;
  // The stream waits until the counter has reached `least`, by less than 2^31.
  virtual DriverStatus wait_counter(DriverStream stream, std::atomic<uint32_t>* counter,
                                    uint32_t least) = 0;

  virtual DriverStatus allocate(DriverMemory kind, void** out, size_t bytes) = 0;
  virtual DriverStatus free(DriverMemory kind, void* address) = 0;
  // Pins host memory that is mapped already.
  virtual DriverStatus pin(void* address, size_t bytes) = 0;
  virtual DriverStatus unpin(void* address) = 0;
};

// The driver for GPU number `gpu`. Throws NoGpuError (runtime/device/device.h) if no GPU can be
// used, with the reason: no driver, a driver too old for this build, no GPU; UsageError if
// there is no GPU of that number.
std::shared_ptr<CudaDriver> make_cuda_driver(int gpu);

}  // namespace tidemark
