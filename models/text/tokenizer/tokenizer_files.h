// A GGUF file's tokenizer as the files that transformers reads.
//
// Any thread.
#pragma once

#include <string>

#include "models/text/tokenizer/tokenizer_gguf.h"

namespace tidemark {

// The tokenizer.json of a vocabulary that tokenizer_from_gguf() accepts: both give the same
// ids. `file` is used in messages. Throws DataError for pieces that are not UTF-8.
std::string tokenizer_json(const std::string& file, const GgufVocabulary& vocabulary);

// Writes tokenizer.json, tokenizer_config.json, with the chat template, and
// generation_config.json, with the tokens at which generation stops, into an existing folder.
// Throws DataError.
void save_gguf_tokenizer(const std::string& gguf, const std::string& folder);

}  // namespace tidemark
