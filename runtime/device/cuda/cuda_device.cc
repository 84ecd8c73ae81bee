#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/device/cuda/host_task.h"
#include "runtime/device/cuda/launches.h"
#include "runtime/device/cuda/stream_queue.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

// Which memory an address belongs to. Shared with the regions, which may outlive the device.
struct AddressMap {
  struct DeviceRange {
    const std::byte* begin;
    const std::byte* end;
  };
  std::vector<DeviceRange> device;
  std::list<HostMemory> host;
  // Memory of destroyed regions, to be unpinned once no host work is pending.
  std::list<HostMemory> leaving;

  bool is_device(const std::byte* address) const {
    return std::any_of(device.begin(), device.end(), [&](const DeviceRange& range) {
      return address >= range.begin && address < range.end;
    });
  }
  HostMemory* host_at(const std::byte* address) {
    for (HostMemory& memory : host) {
      if (memory.contains(address)) return &memory;
    }
    return nullptr;
  }
};

class DeviceRegion final : public MemoryRegion {
 public:
  DeviceRegion(std::shared_ptr<CudaDriver> driver, std::shared_ptr<AddressMap> map,
               const std::string& device_name, Bytes size)
      : driver_(std::move(driver)), map_(std::move(map)), size_(size) {
    TIDEMARK_CHECK(size >= Bytes(0), "a region of negative size");
    const auto bytes = static_cast<size_t>(std::max(size, Bytes(1)).count());
    void* address = nullptr;
    const DriverStatus status = driver_->allocate(DriverMemory::kDevice, &address, bytes);
    if (!status.ok()) {
      Bytes free{0};
      Bytes total{0};
      (void)driver_->memory_info(&free, &total);
      throw DeviceError("cannot allocate " + format_bytes(size) + " (" +
                        std::to_string(size.count()) + " bytes) of device memory on " +
                        device_name + ", which has " + format_bytes(free) + " free of " +
                        format_bytes(total) + ": " + driver_->describe(status));
    }
    data_ = static_cast<std::byte*>(address);
    map_->device.push_back({data_, data_ + bytes});
  }
  ~DeviceRegion() override {
    std::erase_if(map_->device, [&](const auto& range) { return range.begin == data_; });
    (void)driver_->free(DriverMemory::kDevice, data_);
  }
  DeviceRegion(const DeviceRegion&) = delete;
  DeviceRegion& operator=(const DeviceRegion&) = delete;

  std::byte* data() const override { return data_; }
  Bytes size() const override { return size_; }

 private:
  const std::shared_ptr<CudaDriver> driver_;
  const std::shared_ptr<AddressMap> map_;
  const Bytes size_;
  std::byte* data_ = nullptr;
};

class PinnedRegion final : public MemoryRegion {
 public:
  PinnedRegion(std::shared_ptr<CudaDriver> driver, std::shared_ptr<AddressMap> map,
               std::shared_ptr<HostTasks> tasks, const std::string& device_name,
               std::shared_ptr<std::byte> memory, Bytes size, Bytes chunk)
      : driver_(std::move(driver)),
        map_(std::move(map)),
        tasks_(std::move(tasks)),
        memory_(map_->host.emplace(map_->host.end(), driver_, device_name, std::move(memory),
                                   size, chunk)) {}
  // Host work may fail and hold its stream, and CUDA might wait for that stream in order to
  // unpin. Memory is therefore unpinned only once no host work is pending; see prepare().
  ~PinnedRegion() override {
    map_->leaving.splice(map_->leaving.end(), map_->host, memory_);
    if (tasks_->none_pending()) map_->leaving.clear();
  }
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;

  std::byte* data() const override { return memory_->data(); }
  Bytes size() const override { return memory_->size(); }
  // Does nothing while a stream is held: CUDA might wait for that stream.
  void prepare(Bytes begin, Bytes bytes) override {
    if (!tasks_->progress.failed() && driver_->use().ok()) memory_->prepare(begin, bytes);
  }

