#include "tests/support/fake_cuda_driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/device/cuda/launches.h"

namespace tidemark {
namespace {

int64_t host_nanos() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

thread_local bool on_a_stream = false;

constexpr char kMoveKernel = 0;  // stands for move()'s code

}  // namespace

FakeCudaDriver::FakeCudaDriver(const FakeCudaOptions& options) : options_(options) {}

FakeCudaDriver::~FakeCudaDriver() {
  std::vector<FakeStream*> open;
  {
    Lock lock(mutex_);
    for (auto& [handle, stream] : streams_) {
      stream->closed = true;
      open.push_back(stream.get());
    }
    changed_.notify_all();
  }
  for (FakeStream* stream : open) {
    if (stream->thread.joinable()) stream->thread.join();
  }
  for (const auto& [address, range] : ranges_) {
    if (!range.registered) munmap(const_cast<std::byte*>(address), range.mapped);
  }
}

std::string FakeCudaDriver::describe(DriverStatus status) const {
  return "fake error " + std::to_string(status.code);
}

DriverStatus FakeCudaDriver::enter(Lock&, DriverCall call) {
  const int64_t number = ++calls_[static_cast<size_t>(call)];
  if (on_a_stream) violation("a host function calls CUDA");
  if (lost_) return *lost_;
  for (const Fault& fault : faults_) {
    if (fault.call == call && fault.nth == number) return fault.status;
  }
  return kDriverOk;
}

void FakeCudaDriver::fail(DriverCall call, int64_t nth, DriverStatus status) {
  const Lock lock(mutex_);
  faults_.push_back({call, calls_[static_cast<size_t>(call)] + nth, status});
}

void FakeCudaDriver::refuse_launch(DriverStatus status) {
  const Lock lock(mutex_);
  refused_ = status;
}

void FakeCudaDriver::lose_gpu(DriverStatus status) {
  const Lock lock(mutex_);
  lost_ = status;
  changed_.notify_all();
}

std::vector<std::string> FakeCudaDriver::violations() const {
  const Lock lock(mutex_);
  return violations_;
}

Bytes FakeCudaDriver::pinned() const {
  const Lock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [address, range] : ranges_) bytes += range.device ? 0 : range.bytes;
  return Bytes(static_cast<int64_t>(bytes));
}

Bytes FakeCudaDriver::device_bytes() const {
  const Lock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [address, range] : ranges_) bytes += range.device ? range.bytes : 0;
  return Bytes(static_cast<int64_t>(bytes));
}

size_t FakeCudaDriver::live_objects() const {
  const Lock lock(mutex_);
  size_t open = 0;
  for (const auto& [handle, stream] : streams_) open += stream->closed ? 0 : 1;
  return open + events_.size() + ranges_.size() + counters_.size();
}

FakeCudaDriver::FakeStream* FakeCudaDriver::find_stream(DriverStream stream, const char* call) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second->closed) {
    violation(std::string(call) + " of a stream that is not there");
    return nullptr;
  }
  return found->second.get();
}

std::shared_ptr<FakeCudaDriver::FakeEvent> FakeCudaDriver::find_event(DriverEvent event,
                                                                      const char* call) {
  const auto found = events_.find(event);
  if (found == events_.end()) {
    violation(std::string(call) + " of an event that is not there");
    return nullptr;
  }
  return found->second;
}

void FakeCudaDriver::push(Lock& lock, FakeStream& stream, std::function<void()> command) {
  if (options_.queue_capacity > 0) {
    changed_.wait(lock, [&] { return lost_ || stream.queue.size() < options_.queue_capacity; });
  }
  stream.queue.push_back(std::move(command));
  changed_.notify_all();
}

void FakeCudaDriver::run_stream(FakeStream& stream) {
  on_a_stream = true;
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stream.closed || !stream.queue.empty(); });
    if (stream.queue.empty()) return;
    std::function<void()> command = std::move(stream.queue.front());
    stream.queue.pop_front();
    stream.running = true;
    changed_.notify_all();
    const bool runs = !lost_;
    lock.unlock();
    if (runs && options_.longest_delay > Nanos(0)) {
      std::uniform_int_distribution<int64_t> delay(0, options_.longest_delay.count());
      std::this_thread::sleep_for(std::chrono::nanoseconds(delay(stream.random)));
    }
    if (runs) command();
    command = nullptr;
    lock.lock();
    stream.running = false;
    changed_.notify_all();
  }
}

