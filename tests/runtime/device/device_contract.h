// What every Device promises, as a typed suite. A new device instantiates it in a few lines:
//
//   struct MyDevice { static std::unique_ptr<Device> make() { ... } };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, DeviceContract, MyDevice);
//
// A device that runs work instantiates DeviceFailureContract too (device_failure_contract.h).
// Work is described by its cost for devices that do not run it, and the order of things is read
// from completions, which every device gives.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/device.h"
#include "runtime/device/pages.h"

namespace tidemark {

// Work that ends only when the test allows it; on a simulator, work that takes very long.
class Gate {
 public:
  ~Gate() { open(); }
  Work work(uint64_t tag = 0) const {
    auto is_open = is_open_;
    return {[is_open](void*) { is_open->wait(false); }, Nanos(1'000'000'000), tag};
  }
  void open() {
    is_open_->store(true);
    is_open_->notify_all();
  }
  bool is_open() const { return is_open_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> is_open_ = std::make_shared<std::atomic<bool>>(false);
};

inline Work work_that(std::function<void()> run, uint64_t tag = 0, Nanos cost = Nanos(1000)) {
  return {[run = std::move(run)](void*) { run(); }, cost, tag};
}

inline std::map<uint64_t, Completion> completions_by_tag(Device& device) {
  std::map<uint64_t, Completion> by_tag;
  for (const Completion& completion : device.take_completions()) {
    EXPECT_TRUE(by_tag.emplace(completion.tag, completion).second) << "reported twice";
  }
  return by_tag;
}

template <class Factory>
class DeviceContract : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = Factory::make();
};
TYPED_TEST_SUITE_P(DeviceContract);

TYPED_TEST_P(DeviceContract, RunsAStreamInOrder) {
  Device& device = *this->device_;
  for (StreamId stream : kAllStreams) {
    std::vector<int> ran;
    for (int i = 0; i < 100; ++i) {
      const Event event = device.enqueue(
          stream, work_that([&ran, i] { ran.push_back(i); }, static_cast<uint64_t>(i) + 1));
      EXPECT_EQ(event.stream, stream);
      EXPECT_EQ(event.ticket, static_cast<Ticket>(i) + 1);
    }
    device.synchronize_all();
    const std::vector<Completion> completions = device.take_completions();
    ASSERT_EQ(completions.size(), 100u);
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(completions[i].tag, i + 1);
      EXPECT_EQ(completions[i].stream, stream);
      EXPECT_LE(completions[i].start, completions[i].end);
      if (i > 0) {
        EXPECT_GE(completions[i].start, completions[i - 1].end);
      }
      if (device.has_data()) {
        EXPECT_EQ(ran.at(i), static_cast<int>(i));
      }
    }
    if (!device.has_data()) {
      EXPECT_TRUE(ran.empty());
    }
  }
}

TYPED_TEST_P(DeviceContract, TicketZeroAndTheEmptyFenceAreThePast) {
  EXPECT_TRUE(this->device_->done(Fence()));
  EXPECT_TRUE(this->device_->done(Event{StreamId::kReload, 0}));
  this->device_->synchronize(Fence());
  this->device_->synchronize_all();
}

TYPED_TEST_P(DeviceContract, AFenceIsDoneWhenAllThatItNamesIsDone) {
  Device& device = *this->device_;
  Gate gate;
  const Event offloaded = device.enqueue(StreamId::kOffload, work_that([] {}));
  Fence both = offloaded;
  both.include(device.enqueue(StreamId::kCompute, gate.work()));
  device.synchronize(offloaded);
  EXPECT_TRUE(device.done(offloaded));
  EXPECT_FALSE(device.done(both));
  gate.open();
  device.synchronize(both);
  EXPECT_TRUE(device.done(both));
}

TYPED_TEST_P(DeviceContract, AWaitHoldsLaterWorkAndNotEarlier) {
  //   compute  |=== 1 ===|
  //   offload  | 2 |     | 3 |
  Device& device = *this->device_;
  Gate gate;
  const Event first = device.enqueue(StreamId::kCompute, gate.work(1));
  const Event before = device.enqueue(StreamId::kOffload, work_that([] {}, 2));
  device.wait(StreamId::kOffload, first);
  const Event after = device.enqueue(StreamId::kOffload, work_that([] {}, 3));
  device.synchronize(before);
  EXPECT_FALSE(device.done(first));
  EXPECT_FALSE(device.done(after));
  gate.open();
  device.synchronize_all();
  auto at = completions_by_tag(device);
  ASSERT_EQ(at.size(), 3u);
  EXPECT_LT(at[2].end, at[1].end);
  EXPECT_GE(at[3].start, at[1].end);
}

TYPED_TEST_P(DeviceContract, AWaitForOnesOwnStreamOrForThePastHoldsNothing) {
  Device& device = *this->device_;
  for (int i = 0; i < 3; ++i) {
    const Event event = device.enqueue(StreamId::kCompute, work_that([] {}));
    device.wait(StreamId::kCompute, event);
    device.synchronize(event);
    device.wait(StreamId::kReload, event);
    device.wait(StreamId::kReload, Fence());
  }
  device.synchronize(device.enqueue(StreamId::kReload, work_that([] {})));
  EXPECT_EQ(device.stalled(StreamId::kCompute), Nanos(0));
  EXPECT_EQ(device.stalled(StreamId::kReload), Nanos(0));
}

TYPED_TEST_P(DeviceContract, AWaitNamesOnlyWorkThatIsEnqueued) {
  Device& device = *this->device_;
  const Event event = device.enqueue(StreamId::kCompute, work_that([] {}));
  const Event next{StreamId::kCompute, event.ticket + 1};
  EXPECT_THROW(device.wait(StreamId::kReload, next), std::logic_error);
  EXPECT_THROW(device.synchronize(next), std::logic_error);
}

TYPED_TEST_P(DeviceContract, MoreWorkThanFitsInAQueue) {
  Device& device = *this->device_;
  constexpr Ticket kCount = 3 * kMaxInFlight + 7;
  std::array<Ticket, kStreamCount> ran{};
  for (Ticket i = 0; i < kCount; ++i) {
    for (StreamId stream : kAllStreams) {
      Ticket& count = ran[static_cast<size_t>(stream)];
      device.enqueue(stream, work_that([&count] { ++count; }));
    }
  }
  device.synchronize_all();
  for (StreamId stream : kAllStreams) {
    EXPECT_TRUE(device.done(Event{stream, kCount}));
    if (device.has_data()) {
      EXPECT_EQ(ran[static_cast<size_t>(stream)], kCount);
    }
  }
}

TYPED_TEST_P(DeviceContract, CompletionsAreOfTaggedWorkThatIsDoneAndTakenOnce) {
  Device& device = *this->device_;
  Gate gate;
  device.enqueue(StreamId::kCompute, work_that([] {}, 0));
  const Event done = device.enqueue_host(StreamId::kReload, work_that([] {}, 7));
  device.enqueue(StreamId::kCompute, gate.work(8));
  device.synchronize(done);
  auto taken = completions_by_tag(device);
  EXPECT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.count(7), 1u);
  gate.open();
  device.synchronize_all();
  taken = completions_by_tag(device);
  EXPECT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.count(8), 1u);
  EXPECT_GE(device.now(), taken[8].end);
  EXPECT_TRUE(device.take_completions().empty());
}

