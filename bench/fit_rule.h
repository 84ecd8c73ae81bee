// Placement rules for blocks, to compare with the arena's own.
//
// Threads: one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/memory_trace.h"
#include "runtime/memory/arena.h"

namespace tidemark {

enum class Fit : uint8_t {
  kArena,  // the arena's own rule; the other fields are ignored
  kBest,   // the smallest hole that is large enough, ties to the lowest
  kFirst,  // the lowest
  kNext,   // the lowest at or after the end of the block placed last, else the lowest
};

struct FitRule {
  std::string name;
  Fit fit = Fit::kBest;
  // Use the hole at the end of the range only if no other is large enough. The layout then does
  // not depend on the capacity.
  bool tail_last = true;
  // Cut workspaces from the upper end of a hole, unless it is the hole at the end.
  bool workspace_from_top = false;
  // Round sizes up to this many classes per power of two; 0: only to kAlignment.
  int64_t size_classes = 0;
};

// The rules to compare, the arena's first.
const std::vector<FitRule>& fit_rules();

// Chooses offsets by a rule.
class Placement {
 public:
  explicit Placement(FitRule rule) : rule_(std::move(rule)) {}
  const FitRule& rule() const { return rule_; }
  // Bytes reserved for a block of `size`.
  Bytes rounded(Bytes size) const;
  // Nullopt if no hole is large enough. REQUIRES: the rule is not kArena.
  std::optional<Offset> choose(const OffsetAllocator& range, Bytes size, Category category);

 private:
  FitRule rule_;
  Offset next_;
};

// An arena that uses a rule, for a session of your own. REQUIRES: no size classes, because the
// runtime expects any request that fits in a hole to succeed.
class FitArena final : public Arena {
 public:
  FitArena(Device& device, Bytes capacity, FitRule rule)
      : Arena(device, MemoryKind::kDevice, capacity), placement_(std::move(rule)) {}
  std::optional<Allocation> allocate(Bytes size, Category category) override;

 private:
  Placement placement_;
};

// The highest end offset during the trace; nullopt if the trace does not complete.
std::optional<Bytes> replay(const MemoryTrace& trace, const FitRule& rule, Bytes capacity);
// More than any trace needs.
inline constexpr Bytes kEndless{int64_t{1} << 50};

// The smallest capacity from which on the trace completes without moving a block. For most
// rules, this is the highest end in an endless range. If the layout depends on the capacity,
// the trace may complete in less by luck; the result is the first success above the largest
// failure, in steps of 1/200 of max_live.
Bytes smallest_capacity(const MemoryTrace& trace, const FitRule& rule);

// A placement that knows the future: places blocks by decreasing size, each as low as the
// blocks already placed and alive at the same time allow. Not a lower bound.
Bytes offline_by_size(const MemoryTrace& trace);

}  // namespace tidemark
