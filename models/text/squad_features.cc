#include <algorithm>

#include "models/text/squad.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

struct Window {
  size_t begin, end;  // tokens of the context
};

std::vector<Window> windows_of(size_t tokens, size_t room, size_t stride) {
  std::vector<Window> windows;
  for (size_t begin = 0;; begin += std::min(room, stride)) {
    const size_t end = std::min(begin + room, tokens);
    windows.push_back({begin, end});
    if (end == tokens) return windows;
  }
}

// BERT's measure of the context that a token has in a window: the smaller side decides and,
// between equals, the window's length.
double context_score(const Window& window, size_t token) {
  return static_cast<double>(std::min(token - window.begin, window.end - 1 - token)) +
         0.01 * static_cast<double>(window.end - window.begin);
}

bool is_best(const std::vector<Window>& windows, size_t index, size_t token) {
  const double score = context_score(windows[index], token);
  for (size_t i = index; i-- > 0 && windows[i].end > token;) {
    if (context_score(windows[i], token) >= score) return false;  // the first wins among equals
  }
  for (size_t i = index + 1; i < windows.size() && windows[i].begin <= token; ++i) {
    if (context_score(windows[i], token) > score) return false;
  }
  return true;
}

// The tokens that overlap the passage, as [first, last]; none if there are none.
std::optional<Window> tokens_in(const std::vector<Token>& tokens, const ByteRange& passage) {
  const auto first = std::partition_point(
      tokens.begin(), tokens.end(), [&](const Token& t) { return t.end <= passage.begin; });
  const auto after = std::partition_point(
      first, tokens.end(), [&](const Token& t) { return t.begin < passage.end; });
  if (first == after) return std::nullopt;
  return Window{static_cast<size_t>(first - tokens.begin()),
                static_cast<size_t>(after - tokens.begin() - 1)};
}

}  // namespace

std::vector<SquadFeature> squad_features(const std::vector<SquadExample>& examples,
                                         const WordPiece& pieces,
                                         const SquadFeatureOptions& options) {
  constexpr int64_t kSpecialTokens = 3;
  if (options.stride < 1 || options.max_question < 0 ||
      options.max_length <= options.max_question + kSpecialTokens) {
    throw UsageError("[squad_features] sequences of " + std::to_string(options.max_length) +
                     " tokens with questions of up to " + std::to_string(options.max_question) +
                     " and a stride of " + std::to_string(options.stride) +
                     " leave no space for a context");
  }
  const Vocabulary& vocabulary = pieces.vocabulary();
  std::vector<SquadFeature> features;
  std::shared_ptr<const std::string> tokenized;  // consecutive questions share a context
  std::vector<Token> context;
  for (size_t number = 0; number < examples.size(); ++number) {
    const SquadExample& example = examples[number];
    if (tokenized != example.context) {
      tokenized = example.context;
      context = pieces.tokenize(*tokenized);
    }
    std::vector<int32_t> question = pieces.ids(example.question);
    if (question.size() > static_cast<size_t>(options.max_question)) {
      question.resize(static_cast<size_t>(options.max_question));
    }
    std::optional<Window> answer;
    if (!example.answers.empty() && example.answers.front().place) {
      answer = tokens_in(context, *example.answers.front().place);
    }
    const size_t room =
        static_cast<size_t>(options.max_length - kSpecialTokens) - question.size();
    const std::vector<Window> windows =
        windows_of(context.size(), room, static_cast<size_t>(options.stride));
    for (size_t index = 0; index < windows.size(); ++index) {
      const Window& window = windows[index];
      const bool answered = answer && answer->begin >= window.begin && answer->end < window.end;
      if (options.only_answered && !answered) continue;
      SquadFeature feature;
      feature.example = static_cast<int64_t>(number);
      feature.tokens.push_back(vocabulary.classify());
      feature.tokens.insert(feature.tokens.end(), question.begin(), question.end());
      feature.tokens.push_back(vocabulary.separator());
      feature.context_begin = static_cast<int64_t>(feature.tokens.size());
      for (size_t i = window.begin; i < window.end; ++i) {
        feature.tokens.push_back(context[i].id);
        feature.places.push_back({context[i].begin, context[i].end});
        feature.best_here.push_back(is_best(windows, index, i));
      }
      feature.tokens.push_back(vocabulary.separator());
      if (answered) {
        const auto shift = feature.context_begin - static_cast<int64_t>(window.begin);
        feature.start = static_cast<int64_t>(answer->begin) + shift;
        feature.end = static_cast<int64_t>(answer->end) + shift;
      }
      features.push_back(std::move(feature));
    }
  }
  return features;
}

}  // namespace tidemark
