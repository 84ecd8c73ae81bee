// Weights in several safetensors files, and an index that says which file has which tensor:
//
//   {"metadata": {...}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}
//
// Opening reads the headers of all shards, one after another; at most one shard is open at any
// time, the one that was read last. Shards are in the index's folder. Tensors that the index
// does not name are ignored. DataErrors: a shard is missing or has a path instead of a name;
// the index names a tensor twice, or one that its shard lacks; a second shard has the tensor
// too.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/safetensors.h"

namespace tidemark {

class ShardedSafetensors final : public WeightSource {
 public:
  explicit ShardedSafetensors(const std::string& index);

 private:
  using WeightMap = std::map<std::string, std::string, std::less<>>;

  void add_shard(const std::string& name, const WeightMap& map,
                 std::vector<WeightEntry>& entries);
  void read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) override;
  const std::string& file_of(const WeightEntry& entry) const override;

  std::vector<std::string> shards_;      // paths
  std::vector<size_t> shard_of_;         // of each entry
  std::optional<SafetensorsFile> open_;  // the shard that was read last
};

// The 'weight_map' of an index: the shard of each tensor. `file` is the index's name in
// messages. Throws DataError.
std::map<std::string, std::string, std::less<>> parse_weight_map(const std::string& file,
                                                                 std::string_view text);

}  // namespace tidemark