void FakeCudaDriver::load(Lock& lock, const void* kernel) {
  if (!loaded_.insert(kernel).second) return;
  const bool idle =
      changed_.wait_for(lock, std::chrono::seconds(5), [&] { return lost_ || held_ == 0; });
  if (!idle) violation("code is loaded while a stream waits for host work");
}

void FakeCudaDriver::warm_up() {
  Lock lock(mutex_);
  load(lock, &kMoveKernel);
}

void FakeCudaDriver::launch(DriverStream stream, std::function<void()> run,
                            const void* kernel) {
  if (kernel) use_kernel(kernel);
  count_launches(1);
  Lock lock(mutex_);
  if (kernel) load(lock, kernel);
  if (FakeStream* const found = find_stream(stream, "launch")) {
    push(lock, *found, std::move(run));
  }
}

DriverStatus FakeCudaDriver::use() {
  Lock lock(mutex_);
  return enter(lock, DriverCall::kUse);
}

DriverStatus FakeCudaDriver::properties(GpuProperties* out) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kProperties);
  *out = {"Fake GPU (80 GB)", 90, 132, 1.98e9, 2.619e9, 5120, options_.device_memory};
  return status;
}

DriverStatus FakeCudaDriver::memory_info(Bytes* free, Bytes* total) {
  const Bytes taken = device_bytes();
  Lock lock(mutex_);
  *total = options_.device_memory;
  *free = options_.device_memory - taken;
  return enter(lock, DriverCall::kMemoryInfo);
}

DriverStatus FakeCudaDriver::last_error() {
  const Lock lock(mutex_);
  if (lost_) return *lost_;
  return std::exchange(refused_, kDriverOk);
}

DriverStatus FakeCudaDriver::create_stream(DriverStream* out) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kCreateStream); !status.ok()) return status;
  *out = reinterpret_cast<DriverStream>(next_handle_++);
  auto stream = std::make_unique<FakeStream>();
  stream->random.seed(options_.seed * 31 + streams_.size());
  stream->thread = std::thread([this, raw = stream.get()] { run_stream(*raw); });
  streams_.emplace(*out, std::move(stream));
  return kDriverOk;
}

DriverStatus FakeCudaDriver::destroy_stream(DriverStream stream) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kDestroyStream);
  FakeStream* const found = find_stream(stream, "destroy");
  if (!found) return kDriverInvalidValue;
  found->closed = true;
  changed_.notify_all();
  return status;
}

DriverStatus FakeCudaDriver::synchronize_stream(DriverStream stream) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kSynchronizeStream); !status.ok()) {
    return status;
  }
  FakeStream* const found = find_stream(stream, "synchronize");
  if (!found) return kDriverInvalidValue;
  changed_.wait(lock, [&] { return lost_ || (found->queue.empty() && !found->running); });
  return lost_.value_or(kDriverOk);
}

DriverStatus FakeCudaDriver::create_event(DriverEvent* out, bool timed) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kCreateEvent); !status.ok()) return status;
  *out = reinterpret_cast<DriverEvent>(next_handle_++);
  auto event = std::make_shared<FakeEvent>();
  event->timed = timed;
  events_.emplace(*out, std::move(event));
  return kDriverOk;
}

DriverStatus FakeCudaDriver::destroy_event(DriverEvent event) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kDestroyEvent);
  if (!find_event(event, "destroy")) return kDriverInvalidValue;
  events_.erase(event);
  return status;
}

DriverStatus FakeCudaDriver::record(DriverEvent event, DriverStream stream) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kRecord); !status.ok()) return status;
  const auto found = find_event(event, "record");
  FakeStream* const on = find_stream(stream, "record");
  if (!found || !on) return kDriverInvalidValue;
  const uint64_t number = ++found->recorded;
  push(lock, *on, [this, found, number] {
    const Lock done(mutex_);
    found->completed = std::max(found->completed, number);
    found->stamp = host_nanos();
    changed_.notify_all();
  });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::query(DriverEvent event) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kQuery); !status.ok()) return status;
  const auto found = find_event(event, "query");
  if (!found) return kDriverInvalidValue;
  if (found->recorded == 0) violation("query of an event that was never recorded");
  return found->completed == found->recorded ? kDriverOk : kDriverNotReady;
}

