// Small text files: settings, prices, profiles of devices.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/core/units.h"

namespace tidemark {

// All of it. Throws DataError if it cannot be read or is longer than `limit`: a device, or a
// file given by mistake, does not fill the memory.
std::string read_text_file(const std::string& path, Bytes limit);

}  // namespace tidemark
