// Files as text, compressed or not.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/core/units.h"

namespace tidemark::planner {

// No input that planners take is near this; what a small compressed file may become is bounded
// by it.
inline constexpr Bytes kMaxTextFile{int64_t{1} << 30};

// Throws DataError if it cannot be read, is longer than `limit`, or, with a name that ends in
// .gz, is not whole.
std::string read_text(const std::string& path, Bytes limit = kMaxTextFile);

}  // namespace tidemark::planner
