// Every call goes to the real device and then to a simulated one, which keeps the time. Both
// count their work alike, so events of the one are events of the other.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

class ModelledDevice final : public Device {
 public:
  ModelledDevice(std::unique_ptr<Device> real, const DeviceProfile& profile)
      : real_(std::move(real)), model_(make_sim_device(profile)) {}

  const std::string& name() const override { return real_->name(); }
  const DeviceProfile& profile() const override { return real_->profile(); }
  bool has_data() const override { return real_->has_data(); }
  bool host_reads_device_memory() const override { return real_->host_reads_device_memory(); }
  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    return real_->map(kind, size);
  }

  Event enqueue(StreamId stream, Work work) override {
    const Nanos cost = work.cost;
    const Event event = real_->enqueue(stream, std::move(work));
    return same(event, model_->enqueue(stream, {[](void*) {}, cost, 0}));
  }
  Event enqueue_host(StreamId stream, Work work) override {
    const Nanos cost = work.cost;
    const Event event = real_->enqueue_host(stream, std::move(work));
    return same(event, model_->enqueue_host(stream, {[](void*) {}, cost, 0}));
  }
  Event copy(StreamId stream, const Copy& copy) override {
    const Event event = real_->copy(stream, copy);
    return same(event, model_->copy(stream, {nullptr, nullptr, copy.bytes, 0}));
  }
  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    const Event event = real_->fill(stream, to, bytes, value);
    return same(event, model_->fill(stream, nullptr, bytes, value));
  }
  void wait(StreamId waiter, const Fence& fence) override {
    real_->wait(waiter, fence);
    model_->wait(waiter, fence);
  }

  bool done(const Fence& fence) const override { return real_->done(fence); }
  void synchronize(const Fence& fence) override {
    real_->synchronize(fence);
    model_->synchronize(fence);
  }
  void synchronize_all() override {
    real_->synchronize_all();
    model_->synchronize_all();
  }
  void resume() override { real_->resume(); }

  Nanos now() const override { return real_->now(); }
  Nanos modelled_now() const override { return model_->now(); }
  Nanos stalled(StreamId stream) const override { return real_->stalled(stream); }
  std::vector<Completion> take_completions() override { return real_->take_completions(); }

 private:
  static Event same(Event real, Event model) {
    TIDEMARK_CHECK(real.ticket == model.ticket, "a device and its model count work alike");
    return real;
  }

  const std::unique_ptr<Device> real_;
  const std::unique_ptr<Device> model_;
};

}  // namespace

std::unique_ptr<Device> make_modelled_device(std::unique_ptr<Device> real,
                                             const DeviceProfile& profile) {
  return std::make_unique<ModelledDevice>(std::move(real), profile);
}

}  // namespace tidemark
