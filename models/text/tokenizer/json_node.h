// A value in a JSON file, and its place there, such as "model.merges[3]", for messages.
//
// A value of null counts as missing. Every function throws a DataError that names the file and
// the place if the value is not what is asked for.
//
// Threads: immutable. The JSON and the file's name must outlive the node.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::tokenizers {

class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const std::string& file, std::string place = "")
      : value_(&value), file_(&file), place_(std::move(place)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return *file_; }
  const std::string& place() const { return place_; }
  [[noreturn]] void fail(const std::string& what) const;

  // Of an object.
  bool has(const std::string& key) const;
  JsonNode at(const std::string& key) const;
  std::string text(const std::string& key) const { return at(key).text(); }
  std::string text(const std::string& key, const std::string& otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;
  int64_t count(const std::string& key, int64_t otherwise) const;
  std::vector<JsonNode> list(const std::string& key) const { return at(key).list(); }

  // A token of a tokenizer_config.json: "</s>" or {"content": "</s>", ...}; empty if it is
  // missing.
  std::string token(const std::string& key) const;

  std::string text() const;
  bool flag() const;
  int32_t id() const;     // from 0 to 2^31 - 1
  int64_t count() const;  // at least 0
  std::vector<JsonNode> list() const;

 private:
  const nlohmann::json* value_;
  const std::string* file_;
  std::string place_;
};

// Quotes a text of a file in a message, cut if it is long.
std::string quote_text(const std::string& text);

}  // namespace tidemark::tokenizers
