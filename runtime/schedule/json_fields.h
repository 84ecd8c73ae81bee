// Checked reading of JSON objects: faults throw DataError, naming the file and the place.
// Private to the readers and writers of this folder.
//
// Threads: belongs to one.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::json_fields {

using Json = nlohmann::ordered_json;

// Throws unless `json` is an object of that format and version. `what`: "a step graph".
void check_format(const Json& json, const std::string& source, const char* what,
                  const char* format, int version);

// The fields of one object; `at` names the object, and is empty for the whole file.
class Fields {
 public:
  // REQUIRES: `json` and `source` outlive this object.
  Fields(const Json& json, const std::string& source, std::string at)
      : json_(json), source_(source), at_(std::move(at)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  const Json* find(const char* key) const;
  std::string place(const std::string& key) const;

  // An omitted field is 0, `otherwise` or an empty list.
  int64_t number(const char* key) const;
  uint32_t id(const char* key) const;
  bool flag(const char* key, bool otherwise = false) const;
  std::vector<int64_t> numbers(const char* key) const;
  std::vector<uint32_t> ids(const char* key) const;
  std::string text(const char* key) const;  // required
  // The index of the text in `names`. An unknown text throws with `otherwise`.
  template <class Names>
  size_t choice(const char* key, const Names& names, const std::string& otherwise) const {
    const std::string given = text(key);
    for (size_t i = 0; i < names.size(); ++i) {
      if (given == names[i]) return i;
    }
    fail(key, otherwise);
  }
  // Calls `visit` with the Fields of each object in a required list.
  template <class Visit>
  void each(const char* key, const Visit& visit) const {
    const Json* list = find(key);
    if (!list || !list->is_array()) fail(key, "not a list");
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string at = place(key) + "[" + std::to_string(i) + "]";
      if (!(*list)[i].is_object()) throw DataError(source_, at + ": not an object");
      visit(Fields((*list)[i], source_, at));
    }
  }
  // A value as an integer; `at` names it.
  int64_t integer(const Json& value, const std::string& at) const;
  uint32_t id_of(const Json& value, const std::string& at) const;

 private:
  const Json& json_;
  const std::string& source_;
  const std::string at_;
};

// The trace in an object of trace_json.h's format; `at` names the object.
StepTrace read_trace(const Json& json, const std::string& source, const std::string& at);

// A list, one entry per line: `,
//  "key": [...]`. `to_line` makes an entry's JSON.
template <class Entries, class ToLine>
void append_lines(std::string& text, const char* key, const Entries& entries,
                  const ToLine& to_line) {
  text += ",\n \"" + std::string(key) + "\": [";
  for (size_t i = 0; i < entries.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") +
            to_line(entries[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  text += "]";
}

}  // namespace tidemark::json_fields
