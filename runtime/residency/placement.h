// How to find the blocks of one call, upload or copy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/core/units.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct BlockPlacement {
  enum class How : uint8_t {
    kByPolicy,  // no schedule: anywhere; the policy makes space
    kCompact,   // schedule without placement: compact before releasing more
    kAt,        // schedule with placement: at the offsets in `at`
  };
  How how = How::kByPolicy;
  // One offset per block, in allocation order: outputs, then the workspace.
  std::span<const Offset> at{};
  // The call runs in place: its first output takes the block of this input, which is then dead.
  // Null: it takes a block of its own.
  Storage* overwrites = nullptr;

  bool scheduled() const { return how != How::kByPolicy; }
};

// Takes the offsets of a placement one after the other. After the first block that cannot lie
// at its offset, all later blocks may lie anywhere.
class PlacementCursor {
 public:
  PlacementCursor() = default;  // anywhere, as the policy says
  explicit PlacementCursor(const BlockPlacement& placement) : placement_(placement) {}

  // The next block's offset. None: the block may lie anywhere.
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
  // Whether every block lies at its offset.
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
