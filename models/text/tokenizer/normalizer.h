// Rewrites a text before it is split: Unicode's forms, case, accents, replacements.
//
// Any thread.
#pragma once

#include <functional>
#include <string>

#include "models/text/tokenizer/json_node.h"

namespace tidemark::tokenizers {

// Takes UTF-8 and returns UTF-8. May throw DataError, from a regular expression.
using Normalizer = std::function<std::string(std::string)>;

// The "normalizer" of a tokenizer.json: Sequence, NFC, NFD, NFKC, NFKD, Lowercase,
// StripAccents, Prepend, Replace, BertNormalizer, Strip. Throws DataError; other types are
// refused.
Normalizer parse_normalizer(const JsonNode& json);

Normalizer compose();  // NFC
// Spaces become U+2581, as in SentencePiece. With `prefix`, the text begins with another one.
Normalizer mark_spaces(bool prefix);

}  // namespace tidemark::tokenizers