 private:
  const std::shared_ptr<CudaDriver> driver_;
  const std::shared_ptr<AddressMap> map_;
  const std::shared_ptr<HostTasks> tasks_;
  const std::list<HostMemory>::iterator memory_;
};

// Pinned memory through which one stream copies pageable memory. The stream's work runs in
// order, so one buffer suffices.
class Staging {
 public:
  Staging(std::shared_ptr<CudaDriver> driver, const std::string& device_name, Bytes size)
      : driver_(std::move(driver)), size_(size) {
    void* address = nullptr;
    const DriverStatus status =
        driver_->allocate(DriverMemory::kPinned, &address, static_cast<size_t>(size.count()));
    if (!status.ok()) {
      throw DeviceError("cannot allocate " + format_bytes(size) + " (" +
                        std::to_string(size.count()) +
                        " bytes) of pinned host memory for copies of " + device_name + ": " +
                        driver_->describe(status));
    }
    data_ = static_cast<std::byte*>(address);
  }
  ~Staging() { (void)driver_->free(DriverMemory::kPinned, data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }

 private:
  const std::shared_ptr<CudaDriver> driver_;
  const Bytes size_;
  std::byte* data_ = nullptr;
};

// Ranges that overlap at a distance below this are moved by a kernel. Others are moved by
// copies of as many bytes as the distance, each of which takes longer than it takes to issue.
constexpr int64_t kLeastPieceOfMove = 4 << 20;

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<CudaDriver> driver, std::string name, DeviceProfile profile,
             const CudaDeviceOptions& options)
      : driver_(std::move(driver)),
        name_(std::move(name)),
        profile_(std::move(profile)),
        options_(options),
        tasks_(std::make_shared<HostTasks>(name_)),
        addresses_(std::make_shared<AddressMap>()),
        clock_(*driver_) {
    check_driver(*driver_, driver_->use(), "cudaSetDevice");
    for (StreamId stream : kAllStreams) {
      queues_[index(stream)] = std::make_unique<StreamQueue>(*driver_, clock_, stream);
    }
    clock_.tie(queue(StreamId::kCompute).native());
    kernels_.before_loading = [this] { wait_for_host_work(); };
  }

  ~CudaDevice() override {
    tasks_->progress.shut_down();
    (void)driver_->use();
    for (const auto& queue : queues_) {
      const DriverStatus status = driver_->synchronize_stream(queue->native());
      if (!status.ok() && status != kDriverUnloading) {
        log().debug("{}: {} when it was closed", name_, driver_->describe(status));
      }
    }
    for (const auto& worker : workers_) {
      if (worker) worker->stop();
    }
    addresses_->leaving.clear();
  }

  const std::string& name() const override { return name_; }
  const DeviceProfile& profile() const override { return profile_; }
  bool has_data() const override { return true; }
  bool host_reads_device_memory() const override { return false; }
  bool timing_costs() const override { return true; }

  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    check_driver(*driver_, driver_->use(), "cudaSetDevice");
    if (kind == MemoryKind::kDevice) {
      return std::make_unique<DeviceRegion>(driver_, addresses_, name_, size);
    }
    return host_region(
        map_huge_pages(size, driver_->host_node(), " of host memory for " + name_), size);
  }
  std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size) override {
    check_driver(*driver_, driver_->use(), "cudaSetDevice");
    return host_region(std::move(memory), size);
  }

  Event enqueue(StreamId stream, Work work) override {
    // Relaxed: orders nothing else. Two threads may both be the first: then both wait.
    const int64_t expected = work.launches ? work.launches->load(std::memory_order_relaxed) : 1;
    return issue(stream, work.tag, "kernel", expected, [&](StreamQueue& to) {
      to.count_commands(1);  // also if the work throws after its first launch
      kernels_.launches = 0;
      {
        const Reporting reporting(kernels_);
        work.run(to.native());
      }
      const int64_t launches = std::max<int64_t>(1, kernels_.launches);
      to.count_commands(launches - 1);
      check_driver(*driver_, driver_->last_error(), "a launch");
      if (work.launches) work.launches->store(launches, std::memory_order_relaxed);
    });
  }

  Event enqueue_host(StreamId stream, Work work) override {
    return issue(stream, work.tag, "host work", 2,
                 [&](StreamQueue& to) { launch(to, stream, std::move(work.run)); });
  }

  Event copy(StreamId stream, const Copy& copy) override {
    const int64_t commands = overlaps(copy) ? commands_of_move(copy) : 1;
    return issue(stream, copy.tag, "copy", commands, [&](StreamQueue& to) {
      if (copy.bytes == Bytes(0)) return;  // the addresses may be null
      if (overlaps(copy)) {
        move(to, stream, copy);
      } else {
        copy_pieces(to, stream, copy);
      }
    });
  }

  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    return issue(stream, 0, "fill", 1, [&](StreamQueue& queue) {
      if (bytes == Bytes(0)) return;
      TIDEMARK_CHECK(addresses_->is_device(to), "a fill outside device memory");
      check_driver(*driver_,
                   driver_->fill(to, value, static_cast<size_t>(bytes.count()), queue.native()),
                   "cudaMemsetAsync");
      queue.count_commands(1);
    });
  }

  void wait(StreamId waiter, const Fence& fence) override {
    tasks_->progress.check();
    check_enqueued(fence);
    for (StreamId stream : kAllStreams) {
      if (stream != waiter) fences_[index(waiter)].include({stream, fence[stream]});
    }
  }

  bool done(const Fence& fence) const override {
    for (StreamId stream : kAllStreams) {
      if (!reached(stream, fence[stream])) return false;
    }
    return true;
  }

  void synchronize(const Fence& fence) override {
    check_enqueued(fence);
    host_wait(fence);
  }
  void synchronize_all() override { host_wait(everything()); }

  // Work enqueued before runs first, including work whose issuing was cut short.
  void resume() override {
    try {
      tasks_->progress.check();
    } catch (const DeviceError&) {
      refused_ = true;
    }
    if (!std::exchange(refused_, false)) return;
    tasks_->progress.resume();
    try {
      drain();
    } catch (const DeviceError&) {
      refused_ = true;  // failed again; the next call reports it
    }
  }

  Nanos now() const override { return clock_.now(); }
  Nanos stalled(StreamId stream) const override {
    (void)queue(stream).look();
    return queue(stream).stalled();
  }
  std::vector<Completion> take_completions() override {
    std::vector<Completion> completions;
    for (const auto& queue : queues_) {
      (void)queue->look();
      queue->take_completions(completions);
    }
    return completions;
  }

 private:
  static size_t index(StreamId stream) { return static_cast<size_t>(stream); }
  StreamQueue& queue(StreamId stream) const { return *queues_[index(stream)]; }

  std::unique_ptr<MemoryRegion> host_region(std::shared_ptr<std::byte> memory, Bytes size) {
    return std::make_unique<PinnedRegion>(driver_, addresses_, tasks_, name_, std::move(memory),
                                          size, options_.pin_chunk);
  }

  void check_enqueued(const Fence& fence) const {
    for (StreamId stream : kAllStreams) {
      TIDEMARK_CHECK(fence[stream] <= queue(stream).issued(),
                     "a wait for work that is not enqueued");
    }
  }
  Fence everything() const {
    Fence fence;
    for (StreamId stream : kAllStreams) fence.include({stream, queue(stream).issued()});
    return fence;
  }

  // Does not throw: a lost GPU has completed nothing more.
  bool reached(StreamId stream, Ticket ticket) const {
    StreamQueue& queue = this->queue(stream);
    if (ticket <= queue.completed()) return true;
    if (!queue.look().ok()) return false;
    if (ticket <= queue.completed()) return true;
    try {
      if (driver_->query(queue.event_for(ticket)) == kDriverNotReady) return false;
    } catch (const DeviceError&) {
      return false;
    }
    return queue.look().ok() && ticket <= queue.completed();
  }

  // Does not wait inside CUDA while host work is pending: that work may fail and hold the
  // stream.
  void host_wait(const Fence& fence) {
    try {
      tasks_->progress.check();
      for (StreamId stream : kAllStreams) {
        if (!reached(stream, fence[stream])) wait_for(queue(stream).event_for(fence[stream]));
      }
      for (StreamId stream : kAllStreams) {
        check_driver(*driver_, queue(stream).look(), "cudaEventQuery");
      }
      tasks_->progress.check();
      if (tasks_->none_pending()) addresses_->leaving.clear();
    } catch (const DeviceError&) {
      refused_ = true;
      throw;
    }
  }

  void wait_for(DriverEvent event) {
    while (!tasks_->none_pending()) {
      const DriverStatus status = driver_->query(event);
      if (status != kDriverNotReady) return check_driver(*driver_, status, "cudaEventQuery");
      tasks_->progress.check();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    check_driver(*driver_, driver_->synchronize_event(event), "cudaEventSynchronize");
  }

  // Waits for all commands in the streams, with or without a ticket.
  void drain() {
    tasks_->progress.check();
    for (const auto& queue : queues_) {
      if (queue->commands_in_flight() > 0) wait_for(queue->event_at_end());
    }
    for (const auto& queue : queues_) {
      check_driver(*driver_, queue->look(), "cudaEventQuery");
    }
    tasks_->progress.check();
  }

  // Outside CUDA: host work may fail and hold its stream.
  void wait_for_host_work() {
    while (!tasks_->none_pending()) {
      tasks_->progress.check();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // Waits until the stream's queue has space for `commands` more; 0: for any number.
  void make_space(StreamQueue& queue, int64_t commands) {
    const Ticket limit = options_.tickets_in_flight;
    if (queue.issued() - queue.completed() >= limit) {
      check_driver(*driver_, queue.look(), "cudaEventQuery");
      // Waits until the queue is half empty: waiting for each completion would cost more than
      // the work.
      if (queue.issued() - queue.completed() >= limit) {
        wait_for(queue.event_for(queue.issued() - limit / 2));
        check_driver(*driver_, queue.look(), "cudaEventQuery");
      }
    }
    if (commands == 0) return wait_for_host_work();
    make_space_beside_host_work(queue, commands);
  }
  void make_space_beside_host_work(StreamQueue& queue, int64_t commands = 1) {
    const int64_t limit = options_.commands_beside_host_work;
    if (queue.commands_in_flight() + commands <= limit) return;
    check_driver(*driver_, queue.look(), "cudaEventQuery");
    if (queue.commands_in_flight() + commands <= limit) return;
    // Relaxed: only this thread increments it.
    if (tasks_->pending.load(std::memory_order_relaxed) == 0) return;
    if (commands > limit) return wait_for_host_work();
    wait_for(queue.event_at_end());
    check_driver(*driver_, queue.look(), "cudaEventQuery");
  }

  // Everything is enqueued through this function. `count` is the number of commands, or 0 if
  // they may be many or need idle streams. If it fails, the commands issued so far finish
  // before anything else can be enqueued, so half-issued work never runs beside later work.
  Event issue(StreamId stream, uint64_t tag, const char* what, int64_t count,
              const std::function<void(StreamQueue&)>& commands) {
    StreamQueue& to = queue(stream);
    std::optional<StreamQueue::Begun> begun;
    std::string cause;
    try {
      tasks_->progress.check();
      if (to.marks() >= kMarksBeforeALook) {
        check_driver(*driver_, to.look(), "cudaEventQuery");
      }
      make_space(to, count);
      check_driver(*driver_, driver_->use(), "cudaSetDevice");
      begun = to.begin(tag, events_to_wait_for(stream));
      commands(to);
      const Event event = to.end(*begun);
      fences_[index(stream)] = Fence();
      return event;
    } catch (const std::exception& error) {
      cause = error.what();
    } catch (...) {
      cause = "unknown exception";
    }
    if (begun) to.abandon(*begun);
    (void)driver_->last_error();
    refused_ = true;
    tasks_->progress.check();
    try {
      drain();
    } catch (const DeviceError&) {
      // Host work failed and holds the stream; resume() will wait for the rest.
    }
    throw DeviceError(cause + " (" + name_ + ", " + what + " on the " +
                      std::string(to_string(stream)) + " stream)");
  }

  const std::vector<DriverEvent>& events_to_wait_for(StreamId waiter) {
    events_.clear();
    const Fence& fence = fences_[index(waiter)];
    for (StreamId stream : kAllStreams) {
      if (!reached(stream, fence[stream])) {
        events_.push_back(queue(stream).event_for(fence[stream]));
      }
    }
    return events_;
  }

  void launch(StreamQueue& to, StreamId stream, std::function<void(void*)> run) {
    // What cannot be made beside host work is made before the first.
    if (!workers_.back()) {
      driver_->warm_up();
      for (StreamId each : kAllStreams) {
        workers_[index(each)] = std::make_unique<HostWorker>(driver_, tasks_, each);
      }
    }
    HostWorker& worker = *workers_[index(stream)];
    HostTask* const task =
        to.keep(std::make_unique<HostTask>(HostTask{worker, std::move(run)}));
    to.count_commands(2);
    worker.launch(*task, to.native());
  }

  static bool overlaps(const Copy& copy) {
    return copy.to < copy.from + copy.bytes.count() && copy.from < copy.to + copy.bytes.count();
  }

  // At most.
  static int64_t commands_of_move(const Copy& copy) {
    const int64_t distance = std::abs(copy.to - copy.from);
    const int64_t part =
        distance < kLeastPieceOfMove ? static_cast<int64_t>(kMaxMove) : distance;
    return 2 + copy.bytes.count() / part;
  }

  // Like memmove(): the ranges may overlap. All or nothing is issued: a move that was cut short
  // could not be tried again.
  void move(StreamQueue& to, StreamId stream, const Copy& copy) {
    const int64_t bytes = copy.bytes.count();
    if (copy.to == copy.from) return;
    if (!addresses_->is_device(copy.to)) {
      return launch(to, stream, [copy](void*) {
        std::memmove(copy.to, copy.from, static_cast<size_t>(copy.bytes.count()));
      });
    }
    const int64_t distance = std::abs(copy.to - copy.from);
    const bool upwards = copy.to > copy.from;
    if (distance < kLeastPieceOfMove) {
      constexpr int64_t kWord = 16;
      TIDEMARK_CHECK(reinterpret_cast<uintptr_t>(copy.to) % kWord == 0 &&
                         reinterpret_cast<uintptr_t>(copy.from) % kWord == 0,
                     "moves within the arena are aligned");
      // The bytes beyond the last whole word go first when moving up, last when moving down.
      const int64_t whole = bytes / kWord * kWord;
      auto rest = [&] {
        if (whole < bytes) {
          copy_part(to, copy.to + whole, copy.from + whole, bytes - whole);
        }
      };
      if (upwards) rest();
      in_parts(whole, static_cast<int64_t>(kMaxMove), upwards, [&](int64_t at, int64_t part) {
        check_driver(
            *driver_,
            driver_->move(copy.to + at, copy.from + at, static_cast<size_t>(part), to.native()),
            "move_on_gpu");
        to.count_commands(1);
      });
      if (!upwards) rest();
      return;
    }
    in_parts(bytes, distance, upwards, [&](int64_t at, int64_t part) {
      copy_part(to, copy.to + at, copy.from + at, part);
    });
  }

  // [0, bytes) in parts of at most `most`, the highest first if `downwards`.
  template <class F>
  static void in_parts(int64_t bytes, int64_t most, bool downwards, const F& f) {
    for (int64_t done = 0; done < bytes; done += most) {
      const int64_t part = std::min(most, bytes - done);
      f(downwards ? bytes - done - part : done, part);
    }
  }

  void copy_part(StreamQueue& to, std::byte* target, const std::byte* source, int64_t bytes) {
    check_driver(*driver_,
                 driver_->copy(target, source, static_cast<size_t>(bytes), to.native()),
                 "cudaMemcpyAsync");
    to.count_commands(1);
  }

  // How many bytes can be copied from `address` in one piece, and whether CUDA can copy them
  // directly.
  struct Side {
    bool device = false;
    bool direct = false;
    int64_t bytes = 0;
  };
  Side side_at(const std::byte* address, int64_t bytes) const {
    if (addresses_->is_device(address)) return {true, true, bytes};
    if (HostMemory* const memory = addresses_->host_at(address)) {
      const HostMemory::Piece piece = memory->piece_at(address);
      return {false, piece.pinned, std::min(bytes, piece.bytes.count())};
    }
    return {false, false, bytes};
  }

  void copy_pieces(StreamQueue& to, StreamId stream, const Copy& copy) {
    const int64_t bytes = copy.bytes.count();
    if (!addresses_->is_device(copy.to) && !addresses_->is_device(copy.from)) {
      return launch(to, stream, [copy](void*) {
        std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes.count()));
      });
    }
    for (int64_t done = 0; done < bytes;) {
      std::byte* const target = copy.to + done;
      const std::byte* const source = copy.from + done;
      make_space_beside_host_work(to);
      const Side a = side_at(target, bytes - done);
      const Side b = side_at(source, bytes - done);
      int64_t part = std::min(a.bytes, b.bytes);
      if (a.direct && b.direct) {
        copy_part(to, target, source, part);
      } else {
        const Staging& staging = staging_of(stream);
        part = std::min(part, staging.size().count());
        if (a.device) {
          launch(to, stream, [source, part, half = staging.data()](void*) {
            std::memcpy(half, source, static_cast<size_t>(part));
          });
          copy_part(to, target, staging.data(), part);
        } else {
          copy_part(to, staging.data(), source, part);
          launch(to, stream, [target, part, half = staging.data()](void*) {
            std::memcpy(target, half, static_cast<size_t>(part));
          });
        }
      }
      done += part;
    }
  }

  const Staging& staging_of(StreamId stream) {
    std::unique_ptr<Staging>& staging = staging_[index(stream)];
    if (!staging) staging = std::make_unique<Staging>(driver_, name_, options_.staging);
    return *staging;
  }

  static constexpr size_t kMarksBeforeALook = 64;

  const std::shared_ptr<CudaDriver> driver_;
  const std::string name_;
  const DeviceProfile profile_;
  const CudaDeviceOptions options_;
  const std::shared_ptr<HostTasks> tasks_;
  const std::shared_ptr<AddressMap> addresses_;
  GpuClock clock_;
  std::array<std::unique_ptr<Staging>, kStreamCount> staging_;
  // The fence that each stream's next work waits for.
  std::array<Fence, kStreamCount> fences_{};
  std::vector<DriverEvent> events_;
  LaunchReport kernels_;
  std::array<std::unique_ptr<HostWorker>, kStreamCount> workers_;
  // True after a throw, until resume().
  bool refused_ = false;
  std::array<std::unique_ptr<StreamQueue>, kStreamCount> queues_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device_on(std::shared_ptr<CudaDriver> driver,
                                            const std::string& name,
                                            const DeviceProfile& profile,
                                            const CudaDeviceOptions& options) {
  return std::make_unique<CudaDevice>(std::move(driver), name, profile, options);
}

}  // namespace tidemark
