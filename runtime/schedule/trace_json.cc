#include "runtime/schedule/trace_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tidemark step graph";
constexpr int kVersion = 1;
constexpr int kMaxDepth = 8;  // a graph needs 5
constexpr std::array<const char*, 3> kKinds{"call", "upload", "read"};

std::string hex(uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

Json to_line(const StepTrace::Storage& storage) {
  Json line;
  line["origin"] = storage.origin;
  if (!storage.name.empty()) line["name"] = storage.name;
  line["category"] = to_string(storage.category);
  line["size"] = storage.size.count();
  if (storage.at_start) line["at_start"] = true;
  if (storage.at_end) line["at_end"] = true;
  if (!storage.may_evict) line["may_evict"] = false;
  if (!storage.may_offload) line["may_offload"] = false;
  return line;
}

Json to_line(const StepTrace::Op& op) {
  Json line;
  line["kind"] = kKinds[static_cast<size_t>(op.kind)];
  line["name"] = op.name;
  if (!op.call.empty()) line["call"] = op.call;
  if (op.signature) line["signature"] = hex(op.signature);
  for (const StepTrace::Input& input : op.inputs) {
    Json entry{input.storage, input.version};
    if (input.written) entry.push_back("written");
    line["inputs"].push_back(std::move(entry));
  }
  if (!op.outputs.empty()) line["outputs"] = op.outputs;
  if (!op.may_overwrite.empty()) line["may_overwrite"] = op.may_overwrite;
  if (!op.released.empty()) line["released"] = op.released;
  if (op.workspace > Bytes(0)) line["workspace"] = op.workspace.count();
  if (op.cost > Nanos(0)) line["cost_ns"] = op.cost.count();
  return line;
}

template <class Entries>
void append(std::string& text, const char* key, const Entries& entries) {
  text += ",\n \"" + std::string(key) + "\": [";
  for (size_t i = 0; i < entries.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") +
            to_line(entries[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  text += "]";
}

class Reader {
 public:
  Reader(const Json& json, const std::string& source) : json_(json), source_(source) {}

  StepTrace run() {
    if (!json_.is_object() || json_.value("format", Json()) != kFormat) {
      fail("", "not a step graph: \"format\" is not \"" + std::string(kFormat) + "\"");
    }
    if (json_.value("version", Json()) != kVersion) {
      fail("version", "only version " + std::to_string(kVersion) + " can be read");
    }
    StepTrace trace;
    each("storages", [&](const Json& line, const std::string& at) {
      StepTrace::Storage storage;
      storage.origin = name(line, "origin", at);
      if (find(line, "name")) storage.name = name(line, "name", at);
      storage.category = category(line, at);
      storage.size = Bytes(number(line, "size", at));
      storage.at_start = flag(line, "at_start", at);
      storage.at_end = flag(line, "at_end", at);
      storage.may_evict = flag(line, "may_evict", at, true);
      storage.may_offload = flag(line, "may_offload", at, true);
      trace.storages.push_back(storage);
    });
    each("ops",
         [&](const Json& line, const std::string& at) { trace.ops.push_back(op(line, at)); });
    const std::vector<std::string> wrong = trace_violations(trace, 1);
    if (!wrong.empty()) fail("", wrong.front());
    trace.text = text_;
    return trace;
  }

 private:
  [[noreturn]] void fail(const std::string& at, const std::string& what) const {
    throw DataError(source_, (at.empty() ? "" : at + ": ") + what);
  }
  template <class Visit>
  void each(const char* key, const Visit& visit) const {
    const Json list = json_.value(key, Json());
    if (!list.is_array()) fail(key, "not a list");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = std::string(key) + "[" + std::to_string(i) + "]";
      if (!list[i].is_object()) fail(at, "not an object");
      visit(list[i], at);
    }
  }
  static const Json* find(const Json& line, const char* key) {
    const auto found = line.find(key);
    return found == line.end() ? nullptr : &*found;
  }
  int64_t integer(const Json& value, const std::string& at) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
      fail(at, "not an integer of 64 bits");
    return value.get<int64_t>();
  }
  int64_t number(const Json& line, const char* key, const std::string& at) const {
    const Json* value = find(line, key);
    return value ? integer(*value, at + "." + key) : 0;
  }
  bool flag(const Json& line, const char* key, const std::string& at,
            bool otherwise = false) const {
    const Json* value = find(line, key);
    if (value && !value->is_boolean()) fail(at + "." + key, "neither true nor false");
    return value ? value->get<bool>() : otherwise;
  }
  std::string text(const Json& line, const char* key, const std::string& at) const {
    const Json* value = find(line, key);
    if (!value || !value->is_string()) fail(at + "." + key, "not a text");
    return value->get<std::string>();
  }
  std::string_view name(const Json& line, const char* key, const std::string& at) const {
    return text_->emplace_back(text(line, key, at));
  }
  Category category(const Json& line, const std::string& at) const {
    const std::string named = text(line, "category", at);
    const auto found = std::find(kCategoryNames.begin(), kCategoryNames.end(), named);
    if (found == kCategoryNames.end()) fail(at + ".category", "no category: " + named);
    return static_cast<Category>(found - kCategoryNames.begin());
  }
  uint32_t id(const Json& value, const std::string& at) const {
    const int64_t number = integer(value, at);
    if (number < 0 || number > UINT32_MAX) fail(at, "not a storage's number");
    return static_cast<uint32_t>(number);
  }
  std::vector<uint32_t> ids(const Json& line, const char* key, const std::string& at) const {
    std::vector<uint32_t> found;
    const Json* list = find(line, key);
    if (list && !list->is_array()) fail(at + "." + key, "not a list");
    for (size_t i = 0; list && i < list->size(); ++i) {
      found.push_back(id((*list)[i], at + "." + key));
    }
    return found;
  }
  StepTrace::Op op(const Json& line, const std::string& at) const {
    StepTrace::Op op;
    const std::string kind = text(line, "kind", at);
    size_t k = 0;
    while (k < kKinds.size() && kind != kKinds[k]) ++k;
    if (k == kKinds.size()) fail(at + ".kind", "neither call, upload nor read");
    op.kind = static_cast<StepTrace::Kind>(k);
    op.name = name(line, "name", at);
    if (find(line, "call")) op.call = name(line, "call", at);
    if (find(line, "signature")) {
      const std::string digits = text(line, "signature", at);
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), op.signature, 16);
      if (error != std::errc() || end != digits.data() + digits.size()) {
        fail(at + ".signature", "not a hexadecimal number of 64 bits");
      }
    }
    const Json* inputs = find(line, "inputs");
    if (inputs && !inputs->is_array()) fail(at + ".inputs", "not a list");
    for (size_t i = 0; inputs && i < inputs->size(); ++i) {
      const Json& entry = (*inputs)[i];
      const std::string place = at + ".inputs[" + std::to_string(i) + "]";
      const bool written = entry.is_array() && entry.size() == 3 && entry[2] == "written";
      if (!entry.is_array() || entry.size() != (written ? 3U : 2U)) {
        fail(place, "neither [storage, version] nor [storage, version, \"written\"]");
      }
      op.inputs.push_back({id(entry[0], place), id(entry[1], place), written});
    }
    op.outputs = ids(line, "outputs", at);
    op.may_overwrite = ids(line, "may_overwrite", at);
    op.released = ids(line, "released", at);
    op.workspace = Bytes(number(line, "workspace", at));
    op.cost = Nanos(number(line, "cost_ns", at));
    return op;
  }

  const Json& json_;
  const std::string& source_;
  std::shared_ptr<std::deque<std::string>> text_ = std::make_shared<std::deque<std::string>>();
};

}  // namespace

std::string to_json(const StepTrace& trace) {
  std::string text =
      "{\"format\": \"" + std::string(kFormat) + "\", \"version\": " + std::to_string(kVersion);
  append(text, "storages", trace.storages);
  append(text, "ops", trace.ops);
  return text + "}\n";
}

StepTrace trace_from_json(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) throw UsageError("it is nested too deeply to be a step graph");
      return true;
    });
  } catch (const UsageError& error) {
    throw DataError(source, error.what());
  } catch (const Json::parse_error& error) {
    throw DataError(source, static_cast<int64_t>(error.byte), "not JSON");
  } catch (const Json::out_of_range& error) {  // a number that is none here
    throw DataError(source, error.what());
  }
  return Reader(json, source).run();
}

}  // namespace tidemark
