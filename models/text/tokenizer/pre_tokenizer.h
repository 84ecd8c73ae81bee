// Splits a text into pre-tokens (roughly words), which the model then splits into pieces.
//
// Any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/text/tokenizer/json_node.h"

namespace tidemark::tokenizers {

struct PreToken {
  std::string text;       // UTF-8, not empty
  bool is_first = false;  // whether it begins the whole text
};

// Replaces the pre-tokens by smaller ones. May throw DataError, from a regular expression.
using PreTokenizer = std::function<void(std::vector<PreToken>&)>;

// The "pre_tokenizer" of a tokenizer.json: Sequence, ByteLevel, Split, Digits,
// BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Metaspace. Throws DataError;
// other types are refused.
PreTokenizer parse_pre_tokenizer(const JsonNode& json);

// The words of Llama 3 and Qwen2, for byte_level_words_of: as GPT-2's, but line breaks stand
// apart, contractions may have capitals, any character may come before a word, and a number has
// at most three digits, or one.
extern const char* const kLlama3Words;
extern const char* const kQwen2Words;
// The matches of a regular expression, and what lies between them, as byte-level text.
PreTokenizer byte_level_words_of(const std::string& pattern);
// Splits off each number of one digit.
PreTokenizer split_digits();
// GPT-2's words, if `use_regex`; then bytes become characters (byte_level.h).
PreTokenizer byte_level_words(bool add_prefix_space, bool use_regex);
PreTokenizer in_sequence(std::vector<PreTokenizer> steps);

}  // namespace tidemark::tokenizers
