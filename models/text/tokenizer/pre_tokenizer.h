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

// Splits by a regular expression, whose matches are parts of their own.
PreTokenizer split_by_regex(const std::string& pattern);
// Splits off each number of one digit.
PreTokenizer split_digits();
// GPT-2's words, if `use_regex`; then bytes become characters (byte_level.h).
PreTokenizer byte_level_words(bool add_prefix_space, bool use_regex);
PreTokenizer in_sequence(std::vector<PreTokenizer> steps);

}  // namespace tidemark::tokenizers
