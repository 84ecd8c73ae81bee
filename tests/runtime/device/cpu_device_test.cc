#include <omp.h>

#include <algorithm>

#include "tests/runtime/device/device_failure_contract.h"

namespace tidemark {
namespace {

struct Cpu {
  static std::unique_ptr<Device> make() { return make_cpu_device(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, DeviceContract, Cpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, DeviceFailureContract, Cpu);

TEST(CpuDevice, SaysWhatItIs) {
  const auto device = make_device("cpu");
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->profile().name, "host");
  EXPECT_EQ(device->profile().backend, Backend::kCpu);
  EXPECT_GT(device->profile().memory, Bytes(0));
  EXPECT_TRUE(device->has_data());
}

TEST(CpuDevice, ThreadsAreThoseOfTheComputeStream) {
  const auto device = make_cpu_device({.threads = 3});
  int threads = 0;
  device->synchronize(
      device->enqueue(StreamId::kCompute, work_that([&] { threads = omp_get_max_threads(); })));
  EXPECT_EQ(threads, std::min(3, omp_get_thread_limit()));
  EXPECT_THROW(make_cpu_device({.threads = -1}), UsageError);
}

TEST(CpuDevice, StreamsRunAtTheSameTime) {
  // Each task lets the next one go on: none could end if they took turns.
  const auto device = make_cpu_device();
  std::array<Gate, 3> gates;
  for (size_t i = 0; i < 3; ++i) {
    device->enqueue(kAllStreams[i], work_that([&gates, i, wait = gates[i].work()] {
                      if (i < 2) wait.run(nullptr);
                      if (i > 0) gates[i - 1].open();
                    }));
  }
  device->synchronize_all();
}

TEST(CpuDevice, WhatWorkHoldsIsGoneWhenItIsDone) {
  const auto device = make_cpu_device();
  auto held = std::make_shared<int>(0);
  Gate gate;
  const Event event = device->enqueue(StreamId::kCompute, work_that([held] { ++*held; }));
  device->enqueue(StreamId::kCompute, gate.work());
  device->synchronize(event);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 1);
}

TEST(CpuDevice, CannotMapMoreThanTheAddressSpace) {
  const auto device = make_cpu_device();
  EXPECT_THROW(device->map(MemoryKind::kDevice, Bytes(int64_t{1} << 60)), DeviceError);
}

}  // namespace
}  // namespace tidemark
