// Rules for where a block goes, to be compared with the arena's own.
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
  kArena,  // what the arena does, whatever that is; the other fields mean nothing
  kBest,   // the smallest hole that is large enough, ties to the lowest
  kFirst,  // the lowest
  kNext,   // the lowest at or after the end of the block placed last, else the lowest
};

struct FitRule {
  std::string name;
  Fit fit = Fit::kBest;
  // The hole that ends the range is used only when no other is large enough. Then the layout
  // does not depend on the capacity.
  bool tail_last = true;
  // Workspaces are cut from the upper end of a hole, unless it is the tail.
  bool workspace_from_top = false;
  // Sizes are rounded up to so many classes for each power of two; 0: to kAlignment alone.
  int64_t size_classes = 0;
};

// Those that are compared, the arena's first.
const std::vector<FitRule>& fit_rules();

// Where blocks go by a rule.
class Placement {
 public:
  explicit Placement(FitRule rule) : rule_(std::move(rule)) {}
  const FitRule& rule() const { return rule_; }
  // What is taken for a block of `size`.
  Bytes rounded(Bytes size) const;
  // None if no hole is large enough. REQUIRES: the rule is not kArena.
  std::optional<Offset> choose(const OffsetAllocator& range, Bytes size, Category category);

 private:
  FitRule rule_;
  Offset next_;
};

// An arena with a rule, for a session of one's own. REQUIRES: no size classes, as the runtime
// expects to get what fits into a hole.
class FitArena final : public Arena {
 public:
  FitArena(Device& device, Bytes capacity, FitRule rule)
      : Arena(device, MemoryKind::kDevice, capacity), placement_(std::move(rule)) {}
  std::optional<Allocation> allocate(Bytes size, Category category) override;

 private:
  Placement placement_;
};

// The highest end offset that the trace reaches; none if it does not complete.
std::optional<Bytes> replay(const MemoryTrace& trace, const FitRule& rule, Bytes capacity);
// More than any trace wants.
inline constexpr Bytes kEndless{int64_t{1} << 50};

// The smallest capacity from which on the trace completes, no block being moved. By most rules
// that is the highest end in an endless range. Where the layout depends on the capacity, the
// trace may complete in less by luck; counted is the first success above the largest failure,
// in steps of 1/200 of max_live.
Bytes smallest_capacity(const MemoryTrace& trace, const FitRule& rule);

// What could be had by knowing the future: blocks placed by size, the largest first, each as
// low as those placed before and alive at the same time allow. Not a lower bound.
Bytes offline_by_size(const MemoryTrace& trace);

}  // namespace tidemark
