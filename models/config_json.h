// Reads a JSON object that describes a network or a tokenizer, as Hugging Face's config.json
// and tokenizer_config.json do. A value that is missing, of the wrong type or out of range
// throws a DataError that names the file and the key; a value of null counts as missing.
//
// Threads: immutable once made.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidemark {

class ConfigJson {
 public:
  // `from` is the file's name in messages. Throws DataError if `text` is not a JSON object.
  ConfigJson(const std::string& text, std::string from);
  // The file's content. Also throws DataError if it cannot be read or has more than 1 MiB.
  static ConfigJson read(const std::string& path);

  // Throws a DataError about a key.
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  bool has(const std::string& key) const;
  // Whether the key is there, if only with null.
  bool names(const std::string& key) const { return json_.contains(key); }
  std::optional<bool> flag(const std::string& key) const;
  bool is_text(const std::string& key) const { return has(key) && json_[key].is_string(); }
  std::string text(const std::string& key) const;
  // From 1 to 2^24.
  int64_t size(const std::string& key) const;
  // From 1 to 1000, far above any real network: the time of a dry run grows with the layers.
  int64_t layers(const std::string& key) const;
  // Greater than 0, at most 1e12; `otherwise` if the key is missing.
  double number(const std::string& key, double otherwise) const;
  // A JSON object within this one; nullopt if the key is missing.
  std::optional<ConfigJson> object(const std::string& key) const;
  // From 0 to below 1; `otherwise` if the key is missing.
  double share(const std::string& key, double otherwise) const;
  // An array of texts.
  std::vector<std::string> texts(const std::string& key) const;
  bool is_empty() const { return json_.empty(); }
  // Between 0 and 1; `otherwise` if the key is missing.
  double eps(const std::string& key, double otherwise) const;

  // Refuses a value that the network does not implement; a missing key is fine.
  void require(const std::string& key, const std::vector<std::string>& values) const;
  // Refuses a size `heads` that does not divide the size `width`.
  void require_divisor(const std::string& heads, const std::string& width) const;

 private:
  ConfigJson(nlohmann::json json, std::string from)
      : from_(std::move(from)), json_(std::move(json)) {}
  int64_t size_to(const std::string& key, int64_t most) const;

  std::string from_;
  nlohmann::json json_;
};

}  // namespace tidemark
