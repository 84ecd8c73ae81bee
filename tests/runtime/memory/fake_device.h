// A device for tests of the layers below the real ones: work runs at once, on the calling
// thread.
//
// As device.h says, work that throws is kept, with everything enqueued after it, until
// resume().
#pragma once

#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/device.h"

namespace tidemark {

class FakeRegion final : public MemoryRegion {
 public:
  FakeRegion(Bytes size, bool has_data) : size_(size) {
    if (has_data) data_.reset(new (std::align_val_t{4096}) std::byte[bytes()]);
  }
  std::byte* data() const override { return data_.get(); }
  Bytes size() const override { return size_; }

 private:
  struct Delete {
    void operator()(std::byte* data) const {
      ::operator delete[](data, std::align_val_t{4096});
    }
  };
  size_t bytes() const { return static_cast<size_t>(size_.count()); }

  Bytes size_;
  std::unique_ptr<std::byte[], Delete> data_;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(bool has_data = true) : has_data_(has_data) {
    profile_.offload_bandwidth = 1e9;
    profile_.reload_bandwidth = 2e9;
    profile_.disk_write_bandwidth = 1e8;
    profile_.disk_read_bandwidth = 2e8;
    profile_.transfer_latency = Nanos(1000);
  }

  const std::string& name() const override { return name_; }
  const DeviceProfile& profile() const override { return profile_; }
  bool has_data() const override { return has_data_; }

  std::unique_ptr<MemoryRegion> map(MemoryKind kind, Bytes size) override {
    mapped.emplace_back(kind, size);
    return std::make_unique<FakeRegion>(size, has_data_);
  }

  Event enqueue(StreamId stream, Work work) override { return add(stream, std::move(work)); }
  Event enqueue_host(StreamId stream, Work work) override {
    return add(stream, std::move(work));
  }
  Event copy(StreamId stream, const Copy& copy) override {
    return add(stream, {[copy](void*) {
                          std::memcpy(copy.to, copy.from,
                                      static_cast<size_t>(copy.bytes.count()));
                        },
                        Nanos(0), copy.tag});
  }
  Event fill(StreamId stream, std::byte* to, Bytes bytes, std::byte value) override {
    return add(stream, {[=](void*) {
                          std::memset(to, static_cast<int>(value),
                                      static_cast<size_t>(bytes.count()));
                        },
                        Nanos(0), 0});
  }
  void wait(StreamId, const Fence&) override {}

  bool done(const Fence&) const override { return pending_.empty(); }
  void synchronize(const Fence&) override {
    if (error_) std::rethrow_exception(error_);
  }
  void synchronize_all() override { synchronize({}); }
  void resume() override {
    error_ = nullptr;
    run();
  }

  Nanos now() const override { return Nanos(0); }
  Nanos stalled(StreamId) const override { return Nanos(0); }
  std::vector<Completion> take_completions() override {
    return std::exchange(completions_, {});
  }

  std::vector<std::pair<MemoryKind, Bytes>> mapped;
  std::vector<std::pair<StreamId, Nanos>> enqueued;  // with its modelled cost

 private:
  Event add(StreamId stream, Work work) {
    enqueued.emplace_back(stream, work.cost);
    pending_.emplace_back(stream, std::move(work));
    run();
    return {stream, ++tickets_[static_cast<size_t>(stream)]};
  }

  void run() {
    while (!error_ && !pending_.empty()) {
      const auto& [stream, work] = pending_.front();
      try {
        if (has_data_) work.run(nullptr);
        const bool another_part = !completions_.empty() && completions_.back().tag == work.tag;
        if (work.tag != 0 && !another_part)
          completions_.push_back({work.tag, stream, Nanos(0), Nanos(0)});
        pending_.pop_front();
      } catch (...) {
        error_ = std::current_exception();
      }
    }
  }

  std::string name_ = "fake";
  DeviceProfile profile_;
  bool has_data_;
  std::deque<std::pair<StreamId, Work>> pending_;
  std::exception_ptr error_;
  std::array<Ticket, kStreamCount> tickets_{};
  std::vector<Completion> completions_;
};

}  // namespace tidemark
