#include "models/text/tokenizer/pattern.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tidemark::tokenizers {
namespace {

double length(const std::string& text) { return static_cast<double>(text.size()); }

// How many times as long a text may become.
double growth_of(const JsonNode& json, const std::string& steps) {
  const std::string type = json.text("type");
  if (type == "Prepend") return 1 + length(json.text("prepend"));
  if (type == "Replace") {
    const double by = length(json.text("content"));
    const JsonNode pattern = json.at("pattern");
    if (!pattern.has("String")) return 1 + by;  // each place may have an empty match
    return std::max(1.0, by / std::max(1.0, length(pattern.text("String"))));
  }
  double growth = 1;
  if (type == "Sequence") {
    for (const JsonNode& step : json.list(steps)) growth *= growth_of(step, steps);
  }
  return growth;
}

}  // namespace

Pattern::Pattern(const JsonNode& json) {
  if (json.has("Regex")) {
    const JsonNode regex = json.at("Regex");
    regex_.emplace(regex.text(), regex.file(), regex.place());
  } else if (json.has("String")) {
    literal_ = json.text("String");
    if (literal_.empty()) json.fail("is an empty string");
  } else {
    json.fail("has neither \"String\" nor \"Regex\"");
  }
}

TextRanges Pattern::find_all(std::string_view text) const {
  if (regex_) return regex_->find_all(text);
  TextRanges found;
  for (size_t at = text.find(literal_); at != std::string_view::npos;
       at = text.find(literal_, at + literal_.size())) {
    found.push_back({at, at + literal_.size()});
  }
  return found;
}

std::string Pattern::replace_all(std::string_view text, std::string_view by) const {
  std::string replaced;
  size_t reached = 0;
  for (const TextRange& match : find_all(text)) {
    replaced += text.substr(reached, match.begin - reached);
    replaced += by;
    reached = match.end;
  }
  replaced += text.substr(reached);
  return replaced;
}

void check_growth(const JsonNode& json, const std::string& steps) {
  constexpr double kMost = 1024;
  if (growth_of(json, steps) > kMost) json.fail("may make a text over 1024 times as long");
}

SplitBehavior parse_split_behavior(const JsonNode& json) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames{{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  const std::string name = json.text();
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  json.fail("is " + quote_text(name) + ", which is no way to split");
}

TextRanges split_by(const TextRanges& matches, size_t size, SplitBehavior behavior,
                    bool invert) {
  struct Part {
    TextRange range;
    bool is_match;
  };
  std::vector<Part> parts;  // matches, and what lies between them
  size_t reached = 0;
  for (const TextRange& match : matches) {
    if (reached < match.begin) parts.push_back({{reached, match.begin}, invert});
    parts.push_back({match, !invert});
    reached = match.end;
  }
  if (reached < size) parts.push_back({{reached, size}, invert});

  TextRanges split;
  const bool from_right = behavior == SplitBehavior::kMergedWithNext;
  if (from_right) std::reverse(parts.begin(), parts.end());
  bool previous = false;  // whether the previous part is a match
  for (const auto& [range, is_match] : parts) {
    bool joins = false;  // the previous range
    switch (behavior) {
      case SplitBehavior::kRemoved:
      case SplitBehavior::kIsolated: break;
      case SplitBehavior::kMergedWithPrevious:
      case SplitBehavior::kMergedWithNext: joins = is_match && !previous; break;
      case SplitBehavior::kContiguous: joins = is_match == previous; break;
    }
    previous = is_match;
    if (joins && !split.empty()) {
      split.back() = {std::min(split.back().begin, range.begin),
                      std::max(split.back().end, range.end)};
    } else if (!is_match || behavior != SplitBehavior::kRemoved) {
      split.push_back(range);
    }
  }
  if (from_right) std::reverse(split.begin(), split.end());
  std::erase_if(split, [](const TextRange& range) { return range.size() == 0; });
  return split;
}

}  // namespace tidemark::tokenizers
