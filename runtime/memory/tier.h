// Where released storages go: host memory, and below it the disk. Each has a limit of its own
// that is never exceeded, as it is itself an arena of that size.
//
// A block is reserved before a copy begins, so a full tier is an answer (none), not a failure
// in the middle. Copies are stream-ordered: `store` runs on the offload stream, `load` on the
// reload stream, and a block's fence orders its reuse.
//
// Threads: the issuing thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/device/device.h"
#include "runtime/memory/offset_allocator.h"

namespace tidemark {

class Tier {
 public:
  virtual ~Tier() = default;
  virtual const std::string& name() const = 0;  // "host", "disk"

  // None when the tier has no room: its limit is reached, or the disk is full.
  virtual std::optional<Allocation> reserve(Bytes size) = 0;
  // `last_use`: the work that may still read or write it.
  virtual void release(const Block& block, const Fence& last_use) = 0;

  // Enqueues the copy; waiting for `from`, `to` and the block's fence is the caller's. `tag` as
  // in Work. REQUIRES: `block` is reserved and holds at least `bytes`.
  virtual Event store(const Block& block, const std::byte* from, Bytes bytes, uint64_t tag) = 0;
  virtual Event load(const Block& block, std::byte* to, Bytes bytes, uint64_t tag) = 0;
  // Expected time of either, for the cost model; unloaded link.
  virtual Nanos store_time(Bytes bytes) const = 0;
  virtual Nanos load_time(Bytes bytes) const = 0;

  virtual Bytes limit() const = 0;
  virtual Bytes used() const = 0;
  // Highest end offset since the start.
  virtual Bytes peak() const = 0;
};

// A region of host memory (pinned, on CUDA) of exactly `limit`; 0 is allowed. Throws
// DeviceError.
std::unique_ptr<Tier> make_host_tier(Device& device, Bytes limit);

// An unlinked temporary file in `directory` (empty: TMPDIR, else /var/tmp), written and read
// past the page cache where the file system allows, else flushed and dropped from it. Space is
// allocated on disk before it is used. Staging memory is bounded (`kDiskStaging`, from the
// host). Throws DataError if the directory cannot be used. On a device without data no file is
// made. Where the host cannot read device memory, the device copies to and from the staging
// memory, in pieces on the same stream.
inline constexpr Bytes kDiskStaging{8 << 20};
std::unique_ptr<Tier> make_disk_tier(Device& device, Bytes limit,
                                     const std::string& directory = "");

}  // namespace tidemark
