// Layout problems in MiniMalloc's format.
//
//   id,lower,upper,size            and with a last column `offset` once they are solved
//   b1,0,3,4096                    live in [0, 3)
//
// Columns are found by name, in any order. Unknown columns (alignment, gaps) are an error,
// because ignoring them would change the problem.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

struct LayoutInstance {
  std::vector<std::string> ids;
  std::vector<Buffer> buffers;
};

// Throws DataError, naming the place, for another format, a size below 0, an end before its
// begin, a duplicate id, and sums beyond 63 bits; `name` is for the message.
LayoutInstance parse_layout_csv(const std::string& text, const std::string& name);
std::string format_layout_csv(const LayoutInstance& instance, const Offsets& offsets);

}  // namespace tidemark::planner
