// The simulator: the same runtime in virtual time, on tensors without data.
//
// Nothing runs. Enqueueing works out at once when the work would start and end:
//
//   start = max(issue clock, end of the stream's last work, ends of what it waits for)
//
// The issue clock advances by the launch cost of each enqueue, by the time that pinning host
// memory takes, and to the end of work that the host synchronizes with. It therefore lags or
// leads the streams as a real issuing thread would.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/core/busy_time.h"
#include "runtime/core/errors.h"
#include "runtime/device/device.h"
#include "runtime/device/sim/timeline.h"

namespace tidemark {
namespace {

class EmptyRegion : public MemoryRegion {
 public:
  explicit EmptyRegion(Bytes size) : size_(size) {}
  std::byte* data() const override { return nullptr; }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
};

// Pinning only takes time.
class HostRegion final : public EmptyRegion {
 public:
  HostRegion(Bytes size, double pin_bandwidth, std::shared_ptr<Nanos> issue_clock)
      : EmptyRegion(size), pin_bandwidth_(pin_bandwidth), now_(std::move(issue_clock)) {}

  void prepare(Bytes begin, Bytes bytes) override {
    TIDEMARK_CHECK(begin >= Bytes(0) && bytes >= Bytes(0) && begin <= size() - bytes,
                   "a range of another region");
    if (bytes == Bytes(0) || pin_bandwidth_ == 0) return;
    const int64_t first = begin.count() / kPinChunk.count();
    const int64_t last = ((begin + bytes).count() - 1) / kPinChunk.count();
    for (int64_t index = first; index <= last; ++index) pin(index);
  }

 private:
  void pin(int64_t index) {
    const auto chunk = static_cast<size_t>(index);
    if (chunk >= pinned_.size()) pinned_.resize(chunk + 1);
    if (pinned_[chunk]) return;
    pinned_[chunk] = true;
    const Bytes pinned = std::min(kPinChunk, size() - kPinChunk * index);
    *now_ += Nanos(std::llround(static_cast<double>(pinned.count()) / pin_bandwidth_ * 1e9));
  }

  const double pin_bandwidth_;
  const std::shared_ptr<Nanos> now_;
  std::vector<bool> pinned_;  // up to the last chunk reached: regions may exceed all memory
};

class SimDevice : public Device {
 public:
  explicit SimDevice(const DeviceProfile& profile)
      : profile_(profile), name_("sim:" + profile.name) {}

  const std::string& name() const override { return name_; }
  const DeviceProfile& profile() const override { return profile_; }
  bool has_data() const override { return false; }

  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    TIDEMARK_CHECK(size >= Bytes(0), "a region of negative size");
    if (kind == MemoryKind::kDevice) return std::make_unique<EmptyRegion>(size);
    return std::make_unique<HostRegion>(size, profile_.pin_bandwidth, issue_clock_);
  }
  std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte>, Bytes size) override {
    return map(MemoryKind::kHost, size);
  }

  Event enqueue(StreamId stream, Work work) override {
    const Nanos start = begin(stream);
    return finish(stream, start, start + std::max(work.cost, profile_.kernel_floor), work.tag);
  }
  Event enqueue_host(StreamId stream, Work work) override {
    const Nanos start = begin(stream);
    return finish(stream, start, start + work.cost, work.tag);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    const Nanos start = begin(stream);
    const auto bytes = static_cast<double>(copy.bytes.count());
    if (stream == StreamId::kCompute) {
      // A move reads and writes, like any other kernel.
      const double rate = profile_.memory_bandwidth * profile_.memory_efficiency;
      const Nanos cost(std::llround(2 * bytes / rate * 1e9));
      return finish(stream, start, start + std::max(cost, profile_.kernel_floor), copy.tag);
    }
    const bool offload = stream == StreamId::kOffload;
    BusyTime& own = offload ? offload_busy_ : reload_busy_;
    BusyTime& other = offload ? reload_busy_ : offload_busy_;
    own.forget_before(now_);
    other.forget_before(now_);
    const Nanos moving = start + profile_.transfer_latency;
    const Nanos end = other.finish(
        moving, bytes, offload ? profile_.offload_bandwidth : profile_.reload_bandwidth,
        offload ? profile_.duplex_offload_bandwidth : profile_.duplex_reload_bandwidth);
    own.add(moving, end);
    return finish(stream, start, end, copy.tag);
  }

