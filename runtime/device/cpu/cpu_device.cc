#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/cpu/progress.h"
#include "runtime/device/cpu/team.h"
#include "runtime/device/cpu/worker.h"
#include "runtime/device/device.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

// Copies of at least this size are split among threads. Below, waking the threads costs as much
// as the copy.
constexpr int64_t kParallelCopyBytes = 4 << 20;

// Moves bytes within the arena. Only the compute worker calls it: the one thread that enters
// OpenMP.
void move_bytes(const Copy& copy, int threads) {
  const int64_t bytes = copy.bytes.count();
  const bool apart = copy.to + bytes <= copy.from || copy.from + bytes <= copy.to;
  if (!apart || threads == 1 || bytes < kParallelCopyBytes) {
    std::memmove(copy.to, copy.from, static_cast<size_t>(bytes));
    return;
  }
  constexpr int64_t kPiece = 1 << 20;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < bytes; at += kPiece) {
    std::memcpy(copy.to + at, copy.from + at,
                static_cast<size_t>(std::min(kPiece, bytes - at)));
  }
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : profile_(load_profile("host")), progress_(name_) {
    profile_.memory = Bytes(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
    threads_ = compute_threads(options.threads);
    for (StreamId stream : kAllStreams) {
      std::function<void()> at_start = [] {};
      if (stream == StreamId::kCompute) {
        at_start = [threads = threads_] { use_threads(threads); };
      }
      worker(stream) =
          std::make_unique<CpuWorker>(stream, progress_, clock_, std::move(at_start));
    }
  }
  ~CpuDevice() override { progress_.shut_down(); }

  const std::string& name() const override { return name_; }
  const DeviceProfile& profile() const override { return profile_; }
  bool has_data() const override { return true; }

  std::unique_ptr<MemoryRegion> map(MemoryKind, Bytes size) override {
    TIDEMARK_CHECK(size >= Bytes(0), "a region of negative size");
    return adopt(map_pages(size), size);
  }

  Event enqueue(StreamId stream, Work work) override {
    return push(stream, std::move(work.run), work.tag);
  }
  Event enqueue_host(StreamId stream, Work work) override {
    return push(stream, std::move(work.run), work.tag);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    return push(
        stream,
        [copy, threads = stream == StreamId::kCompute ? threads_ : 0](void*) {
          if (copy.bytes == Bytes(0)) return;  // the addresses may be null
          if (threads > 0) {
            move_bytes(copy, threads);
          } else {
            // Uses one thread, because the copy streams share the cores with the kernels.
            std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes.count()));
          }
        },
        copy.tag);
  }
  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    return push(
        stream, [=](void*) { std::fill_n(to, static_cast<size_t>(bytes.count()), value); }, 0);
  }

  void wait(StreamId waiter, const Fence& fence) override {
    progress_.check();
    check_enqueued(fence);
    for (StreamId stream : kAllStreams) {
      if (stream != waiter) fences_[index(waiter)].include({stream, fence[stream]});
    }
  }
  bool done(const Fence& fence) const override { return progress_.done(fence); }
  void synchronize(const Fence& fence) override {
    check_enqueued(fence);
    progress_.host_wait(fence);
  }
  void synchronize_all() override { progress_.host_wait(everything()); }
  void resume() override { progress_.resume(); }

  Nanos now() const override { return clock_.now(); }
  Nanos stalled(StreamId stream) const override { return workers_[index(stream)]->stalled(); }
  std::vector<Completion> take_completions() override {
    std::vector<Completion> completions;
    for (auto& worker : workers_) worker->take_completions(completions);
    return completions;
  }

 private:
  static size_t index(StreamId stream) { return static_cast<size_t>(stream); }
  std::unique_ptr<CpuWorker>& worker(StreamId stream) { return workers_[index(stream)]; }

  void check_enqueued(const Fence& fence) const {
    for (StreamId stream : kAllStreams) {
      TIDEMARK_CHECK(fence[stream] <= issued_[index(stream)],
                     "a wait for work that is not enqueued");
    }
  }
  Fence everything() const {
    Fence fence;
    for (StreamId stream : kAllStreams) fence.include({stream, issued_[index(stream)]});
    return fence;
  }

  Event push(StreamId stream, std::function<void(void*)> run, uint64_t tag) {
    progress_.check();
    Ticket& issued = issued_[index(stream)];
    if (issued - progress_.completed(stream) >= kMaxInFlight) {
      // Waits until the queue is half empty: waking up for each completion would cost more than
      // the work.
      progress_.host_wait(Event{stream, issued - kMaxInFlight / 2});
    }
    Fence& fence = fences_[index(stream)];
    worker(stream)->push(std::move(run), fence, tag);
    fence = Fence();
    return {stream, ++issued};
  }

  const std::string name_ = "cpu";
  DeviceProfile profile_;
  int threads_ = 1;
  CpuClock clock_;
  Progress progress_;
  // Used by the issuing thread only: the last ticket of each stream, and what the stream's next
  // work waits for.
  std::array<Ticket, kStreamCount> issued_{};
  std::array<Fence, kStreamCount> fences_{};
  std::array<std::unique_ptr<CpuWorker>, kStreamCount> workers_;  // last: they use the above
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace tidemark
