#include <algorithm>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/device/pages.h"
#include "runtime/memory/pieces.h"
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

  std::optional<TierSpace> reserve(Bytes size) override {
    return reserve_pieces(offsets_, align_up(std::max(size, Bytes(1))));
  }
  void release(const Pieces& pieces, const Fence& last_use) override {
    release_pieces(offsets_, pieces, last_use);
  }

  Event store(const Pieces& pieces, const std::byte* from, Bytes bytes, uint64_t tag,
              Fence* enqueued) override {
    check_pieces(pieces, bytes);
    Event last;
    for_each_piece(pieces, bytes, [&](Offset at, Bytes begin, Bytes part) {
      region().prepare(at - Offset(0), part);
      last = device_.copy(StreamId::kOffload, {address(at), advance(from, begin), part, tag});
      if (enqueued) enqueued->include(last);
    });
    return last;
  }
  Event load(const Pieces& pieces, std::byte* to, Bytes bytes, uint64_t tag,
             Fence* enqueued) override {
    check_pieces(pieces, bytes);
    Event last;
    for_each_piece(pieces, bytes, [&](Offset at, Bytes begin, Bytes part) {
      last = device_.copy(StreamId::kReload, {advance(to, begin), address(at), part, tag});
      if (enqueued) enqueued->include(last);
    });
    return last;
  }
  Nanos store_time(Bytes bytes) const override {
    return transfer_time(device_.profile(), &DeviceProfile::offload_bandwidth, bytes);
  }
  Nanos load_time(Bytes bytes) const override {
    return transfer_time(device_.profile(), &DeviceProfile::reload_bandwidth, bytes);
  }

  void touch(Bytes bytes, const std::atomic<bool>& stop) override {
    if (region_ && region_->data()) {
      touch_pages(region_->data(), std::min(bytes, limit_), stop);
    }
  }

  Bytes limit() const override { return limit_; }
  Bytes used() const override { return offsets_.used(); }
  Bytes peak() const override { return offsets_.high_water() - Offset(0); }

 private:
  MemoryRegion& region() const {
    TIDEMARK_CHECK(region_, "the tier is empty");
    return *region_;
  }
  std::byte* address(Offset at) const { return advance(region().data(), at - Offset(0)); }
  // On devices without data, addresses are null and stay null.
  template <class Byte>
  static Byte* advance(Byte* address, Bytes by) {
    return address ? address + by.count() : nullptr;
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
