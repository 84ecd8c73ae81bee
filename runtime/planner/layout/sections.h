// Times at which a layout has to be looked at.
//
// What is live changes at begins and ends; of all the sets of buffers live at one time only the
// maximal ones matter (a subset can be stacked where the whole can). There are at most as many
// as buffers.
#pragma once

#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

struct Sections {
  std::vector<std::vector<int>> members;  // per section, in order of time: buffers live then
  std::vector<int> first, last;           // per buffer: it is live in sections [first, last)

  // Per buffer: those that share a section with it.
  std::vector<std::vector<int>> neighbours() const;
};

// REQUIRES: lifetimes are not empty.
Sections make_sections(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner
