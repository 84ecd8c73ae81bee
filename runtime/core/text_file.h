// Text files, compressed or not: settings, costs, device profiles, traces, schedules.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/units.h"

namespace tidemark {

// Far above any trace or planner input.
inline constexpr Bytes kMaxTextFile{int64_t{1} << 28};

// The whole file, decompressed if it is gzip. Throws DataError if it cannot be read, is
// truncated, is named .gz without being gzip, or is longer than `limit` bytes after
// decompression, so that a device, or a file given by mistake, does not fill the memory.
std::string read_text_file(const std::string& path, Bytes limit = kMaxTextFile);

// Writes `text` to `path` atomically; devices and pipes are written to directly
// (atomic_file.h). Throws DataError.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace tidemark
