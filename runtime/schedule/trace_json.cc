#include "runtime/schedule/trace_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <memory>
#include <utility>

#include "runtime/core/located_json.h"
#include "runtime/schedule/json_fields.h"

namespace tidemark {
namespace {

using json_fields::append_lines;
using json_fields::check_format;
using json_fields::Fields;
using json_fields::Json;

constexpr const char* kTraceFormat = "tidemark step graph";
constexpr int kTraceVersion = 1;
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

// What a call and its variants have in common.
template <class Call>
void add_call(Json& line, const Call& call) {
  if (call.signature) line["signature"] = hex(call.signature);
  for (const StepTrace::Input& input : call.inputs) {
    Json entry{input.storage, input.version};
    if (input.written) entry.push_back("written");
    line["inputs"].push_back(std::move(entry));
  }
  if (!call.may_overwrite.empty()) line["may_overwrite"] = call.may_overwrite;
  if (call.workspace > Bytes(0)) line["workspace"] = call.workspace.count();
  if (call.cost > Nanos(0)) line["cost_ns"] = call.cost.count();
}

Json to_line(const StepTrace::Op& op) {
  Json line;
  line["kind"] = kKinds[static_cast<size_t>(op.kind)];
  line["name"] = op.name;
  if (!op.call.empty()) line["call"] = op.call;
  add_call(line, op);
  if (!op.outputs.empty()) line["outputs"] = op.outputs;
  if (!op.released.empty()) line["released"] = op.released;
  for (const StepTrace::Variant& variant : op.variants) {
    Json entry{{"name", variant.name}};
    add_call(entry, variant);
    line["variants"].push_back(std::move(entry));
  }
  return line;
}

class TraceReader {
 public:
  TraceReader(const Json& json, const std::string& source, const std::string& at)
      : fields_(json, source, at) {
    check_format(json, source, "a step graph", kTraceFormat, kTraceVersion);
  }

  StepTrace run() {
    StepTrace trace;
    fields_.each("storages", [&](const Fields& line) {
      StepTrace::Storage storage;
      storage.origin = keep(line.text("origin"));
      if (line.find("name")) storage.name = keep(line.text("name"));
      storage.category = category(line);
      storage.size = Bytes(counted(line, "size", sizes_));
      storage.at_start = line.flag("at_start");
      storage.at_end = line.flag("at_end");
      storage.may_evict = line.flag("may_evict", true);
      storage.may_offload = line.flag("may_offload", true);
      trace.storages.push_back(storage);
    });
    fields_.each("ops", [&](const Fields& line) { trace.ops.push_back(op(line)); });
    const std::vector<std::string> wrong = trace_violations(trace, 1);
    if (!wrong.empty()) fields_.fail("", wrong.front());
    trace.text = text_;
    return trace;
  }

 private:
  std::string_view keep(std::string text) const { return text_->emplace_back(std::move(text)); }
  static Category category(const Fields& line) {
    return static_cast<Category>(
        line.choice("category", kCategoryNames, "unknown category: " + line.text("category")));
  }
  // Bounds values so that their sums do not overflow.
  static int64_t counted(const Fields& line, const char* key, int64_t& sum) {
    constexpr int64_t kMost = int64_t{1} << 60;
    const int64_t value = line.number(key);
    if (value > kMost - std::max<int64_t>(0, sum))
      line.fail(key, "the sum of the sizes is too large");
    sum += std::max<int64_t>(0, value);
    return value;
  }
  StepTrace::Op op(const Fields& line) {
    StepTrace::Op op;
    op.kind = static_cast<StepTrace::Kind>(
        line.choice("kind", kKinds, "must be call, upload or read"));
    if (line.find("call")) op.call = keep(line.text("call"));
    read_call(line, op);
    op.outputs = line.ids("outputs");
    op.released = line.ids("released");
    if (line.find("variants")) {
      line.each("variants",
                [&](const Fields& entry) { read_call(entry, op.variants.emplace_back()); });
    }
    return op;
  }
  // What a call and its variants have in common.
  template <class Call>
  void read_call(const Fields& line, Call& call) {
    call.name = keep(line.text("name"));
    if (line.find("signature")) {
      const std::string digits = line.text("signature");
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), call.signature, 16);
      if (error != std::errc() || end != digits.data() + digits.size()) {
        line.fail("signature", "not a 64-bit hexadecimal number");
      }
    }
    const Json* inputs = line.find("inputs");
    if (inputs && !inputs->is_array()) line.fail("inputs", "not a list");
    for (size_t i = 0; inputs && i < inputs->size(); ++i) {
      const Json& entry = (*inputs)[i];
      const std::string key = "inputs[" + std::to_string(i) + "]";
      const bool written = entry.is_array() && entry.size() == 3 && entry[2] == "written";
      if (!entry.is_array() || entry.size() != (written ? 3U : 2U)) {
        line.fail(key, "must be [storage, version] or [storage, version, \"written\"]");
      }
      const std::string at = line.place(key);
      call.inputs.push_back({line.id_of(entry[0], at), line.id_of(entry[1], at), written});
    }
    call.may_overwrite = line.ids("may_overwrite");
    call.workspace = Bytes(counted(line, "workspace", sizes_));
    call.cost = Nanos(counted(line, "cost_ns", costs_));
  }

  const Fields fields_;
  std::shared_ptr<std::deque<std::string>> text_ = std::make_shared<std::deque<std::string>>();
  int64_t sizes_ = 0, costs_ = 0;
};

}  // namespace

StepTrace json_fields::read_trace(const Json& json, const std::string& source,
                                  const std::string& at) {
  return TraceReader(json, source, at).run();
}

std::string to_json(const StepTrace& trace) {
  std::string text = "{\"format\": \"" + std::string(kTraceFormat) +
                     "\", \"version\": " + std::to_string(kTraceVersion);
  const auto line = [](const auto& entry) { return to_line(entry); };
  append_lines(text, "storages", trace.storages, line);
  append_lines(text, "ops", trace.ops, line);
  return text + "}\n";
}

StepTrace trace_from_json(std::string_view text, const std::string& source) {
  return json_fields::read_trace(parse_located<Json>(source, text), source, "");
}

}  // namespace tidemark
