#include "models/text/tokenizer/json_node.h"

#include <limits>

#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark::tokenizers {
namespace {

constexpr size_t kMaxQuoted = 60;
constexpr int64_t kMaxCount = int64_t{1} << 40;

std::string describe_place(const std::string& place) {
  return place.empty() ? "the file" : place;
}

}  // namespace

std::string quote_text(const std::string& text) {
  if (text.size() <= kMaxQuoted) return '\'' + text + '\'';
  const std::string cut = text.substr(0, kMaxQuoted);
  return '\'' + cut.substr(0, cut.size() - incomplete_utf8_suffix(cut)) + "...'";
}

void JsonNode::fail(const std::string& what) const {
  throw DataError(*file_, describe_place(place_) + ' ' + what);
}

bool JsonNode::has(const std::string& key) const {
  if (!value_->is_object()) fail("is not an object");
  const auto member = value_->find(key);
  return member != value_->end() && !member->is_null();
}

JsonNode JsonNode::at(const std::string& key) const {
  const std::string place = place_.empty() ? key : place_ + '.' + key;
  if (!has(key)) throw DataError(*file_, place + " is missing");
  return {*value_->find(key), *file_, place};
}

std::string JsonNode::token(const std::string& key) const {
  if (!has(key)) return {};
  const JsonNode node = at(key);
  return node.value().is_object() ? node.text("content") : node.text();
}

std::string JsonNode::text(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

bool JsonNode::flag(const std::string& key, bool otherwise) const {
  return has(key) ? at(key).flag() : otherwise;
}

int64_t JsonNode::count(const std::string& key, int64_t otherwise) const {
  return has(key) ? at(key).count() : otherwise;
}

std::string JsonNode::text() const {
  if (!value_->is_string()) fail("is not a string");
  return value_->get<std::string>();
}

bool JsonNode::flag() const {
  if (!value_->is_boolean()) fail("is not true or false");
  return value_->get<bool>();
}

int32_t JsonNode::id() const {
  constexpr auto kMaxId = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > kMaxId) {
    fail("is not a number from 0 to " + std::to_string(kMaxId));
  }
  return value_->get<int32_t>();
}

int64_t JsonNode::count() const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > uint64_t{kMaxCount}) {
    fail("is not a number from 0 to " + std::to_string(kMaxCount));
  }
  return value_->get<int64_t>();
}

std::vector<JsonNode> JsonNode::list() const {
  if (!value_->is_array()) fail("is not an array");
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    nodes.emplace_back((*value_)[i], *file_, place_ + '[' + std::to_string(i) + ']');
  }
  return nodes;
}

}  // namespace tidemark::tokenizers
