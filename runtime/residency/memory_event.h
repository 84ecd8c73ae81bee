// What happens to memory during a step, as scripts have it: decisions, and the taking of blocks
// that decisions have to be made by. What is taken and freed for want of users comes and goes
// by itself, as long as the decisions are the same.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "runtime/core/units.h"

namespace tidemark {

class Residency;
class Storage;

struct MemoryEvent {
  enum class Kind : uint8_t {
    kBlock,     // the mechanism takes one: an output, an upload, a reload needed now, scratch
    kPrefetch,  // decided, as are those up to kGiveUpCopy: a reload ahead of need
    kEvict,
    kOffload,     // where a copy is on a tier already, it is dropped for nothing
    kCopyOut,     // and stays
    kGiveUpCopy,  // of what is on a tier
    kEndOfCall,   // of a call of the program: what was decided by then comes before the next
  };
  // Items are numbered by whoever writes events down; workspaces and scratch have none.
  static constexpr uint32_t kScratch = std::numeric_limits<uint32_t>::max();

  Kind kind = Kind::kEndOfCall;
  uint32_t item = kScratch;
};

// Before the block of that event is taken, another one moves: `block` as who plans counts them.
struct MemoryMove {
  size_t event = 0;
  size_t block = 0;
  Offset to;
};

// Carries out a decision on a storage. A prefetch goes to `at` or, without one, anywhere, if
// need be into a hole that is slid together. False: it could not be done, or is no decision.
bool carry_out(MemoryEvent::Kind decision, Storage& storage, Residency& residency,
               std::optional<Offset> at = std::nullopt);

}  // namespace tidemark
