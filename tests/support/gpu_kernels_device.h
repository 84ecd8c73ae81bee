// A CUDA device for work that is written for the host, such as the toy programs. Work enqueued
// as a kernel runs in stream order on a thread of the (fake) driver, not while it is issued.
#pragma once

#include <memory>
#include <utility>

#include "runtime/device/forwarding_device.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {

class GpuKernelsDevice final : public ForwardingDevice {
 public:
  // With a fake driver, which must be `inner`'s own, kernels are launched there. Without one,
  // they are host work of the device, whose memory the host must then be able to read.
  GpuKernelsDevice(std::unique_ptr<Device> inner, std::shared_ptr<FakeCudaDriver> fake)
      : ForwardingDevice(std::move(inner)), fake_(std::move(fake)) {}

  bool has_data() const override { return true; }
  Event enqueue(StreamId stream, Work work) override {
    if (!fake_) return enqueue_host(stream, std::move(work));
    work.run = [fake = fake_.get(), run = std::move(work.run)](void* native) {
      fake->launch(native, [run] { run(nullptr); });
    };
    return ForwardingDevice::enqueue(stream, std::move(work));
  }

 private:
  const std::shared_ptr<FakeCudaDriver> fake_;
};

}  // namespace tidemark