TYPED_TEST_P(DeviceContract, RegionsHaveTheSizeAskedFor) {
  Device& device = *this->device_;
  for (MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kHost}) {
    for (Bytes size : {Bytes(0), Bytes(1), Bytes(512), Bytes(4097), Bytes(int64_t{1} << 36)}) {
      const auto region = device.map(kind, size);
      EXPECT_EQ(region->size(), size);
      EXPECT_EQ(region->data() != nullptr, device.has_data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(region->data()) % 4096, 0u);
      if (device.has_data() && size > Bytes(0)) {
        region->data()[0] = std::byte{1};
        region->data()[size.count() - 1] = std::byte{2};
      }
    }
  }
}

TYPED_TEST_P(DeviceContract, CopiesMoveBytes) {
  Device& device = *this->device_;
  // Sizes below and above the one where the compute stream splits a copy; odd, so that the last
  // piece is short.
  for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{4096}, (int64_t{9} << 20) + 3}) {
    const auto arena = device.map(MemoryKind::kDevice, Bytes(2 * size + 64));
    const auto host = device.map(MemoryKind::kHost, Bytes(size));
    std::byte* a = arena->data();
    std::byte* b = device.has_data() ? a + size + 64 : nullptr;
    if (device.has_data()) {
      for (int64_t i = 0; i < size; ++i) a[i] = static_cast<std::byte>(i * 2654435761 >> 13);
    }
    const Event moved = device.copy(StreamId::kCompute, {b, a, Bytes(size)});
    device.wait(StreamId::kOffload, moved);
    const Event out = device.copy(StreamId::kOffload, {host->data(), b, Bytes(size)});
    device.wait(StreamId::kCompute, out);
    const Event wiped = device.enqueue(
        StreamId::kCompute, work_that([=] { std::memset(a, 0, static_cast<size_t>(size)); }));
    device.wait(StreamId::kReload, wiped);
    device.synchronize(device.copy(StreamId::kReload, {a, host->data(), Bytes(size)}));
    if (device.has_data()) {
      EXPECT_EQ(std::memcmp(a, b, static_cast<size_t>(size)), 0);
    }
    // Within the arena the two ranges may overlap, in either direction.
    for (int64_t shift : {int64_t{64}, int64_t{-64}}) {
      std::byte* to = shift > 0 && device.has_data() ? a + shift : a;
      std::byte* from = shift < 0 && device.has_data() ? a - shift : a;
      const std::vector<std::byte> expected = device.has_data()
                                                  ? std::vector<std::byte>(from, from + size)
                                                  : std::vector<std::byte>();
      device.synchronize(device.copy(StreamId::kCompute, {to, from, Bytes(size)}));
      if (device.has_data() && size > 0) {
        EXPECT_EQ(std::memcmp(to, expected.data(), static_cast<size_t>(size)), 0);
      }
    }
  }
}

