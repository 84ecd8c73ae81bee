#include "runtime/memory/disk_tier.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/memory/pieces.h"
#include "runtime/memory/transfer_time.h"

namespace tidemark {
namespace {

// Shared with work in flight. Each direction is one stream, which does one transfer at a time,
// so each half of the staging memory has one user.
struct Disk {
  std::shared_ptr<DiskFile> file;
  std::unique_ptr<MemoryRegion> staging;

  static constexpr size_t kHalf = static_cast<size_t>(kDiskStaging.count()) / 2;

  std::byte* out() const { return staging->data(); }
  std::byte* in() const { return staging->data() + kHalf; }

  // Transfers at most kHalf bytes between the staging memory and the file.
  void write_staged(size_t bytes, Offset at) const {
    const size_t whole = rounded(bytes);
    std::memset(out() + bytes, 0, whole - bytes);
    write_fully(*file, out(), whole, at);
  }
  void read_staged(size_t bytes, Offset at) const {
    read_fully(*file, in(), rounded(bytes), at);
  }

  // Calls visit(offset in the file, offset in the whole, bytes) for parts that fit into half of
  // the staging memory.
  template <class Visit>
  static void for_each_transfer(const Pieces& pieces, Bytes bytes, const Visit& visit) {
    for_each_piece(pieces, bytes, [&](Offset at, Bytes begin, Bytes part) {
      constexpr Bytes kMost{static_cast<int64_t>(kHalf)};
      for (Bytes done{0}; done < part; done += kMost) {
        visit(at + done, static_cast<size_t>((begin + done).count()),
              static_cast<size_t>(std::min(kMost, part - done).count()));
      }
    });
  }

  void write(const std::byte* from, Bytes bytes, const Pieces& to) const {
    for_each_transfer(to, bytes, [&](Offset at, size_t begin, size_t part) {
      std::memcpy(out(), from + begin, part);
      write_staged(part, at);
    });
  }
  void read(std::byte* to, Bytes bytes, const Pieces& from) const {
    for_each_transfer(from, bytes, [&](Offset at, size_t begin, size_t part) {
      read_staged(part, at);
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

  std::optional<TierSpace> reserve(Bytes size) override {
    auto space = reserve_pieces(offsets_, align_up(std::max(size, Bytes(1)), kDiskAlignment));
    if (!space) return std::nullopt;
    Offset end;
    for (const Block& piece : space->pieces) end = std::max(end, piece.end());
    if (!grow(end)) {
      release(space->pieces, space->fence);
      return std::nullopt;
    }
    peak_ = std::max(peak_, end);
    return space;
  }

  void release(const Pieces& pieces, const Fence& last_use) override {
    release_pieces(offsets_, pieces, last_use);
  }

  Event store(const Pieces& pieces, const std::byte* from, Bytes bytes, uint64_t tag,
              Fence* enqueued) override {
    check_pieces(pieces, bytes);
    if (disk_ && !device_.host_reads_device_memory()) {
      return store_by_copies(pieces, from, bytes, tag, enqueued);
    }
    auto write = [disk = disk_, pieces, from, bytes](void*) {
      if (disk) disk->write(from, bytes, pieces);
    };
    return noted(device_.enqueue_host(StreamId::kOffload, {write, store_time(bytes), tag}),
                 enqueued);
  }

  Event load(const Pieces& pieces, std::byte* to, Bytes bytes, uint64_t tag,
             Fence* enqueued) override {
    check_pieces(pieces, bytes);
    if (disk_ && !device_.host_reads_device_memory()) {
      return load_by_copies(pieces, to, bytes, tag, enqueued);
    }
    auto read = [disk = disk_, pieces, to, bytes](void*) {
      if (disk) disk->read(to, bytes, pieces);
    };
    return noted(device_.enqueue_host(StreamId::kReload, {read, load_time(bytes), tag}),
                 enqueued);
  }

  Nanos store_time(Bytes bytes) const override {
    return transfer_time(device_.profile(), &DeviceProfile::disk_write_bandwidth, bytes);
  }
  Nanos load_time(Bytes bytes) const override {
    return transfer_time(device_.profile(), &DeviceProfile::disk_read_bandwidth, bytes);
  }

  Bytes limit() const override { return limit_; }
  Bytes used() const override { return offsets_.used(); }
  Bytes peak() const override { return peak_ - Offset(0); }

 private:
  static Event noted(Event event, Fence* enqueued) {
    if (enqueued) enqueued->include(event);
    return event;
  }

  // Bytes pass through the staging memory: the device copies to or from it, then a host task
  // writes or reads the file, in stream order. A failed transfer holds those behind it.
  Event store_by_copies(const Pieces& pieces, const std::byte* from, Bytes bytes, uint64_t tag,
                        Fence* enqueued) {
    Event last;
    Disk::for_each_transfer(pieces, bytes, [&](Offset at, size_t begin, size_t part) {
      const Bytes part_bytes(static_cast<int64_t>(part));
      noted(device_.copy(StreamId::kOffload, {disk_->out(), from + begin, part_bytes, tag}),
            enqueued);
      last = device_.enqueue_host(StreamId::kOffload, {[disk = disk_, part, at](void*) {
                                                         disk->write_staged(part, at);
                                                       },
                                                       store_time(part_bytes), tag});
    });
    return last;
  }
  Event load_by_copies(const Pieces& pieces, std::byte* to, Bytes bytes, uint64_t tag,
                       Fence* enqueued) {
    Event last;
    Disk::for_each_transfer(pieces, bytes, [&](Offset at, size_t begin, size_t part) {
      const Bytes part_bytes(static_cast<int64_t>(part));
      device_.enqueue_host(StreamId::kReload,
                           {[disk = disk_, part, at](void*) { disk->read_staged(part, at); },
                            load_time(part_bytes), tag});
      last = device_.copy(StreamId::kReload, {to + begin, disk_->in(), part_bytes, tag});
      noted(last, enqueued);
    });
    // Keeps the staging memory alive until the last copy has read it.
    device_.enqueue_host(StreamId::kReload, {[disk = disk_](void*) {}, Nanos(0), 0});
    return last;
  }

  // Returns false if the disk is full.
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
  Offset file_end_;             // end of the space allocated on disk
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
