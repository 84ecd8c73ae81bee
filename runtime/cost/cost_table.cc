#include "runtime/cost/cost_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "tidemark-costs";
constexpr int kVersion = 1;
constexpr Bytes kMaxCostFile{64 << 20};  // ResNet-50 takes 23 KiB
constexpr double kLongest = 1e15;        // nanoseconds: eleven days

class Parser {
 public:
  Parser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  CostTable parse() {
    Json json = parse_located<Json>(name_, text_);
    if (!json.is_object() || json.value("format", Json()) != kFormat) {
      fail("not a cost file: \"format\" is not \"" + std::string(kFormat) + "\"");
    }
    if (json.value("version", Json()) != kVersion) fail("\"version\" is not 1");
    allow(
        json, "",
        {"format", "version", "device", "offload_bandwidth", "reload_bandwidth", "operators"});
    CostTable table;
    if (json.contains("device")) table.device = text(json["device"], "device");
    table.offload_bandwidth = bandwidth(json, "offload_bandwidth");
    table.reload_bandwidth = bandwidth(json, "reload_bandwidth");
    if (!json.contains("operators") || !json["operators"].is_array()) {
      fail("\"operators\" is not a list");
    }
    for (const Json& entry : json["operators"]) add(table, entry);
    return table;
  }

 private:
  // Names the problem; the error is about the whole file, not a position in it.
  [[noreturn]] void fail(const std::string& what) const { throw DataError(name_, what); }

  // A misspelt key would otherwise be a price that is silently ignored.
  void allow(const Json& object, const std::string& which,
             std::initializer_list<std::string_view> keys) const {
    for (const auto& item : object.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        fail(which + "unknown key \"" + item.key() + "\"");
    }
  }
  std::string text(const Json& value, const std::string& key) const {
    if (!value.is_string()) fail("\"" + key + "\" is not a string");
    return value.get<std::string>();
  }
  double number(const Json& value, const std::string& what, double most) const {
    if (!value.is_number()) fail(what + " is not a number");
    const double number = value.get<double>();
    if (!(number > 0 && number <= most)) fail(what + " is out of range");
    return number;
  }
  std::optional<double> bandwidth(const Json& json, const char* key) const {
    if (!json.contains(key) || json[key].is_null()) return std::nullopt;
    return number(json[key], "\"" + std::string(key) + "\"", 1e18);
  }
  void add(CostTable& table, const Json& entry) const {
    const std::string which = "operator " + std::to_string(table.operators.size() + 1) + ": ";
    if (!entry.is_object()) fail(which + "not an object");
    allow(entry, which, {"signature", "name", "ns", "measured"});
    for (const char* key : {"signature", "ns"}) {
      if (!entry.contains(key)) fail(which + "\"" + key + "\" is missing");
    }
    const std::string digits = text(entry["signature"], "signature");
    uint64_t signature = 0;
    const char* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, signature, 16);
    if (digits.size() != 16 || error != std::errc() || rest != end) {
      fail(which + "\"signature\" must have 16 hexadecimal digits");
    }
    CostTable::Operator op;
    op.time = Nanos(std::llround(number(entry["ns"], which + "\"ns\"", kLongest)));
    if (op.time < Nanos(1)) fail(which + "\"ns\" is out of range");
    if (entry.contains("name")) op.name = text(entry["name"], "name");
    if (entry.contains("measured")) {
      if (!entry["measured"].is_boolean()) fail(which + "\"measured\" must be true or false");
      op.measured = entry["measured"].get<bool>();
    }
    if (!table.operators.emplace(signature, std::move(op)).second) {
      fail(which + digits + " appears twice");
    }
  }

  const std::string& name_;
  const std::string_view text_;
};

std::string hex(uint64_t number) {
  std::array<char, 16> digits{};
  for (size_t i = digits.size(); i-- > 0; number >>= 4)
    digits[i] = "0123456789abcdef"[number & 15];
  return {digits.data(), digits.size()};
}

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

}  // namespace

CostTable parse_costs(const std::string& name, std::string_view json) {
  return Parser(name, json).parse();
}

std::string to_json(const CostTable& table) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["device"] = table.device;
  json["offload_bandwidth"] = or_null(table.offload_bandwidth);
  json["reload_bandwidth"] = or_null(table.reload_bandwidth);
  json["operators"] = Json::array();
  for (const auto& [signature, op] : table.operators) {
    json["operators"].push_back({{"signature", hex(signature)},
                                 {"name", op.name},
                                 {"ns", op.time.count()},
                                 {"measured", op.measured}});
  }
  return json.dump(1) + '\n';
}

CostTable read_costs(const std::string& path) {
  return parse_costs(path, read_text_file(path, kMaxCostFile));
}

void write_costs(const CostTable& table, const std::string& path) {
  write_text_file(path, to_json(table));
}

}  // namespace tidemark