TYPED_TEST_P(DeviceContract, FillsSetBytesInStreamOrder) {
  Device& device = *this->device_;
  constexpr int64_t kSize = 10'000;
  const auto region = device.map(MemoryKind::kDevice, Bytes(kSize));
  const auto host = device.map(MemoryKind::kHost, Bytes(kSize));
  std::byte* const start = region->data();
  device.fill(StreamId::kCompute, start, Bytes(kSize), std::byte{1});
  device.fill(StreamId::kCompute, start ? start + 7 : start, Bytes(1001), std::byte{0xDB});
  const Event last = device.fill(StreamId::kCompute, start, Bytes(0), std::byte{5});
  EXPECT_EQ(last.ticket, 3u);
  device.wait(StreamId::kOffload, last);
  device.synchronize(
      device.copy(StreamId::kOffload, {host->data(), region->data(), Bytes(kSize), 0}));
  if (!device.has_data()) return;
  for (int64_t i = 0; i < kSize; ++i) {
    const bool inside = i >= 7 && i < 7 + 1001;
    ASSERT_EQ(host->data()[i], inside ? std::byte{0xDB} : std::byte{1}) << i;
  }
}

TYPED_TEST_P(DeviceContract, MemoryMayBePreparedForCopies) {
  Device& device = *this->device_;
  const Bytes size((3 << 20) + 5);
  const auto arena = device.map(MemoryKind::kDevice, size);
  const auto host = device.map(MemoryKind::kHost, size);
  device.map(MemoryKind::kHost, Bytes(0))->prepare(Bytes(0), Bytes(0));
  arena->prepare(Bytes(0), size);
  host->prepare(size, Bytes(0));
  for (int turn = 0; turn < 2; ++turn) host->prepare(Bytes(1), size - Bytes(1));
  const Event filled = device.fill(StreamId::kCompute, arena->data(), size, std::byte{7});
  device.wait(StreamId::kOffload, filled);
  device.synchronize(device.copy(StreamId::kOffload, {host->data(), arena->data(), size, 0}));
  if (device.has_data()) {
    EXPECT_EQ(std::count(host->data(), host->data() + size.count(), std::byte{7}),
              size.count());
  }
  // Regions may outlive the device.
  this->device_.reset();
  host->prepare(Bytes(0), size);
}

