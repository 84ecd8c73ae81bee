// Private to memory/: space in several pieces, for tiers.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/memory/tier.h"

namespace tidemark {

// Reserves one block if a hole holds it, else the largest holes. None if too little space is
// unused. REQUIRES: `size` > 0, in the same units as every other size requested from `offsets`.
inline std::optional<TierSpace> reserve_pieces(OffsetAllocator& offsets, Bytes size) {
  if (size > offsets.unused()) return std::nullopt;
  TierSpace space;
  for (Bytes left = size; left > Bytes(0);) {
    const Bytes largest = offsets.largest_hole();
    const auto piece = offsets.allocate(std::min(left, largest));
    space.pieces.push_back(piece->block);
    space.fence.include(piece->fence);
    left -= std::min(left, piece->block.size);
  }
  return space;
}

inline void release_pieces(OffsetAllocator& offsets, const Pieces& pieces,
                           const Fence& last_use) {
  for (const Block& piece : pieces) offsets.free(piece, last_use);
}

inline void check_pieces(const Pieces& pieces, Bytes bytes) {
  Bytes room{0};
  for (const Block& piece : pieces) room += piece.size;
  TIDEMARK_CHECK(bytes <= room, "a copy of " + std::to_string(bytes.count()) + " bytes in " +
                                    std::to_string(room.count()));
}

// Calls visit(offset of the piece, its position in the whole, its bytes) for each piece.
template <class Visit>
void for_each_piece(const Pieces& pieces, Bytes bytes, const Visit& visit) {
  Bytes begin{0};
  for (const Block& piece : pieces) {
    const Bytes part = std::min(piece.size, bytes - begin);
    if (part == Bytes(0)) return;
    visit(piece.offset, begin, part);
    begin += part;
  }
}

}  // namespace tidemark
