#include "runtime/schedule/json_fields.h"

namespace tidemark::json_fields {

void check_format(const Json& json, const std::string& source, const char* what,
                  const char* format, int version) {
  if (!json.is_object() || json.value("format", Json()) != format) {
    throw DataError(source,
                    "not " + std::string(what) + ": \"format\" is not \"" + format + "\"");
  }
  if (json.value("version", Json()) != version) {
    throw DataError(source,
                    "version: only version " + std::to_string(version) + " can be read");
  }
}

std::string Fields::place(const std::string& key) const {
  return at_.empty() || key.empty() ? at_ + key : at_ + "." + key;
}

void Fields::fail(const std::string& key, const std::string& what) const {
  const std::string at = place(key);
  throw DataError(source_, (at.empty() ? "" : at + ": ") + what);
}

const Json* Fields::find(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

int64_t Fields::integer(const Json& value, const std::string& at) const {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    throw DataError(source_, at + ": not a 64-bit integer");
  }
  return value.get<int64_t>();
}

uint32_t Fields::id_of(const Json& value, const std::string& at) const {
  const int64_t number = integer(value, at);
  if (number < 0 || number > UINT32_MAX)
    throw DataError(source_, at + ": not an unsigned 32-bit integer");
  return static_cast<uint32_t>(number);
}

int64_t Fields::number(const char* key) const {
  const Json* value = find(key);
  return value ? integer(*value, place(key)) : 0;
}

uint32_t Fields::id(const char* key) const {
  const Json* value = find(key);
  return value ? id_of(*value, place(key)) : 0;
}

bool Fields::flag(const char* key, bool otherwise) const {
  const Json* value = find(key);
  if (value && !value->is_boolean()) fail(key, "must be true or false");
  return value ? value->get<bool>() : otherwise;
}

std::vector<int64_t> Fields::numbers(const char* key) const {
  std::vector<int64_t> found;
  const Json* list = find(key);
  if (list && !list->is_array()) fail(key, "not a list");
  for (size_t i = 0; list && i < list->size(); ++i) {
    found.push_back(integer((*list)[i], place(key)));
  }
  return found;
}

std::vector<uint32_t> Fields::ids(const char* key) const {
  std::vector<uint32_t> found;
  for (const int64_t number : numbers(key)) found.push_back(id_of(number, place(key)));
  return found;
}

std::string Fields::text(const char* key) const {
  const Json* value = find(key);
  if (!value || !value->is_string()) fail(key, "not a string");
  return value->get<std::string>();
}

}  // namespace tidemark::json_fields
