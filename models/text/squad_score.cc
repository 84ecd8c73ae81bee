#include <algorithm>
#include <unordered_map>

#include "models/text/squad.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

std::vector<std::string_view> tokens_of(std::string_view normalized) {
  std::vector<std::string_view> tokens;
  for (size_t begin = 0; begin < normalized.size();) {
    const size_t end = std::min(normalized.find(' ', begin), normalized.size());
    tokens.push_back(normalized.substr(begin, end - begin));
    begin = end + 1;
  }
  return tokens;
}

// Does Python's re.sub(r"\b(a|an|the)\b", " ", text).
std::string without_articles(std::string_view text) {
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!is_word_character(next_code_point(text, at))) {
      kept.append(text, begin, at - begin);
      continue;
    }
    size_t end = at;
    while (at < text.size() && is_word_character(next_code_point(text, at))) end = at;
    at = end;
    const std::string_view word = text.substr(begin, end - begin);
    if (word == "a" || word == "an" || word == "the") {
      kept += ' ';
    } else {
      kept += word;
    }
  }
  return kept;
}

}  // namespace

std::string normalize_answer(std::string_view text) {
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const CodeText lowered = lower_case(next_code_point(text, at));
    for (const char32_t code : lowered.view()) {
      if (code >= 0x80 || !is_punctuation(code)) append_utf8(lower, code);
    }
  }
  const std::string words = without_articles(lower);
  std::string normalized;
  for (size_t at = 0; at < words.size();) {
    const size_t begin = at;
    if (is_python_space(next_code_point(words, at))) {
      if (!normalized.empty() && normalized.back() != ' ') normalized += ' ';
    } else {
      normalized.append(words, begin, at - begin);
    }
  }
  if (normalized.ends_with(' ')) normalized.pop_back();
  return normalized;
}

double squad_exact_match(std::string_view prediction, std::string_view truth) {
  return normalize_answer(prediction) == normalize_answer(truth) ? 1 : 0;
}

double squad_f1(std::string_view prediction, std::string_view truth) {
  const std::string a = normalize_answer(prediction), b = normalize_answer(truth);
  const std::vector<std::string_view> predicted = tokens_of(a), expected = tokens_of(b);
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string_view token : expected) ++counts[token];
  int64_t same = 0;
  for (const std::string_view token : predicted) same += counts[token]-- > 0 ? 1 : 0;
  if (same == 0) return 0;
  const double precision = static_cast<double>(same) / static_cast<double>(predicted.size());
  const double recall = static_cast<double>(same) / static_cast<double>(expected.size());
  return 2 * precision * recall / (precision + recall);
}

SquadScore squad_score(const std::vector<SquadExample>& examples,
                       const std::map<std::string, std::string>& predictions) {
  SquadScore score;
  for (const SquadExample& example : examples) {
    const auto prediction = predictions.find(example.id);
    if (prediction == predictions.end()) {
      ++score.unanswered;
      continue;
    }
    double exact_match = 0, f1 = 0;
    for (const SquadAnswer& answer : example.answers) {
      exact_match = std::max(exact_match, squad_exact_match(prediction->second, answer.text));
      f1 = std::max(f1, squad_f1(prediction->second, answer.text));
    }
    score.exact_match += exact_match;
    score.f1 += f1;
  }
  const auto count = static_cast<double>(std::max<size_t>(examples.size(), 1));
  score.exact_match *= 100 / count;
  score.f1 *= 100 / count;
  return score;
}

void SquadAnswers::add(const SquadFeature& feature, std::span<const float> start_logits,
                       std::span<const float> end_logits) {
  if (start_logits.size() < feature.tokens.size() ||
      end_logits.size() < feature.tokens.size()) {
    throw UsageError("[squad answers] " + std::to_string(start_logits.size()) + " and " +
                     std::to_string(end_logits.size()) + " logits for a feature of " +
                     std::to_string(feature.tokens.size()) + " tokens");
  }
  const auto shift = static_cast<size_t>(feature.context_begin);
  for (size_t first = 0; first < feature.places.size(); ++first) {
    if (!feature.best_here[first]) continue;
    const size_t end = std::min(feature.places.size(), first + static_cast<size_t>(longest_));
    for (size_t last = first; last < end; ++last) {
      const float score = start_logits[shift + first] + end_logits[shift + last];
      const Best candidate{score, {feature.places[first].begin, feature.places[last].end}};
      const auto [best, added] = best_.try_emplace(feature.example, candidate);
      if (!added && score > best->second.score) best->second = candidate;
    }
  }
}

std::map<std::string, std::string> SquadAnswers::texts() const {
  std::map<std::string, std::string> texts;
  for (const auto& [number, best] : best_) {
    const SquadExample& example = examples_[static_cast<size_t>(number)];
    texts[example.id] =
        example.context->substr(best.place.begin, best.place.end - best.place.begin);
  }
  return texts;
}

}  // namespace tidemark
