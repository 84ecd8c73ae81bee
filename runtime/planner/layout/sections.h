// The times at which a layout must be checked.
//
// The live set changes at begins and ends. Of all sets of buffers live at one time only the
// maximal ones matter, because a subset can be stacked wherever the whole can. There are at
// most as many maximal sets as buffers.
#pragma once

#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

// Lifetimes in sections: a buffer is live in sections [first, last) of `count`.
struct SectionTimes {
  std::vector<int> first, last;  // per buffer
  int count = 0;
};

// Empty lifetimes get sections too, to no purpose.
SectionTimes section_times(const std::vector<Buffer>& buffers);

struct Sections {
  std::vector<std::vector<int>> members;  // per section, by time: its live buffers
  std::vector<int> first, last;           // per buffer: live in sections [first, last)

  // Per buffer: the buffers that share a section with it.
  std::vector<std::vector<int>> neighbours() const;
};

// REQUIRES: lifetimes are not empty.
Sections make_sections(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner
