// GGUF files of the networks that llama.cpp calls "llama" (Llama, Mistral, SmolLM) and "qwen2",
// as Hugging Face's transformers has these networks: names of tensors, order of rows,
// config.json.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "models/checkpoint/gguf.h"

namespace tidemark {

// Weights under the names of Hugging Face. In files of "llama", the rows of query and key
// weights are in another order: a head's rotary pairs lie side by side, as 0, d/2, 1, d/2 + 1,
// ... of its d rows. Reading puts them back. metadata() has the network's config.json as
// "config".
class GgufLlama final : public WeightSource {
 public:
  // DataError: another architecture, or a tensor that such a network does not have.
  explicit GgufLlama(const std::string& path);

 private:
  void read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) override;
  // How many heads the rows of a tensor of the file are made of; 0 if their order stays.
  int64_t paired_heads(const std::string& name);

  GgufFile file_;
  std::vector<size_t> places_;  // of each entry, in file_.entries()
  std::vector<int64_t> heads_;  // of each entry
};

// The name that Hugging Face gives to a tensor of such a file; empty if it has none.
std::string hugging_face_name(const std::string& gguf_name);

// The config.json of a file's network. DataError: another architecture; a value is missing, or
// says something that these networks do not do.
std::string config_from_gguf(GgufFile& file);

}  // namespace tidemark
