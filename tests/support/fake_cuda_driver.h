// A CUDA runtime without a GPU: streams are threads, device memory is host memory, and delays
// depend on the seed. It is stricter than CUDA. What CUDA silently forgives (a wait for an
// event that was never recorded, a handle that is gone, a copy that is not asynchronous because
// its memory is not pinned) is a violation, listed for the test to find. Host functions run one
// at a time, whatever their streams, as CUDA may run them.
//
// Threads: calls come from one thread; host functions and kernels run on the streams' threads.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace tidemark {

enum class DriverCall : uint8_t {
  kUse,
  kProperties,
  kMemoryInfo,
  kCreateStream,
  kDestroyStream,
  kSynchronizeStream,
  kCreateEvent,
  kDestroyEvent,
  kRecord,
  kQuery,
  kSynchronizeEvent,
  kWait,
  kElapsed,
  kCopy,
  kMove,
  kFill,
  kLaunchHostFunc,
  kAllocate,
  kFree,
  kPin,
  kUnpin,
  kCounter,
  kWaitCounter,
};
inline constexpr size_t kDriverCallCount = 23;

struct FakeCudaOptions {
  uint64_t seed = 1;
  // Each command waits for a random time up to this before it runs, so that streams overtake
  // each other.
  Nanos longest_delay{0};
  Bytes device_memory{int64_t{1} << 40};
  Bytes pinnable{int64_t{1} << 40};  // the limit of `ulimit -l`
  int host_node = -1;                // of NUMA
  // As in CUDA, launching into a stream with this many queued commands waits. 0: no limit.
  size_t queue_capacity = 0;
};

class FakeCudaDriver final : public CudaDriver {
 public:
  explicit FakeCudaDriver(const FakeCudaOptions& options = {});
  ~FakeCudaDriver() override;  // finishes what is queued

  // Stands for a kernel's launch: runs `run` in stream order. Null: a kernel that is loaded.
  void launch(DriverStream stream, std::function<void()> run, const void* kernel = nullptr);
  // The next last_error() returns `status`, as after a launch that was refused.
  void refuse_launch(DriverStatus status);
  // The n-th call of this kind from now, from 1, does nothing and returns `status`.
  void fail(DriverCall call, int64_t nth, DriverStatus status);
  // Simulates a kernel fault: nothing runs any more, and every call returns `status`.
  void lose_gpu(DriverStatus status);

  int64_t calls(DriverCall call) const { return calls_[static_cast<size_t>(call)]; }
  std::vector<std::string> violations() const;
  Bytes pinned() const;
  Bytes device_bytes() const;
  // Streams, events, allocations and pinned ranges that have not been given back.
  size_t live_objects() const;

  std::string describe(DriverStatus status) const override;
  DriverStatus use() override;
  DriverStatus properties(GpuProperties* out) override;
  int host_node() override { return options_.host_node; }
  DriverStatus memory_info(Bytes* free, Bytes* total) override;
  DriverStatus last_error() override;
  void warm_up() override;
  DriverStatus create_stream(DriverStream* out) override;
  DriverStatus destroy_stream(DriverStream stream) override;
  DriverStatus synchronize_stream(DriverStream stream) override;
  DriverStatus create_event(DriverEvent* out, bool timed) override;
  DriverStatus destroy_event(DriverEvent event) override;
  DriverStatus record(DriverEvent event, DriverStream stream) override;
  DriverStatus query(DriverEvent event) override;
  DriverStatus synchronize_event(DriverEvent event) override;
  DriverStatus wait(DriverStream stream, DriverEvent event) override;
  DriverStatus elapsed_ms(float* out, DriverEvent start, DriverEvent end) override;
  DriverStatus copy(void* to, const void* from, size_t bytes, DriverStream stream) override;
  DriverStatus move(void* to, const void* from, size_t bytes, DriverStream stream) override;
  DriverStatus fill(void* to, std::byte value, size_t bytes, DriverStream stream) override;
  DriverStatus launch_host_func(DriverStream stream, void (*run)(void*),
                                void* argument) override;
  DriverStatus create_counter(std::atomic<uint32_t>** out) override;
  DriverStatus destroy_counter(std::atomic<uint32_t>* counter) override;
  DriverStatus wait_counter(DriverStream stream, std::atomic<uint32_t>* counter,
                            uint32_t least) override;
  DriverStatus allocate(DriverMemory kind, void** out, size_t bytes) override;
  DriverStatus free(DriverMemory kind, void* address) override;
  DriverStatus pin(void* address, size_t bytes) override;
  DriverStatus unpin(void* address) override;

 private:
  struct FakeEvent {
    bool timed = false;
    uint64_t recorded = 0;   // how often it was put in a queue
    uint64_t completed = 0;  // which of these recordings was reached
    int64_t stamp = 0;       // host nanoseconds, of `completed`
  };
  struct FakeStream {
    std::deque<std::function<void()>> queue;  // each runs without the lock
    bool running = false;
    bool closed = false;
    std::mt19937_64 random;
    std::thread thread;
  };
  struct Range {
    size_t bytes = 0;
    size_t mapped = 0;
    bool device = false;
    bool registered = false;  // the caller's memory, pinned
  };
  using Lock = std::unique_lock<std::mutex>;

  // Counts the call and returns how it must fail.
  DriverStatus enter(Lock& lock, DriverCall call);
  void violation(const std::string& what) { violations_.push_back(what); }
  FakeStream* find_stream(DriverStream stream, const char* call);
  std::shared_ptr<FakeEvent> find_event(DriverEvent event, const char* call);
  void push(Lock& lock, FakeStream& stream, std::function<void()> command);
  void run_stream(FakeStream& stream);
  // The first time, waits for all host work, as CUDA may.
  void load(Lock& lock, const void* kernel);
  // The range that contains [address, address + bytes), or null.
  const Range* range_of(const void* address, size_t bytes) const;
  void check_copy(const void* to, const void* from, size_t bytes, const char* when);

  const FakeCudaOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<DriverStream, std::unique_ptr<FakeStream>> streams_;
  std::map<DriverEvent, std::shared_ptr<FakeEvent>> events_;
  std::map<const std::byte*, Range> ranges_;
  std::map<std::atomic<uint32_t>*, std::shared_ptr<std::atomic<uint32_t>>> counters_;
  std::mutex host_functions_;     // held while one runs
  std::set<const void*> loaded_;  // kernels
  int64_t held_ = 0;              // waits for counters that are queued or under way
  uintptr_t next_handle_ = 1;
  std::array<std::atomic<int64_t>, kDriverCallCount> calls_{};
  struct Fault {
    DriverCall call;
    int64_t nth;
    DriverStatus status;
  };
  std::vector<Fault> faults_;
  DriverStatus refused_ = kDriverOk;
  std::optional<DriverStatus> lost_;
  std::vector<std::string> violations_;
};

}  // namespace tidemark
