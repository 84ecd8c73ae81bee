// The tokenizer that comes with a model, and what the model's files say about chats and about
// tokens with a meaning: from a folder of Hugging Face, or from a GGUF file.
//
//   const ModelTokenizer model = open_tokenizer("SmolLM2-135M-Instruct");
//   std::vector<int32_t> ids = model.tokenizer.encode("Once upon a time");
//
// Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "models/text/tokenizer/chat_template.h"
#include "models/text/tokenizer/tokenizer.h"

namespace tidemark {

struct ModelTokenizer {
  Tokenizer tokenizer;
  // Empty: the files have no template, or `chat_fault` says why theirs cannot be used.
  std::optional<ChatTemplate> chat;
  std::string chat_fault;
  // The token that the tokenizer puts in front of every text. Many models have none.
  std::optional<int32_t> begin_of_text;
  // The token that ends a text (eos_token), and all at which generation stops: that one, others
  // that the files name, and the end of the assistant's turn.
  std::optional<int32_t> end_of_text;
  std::set<int32_t> stops;
  int32_t pad = 0;  // the files' own, else the end of a text, else 0
};

// `path` is a .gguf file, a folder with a tokenizer.json, or that file. Beside it,
// tokenizer_config.json, chat_template.jinja, generation_config.json and config.json are read
// if they are there. Throws DataError for a file that is missing, damaged or not supported,
// other than a chat template.
ModelTokenizer open_tokenizer(const std::string& path);

}  // namespace tidemark
