#include "runtime/planner/io/parse_json.h"

#include <algorithm>

#include "runtime/core/errors.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::json;
constexpr int kMaxDepth = 16;  // valid files need 6

}  // namespace

Json parse_json(const std::string& text, const std::string& file) {
  // Depth is bounded while parsing: deep nesting must not exhaust the stack.
  int deepest = 0;
  const auto depth = [&](int level, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, level);
    return level <= kMaxDepth;
  };
  try {
    Json json = Json::parse(text, depth);
    if (deepest > kMaxDepth) throw DataError(file, "nested too deeply for a graph");
    return json;
  } catch (const Json::parse_error& error) {
    throw DataError(file, static_cast<int64_t>(error.byte), error.what());
  } catch (const Json::out_of_range& error) {  // a number too large for a double
    throw DataError(file, error.what());
  }
}

}  // namespace tidemark::planner
