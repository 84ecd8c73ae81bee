#include "models/checkpoint/sharded_safetensors.h"

#include <filesystem>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMaxIndex{int64_t{1} << 26};  // those of the largest models have 10 MB
constexpr const char* kWeightMap = "weight_map";

[[noreturn]] void fail_about(const std::string& index, const std::string& tensor,
                             const std::string& what) {
  throw DataError(index, "tensor " + quoted_name(tensor) + ": " + what);
}

// A path could lead out of the folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

}  // namespace

std::map<std::string, std::string, std::less<>> parse_weight_map(const std::string& file,
                                                                 std::string_view text) {
  const auto json = parse_located<nlohmann::json>(file, text, kMaxJsonDepth, JsonKeys::kUnique);
  if (!json.is_object() || !json.contains(kWeightMap) || !json[kWeightMap].is_object()) {
    throw DataError(file, "has no object 'weight_map', so it is not the index of shards");
  }
  std::map<std::string, std::string, std::less<>> map;
  for (const auto& [tensor, shard] : json[kWeightMap].items()) {
    if (!shard.is_string()) fail_about(file, tensor, "its shard is no text");
    auto name = shard.get<std::string>();
    if (!is_plain_name(name)) {
      fail_about(file, tensor,
                 "its shard is " + quoted_name(name) +
                     "; must be the name of a file in the same folder");
    }
    map.emplace(tensor, std::move(name));
  }
  return map;
}

ShardedSafetensors::ShardedSafetensors(const std::string& index) : WeightSource(index) {
  const WeightMap map = parse_weight_map(index, read_text_file(index, kMaxIndex));
  std::set<std::string_view> names;
  for (const auto& [tensor, shard] : map) names.insert(shard);
  std::vector<WeightEntry> entries;
  for (const std::string_view name : names) add_shard(std::string(name), map, entries);
  set_entries(std::move(entries));
  for (const auto& [tensor, shard] : map) {
    if (find(tensor) == nullptr) fail_about(path(), tensor, "is not in its shard " + shard);
  }
}

void ShardedSafetensors::add_shard(const std::string& name, const WeightMap& map,
                                   std::vector<WeightEntry>& entries) {
  const fs::path shard = fs::path(path()).parent_path() / name;
  std::error_code ignored;
  if (!fs::exists(shard, ignored)) {
    throw DataError(path(), "the shard " + shard.string() + " is missing");
  }
  shards_.push_back(shard.string());
  open_.emplace(shards_.back());
  for (const WeightEntry& entry : open_->entries()) {
    const auto listed = map.find(entry.name);
    if (listed == map.end()) continue;
    if (listed->second != name) {
      open_->fail(entry, "is in two shards; the index gives it to " + listed->second);
    }
    entries.push_back(entry);
    shard_of_.push_back(shards_.size() - 1);
  }
}

const std::string& ShardedSafetensors::file_of(const WeightEntry& entry) const {
  return shards_[shard_of_[index_of(entry)]];
}

void ShardedSafetensors::read_range(const WeightEntry& entry, Bytes offset,
                                    std::span<std::byte> out) {
  const std::string& shard = file_of(entry);
  if (!open_ || open_->path() != shard) {
    open_.reset();
    open_.emplace(shard);
  }
  const WeightEntry* there = open_->find(entry.name);
  if (there == nullptr || there->type != entry.type || !(there->shape == entry.shape)) {
    fail(entry, "the file has changed since it was opened");
  }
  open_->read(*there, offset, out);
}

}  // namespace tidemark
