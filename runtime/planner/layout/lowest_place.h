// Private to planner/: the placement step shared by all first-fit methods.
//
// Threads: functions without state.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark::planner {

// [begin, end)
struct TakenSpace {
  Offset begin, end;
};

// The lowest offset for `size` bytes that overlaps nothing in `taken` (of TakenSpace or a
// derived type). O(n log n). REQUIRES: `taken` is sorted by begin.
template <class Space>
Offset lowest_place(std::vector<Space>& taken, Bytes size) {
  std::sort(taken.begin(), taken.end(),
            [](const Space& a, const Space& b) { return a.begin < b.begin; });
  Offset place;
  for (const Space& space : taken) {
    if (space.begin - place >= size) break;
    place = std::max(place, space.end);
  }
  return place;
}

}  // namespace tidemark::planner