DriverStatus FakeCudaDriver::synchronize_event(DriverEvent event) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kSynchronizeEvent); !status.ok()) {
    return status;
  }
  const auto found = find_event(event, "synchronize");
  if (!found) return kDriverInvalidValue;
  if (found->recorded == 0) violation("a wait for an event that was never recorded");
  changed_.wait(lock, [&] { return lost_ || found->completed == found->recorded; });
  return lost_.value_or(kDriverOk);
}

DriverStatus FakeCudaDriver::wait(DriverStream stream, DriverEvent event) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kWait); !status.ok()) return status;
  const auto found = find_event(event, "wait");
  FakeStream* const on = find_stream(stream, "wait");
  if (!found || !on) return kDriverInvalidValue;
  if (found->recorded == 0) violation("a stream waits for an event that was never recorded");
  push(lock, *on, [this, found, number = found->recorded] {
    Lock waiting(mutex_);
    changed_.wait(waiting, [&] { return lost_ || found->completed >= number; });
  });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::elapsed_ms(float* out, DriverEvent start, DriverEvent end) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kElapsed); !status.ok()) return status;
  const auto first = find_event(start, "elapsed");
  const auto second = find_event(end, "elapsed");
  if (!first || !second) return kDriverInvalidValue;
  for (const auto& event : {first, second}) {
    if (!event->timed) violation("the time of an event that keeps none");
    if (event->recorded == 0 || event->completed != event->recorded) {
      violation("the time of an event that is not done");
      return kDriverNotReady;
    }
  }
  *out = static_cast<float>(static_cast<double>(second->stamp - first->stamp) * 1e-6);
  return kDriverOk;
}

const FakeCudaDriver::Range* FakeCudaDriver::range_of(const void* address, size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(address);
  auto next = ranges_.upper_bound(begin);
  if (next == ranges_.begin()) return nullptr;
  const auto& [start, range] = *--next;
  return begin + bytes <= start + range.bytes ? &range : nullptr;
}

void FakeCudaDriver::check_copy(const void* to, const void* from, size_t bytes,
                                const char* when) {
  for (const void* side : {to, from}) {
    if (!range_of(side, bytes)) {
      violation(std::string("a copy, when ") + when +
                ", of memory that is neither the device's nor pinned as a whole");
    }
  }
}

DriverStatus FakeCudaDriver::copy(void* to, const void* from, size_t bytes,
                                  DriverStream stream) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kCopy); !status.ok()) return status;
  FakeStream* const on = find_stream(stream, "copy");
  if (!on) return kDriverInvalidValue;
  const auto* const a = static_cast<const std::byte*>(to);
  const auto* const b = static_cast<const std::byte*>(from);
  if (a < b + bytes && b < a + bytes) violation("a copy between ranges that overlap");
  check_copy(to, from, bytes, "issued");
  push(lock, *on, [this, to, from, bytes] {
    {
      const Lock checking(mutex_);
      check_copy(to, from, bytes, "run");
    }
    std::memcpy(to, from, bytes);
  });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::move(void* to, const void* from, size_t bytes,
                                  DriverStream stream) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kMove); !status.ok()) return status;
  FakeStream* const on = find_stream(stream, "move");
  if (!on) return kDriverInvalidValue;
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(to) % 16 != 0 ||
      reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    violation("a move of what is not aligned to 16 bytes");
  }
  if (bytes > kMaxMove) violation("a move of more than kMaxMove");
  for (const void* side : {static_cast<const void*>(to), from}) {
    const Range* const range = range_of(side, bytes);
    if (!range || !range->device) violation("a move outside device memory");
  }
  load(lock, &kMoveKernel);
  push(lock, *on, [to, from, bytes] { std::memmove(to, from, bytes); });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::fill(void* to, std::byte value, size_t bytes,
                                  DriverStream stream) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kFill); !status.ok()) return status;
  FakeStream* const on = find_stream(stream, "fill");
  if (!on) return kDriverInvalidValue;
  const Range* const range = range_of(to, bytes);
  if (!range || !range->device) violation("a fill outside device memory");
  push(lock, *on, [to, value, bytes] { std::memset(to, static_cast<int>(value), bytes); });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::launch_host_func(DriverStream stream, void (*run)(void*),
                                              void* argument) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kLaunchHostFunc); !status.ok()) return status;
  FakeStream* const on = find_stream(stream, "launch_host_func");
  if (!on) return kDriverInvalidValue;
  push(lock, *on, [this, run, argument] {
    const std::scoped_lock alone(host_functions_);
    run(argument);
  });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::create_counter(std::atomic<uint32_t>** out) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kCounter); !status.ok()) return status;
  auto counter = std::make_shared<std::atomic<uint32_t>>(0);
  *out = counter.get();
  counters_.emplace(*out, std::move(counter));
  return kDriverOk;
}

