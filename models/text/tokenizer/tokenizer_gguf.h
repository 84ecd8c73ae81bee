// A tokenizer from the metadata of a GGUF file, as llama.cpp writes it: the keys that begin
// with "tokenizer.ggml.".
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/checkpoint/gguf.h"
#include "models/text/tokenizer/tokenizer.h"

namespace tidemark {

// Each field is named after its key. What a file lacks stays empty.
struct GgufVocabulary {
  std::string
      model;        // "gpt2": bytes as characters; "llama": SentencePiece's pieces with scores
  std::string pre;  // of gpt2: which words there are
  std::vector<std::string> tokens;
  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; all normal if empty.
  std::vector<int32_t> token_type;
  std::vector<float> scores;        // of llama
  std::vector<std::string> merges;  // of gpt2: "a b"
  std::optional<int32_t> bos_token_id, eos_token_id, unknown_token_id, padding_token_id;
  std::set<int32_t> stops;  // eos_token_id, eot_token_id, eom_token_id
  std::optional<bool> add_bos_token, add_eos_token, add_space_prefix;

  // Whether a text begins, or ends, with bos_token_id, eos_token_id.
  bool begins() const { return add_bos_token.value_or(model == "llama" || pre == "llama-bpe"); }
  bool ends() const { return add_eos_token.value_or(false); }
  bool has_space_prefix() const { return add_space_prefix.value_or(true); }
};

// Throws DataError for values of a wrong type.
GgufVocabulary read_gguf_vocabulary(GgufFile& file);

// `pre` is one of gpt-2, default, llama-bpe, qwen2 and smollm. "default", or none, means that
// the file's writer did not know; it is taken as gpt-2. Qwen2's texts are normalized (NFC), as
// by its tokenizer.json. Throws DataError, with `file` and the key, for what contradicts itself
// or is not supported.
Tokenizer tokenizer_from_gguf(const std::string& file, const GgufVocabulary& vocabulary);

}  // namespace tidemark
