#include "runtime/device/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"
#include "runtime/device/builtin_profiles.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

// The range that a number must lie in. Every number must be finite.
enum class Range { kPositive, kNotNegative, kShare };

struct Field {
  const char* key;
  Range range;
  std::function<void(DeviceProfile&, double)> set;
};

Field rate(const char* key, double DeviceProfile::*member) {
  return {key, Range::kPositive, [member](DeviceProfile& p, double v) { p.*member = v; }};
}
Field share(const char* key, double DeviceProfile::*member) {
  return {key, Range::kShare, [member](DeviceProfile& p, double v) { p.*member = v; }};
}
Field time(const char* key, Nanos DeviceProfile::*member) {
  return {key, Range::kNotNegative,
          [member](DeviceProfile& p, double v) { p.*member = Nanos(std::llround(v)); }};
}

const std::vector<Field>& fields() {
  static const std::vector<Field> all{
      {"memory_bytes", Range::kPositive,
       [](DeviceProfile& p, double v) { p.memory = Bytes(std::llround(v)); }},
      rate("float32_flops", &DeviceProfile::float32_flops),
      rate("bfloat16_flops", &DeviceProfile::bfloat16_flops),
      share("compute_efficiency", &DeviceProfile::compute_efficiency),
      rate("memory_bandwidth", &DeviceProfile::memory_bandwidth),
      share("memory_efficiency", &DeviceProfile::memory_efficiency),
      rate("offload_bandwidth", &DeviceProfile::offload_bandwidth),
      rate("reload_bandwidth", &DeviceProfile::reload_bandwidth),
      rate("duplex_offload_bandwidth", &DeviceProfile::duplex_offload_bandwidth),
      rate("duplex_reload_bandwidth", &DeviceProfile::duplex_reload_bandwidth),
      {"pin_bandwidth", Range::kNotNegative,
       [](DeviceProfile& p, double v) { p.pin_bandwidth = v; }},
      rate("disk_write_bandwidth", &DeviceProfile::disk_write_bandwidth),
      rate("disk_read_bandwidth", &DeviceProfile::disk_read_bandwidth),
      time("launch_cost_ns", &DeviceProfile::launch_cost),
      time("transfer_latency_ns", &DeviceProfile::transfer_latency),
      time("kernel_floor_ns", &DeviceProfile::kernel_floor),
  };
  return all;
}

bool known(const std::string& key) {
  constexpr std::array<const char*, 4> kOthers{"name", "description", "backend", "sources"};
  return std::any_of(kOthers.begin(), kOthers.end(), [&](auto* k) { return key == k; }) ||
         std::any_of(fields().begin(), fields().end(), [&](auto& f) { return key == f.key; });
}

// Keeps the text, to report where in the file a key is.
class Parser {
 public:
  Parser(const std::string& json, const std::string& source) : text_(json), source_(source) {}

  DeviceProfile parse() {
    Json json = parse_located<Json>(source_, text_);
    if (!json.is_object()) throw DataError(source_, "a profile is a JSON object");
    for (const auto& [key, value] : json.items()) {
      if (!known(key)) throw at(key, "unknown key");
    }
    DeviceProfile profile;
    profile.name = string(json, "name");
    profile.description = string(json, "description");
    profile.backend = backend(json);
    for (const Field& field : fields()) field.set(profile, number(json, field));
    if (json.contains("sources")) check_sources(json["sources"]);
    return profile;
  }

 private:
  DataError at(const std::string& key, const std::string& what) const {
    const size_t found = text_.find('"' + key + '"');
    return DataError(source_, found == std::string::npos ? 0 : static_cast<int64_t>(found),
                     "\"" + key + "\": " + what);
  }
  const Json& get(const Json& json, const char* key) const {
    if (!json.contains(key)) throw at(key, "missing");
    return json[key];
  }
  std::string string(const Json& json, const char* key) const {
    const Json& value = get(json, key);
    if (!value.is_string() || value.get<std::string>().empty())
      throw at(key, "must be a non-empty string");
    return value.get<std::string>();
  }
  Backend backend(const Json& json) const {
    const std::string text = string(json, "backend");
    if (text == "cpu") return Backend::kCpu;
    if (text == "cuda") return Backend::kCuda;
    if (text == "model") return Backend::kModel;
    throw at("backend", "must be cpu, cuda or model, not '" + text + "'");
  }
  double number(const Json& json, const Field& field) const {
    const Json& json_value = get(json, field.key);
    if (!json_value.is_number()) throw at(field.key, "not a number");
    const double value = json_value.get<double>();
    // Numbers become 64-bit counts of bytes or nanoseconds.
    if (!std::isfinite(value) || value > 9e18) throw at(field.key, "out of range");
    if (value < 0 && field.range == Range::kNotNegative) {
      throw at(field.key, "must not be negative");
    }
    if (value <= 0 && field.range != Range::kNotNegative) {
      throw at(field.key, "must be positive");
    }
    if (field.range == Range::kShare && value > 1) throw at(field.key, "must be at most 1");
    return value;
  }
  void check_sources(const Json& sources) const {
    if (!sources.is_object()) throw at("sources", "not an object");
    for (const auto& [key, value] : sources.items()) {
      if (!known(key) || key == "sources") throw at(key, "is a source for an unknown key");
      if (!value.is_string()) throw at(key, "its source must be a string");
    }
  }

  const std::string& text_;
  const std::string& source_;
};

}  // namespace

DeviceProfile parse_profile(const std::string& json, const std::string& source) {
  return Parser(json, source).parse();
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const BuiltinProfile& profile : builtin_profiles()) names.emplace_back(profile.name);
  return names;
}

DeviceProfile load_profile(const std::string& name) {
  if (name.ends_with(".json")) {
    constexpr Bytes kMaxProfile{1 << 20};  // the largest here has 1.5 KiB
    return parse_profile(read_text_file(name, kMaxProfile), name);
  }
  for (const BuiltinProfile& profile : builtin_profiles()) {
    if (name == profile.name) return parse_profile(profile.json, name + ".json");
  }
  std::string names;
  for (const std::string& known_name : profile_names()) {
    names += (names.empty() ? "" : ", ") + known_name;
  }
  throw UsageError("unknown device profile '" + name + "'; available: " + names +
                   ", or a .json file");
}

}  // namespace tidemark
