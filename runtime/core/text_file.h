// Small text files: settings, costs, device profiles.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/units.h"

namespace tidemark {

// The whole file. Throws DataError if it cannot be read or is longer than `limit`, so that a
// device, or a file given by mistake, does not fill the memory.
std::string read_text_file(const std::string& path, Bytes limit);

// Writes `text` to `path` atomically; devices and pipes are written to directly
// (atomic_file.h). Throws DataError.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace tidemark
