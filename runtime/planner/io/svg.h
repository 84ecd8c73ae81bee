// Draws a layout: time to the right, offset upwards, and below it the live bytes over time.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

struct Drawing {
  std::string title;               // any text; it is escaped
  std::vector<std::string> names;  // per buffer, or none: shown as tooltips
  Bytes bound{0};                  // drawn as a line
};

// REQUIRES: check_buffers() passes; one offset per buffer.
std::string draw_layout(const std::vector<Buffer>& buffers, const Offsets& offsets,
                        const Drawing& drawing);

}  // namespace tidemark::planner