TYPED_TEST_P(DeviceContract, MemoryOfTheCallersMayBeAdopted) {
  Device& device = *this->device_;
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, (int64_t{3} << 20) + 5}) {
    const Bytes size(bytes);
    const auto arena = device.map(MemoryKind::kDevice, size);
    std::shared_ptr<std::byte> memory = map_pages(size);
    auto region = device.adopt(memory, size);
    EXPECT_EQ(region->size(), size);
    EXPECT_EQ(region->data(), device.has_data() ? memory.get() : nullptr);
    for (int64_t i = 0; i < bytes; ++i) {
      memory.get()[i] = static_cast<std::byte>(i * 2654435761 >> 13);
    }
    const std::vector<std::byte> expected(memory.get(), memory.get() + bytes);
    region->prepare(size, Bytes(0));
    region->prepare(Bytes(0), Bytes(bytes / 2));
    device.synchronize(device.copy(StreamId::kReload, {arena->data(), region->data(), size}));
    std::fill_n(memory.get(), bytes, std::byte{0});
    device.synchronize(device.copy(StreamId::kOffload, {region->data(), arena->data(), size}));
    const std::weak_ptr<std::byte> there = memory;
    memory.reset();
    if (device.has_data()) {
      ASSERT_FALSE(there.expired()) << "the region holds it";
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), region->data()));
    }
    region.reset();
    EXPECT_TRUE(there.expired());
  }
}

TYPED_TEST_P(DeviceContract, AdoptedMemoryMayOutliveTheDevice) {
  Device& device = *this->device_;
  const Bytes size = Bytes((3 << 20) + 5);
  std::shared_ptr<std::byte> memory = map_pages(size);
  if (device.has_data()) {
    const std::shared_ptr<std::byte> amid(memory, memory.get() + 512);
    EXPECT_THROW(device.adopt(amid, Bytes(1)), std::logic_error) << "not where a page begins";
  }
  auto region = device.adopt(memory, size);
  const auto arena = device.map(MemoryKind::kDevice, size);
  const Event filled = device.fill(StreamId::kCompute, arena->data(), size, std::byte{7});
  device.wait(StreamId::kOffload, filled);
  device.synchronize(device.copy(StreamId::kOffload, {region->data(), arena->data(), size}));
  const bool has_data = device.has_data();
  this->device_.reset();
  region->prepare(Bytes(0), size);
  if (has_data) {
    EXPECT_EQ(std::count(memory.get(), memory.get() + size.count(), std::byte{7}),
              size.count());
  }
  const std::weak_ptr<std::byte> there = memory;
  memory.reset();
  region.reset();
  EXPECT_TRUE(there.expired());
}

TYPED_TEST_P(DeviceContract, OnlyTheWaiterStalls) {
  Device& device = *this->device_;
  Gate gate;
  device.wait(StreamId::kReload, device.enqueue(StreamId::kCompute, gate.work()));
  device.enqueue(StreamId::kReload, work_that([] {}));
  gate.open();
  device.synchronize_all();
  EXPECT_EQ(device.stalled(StreamId::kCompute), Nanos(0));
  EXPECT_EQ(device.stalled(StreamId::kOffload), Nanos(0));
  EXPECT_GE(device.stalled(StreamId::kReload), Nanos(0));
}

