// Private to planner/: the step that all first fits share.
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

// The lowest place for `size` bytes that meets none of `taken` (TakenSpace, or more of it),
// which is sorted by begin. O(n log n).
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
