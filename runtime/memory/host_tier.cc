#include <algorithm>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/memory/tier.h"
#include "runtime/memory/transfer_time.h"

namespace tidemark {
namespace {

class HostTier final : public Tier {
 public:
  HostTier(Device& device, Bytes limit)
      : device_(device),
        limit_(limit),
        region_(limit > Bytes(0) ? device.map(MemoryKind::kHost, limit) : nullptr),
        offsets_(limit) {}

  const std::string& name() const override { return name_; }

  std::optional<Allocation> reserve(Bytes size) override { return offsets_.allocate(size); }
  void release(const Block& block, const Fence& last_use) override {
    offsets_.free(block, last_use);
  }

  Event store(const Block& block, const std::byte* from, Bytes bytes, uint64_t tag) override {
    return device_.copy(StreamId::kOffload, {address(block, bytes), from, bytes, tag});
  }
  Event load(const Block& block, std::byte* to, Bytes bytes, uint64_t tag) override {
    return device_.copy(StreamId::kReload, {to, address(block, bytes), bytes, tag});
  }
  Nanos store_time(Bytes bytes) const override {
    const DeviceProfile& profile = device_.profile();
    return transfer_time(bytes, profile.offload_bandwidth, profile.transfer_latency);
  }
  Nanos load_time(Bytes bytes) const override {
    const DeviceProfile& profile = device_.profile();
    return transfer_time(bytes, profile.reload_bandwidth, profile.transfer_latency);
  }

  Bytes limit() const override { return limit_; }
  Bytes used() const override { return offsets_.used(); }
  Bytes peak() const override { return offsets_.high_water() - Offset(0); }

 private:
  std::byte* address(const Block& block, Bytes bytes) const {
    TIDEMARK_CHECK(bytes <= block.size, "a copy of " + std::to_string(bytes.count()) +
                                            " bytes in a block of " +
                                            std::to_string(block.size.count()));
    TIDEMARK_CHECK(region_, "the tier is empty");
    std::byte* const data = region_->data();
    return data ? data + block.offset.value() : nullptr;
  }

  std::string name_ = "host";
  Device& device_;
  Bytes limit_;
  std::unique_ptr<MemoryRegion> region_;
  OffsetAllocator offsets_;
};

}  // namespace

std::unique_ptr<Tier> make_host_tier(Device& device, Bytes limit) {
  return std::make_unique<HostTier>(device, limit);
}

}  // namespace tidemark
