// What a tokenizer.json looks for in texts, a string or a regular expression, and how a text is
// split by it.
//
// Immutable once made; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/text/tokenizer/json_node.h"
#include "models/text/tokenizer/regex.h"
#include "models/text/tokenizer/text_range.h"

namespace tidemark::tokenizers {

class Pattern {
 public:
  // {"String": "..."} or {"Regex": "..."}. Throws DataError.
  explicit Pattern(const JsonNode& json);
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  explicit Pattern(std::string literal) : literal_(std::move(literal)) {}

  // All matches, without overlaps, from left to right. REQUIRES: `text` is UTF-8.
  TextRanges find_all(std::string_view text) const;
  // `text` with `by` instead of each match.
  std::string replace_all(std::string_view text, std::string_view by) const;

 private:
  std::optional<Regex> regex_;
  std::string literal_;  // without regex_
};

// Refuses a normalizer or decoder whose steps Replace and Prepend could together make a text
// more than 1024 times as long: a small file could ask for all memory. `steps`: the key under
// which a Sequence has its steps. Throws DataError.
void check_growth(const JsonNode& json, const std::string& steps);

// What becomes of a match when a text is split:     "a--b" by "-"
enum class SplitBehavior {
  kRemoved,             // dropped                   a b
  kIsolated,            // a part of its own         a - - b
  kMergedWithPrevious,  // ends the part before it   a- - b
  kMergedWithNext,      // begins the part behind    a - -b
  kContiguous,          // neighbours are one part   a -- b
};
SplitBehavior parse_split_behavior(const JsonNode& json);

// The parts of a text of `size` bytes, none of them empty. With `invert`, what lies between the
// matches is treated as the matches, and the other way round.
TextRanges split_by(const TextRanges& matches, size_t size, SplitBehavior behavior,
                    bool invert = false);

}  // namespace tidemark::tokenizers
