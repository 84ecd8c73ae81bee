// A device that forwards every call to another device: the base of wrappers that change a few.
//
// The other device is destroyed after the wrapper's own members: work may refer only to objects
// that it keeps alive itself.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"

namespace tidemark {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const std::string& name() const override { return inner_->name(); }
  const DeviceProfile& profile() const override { return inner_->profile(); }
  bool has_data() const override { return inner_->has_data(); }
  bool host_reads_device_memory() const override { return inner_->host_reads_device_memory(); }
  bool timing_costs() const override { return inner_->timing_costs(); }
  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    return inner_->map(kind, size);
  }
  std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size) override {
    return inner_->adopt(std::move(memory), size);
  }

  Event enqueue(StreamId stream, Work work) override {
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
  Nanos modelled_now() const override { return inner_->modelled_now(); }
  Nanos stalled(StreamId stream) const override { return inner_->stalled(stream); }
  std::vector<Completion> take_completions() override { return inner_->take_completions(); }

 private:
  const std::unique_ptr<Device> inner_;
};

}  // namespace tidemark
