// JSON text of this folder's formats. Private to it.
//
// Threads: functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tidemark::planner {

// Throws DataError, naming `file`, if it is not JSON or is nested deeper than any of the
// formats.
nlohmann::json parse_json(const std::string& text, const std::string& file);

}  // namespace tidemark::planner