TYPED_TEST_P(DeviceContract, TimeDoesNotGoBack) {
  Device& device = *this->device_;
  Nanos last = device.now();
  EXPECT_GE(last, Nanos(0));
  for (int i = 0; i < 100; ++i) {
    const Event event = device.enqueue(kAllStreams[i % 3], work_that([] {}));
    if (i % 7 == 0) device.synchronize(event);
    EXPECT_GE(device.now(), last);
    last = device.now();
  }
}

// A random program of kernels, host tasks and copies over a few cells must give the results of
// a sequential run. Each piece of work waits for the last writer and the readers of what it
// touches.
TYPED_TEST_P(DeviceContract, HazardsOrderedByFencesGiveSequentialResults) {
  Device& device = *this->device_;
  if (!device.has_data()) GTEST_SKIP() << "no data";
  constexpr int kCells = 12;
  constexpr int kCellBytes = 2048;
  constexpr int kWords = kCellBytes / 8;
  const auto region = device.map(MemoryKind::kDevice, Bytes(kCells * kCellBytes));
  std::vector<uint64_t> expected(kCells * kWords);
  auto* actual = reinterpret_cast<uint64_t*>(region->data());
  for (size_t i = 0; i < expected.size(); ++i) actual[i] = expected[i] = i * 77;

  std::array<Fence, kCells> written;
  std::array<Fence, kCells> read;
  std::mt19937 random(20240229);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int step = 0; step < 4000; ++step) {
    const StreamId stream = kAllStreams[static_cast<size_t>(pick(3))];
    const int from = pick(kCells);
    const int to = (from + 1 + pick(kCells - 1)) % kCells;
    Fence hazards = written[static_cast<size_t>(from)];
    hazards.include(written[static_cast<size_t>(to)]);
    hazards.include(read[static_cast<size_t>(to)]);
    device.wait(stream, hazards);
    auto mix = [=](uint64_t* cells) {
      for (int i = 0; i < kWords; ++i) {
        uint64_t& cell = cells[to * kWords + i];
        cell = cell * 3 + cells[from * kWords + i] + static_cast<uint64_t>(step);
      }
    };
    Event event;
    if (pick(2) == 0) {
      event = device.copy(stream, {region->data() + to * kCellBytes,
                                   region->data() + from * kCellBytes, Bytes(kCellBytes)});
      std::copy_n(&expected[static_cast<size_t>(from * kWords)], kWords,
                  &expected[static_cast<size_t>(to * kWords)]);
    } else if (pick(2) == 0) {
      event = device.enqueue(stream, work_that([=] { mix(actual); }));
      mix(expected.data());
    } else {
      event = device.enqueue_host(stream, work_that([=] { mix(actual); }));
      mix(expected.data());
    }
    read[static_cast<size_t>(from)].include(event);
    written[static_cast<size_t>(to)] = event;
    read[static_cast<size_t>(to)] = Fence();
  }
  device.synchronize_all();
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), actual));
}

REGISTER_TYPED_TEST_SUITE_P(
    DeviceContract, RunsAStreamInOrder, TicketZeroAndTheEmptyFenceAreThePast,
    AFenceIsDoneWhenAllThatItNamesIsDone, AWaitHoldsLaterWorkAndNotEarlier,
    AWaitForOnesOwnStreamOrForThePastHoldsNothing, AWaitNamesOnlyWorkThatIsEnqueued,
    MoreWorkThanFitsInAQueue, CompletionsAreOfTaggedWorkThatIsDoneAndTakenOnce,
    RegionsHaveTheSizeAskedFor, CopiesMoveBytes, FillsSetBytesInStreamOrder,
    MemoryMayBePreparedForCopies, MemoryOfTheCallersMayBeAdopted,
    AdoptedMemoryMayOutliveTheDevice, OnlyTheWaiterStalls, TimeDoesNotGoBack,
    HazardsOrderedByFencesGiveSequentialResults);

}  // namespace tidemark
