#include "runtime/memory/disk_tier.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/memory/transfer_time.h"

namespace tidemark {
namespace {

// Shared with the work in flight. Each direction is one stream, which does one thing at a time,
// so each half of the staging memory has one user.
struct Disk {
  std::shared_ptr<DiskFile> file;
  std::unique_ptr<MemoryRegion> staging;

  static constexpr size_t kHalf = static_cast<size_t>(kDiskStaging.count()) / 2;

  void write(const std::byte* from, size_t bytes, Offset at) const {
    std::byte* const half = staging->data();
    for (size_t done = 0; done < bytes; done += kHalf) {
      const size_t part = std::min(kHalf, bytes - done);
      const size_t whole = rounded(part);
      std::memcpy(half, from + done, part);
      std::memset(half + part, 0, whole - part);
      write_fully(*file, half, whole, at + Bytes(static_cast<int64_t>(done)));
    }
  }

  void read(std::byte* to, size_t bytes, Offset at) const {
    std::byte* const half = staging->data() + kHalf;
    for (size_t done = 0; done < bytes; done += kHalf) {
      const size_t part = std::min(kHalf, bytes - done);
      read_fully(*file, half, rounded(part), at + Bytes(static_cast<int64_t>(done)));
      std::memcpy(to + done, half, part);
    }
  }

  static size_t rounded(size_t bytes) {
    return static_cast<size_t>(
        align_up(Bytes(static_cast<int64_t>(bytes)), kDiskAlignment).count());
  }
};

class DiskTier final : public Tier {
 public:
  DiskTier(Device& device, Bytes limit, std::shared_ptr<DiskFile> file)
      : device_(device), limit_(limit), offsets_(align_down(limit, kDiskAlignment)) {
    if (!device.has_data() || limit == Bytes(0)) return;
    TIDEMARK_CHECK(file, "data needs a file");
    disk_ = std::make_shared<Disk>();
    disk_->file = std::move(file);
    disk_->staging = device.map(MemoryKind::kHost, kDiskStaging);
  }

  const std::string& name() const override { return name_; }

  std::optional<Allocation> reserve(Bytes size) override {
    if (size > limit_) return std::nullopt;
    auto allocation = offsets_.allocate(align_up(std::max(size, Bytes(1)), kDiskAlignment));
    if (!allocation) return std::nullopt;
    const Offset end = allocation->block.end();
    if (!grow(end)) {
      offsets_.free(allocation->block, allocation->fence);
      return std::nullopt;
    }
    peak_ = std::max(peak_, end);
    return allocation;
  }

  void release(const Block& block, const Fence& last_use) override {
    offsets_.free(block, last_use);
  }

  Event store(const Block& block, const std::byte* from, Bytes bytes, uint64_t tag) override {
    check(block, bytes);
    return device_.enqueue_host(StreamId::kOffload, {[disk = disk_, block, from, bytes](void*) {
                                                       if (disk)
                                                         disk->write(from, size(bytes),
                                                                     block.offset);
                                                     },
                                                     store_time(bytes), tag});
  }

  Event load(const Block& block, std::byte* to, Bytes bytes, uint64_t tag) override {
    check(block, bytes);
    return device_.enqueue_host(StreamId::kReload, {[disk = disk_, block, to, bytes](void*) {
                                                      if (disk)
                                                        disk->read(to, size(bytes),
                                                                   block.offset);
                                                    },
                                                    load_time(bytes), tag});
  }

  Nanos store_time(Bytes bytes) const override {
    const DeviceProfile& profile = device_.profile();
    return transfer_time(bytes, profile.disk_write_bandwidth, profile.transfer_latency);
  }
  Nanos load_time(Bytes bytes) const override {
    const DeviceProfile& profile = device_.profile();
    return transfer_time(bytes, profile.disk_read_bandwidth, profile.transfer_latency);
  }

  Bytes limit() const override { return limit_; }
  Bytes used() const override { return offsets_.used(); }
  Bytes peak() const override { return peak_ - Offset(0); }

 private:
  static size_t size(Bytes bytes) { return static_cast<size_t>(bytes.count()); }

  static void check(const Block& block, Bytes bytes) {
    TIDEMARK_CHECK(bytes <= block.size, "a copy of " + std::to_string(bytes.count()) +
                                            " bytes in a block of " +
                                            std::to_string(block.size.count()));
  }

  // False: the disk is full.
  bool grow(Offset end) {
    if (!disk_ || end <= file_end_) return true;
    const Offset ample =
        std::min(Offset(0) + offsets_.capacity(), std::max(end, file_end_ + kDiskStep));
    for (const Offset target : {ample, end}) {
      if (disk_->file->allocate(file_end_, target)) {
        file_end_ = target;
        return true;
      }
    }
    return false;
  }

  std::string name_ = "disk";
  Device& device_;
  Bytes limit_;
  OffsetAllocator offsets_;
  std::shared_ptr<Disk> disk_;  // null on a device without data
  Offset file_end_;             // what the file has on disk
  Offset peak_;
};

}  // namespace

std::unique_ptr<Tier> make_disk_tier_on(Device& device, Bytes limit,
                                        std::shared_ptr<DiskFile> file) {
  return std::make_unique<DiskTier>(device, limit, std::move(file));
}

std::unique_ptr<Tier> make_disk_tier(Device& device, Bytes limit,
                                     const std::string& directory) {
  std::shared_ptr<DiskFile> file;
  if (device.has_data() && limit > Bytes(0)) file = make_temporary_file(directory);
  return make_disk_tier_on(device, limit, std::move(file));
}

}  // namespace tidemark
