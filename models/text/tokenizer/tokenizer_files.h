// A GGUF file's tokenizer as the files that transformers reads.
//
// Any thread.
#pragma once

#include <string>
#include <vector>

#include "models/text/tokenizer/tokenizer_gguf.h"

namespace tidemark {

// The tokenizer.json of a vocabulary that tokenizer_from_gguf() accepts. Both give the same
// ids, unless a text can be cut into overlapping pieces of equal scores: the file orders such
// pieces by the ids of their parts, tokenizer_from_gguf() by their place in the text. `file` is
// used in messages. Throws DataError for pieces that are not UTF-8.
std::string tokenizer_json(const std::string& file, const GgufVocabulary& vocabulary);

struct NamedText {
  std::string name, text;
};
// tokenizer.json, tokenizer_config.json, with the chat template, and generation_config.json,
// with the tokens at which generation stops. Throws DataError, also for what is not UTF-8.
std::vector<NamedText> gguf_tokenizer_files(const std::string& gguf);

}  // namespace tidemark
