// A CUDA device for work that is written for the host, such as the toy programs: what is
// enqueued as a kernel runs in stream order on a thread of the (fake) driver's, not while it is
// issued.
#pragma once

#include <memory>
#include <utility>

#include "runtime/device/forwarding_device.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {

class GpuKernelsDevice final : public ForwardingDevice {
 public:
  // With a fake driver, kernels are launched there; it is `inner`'s own. With none, they are
  // host work of the device, which must then have memory that the host can read.
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
