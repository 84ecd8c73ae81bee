// Forwards every call to the real device and to a simulated one, which keeps the time. Both
// number their work alike, so an event of one is an event of the other. Work is done once it is
// done on both: what the host does next, it does at the simulator's time.
#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/forwarding_device.h"

namespace tidemark {
namespace {

class ModelledRegion final : public MemoryRegion {
 public:
  ModelledRegion(std::unique_ptr<MemoryRegion> real, std::unique_ptr<MemoryRegion> model)
      : real_(std::move(real)), model_(std::move(model)) {}

  std::byte* data() const override { return real_->data(); }
  Bytes size() const override { return real_->size(); }
  void prepare(Bytes begin, Bytes bytes) override {
    real_->prepare(begin, bytes);
    model_->prepare(begin, bytes);
  }

 private:
  const std::unique_ptr<MemoryRegion> real_;
  const std::unique_ptr<MemoryRegion> model_;
};

class ModelledDevice final : public ForwardingDevice {
 public:
  ModelledDevice(std::unique_ptr<Device> real, const DeviceProfile& profile)
      : ForwardingDevice(std::move(real)), model_(make_sim_device(profile)) {}

  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    return std::make_unique<ModelledRegion>(ForwardingDevice::map(kind, size),
                                            model_->map(kind, size));
  }
  std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size) override {
    return std::make_unique<ModelledRegion>(ForwardingDevice::adopt(std::move(memory), size),
                                            model_->adopt(nullptr, size));
  }

  Event enqueue(StreamId stream, Work work) override {
    const Nanos cost = work.cost;
    const Event event = ForwardingDevice::enqueue(stream, std::move(work));
    return same(event, model_->enqueue(stream, {[](void*) {}, cost, 0}));
  }
  Event enqueue_host(StreamId stream, Work work) override {
    const Nanos cost = work.cost;
    const Event event = ForwardingDevice::enqueue_host(stream, std::move(work));
    return same(event, model_->enqueue_host(stream, {[](void*) {}, cost, 0}));
  }
  Event copy(StreamId stream, const Copy& copy) override {
    const Event event = ForwardingDevice::copy(stream, copy);
    return same(event, model_->copy(stream, {nullptr, nullptr, copy.bytes, 0}));
  }
  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    const Event event = ForwardingDevice::fill(stream, to, bytes, value);
    return same(event, model_->fill(stream, nullptr, bytes, value));
  }
  void wait(StreamId waiter, const Fence& fence) override {
    ForwardingDevice::wait(waiter, fence);
    model_->wait(waiter, fence);
  }
  bool done(const Fence& fence) const override {
    return model_->done(fence) && ForwardingDevice::done(fence);
  }
  void synchronize(const Fence& fence) override {
    ForwardingDevice::synchronize(fence);
    model_->synchronize(fence);
  }
  void synchronize_all() override {
    ForwardingDevice::synchronize_all();
    model_->synchronize_all();
  }
  Nanos modelled_now() const override { return model_->now(); }

 private:
  static Event same(Event real, Event model) {
    TIDEMARK_CHECK(real.ticket == model.ticket, "a device and its model count work alike");
    return real;
  }

  const std::unique_ptr<Device> model_;
};

}  // namespace

std::unique_ptr<Device> make_modelled_device(std::unique_ptr<Device> real,
                                             const DeviceProfile& profile) {
  return std::make_unique<ModelledDevice>(std::move(real), profile);
}

}  // namespace tidemark
