#include "models/config_json.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;

constexpr Bytes kMaxFile{1 << 20};  // those of real folders have a few KiB
constexpr int64_t kMaxSize = 1 << 24;
constexpr int64_t kMaxLayers = 1000;
constexpr double kMaxNumber = 1e12;

}  // namespace

ConfigJson::ConfigJson(const std::string& text, std::string from)
    : from_(std::move(from)), json_(Json::parse(text, nullptr, /*allow_exceptions=*/false)) {
  if (!json_.is_object()) throw DataError(from_, "is not a JSON object");
}

ConfigJson ConfigJson::read(const std::string& path) {
  return {read_text_file(path, kMaxFile), path};
}

void ConfigJson::fail(const std::string& key, const std::string& what) const {
  throw DataError(from_, '\'' + key + "' " + what);
}

bool ConfigJson::has(const std::string& key) const {
  return json_.contains(key) && !json_[key].is_null();
}

std::optional<bool> ConfigJson::flag(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!json_[key].is_boolean()) fail(key, "must be true or false");
  return json_[key].get<bool>();
}

std::string ConfigJson::text(const std::string& key) const {
  if (!has(key)) fail(key, "is missing");
  if (!json_[key].is_string()) fail(key, "is not a string");
  return json_[key].get<std::string>();
}

int64_t ConfigJson::size_to(const std::string& key, int64_t most) const {
  if (!has(key)) fail(key, "is missing");
  const Json& value = json_[key];
  if (!value.is_number_integer() || value < 1 || value > most) {
    fail(key, "is not a number from 1 to " + std::to_string(most));
  }
  return value.get<int64_t>();
}

int64_t ConfigJson::size(const std::string& key) const { return size_to(key, kMaxSize); }

int64_t ConfigJson::layers(const std::string& key) const { return size_to(key, kMaxLayers); }

double ConfigJson::number(const std::string& key, double otherwise) const {
  if (!has(key)) return otherwise;
  const Json& value = json_[key];
  if (!value.is_number() || !(value > 0.0 && value <= kMaxNumber)) {
    fail(key, "is not a number above 0");
  }
  return value.get<double>();
}

std::optional<ConfigJson> ConfigJson::object(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!json_[key].is_object()) fail(key, "is not a JSON object");
  return ConfigJson(json_[key], from_ + ", '" + key + '\'');
}

double ConfigJson::share(const std::string& key, double otherwise) const {
  if (!has(key)) return otherwise;
  const Json& value = json_[key];
  if (!value.is_number() || !(value >= 0.0 && value < 1.0)) {
    fail(key, "is not a number from 0 to below 1");
  }
  return value.get<double>();
}

std::vector<std::string> ConfigJson::texts(const std::string& key) const {
  if (!has(key)) fail(key, "is missing");
  std::vector<std::string> texts;
  for (const Json& each : json_[key]) {
    if (!json_[key].is_array() || !each.is_string()) fail(key, "is not an array of texts");
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

double ConfigJson::eps(const std::string& key, double otherwise) const {
  if (!has(key)) return otherwise;
  const Json& value = json_[key];
  if (!value.is_number() || !(value > 0.0 && value < 1.0)) {
    fail(key, "is not a number between 0 and 1");
  }
  return value.get<double>();
}

void ConfigJson::require(const std::string& key, const std::vector<std::string>& values) const {
  if (!has(key)) return;
  const std::string value = text(key);
  if (std::find(values.begin(), values.end(), value) != values.end()) return;
  fail(key, "is '" + value + "', which is not supported; '" + values[0] + "' is");
}

void ConfigJson::require_divisor(const std::string& heads, const std::string& width) const {
  if (size(width) % size(heads) != 0) fail(heads, "does not divide '" + width + '\'');
}

}  // namespace tidemark