  Event fill(StreamId stream, std::byte*, Bytes bytes, std::byte) override {
    const Nanos start = begin(stream);
    const double rate = profile_.memory_bandwidth * profile_.memory_efficiency;
    const Nanos cost(std::llround(static_cast<double>(bytes.count()) / rate * 1e9));
    return finish(stream, start, start + std::max(cost, profile_.kernel_floor), 0);
  }

  void wait(StreamId waiter, const Fence& fence) override {
    check_enqueued(fence);
    for (StreamId stream : kAllStreams) {
      if (stream == waiter) continue;
      Nanos& not_before = lane(waiter).not_before;
      not_before = std::max(not_before, lane(stream).timeline.end_of(fence[stream]));
    }
  }
  bool done(const Fence& fence) const override { return end_of(fence) <= now_; }
  void synchronize(const Fence& fence) override {
    check_enqueued(fence);
    now_ = std::max(now_, end_of(fence));
  }
  void synchronize_all() override {
    for (const Lane& each : lanes_) now_ = std::max(now_, each.timeline.free_at());
  }
  void resume() override {}

  Nanos now() const override { return now_; }
  Nanos stalled(StreamId stream) const override {
    return lanes_[static_cast<size_t>(stream)].stalled;
  }
  std::vector<Completion> take_completions() override {
    std::vector<Completion> done_ones;
    for (Lane& each : lanes_) {
      const auto first_to_come =
          std::find_if(each.completions.begin(), each.completions.end(),
                       [this](const Completion& completion) { return completion.end > now_; });
      done_ones.insert(done_ones.end(), each.completions.begin(), first_to_come);
      each.completions.erase(each.completions.begin(), first_to_come);
    }
    return done_ones;
  }

 private:
  // The same limit as the CPU device's.
  static constexpr size_t kMaxCompletions = 1 << 16;

  struct Lane {
    Timeline timeline;
    Nanos not_before{0};  // when the dependencies of the next work end
    Nanos stalled{0};
    std::vector<Completion> completions;  // in order of their ends
  };
  Lane& lane(StreamId stream) { return lanes_[static_cast<size_t>(stream)]; }
  const Lane& lane(StreamId stream) const { return lanes_[static_cast<size_t>(stream)]; }

  Nanos end_of(const Fence& fence) const {
    Nanos end{0};
    for (StreamId stream : kAllStreams) {
      end = std::max(end, lane(stream).timeline.end_of(fence[stream]));
    }
    return end;
  }
  void check_enqueued(const Fence& fence) const {
    for (StreamId stream : kAllStreams) {
      TIDEMARK_CHECK(fence[stream] <= lane(stream).timeline.issued(),
                     "a wait for work that is not enqueued");
    }
  }

  // Models the host's side of an enqueue; returns when the work starts.
  Nanos begin(StreamId stream) {
    Lane& own = lane(stream);
    own.timeline.forget_before(now_);
    if (own.timeline.full()) {
      now_ = own.timeline.first_end();
      own.timeline.forget_before(now_);
    }
    now_ += profile_.launch_cost;
    const Nanos ready = std::max(now_, own.timeline.free_at());
    const Nanos start = std::max(ready, std::exchange(own.not_before, Nanos(0)));
    own.stalled += start - ready;
    return start;
  }
  Event finish(StreamId stream, Nanos start, Nanos end, uint64_t tag) {
    Lane& own = lane(stream);
    if (tag != 0 && !own.completions.empty() && own.completions.back().tag == tag) {
      own.completions.back().end = end;  // another part of the same work
    } else if (tag != 0 && own.completions.size() < kMaxCompletions) {
      own.completions.push_back({tag, stream, start, end});
    }
    return {stream, own.timeline.push(end)};
  }

  const DeviceProfile profile_;
  const std::string name_;
  // Shared with the regions, which may outlive the device.
  const std::shared_ptr<Nanos> issue_clock_ = std::make_shared<Nanos>(0);
  Nanos& now_ = *issue_clock_;
  std::array<Lane, kStreamCount> lanes_;
  BusyTime offload_busy_;  // link copies only: host tasks such as disk I/O do not use it
  BusyTime reload_busy_;
};

}  // namespace

std::unique_ptr<Device> make_sim_device(const DeviceProfile& profile) {
  return std::make_unique<SimDevice>(profile);
}

}  // namespace tidemark
