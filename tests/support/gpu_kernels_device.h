// A CUDA device for work that is written for the host, such as the toy programs: what is
// enqueued as a kernel runs in stream order on a thread of the (fake) driver's, not while it is
// issued.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {

class GpuKernelsDevice final : public Device {
 public:
  // With a fake driver, kernels are launched there; with none, they are host work of the
  // device, which must then have memory that the host can read.
  GpuKernelsDevice(std::unique_ptr<Device> inner, std::shared_ptr<FakeCudaDriver> fake)
      : fake_(std::move(fake)), inner_(std::move(inner)) {}

  const std::string& name() const override { return inner_->name(); }
  const DeviceProfile& profile() const override { return inner_->profile(); }
  bool has_data() const override { return true; }
  bool host_reads_device_memory() const override { return inner_->host_reads_device_memory(); }
  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    return inner_->map(kind, size);
  }
  Event enqueue(StreamId stream, Work work) override {
    if (!fake_) return inner_->enqueue_host(stream, std::move(work));
    work.run = [fake = fake_.get(), run = std::move(work.run)](void* native) {
      fake->launch(native, [run] { run(nullptr); });
    };
    return inner_->enqueue(stream, std::move(work));
  }
  Event enqueue_host(StreamId stream, Work work) override {
    return inner_->enqueue_host(stream, std::move(work));
  }
  Event copy(StreamId stream, const Copy& copy) override { return inner_->copy(stream, copy); }
  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    return inner_->fill(stream, to, bytes, value);
  }
  void wait(StreamId waiter, const Fence& fence) override { inner_->wait(waiter, fence); }
  bool done(const Fence& fence) const override { return inner_->done(fence); }
  void synchronize(const Fence& fence) override { inner_->synchronize(fence); }
  void synchronize_all() override { inner_->synchronize_all(); }
  void resume() override { inner_->resume(); }
  Nanos now() const override { return inner_->now(); }
  Nanos stalled(StreamId stream) const override { return inner_->stalled(stream); }
  std::vector<Completion> take_completions() override { return inner_->take_completions(); }

 private:
  std::shared_ptr<FakeCudaDriver> fake_;
  std::unique_ptr<Device> inner_;  // last: its streams run kernels until it is gone
};

}  // namespace tidemark
