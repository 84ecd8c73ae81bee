// A tier for released storages: host memory, and below it the disk. Each tier is an arena of
// its own size, so its limit is never exceeded.
//
// Space is reserved before a copy begins, so a full tier is a result (none), not a failure
// halfway. If no hole is large enough, space comes in several pieces: a tier has space as long
// as enough of it is unused, however fragmented. Copies are stream-ordered: `store` runs on the
// offload stream, `load` on the reload stream, and fences order reuse.
//
// Threads: the issuing thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/memory/offset_allocator.h"

namespace tidemark {

// The location of a copy, in byte order: nearly always one block.
using Pieces = std::vector<Block>;

// Reserved space, and the work to wait for before writing to it.
struct TierSpace {
  Pieces pieces;
  Fence fence;
};

class Tier {
 public:
  virtual ~Tier() = default;
  virtual const std::string& name() const = 0;  // "host", "disk"

  // None if the tier is full: its limit is reached, or the disk is full.
  virtual std::optional<TierSpace> reserve(Bytes size) = 0;
  // `last_use`: the work that may still read or write the pieces.
  virtual void release(const Pieces& pieces, const Fence& last_use) = 0;

  // Enqueues the copy. The caller must wait for `from`, `to` and the space's fence. `tag` as in
  // Work. `enqueued`, if given, receives all work, including work enqueued before an exception,
  // which runs once the device resumes. REQUIRES: `pieces` are reserved and hold at least
  // `bytes`.
  virtual Event store(const Pieces& pieces, const std::byte* from, Bytes bytes, uint64_t tag,
                      Fence* enqueued = nullptr) = 0;
  virtual Event load(const Pieces& pieces, std::byte* to, Bytes bytes, uint64_t tag,
                     Fence* enqueued = nullptr) = 0;
  // Expected duration on an idle link, for the cost model.
  virtual Nanos store_time(Bytes bytes) const = 0;
  virtual Nanos load_time(Bytes bytes) const = 0;

  // Takes the memory for `bytes` now rather than when it is first used, until `stop`. Takes
  // about 0.3 s for each GiB. Threads: any.
  virtual void touch(Bytes /*bytes*/, const std::atomic<bool>& /*stop*/) {}

  virtual Bytes limit() const = 0;
  virtual Bytes used() const = 0;
  // Highest end offset since the start.
  virtual Bytes peak() const = 0;
};

// A region of host memory (pinned, on CUDA) of exactly `limit`; 0 is allowed. Throws
// DeviceError.
std::unique_ptr<Tier> make_host_tier(Device& device, Bytes limit);

// An unlinked temporary file in `directory` (empty: default_disk_directory()), written and read
// past the page cache where the file system allows, else flushed and dropped from it. Space is
// allocated on disk before use. Staging memory is bounded (`kDiskStaging`, from the host).
// Throws DataError if the directory cannot be used. On a device without data no file is made.
// Where the host cannot read device memory, the device copies to and from the staging memory,
// in pieces on the same stream.
inline constexpr Bytes kDiskStaging{8 << 20};
std::unique_ptr<Tier> make_disk_tier(Device& device, Bytes limit,
                                     const std::string& directory = "");

}  // namespace tidemark
