// Files as text, compressed or not.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/core/units.h"

namespace tidemark::planner {

// Far above any planner input; bounds the output of a small compressed file.
inline constexpr Bytes kMaxTextFile{int64_t{1} << 30};

// Throws DataError if the file cannot be read or is longer than `limit`, or if a .gz file is
// truncated.
std::string read_text(const std::string& path, Bytes limit = kMaxTextFile);

}  // namespace tidemark::planner