DriverStatus FakeCudaDriver::destroy_counter(std::atomic<uint32_t>* counter) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kFree);
  if (counters_.erase(counter) == 0) violation("a counter is destroyed that is not there");
  return status;
}

DriverStatus FakeCudaDriver::wait_counter(DriverStream stream, std::atomic<uint32_t>* counter,
                                          uint32_t least) {
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kWaitCounter); !status.ok()) return status;
  FakeStream* const on = find_stream(stream, "wait_counter");
  const auto found = counters_.find(counter);
  if (found == counters_.end()) violation("a stream waits for a counter that is not there");
  if (!on || found == counters_.end()) return kDriverInvalidValue;
  ++held_;
  push(lock, *on, [this, held = found->second, least] {
    const auto reached = [&] {
      return static_cast<int32_t>(held->load(std::memory_order_acquire) - least) >= 0;
    };
    // The host raises it without telling the driver.
    while (!reached()) {
      {
        const Lock looking(mutex_);
        if (lost_) return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(5));
    }
    const Lock passing(mutex_);
    --held_;
    changed_.notify_all();
  });
  return kDriverOk;
}

DriverStatus FakeCudaDriver::allocate(DriverMemory kind, void** out, size_t bytes) {
  const Bytes taken = kind == DriverMemory::kDevice ? device_bytes() : pinned();
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kAllocate); !status.ok()) return status;
  const Bytes limit =
      kind == DriverMemory::kDevice ? options_.device_memory : options_.pinnable;
  if (taken + Bytes(static_cast<int64_t>(bytes)) > limit) return kDriverOutOfMemory;
  const size_t mapped = (bytes + 4095) / 4096 * 4096;
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return kDriverOutOfMemory;
  ranges_[static_cast<std::byte*>(address)] = {bytes, mapped, kind == DriverMemory::kDevice,
                                               false};
  *out = address;
  return kDriverOk;
}

DriverStatus FakeCudaDriver::free(DriverMemory kind, void* address) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kFree);
  const auto found = ranges_.find(static_cast<std::byte*>(address));
  if (found == ranges_.end() || found->second.registered ||
      found->second.device != (kind == DriverMemory::kDevice)) {
    violation("memory is freed that was not allocated so");
    return kDriverInvalidValue;
  }
  munmap(address, found->second.mapped);
  ranges_.erase(found);
  return status;
}

DriverStatus FakeCudaDriver::pin(void* address, size_t bytes) {
  const Bytes taken = pinned();
  Lock lock(mutex_);
  if (const auto status = enter(lock, DriverCall::kPin); !status.ok()) return status;
  if (taken + Bytes(static_cast<int64_t>(bytes)) > options_.pinnable) return kDriverOutOfMemory;
  auto* const begin = static_cast<std::byte*>(address);
  if (ranges_.count(begin) > 0) violation("memory is pinned twice");
  ranges_[begin] = {bytes, 0, false, true};
  return kDriverOk;
}

DriverStatus FakeCudaDriver::unpin(void* address) {
  Lock lock(mutex_);
  const DriverStatus status = enter(lock, DriverCall::kUnpin);
  const auto found = ranges_.find(static_cast<std::byte*>(address));
  if (found == ranges_.end() || !found->second.registered) {
    violation("memory is unpinned that was not pinned");
    return kDriverInvalidValue;
  }
  ranges_.erase(found);
  return status;
}

}  // namespace tidemark
