#include "bench/fit_rule.h"

#include <algorithm>
#include <bit>

#include "runtime/core/errors.h"

namespace tidemark {

const std::vector<FitRule>& fit_rules() {
  static const std::vector<FitRule> rules{
      {.name = "arena", .fit = Fit::kArena},
      {.name = "best_fit_tail_last"},
      {.name = "best_fit", .tail_last = false},
      {.name = "first_fit", .fit = Fit::kFirst},
      {.name = "first_fit_workspace_top", .fit = Fit::kFirst, .workspace_from_top = true},
      {.name = "next_fit", .fit = Fit::kNext},
      {.name = "size_classes", .size_classes = 4},
  };
  return rules;
}

Bytes Placement::rounded(Bytes size) const {
  size = std::max(align_up(size), kAlignment);
  if (rule_.size_classes == 0) return size;
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size.count())));
  const int64_t step = std::max(power / rule_.size_classes, kAlignment.count());
  return Bytes((size.count() + step - 1) / step * step);
}

std::optional<Offset> Placement::choose(const OffsetAllocator& range, Bytes size,
                                        Category category) {
  TIDEMARK_CHECK(rule_.fit != Fit::kArena, "the arena chooses by itself");
  size = rounded(size);
  const Offset end = Offset(0) + range.capacity();
  const auto is_tail = [&](const Block& hole) { return hole.end() == end; };
  const auto better = [&](const Block& a, const Block& b) {  // a is the higher one
    if (rule_.tail_last && is_tail(a)) return false;
    if (rule_.fit == Fit::kBest) return a.size < b.size;
    return rule_.fit == Fit::kNext && b.offset < next_ && a.offset >= next_;
  };
  std::optional<Block> chosen;
  for (const Block& hole : range.holes()) {
    if (hole.size >= size && (!chosen || better(hole, *chosen))) chosen = hole;
  }
  if (!chosen) return std::nullopt;
  const bool upper =
      rule_.workspace_from_top && category == Category::kWorkspace && !is_tail(*chosen);
  const Offset place = upper ? chosen->end() - size : chosen->offset;
  next_ = place + size;
  return place;
}

std::optional<Allocation> FitArena::allocate(Bytes size, Category category) {
  if (placement_.rule().fit == Fit::kArena) return Arena::allocate(size, category);
  const auto place = placement_.choose(offsets(), size, category);
  return place ? Arena::allocate_at(*place, size, category) : std::nullopt;
}

std::optional<Bytes> replay(const MemoryTrace& trace, const FitRule& rule, Bytes capacity) {
  OffsetAllocator range(capacity);
  Placement placement(rule);
  std::vector<Block> blocks;
  blocks.reserve(static_cast<size_t>(trace.blocks));
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::kFree) {
      range.free(blocks[static_cast<size_t>(event.block)], {});
      continue;
    }
    std::optional<Allocation> got;
    if (rule.fit == Fit::kArena) {
      got = range.allocate(event.size, event.category == Category::kWorkspace);
    } else if (const auto place = placement.choose(range, event.size, event.category)) {
      got = range.allocate_at(*place, placement.rounded(event.size));
    }
    if (!got) return std::nullopt;
    blocks.push_back(got->block);
  }
  return range.high_water() - Offset(0);
}

Bytes smallest_capacity(const MemoryTrace& trace, const FitRule& rule) {
  Bytes smallest = replay(trace, rule, kEndless).value();
  if (rule.tail_last || rule.fit == Fit::kFirst || rule.fit == Fit::kArena) return smallest;
  const Bytes live = trace.max_live();
  const Bytes step = align_up(Bytes(live.count() / 200));
  for (Bytes less = live + step * ((smallest - live).count() / step.count());
       less >= live && replay(trace, rule, less); less = less - step) {
    smallest = std::min(smallest, less);
  }
  return smallest;
}

Bytes offline_by_size(const MemoryTrace& trace) {
  struct Lived {
    Bytes size;
    size_t from = 0, to = 0;  // events: [from, to)
    Offset place{};
    Offset end() const { return place + size; }
  };
  std::vector<Lived> blocks;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEvent::kFree) {
      blocks[static_cast<size_t>(event.block)].to = i;
    } else {
      blocks.push_back({std::max(align_up(event.size), kAlignment), i, trace.events.size()});
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Lived& a, const Lived& b) { return a.size > b.size; });
  Offset high_water;
  std::vector<const Lived*> placed;  // in order of offset
  for (Lived& block : blocks) {
    for (const Lived* other : placed) {
      if (other->from >= block.to || other->to <= block.from) continue;
      if (other->place >= block.end()) break;
      block.place = std::max(block.place, other->end());
    }
    high_water = std::max(high_water, block.end());
    const auto here =
        std::upper_bound(placed.begin(), placed.end(), block.place,
                         [](Offset place, const Lived* b) { return place < b->place; });
    placed.insert(here, &block);
  }
  return high_water - Offset(0);
}

}  // namespace tidemark
