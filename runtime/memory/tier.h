// Where released storages go: host memory, and below it the disk. Each has a limit of its own
// that is never exceeded, as it is itself an arena of that size.
//
// Space is reserved before a copy begins, so a full tier is an answer (none), not a failure in
// the middle. It comes in several pieces where no hole is large enough: a tier has room as long
// as enough of it is unused, in whatever order blocks came and went. Copies are stream-ordered:
// `store` runs on the offload stream, `load` on the reload stream, and fences order reuse.
//
// Threads: the issuing thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/memory/offset_allocator.h"

namespace tidemark {

// Where a copy lies, in the order of its bytes: nearly always one block.
using Pieces = std::vector<Block>;

// Space handed out, and what has to be done before it may be written.
struct TierSpace {
  Pieces pieces;
  Fence fence;
};

class Tier {
 public:
  virtual ~Tier() = default;
  virtual const std::string& name() const = 0;  // "host", "disk"

  // None when the tier has no room: its limit is reached, or the disk is full.
  virtual std::optional<TierSpace> reserve(Bytes size) = 0;
  // `last_use`: the work that may still read or write it.
  virtual void release(const Pieces& pieces, const Fence& last_use) = 0;

  // Enqueues the copy; waiting for `from`, `to` and the space's fence is the caller's. `tag` as
  // in Work. `enqueued`, if given, learns of all work, also of what was enqueued before an
  // exception: it runs once the device resumes. REQUIRES: `pieces` are reserved and hold at
  // least `bytes`.
  virtual Event store(const Pieces& pieces, const std::byte* from, Bytes bytes, uint64_t tag,
                      Fence* enqueued = nullptr) = 0;
  virtual Event load(const Pieces& pieces, std::byte* to, Bytes bytes, uint64_t tag,
                     Fence* enqueued = nullptr) = 0;
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
