// A device: memory, three streams, and a clock.
//
// `cpu` computes on worker threads, `cuda` on a GPU, `sim:<profile>` computes nothing and keeps
// virtual time. All three are asynchronous: enqueueing returns at once, and results exist when
// the event is done.
//
// Threads: one issuing thread calls every method. Work runs on threads of the device's own.
//
// Failure: work that throws stops its stream. Nothing behind it runs, nor any work that waits
// for it, so data that it was to move are not overwritten. Until `resume()`, each enqueue,
// copy, wait and synchronize throws DeviceError with the cause, and does nothing else.
// `resume()` restarts streams, beginning with a new attempt at the failed work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"
#include "runtime/device/profile.h"
#include "runtime/device/stream.h"

namespace tidemark {

// Host memory is pinned in chunks of this size, counted from the beginning of a region; the
// last chunk may be shorter. A multiple of any page size.
inline constexpr Bytes kPinChunk{64 << 20};

// A range of memory, page-aligned. `data()` is null on devices without data.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual std::byte* data() const = 0;
  virtual Bytes size() const = 0;
  // Call before copies of [begin, begin + bytes): pins any unpinned host memory there, on the
  // issuing thread. Copies without prepare() are also correct. Does not throw: a failure is
  // reported by the copy. REQUIRES: the range is within the region.
  virtual void prepare(Bytes /*begin*/, Bytes /*bytes*/) {}
};

enum class MemoryKind : uint8_t { kDevice, kHost };

// When work ran, for telemetry and the cost model; reported once the work is done. Consecutive
// work on one stream with one tag is reported as one.
struct Completion {
  uint64_t tag = 0;
  StreamId stream = StreamId::kCompute;
  Nanos start{0};  // on the device's clock; excludes waiting for other streams
  Nanos end{0};
};

struct Work {
  // Called once, or again after a failure; `native_stream` is the cudaStream_t, null elsewhere.
  // Throws to report failure, and must then leave its outputs writable again. Destroyed on a
  // thread of the device, before the work counts as done: must not hold tensors.
  std::function<void(void* native_stream)> run;
  Nanos cost{0};     // expected duration; on the simulator, the actual one
  uint64_t tag = 0;  // reported in a Completion if not 0
  // CUDA: the launches of this code's last run; 0 before the first run, which may load the
  // code. enqueue() reads and sets it. Null: one launch of loaded code.
  std::atomic<int64_t>* launches = nullptr;
};

struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Bytes bytes{0};
  uint64_t tag = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;  // "cpu", "cuda:0", "sim:a100-80gb"
  virtual const DeviceProfile& profile() const = 0;
  // False: tensors have no data, work is not run, and reads of values return nothing.
  virtual bool has_data() const = 0;
  // False: the host, including host work, must not access memory from map(kDevice), only copy
  // it.
  virtual bool host_reads_device_memory() const { return true; }

  // Timing work costs the host or the device time.
  virtual bool timing_costs() const { return false; }

  // Reserves address space of exactly `size`; pages are taken when touched. Throws DeviceError.
  virtual std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) = 0;
  // Makes a region of the caller's host memory, and keeps that memory alive. Copies are as fast
  // as with map(kHost). REQUIRES: the memory begins on a page; the rest of its last page is
  // unused; no other region contains any of it; when the region is destroyed, no copy of it is
  // under way.
  virtual std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size);

  // Runs on the device.
  virtual Event enqueue(StreamId stream, Work work) = 0;
  // Runs work on the host in stream order, such as disk I/O. The work must not access device
  // memory that the host cannot read, nor enqueue.
  virtual Event enqueue_host(StreamId stream, Work work) = 0;
  // Copies across the link (kOffload, kReload) or within device memory (kCompute; may overlap).
  virtual Event copy(StreamId stream, const Copy& copy) = 0;
  // Sets device memory to one value.
  virtual Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) = 0;
  // Work enqueued on `waiter` from now on starts after all work named by the fence.
  virtual void wait(StreamId waiter, const Fence& fence) = 0;

  // Polling may never end where time is modelled: it passes as work is enqueued.
  virtual bool done(const Fence& fence) const = 0;
  // The host waits. Throws DeviceError if work has failed, now or since the last call.
  virtual void synchronize(const Fence& fence) = 0;
  virtual void synchronize_all() = 0;
  virtual void resume() = 0;

  // Time since the device was made: real, or virtual on the simulator.
  virtual Nanos now() const = 0;
  // As now(), but with work at its modelled duration. Equal to now() if only that is known. See
  // make_modelled_device().
  virtual Nanos modelled_now() const { return now(); }
  // Total time that `stream` has waited for other streams while it had work.
  virtual Nanos stalled(StreamId stream) const = 0;
  // Moves out the completions recorded since the last call. The buffer is bounded; excess
  // completions are dropped.
  virtual std::vector<Completion> take_completions() = 0;
};

struct CpuOptions {
  int threads = 0;  // for the compute stream; see compute_threads() in cpu/team.h
};
// Profile "host" prices its work until measurements arrive.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options = {});
std::unique_ptr<Device> make_sim_device(const DeviceProfile& profile);
// `real` with an added simulated clock for `profile`: modelled_now() is the same for the same
// calls on any device, whatever their real duration.
std::unique_ptr<Device> make_modelled_device(std::unique_ptr<Device> real,
                                             const DeviceProfile& profile);
// "cpu", "cuda", "cuda:<number>", "sim:<profile>". "sim:cuda" and "sim:cuda:<number>" simulate
// the GPU of this machine, with the workspaces of its kernels. Throws UsageError, which lists
// the available devices.
std::unique_ptr<Device> make_device(const std::string& name, const CpuOptions& options = {});
// The profile of the named device, without making the device. Throws as make_device().
DeviceProfile device_profile(const std::string& name);

// A GPU was requested but none can be used: no GPU, no driver, or a build without CUDA.
class NoGpuError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace tidemark
