// Small text files: settings, prices, profiles of devices.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/units.h"

namespace tidemark {

// All of it. Throws DataError if it cannot be read or is longer than `limit`: a device, or a
// file given by mistake, does not fill the memory.
std::string read_text_file(const std::string& path, Bytes limit);

// Puts `text` at `path` at once, so that no part of it is ever found there; to a device or a
// pipe it is written as it is (atomic_file.h). Throws DataError.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace tidemark
