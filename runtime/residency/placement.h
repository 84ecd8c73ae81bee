// How the blocks of one call, upload or copy are to be found.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/core/units.h"

namespace tidemark {

struct BlockPlacement {
  enum class How : uint8_t {
    kByPolicy,  // no schedule is followed: anywhere; space is made as the policy says
    kCompact,   // by a schedule without places: blocks slide together before more is released
    kAt,        // by a schedule: at those offsets
  };
  How how = How::kByPolicy;
  // One for each block, in the order in which they are taken: outputs, then the workspace.
  std::span<const Offset> at{};

  bool scheduled() const { return how != How::kByPolicy; }
};

// Takes the offsets of a placement one after the other. Once a block could not lie where it was
// to, the rest lie anywhere too.
class PlacementCursor {
 public:
  PlacementCursor() = default;  // anywhere, as the policy says
  explicit PlacementCursor(const BlockPlacement& placement) : placement_(placement) {}

  // Of the next block; none: it may lie anywhere.
  std::optional<Offset> next() {
    if (placement_.how != BlockPlacement::How::kAt || missed_) return std::nullopt;
    if (next_ == placement_.at.size()) {
      missed_ = true;
      return std::nullopt;
    }
    return placement_.at[next_++];
  }
  bool compact() const { return placement_.how == BlockPlacement::How::kCompact; }
  void miss() { missed_ = true; }
  // Does each block lie where it was to?
  bool kept() const {
    return !missed_ &&
           (placement_.how != BlockPlacement::How::kAt || next_ == placement_.at.size());
  }

 private:
  BlockPlacement placement_;
  size_t next_ = 0;
  bool missed_ = false;
};

}  // namespace tidemark
