#include "models/text/tokenizer/pre_tokenizer.h"

#include <utility>

#include "models/text/tokenizer/byte_level.h"
#include "models/text/tokenizer/character_classes.h"
#include "models/text/tokenizer/pattern.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

// From GPT-2's published encoder: contractions, words, numbers and other characters, each with
// the space in front; of longer white space, the last space belongs to the next word.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Replaces each pre-token by the parts that `split` returns, a TextRanges.
template <class Split>
PreTokenizer splitter(Split split) {
  return [split = std::move(split)](std::vector<PreToken>& tokens) {
    std::vector<PreToken> parts;
    parts.reserve(tokens.size());
    for (const PreToken& token : tokens) {
      for (const TextRange& range : split(std::string_view(token.text))) {
        parts.push_back(
            {std::string(range.of(token.text)), token.is_first && range.begin == 0});
      }
    }
    tokens = std::move(parts);
  };
}

PreTokenizer split_by_pattern(Pattern pattern, SplitBehavior behavior, bool invert = false) {
  return splitter([=, pattern = std::move(pattern)](std::string_view text) {
    return split_by(pattern.find_all(text), text.size(), behavior, invert);
  });
}

// Each code point of a class is a match.
template <class IsMatch>
PreTokenizer split_by_class(IsMatch is_match, SplitBehavior behavior) {
  return splitter([=](std::string_view text) {
    TextRanges matches;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (is_match(next_code_point(text, at))) matches.push_back({begin, at});
    }
    return split_by(matches, text.size(), behavior);
  });
}

// Words, and runs of other characters that are no white space.
TextRanges split_words(std::string_view text) {
  enum class Kind { kSpace, kWord, kOther };
  TextRanges parts;
  Kind last = Kind::kSpace;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = next_code_point(text, at);
    const Kind kind = is_word(code)    ? Kind::kWord
                      : is_space(code) ? Kind::kSpace
                                       : Kind::kOther;
    if (kind != Kind::kSpace && kind == last) {
      parts.back().end = at;
    } else if (kind != Kind::kSpace) {
      parts.push_back({begin, at});
    }
    last = kind;
  }
  return parts;
}

template <class Rewrite>
PreTokenizer rewriter(Rewrite rewrite) {
  return [rewrite = std::move(rewrite)](std::vector<PreToken>& tokens) {
    for (PreToken& token : tokens) rewrite(token);
  };
}

PreTokenizer split_by_regex(const std::string& pattern) {
  return split_by_pattern(Pattern(Regex(pattern, "tokenizer", pattern)),
                          SplitBehavior::kIsolated);
}

PreTokenizer bytes_to_characters() {
  return rewriter([](PreToken& token) { token.text = to_byte_level(token.text); });
}

PreTokenizer parse_metaspace(const JsonNode& json) {
  const std::string mark = json.text("replacement");
  if (count_code_points(mark) != 1) json.at("replacement").fail("is not one character");
  std::string scheme = json.text("prepend_scheme", "always");
  if (!json.flag("add_prefix_space", true)) scheme = "never";
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    json.at("prepend_scheme")
        .fail("is " + quote_text(scheme) + ", and not always, first or never");
  }
  const Pattern spaces((std::string(" ")));
  PreTokenizer marked = rewriter([=](PreToken& token) {
    token.text = spaces.replace_all(token.text, mark);
    const bool prepends = scheme == "always" || (scheme == "first" && token.is_first);
    if (prepends && !token.text.starts_with(mark)) token.text.insert(0, mark);
  });
  if (!json.flag("split", true)) return marked;
  return in_sequence(
      {std::move(marked), split_by_pattern(Pattern(mark), SplitBehavior::kMergedWithNext)});
}

PreTokenizer parse_sequence_of_steps(const JsonNode& json) {
  std::vector<PreTokenizer> steps;
  for (const JsonNode& step : json.list("pretokenizers")) {
    steps.push_back(parse_pre_tokenizer(step));
  }
  return in_sequence(std::move(steps));
}

}  // namespace

const char* const kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

PreTokenizer in_sequence(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](std::vector<PreToken>& tokens) {
    for (const PreTokenizer& step : steps) step(tokens);
  };
}

PreTokenizer byte_level_words_of(const std::string& pattern) {
  return in_sequence({split_by_regex(pattern), bytes_to_characters()});
}

PreTokenizer split_digits() { return split_by_class(is_number, SplitBehavior::kIsolated); }

PreTokenizer byte_level_words(bool add_prefix_space, bool use_regex) {
  std::vector<PreTokenizer> steps;
  if (add_prefix_space) {
    steps.push_back(rewriter([](PreToken& token) {
      if (!token.text.starts_with(' ')) token.text.insert(0, " ");
    }));
  }
  if (use_regex) steps.push_back(split_by_regex(kGpt2Words));
  steps.push_back(bytes_to_characters());
  return in_sequence(std::move(steps));
}

PreTokenizer parse_pre_tokenizer(const JsonNode& json) {
  const std::string type = json.text("type");
  if (type == "Sequence") return parse_sequence_of_steps(json);
  if (type == "ByteLevel") {
    return byte_level_words(json.flag("add_prefix_space", true), json.flag("use_regex", true));
  }
  if (type == "Split") {
    return split_by_pattern(Pattern(json.at("pattern")),
                            parse_split_behavior(json.at("behavior")),
                            json.flag("invert", false));
  }
  if (type == "Digits") {
    return json.flag("individual_digits", false)
               ? split_digits()
               : split_by_class(is_number, SplitBehavior::kContiguous);
  }
  if (type == "BertPreTokenizer") {
    return in_sequence({split_by_class(is_space, SplitBehavior::kRemoved),
                        split_by_class(is_punctuation, SplitBehavior::kIsolated)});
  }
  if (type == "Whitespace") return splitter(split_words);
  if (type == "WhitespaceSplit") return split_by_class(is_space, SplitBehavior::kRemoved);
  if (type == "Punctuation") {
    return split_by_class(is_punctuation, json.has("behavior")
                                              ? parse_split_behavior(json.at("behavior"))
                                              : SplitBehavior::kIsolated);
  }
  if (type == "Metaspace") return parse_metaspace(json);
  json.fail("has the type " + quote_text(type) + ", which is not supported");
}

}  // namespace tidemark::tokenizers
