// A device: memory, three streams, and a clock.
//
// `cpu` computes on worker threads, `cuda` on a GPU, `sim:<profile>` computes nothing and keeps
// virtual time. All three are asynchronous: enqueueing returns at once, and results exist when
// the event is done.
//
// Threads: one issuing thread calls every method. Work runs on threads of the device's own.
//
// Failure: work that throws holds its stream where it is: nothing behind it, nor anything that
// waits for it, runs, so no data that it was to move is overwritten. From then on until
// `resume()`, each enqueue, copy, wait and synchronize throws DeviceError with the cause, and
// does nothing else. `resume()` lets streams go on, beginning with another try of the work that
// failed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"
#include "runtime/device/profile.h"
#include "runtime/device/stream.h"

namespace tidemark {

// Host memory is pinned in chunks of so much, counted from where a region begins; the last is
// what is left of it. A multiple of any page size.
inline constexpr Bytes kPinChunk{64 << 20};

// A range of memory, page-aligned. `data()` is null on devices without data.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual std::byte* data() const = 0;
  virtual Bytes size() const = 0;
  // Before copies of [begin, begin + bytes): pins what of host memory is not pinned yet, at the
  // cost of the issuing thread's time. Copies of what nobody prepared are right too. Does not
  // throw: what failed, the copy says. REQUIRES: the range is within the region.
  virtual void prepare(Bytes /*begin*/, Bytes /*bytes*/) {}
};

enum class MemoryKind : uint8_t { kDevice, kHost };

// What ran when, for telemetry and the cost model; reported once the work is done. Work in a
// row on one stream with one tag is reported as one.
struct Completion {
  uint64_t tag = 0;
  StreamId stream = StreamId::kCompute;
  Nanos start{0};  // on the device's clock; waiting for other streams is not in it
  Nanos end{0};
};

struct Work {
  // Called once, or again after a failure; `native_stream` is the cudaStream_t, null elsewhere.
  // Throws to report failure; must then leave its outputs writable again.
  // Destroyed on a thread of the device's, before the work counts as done: hold no tensors.
  std::function<void(void* native_stream)> run;
  Nanos cost{0};     // expected duration; what it takes on the simulator
  uint64_t tag = 0;  // reported in a Completion if not 0
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
  // False: tensors have no data, work is not run, reads of values give nothing.
  virtual bool has_data() const = 0;
  // False: the host must not touch what map(kDevice) gives, in host work neither; it copies.
  virtual bool host_reads_device_memory() const { return true; }

  // Reserves address space of exactly `size`; pages are taken when touched. Throws DeviceError.
  virtual std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) = 0;
  // Host memory of the caller's own as a region, which holds it: copies of it are as fast as of
  // what map(kHost) gives. REQUIRES: it begins on a page, what is left of its last page is
  // nobody's, and no other region has any of it; when the region goes, no copy of it is under
  // way.
  virtual std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size);

  // Runs on the device.
  virtual Event enqueue(StreamId stream, Work work) = 0;
  // Runs on the host in stream order, such as disk I/O. It must not touch device memory that
  // the host cannot read, nor enqueue.
  virtual Event enqueue_host(StreamId stream, Work work) = 0;
  // Copies across the link (kOffload, kReload) or within device memory (kCompute; may overlap).
  virtual Event copy(StreamId stream, const Copy& copy) = 0;
  // Sets device memory to one value.
  virtual Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) = 0;
  // Work enqueued on `waiter` from now on starts after everything that the fence names.
  virtual void wait(StreamId waiter, const Fence& fence) = 0;

  virtual bool done(const Fence& fence) const = 0;
  // The host waits. Throws DeviceError if work failed, now or since the last call.
  virtual void synchronize(const Fence& fence) = 0;
  virtual void synchronize_all() = 0;
  virtual void resume() = 0;

  // Time since the device was made: real, or virtual on the simulator.
  virtual Nanos now() const = 0;
  // The same, with work that takes what it is priced at; where only that is known, it is what
  // now() says. See make_modelled_device().
  virtual Nanos modelled_now() const { return now(); }
  // Total time that `stream` has stood still for other streams with work of its own to do.
  virtual Nanos stalled(StreamId stream) const = 0;
  // Moves out the completions that have been recorded since the last call; the buffer is
  // bounded, and what did not fit is dropped.
  virtual std::vector<Completion> take_completions() = 0;
};

struct CpuOptions {
  int threads = 0;  // of the compute stream; see compute_threads() in cpu/team.h
};
// Profile "host" prices its work until measurements arrive.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options = {});
std::unique_ptr<Device> make_sim_device(const DeviceProfile& profile);
// `real`, and beside it a clock as the simulator of `profile` keeps it: modelled_now() is the
// same for the same calls on any device, however long they take.
std::unique_ptr<Device> make_modelled_device(std::unique_ptr<Device> real,
                                             const DeviceProfile& profile);
// "cpu", "cuda", "cuda:<number>", "sim:<profile>". "sim:cuda" and "sim:cuda:<number>" simulate
// the GPU of this machine, with the workspaces of its kernels. Throws UsageError that says what
// there is.
std::unique_ptr<Device> make_device(const std::string& name, const CpuOptions& options = {});
// The profile of the device of that name, which is not made. Throws as make_device().
DeviceProfile device_profile(const std::string& name);

// A GPU was asked for where none can be used: there is none, or no driver, or this build has no
// CUDA.
class NoGpuError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace tidemark
