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

  std::byte* out() const { return staging->data(); }
  std::byte* in() const { return staging->data() + kHalf; }

  // Pieces of at most kHalf, between the staging memory and the file.
  void write_staged(size_t bytes, Offset at) const {
    const size_t whole = rounded(bytes);
    std::memset(out() + bytes, 0, whole - bytes);
    write_fully(*file, out(), whole, at);
  }
  void read_staged(size_t bytes, Offset at) const {
    read_fully(*file, in(), rounded(bytes), at);
  }

  // f(begin, size) for each piece.
  template <class F>
  static void for_each_piece(size_t bytes, const F& f) {
    for (size_t done = 0; done < bytes; done += kHalf) f(done, std::min(kHalf, bytes - done));
  }

  void write(const std::byte* from, size_t bytes, Offset at) const {
    for_each_piece(bytes, [&](size_t begin, size_t part) {
      std::memcpy(out(), from + begin, part);
      write_staged(part, at + Bytes(static_cast<int64_t>(begin)));
    });
  }
  void read(std::byte* to, size_t bytes, Offset at) const {
    for_each_piece(bytes, [&](size_t begin, size_t part) {
      read_staged(part, at + Bytes(static_cast<int64_t>(begin)));
      std::memcpy(to + begin, in(), part);
    });
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
    if (disk_ && !device_.host_reads_device_memory()) {
      return store_by_copies(block, from, bytes, tag);
    }
    return device_.enqueue_host(StreamId::kOffload, {[disk = disk_, block, from, bytes](void*) {
                                                       if (disk)
                                                         disk->write(from, size(bytes),
                                                                     block.offset);
                                                     },
                                                     store_time(bytes), tag});
  }

  Event load(const Block& block, std::byte* to, Bytes bytes, uint64_t tag) override {
    check(block, bytes);
    if (disk_ && !device_.host_reads_device_memory()) {
      return load_by_copies(block, to, bytes, tag);
    }
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

  // The same in pieces: the device copies to and from the staging memory, the host to and from
  // the file, one after the other on the stream. A piece that fails holds those behind it.
  Event store_by_copies(const Block& block, const std::byte* from, Bytes bytes, uint64_t tag) {
    Event last;
    Disk::for_each_piece(size(bytes), [&](size_t begin, size_t part) {
      const Bytes part_bytes(static_cast<int64_t>(part));
      const Offset at = block.offset + Bytes(static_cast<int64_t>(begin));
      device_.copy(StreamId::kOffload, {disk_->out(), from + begin, part_bytes, tag});
      last = device_.enqueue_host(StreamId::kOffload, {[disk = disk_, part, at](void*) {
                                                         disk->write_staged(part, at);
                                                       },
                                                       store_time(part_bytes), tag});
    });
    return last;
  }
  Event load_by_copies(const Block& block, std::byte* to, Bytes bytes, uint64_t tag) {
    Event last;
    Disk::for_each_piece(size(bytes), [&](size_t begin, size_t part) {
      const Bytes part_bytes(static_cast<int64_t>(part));
      const Offset at = block.offset + Bytes(static_cast<int64_t>(begin));
      device_.enqueue_host(StreamId::kReload,
                           {[disk = disk_, part, at](void*) { disk->read_staged(part, at); },
                            load_time(part_bytes), tag});
      last = device_.copy(StreamId::kReload, {to + begin, disk_->in(), part_bytes, tag});
    });
    // The staging memory stays until the last copy has read it.
    device_.enqueue_host(StreamId::kReload, {[disk = disk_](void*) {}, Nanos(0), 0});
    return last;
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
