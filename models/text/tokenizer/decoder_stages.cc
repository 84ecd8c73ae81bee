#include "models/text/tokenizer/decoder_stages.h"

#include <array>

#include "models/text/tokenizer/byte_level.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

std::string replace_literal(const std::string& text, const std::string& what,
                            std::string_view by) {
  return what.empty() ? text : Pattern(what).replace_all(text, by);
}

// The rules of Hugging Face's tokenizers, in their order.
std::string clean_up(std::string text) {
  constexpr std::array<std::pair<const char*, const char*>, 11> kRules{{{" .", "."},
                                                                        {" ?", "?"},
                                                                        {" !", "!"},
                                                                        {" ,", ","},
                                                                        {" ' ", "'"},
                                                                        {" n't", "n't"},
                                                                        {" 'm", "'m"},
                                                                        {" do not", " don't"},
                                                                        {" 's", "'s"},
                                                                        {" 've", "'ve"},
                                                                        {" 're", "'re"}}};
  for (const auto& [what, by] : kRules) text = replace_literal(text, what, by);
  return text;
}

}  // namespace

std::unique_ptr<DecoderStage> ByteLevelStage::fresh() const {
  auto stage = std::make_unique<ByteLevelStage>();
  stage->holds_all_ = holds_all_;
  return stage;
}

void ByteLevelStage::take(std::string piece, const PieceSink& next) {
  held_ += from_byte_level(piece).value_or(piece);
  if (holds_all_) return;
  const size_t complete = held_.size() - incomplete_utf8_suffix(held_);
  if (complete == 0) return;
  next(replace_invalid_utf8(std::string_view(held_).substr(0, complete)));
  held_.erase(0, complete);
}

void ByteLevelStage::end(const PieceSink& next) {
  if (!held_.empty()) next(replace_invalid_utf8(std::exchange(held_, {})));
}

std::unique_ptr<DecoderStage> ByteFallbackStage::fresh() const {
  return std::make_unique<ByteFallbackStage>();
}

void ByteFallbackStage::take(std::string piece, const PieceSink& next) {
  if (const auto byte = parse_byte_piece(piece)) {
    held_ += static_cast<char>(*byte);
    return;
  }
  end(next);
  next(std::move(piece));
}

void ByteFallbackStage::end(const PieceSink& next) {
  if (held_.empty()) return;
  std::string text = std::exchange(held_, {});
  if (!is_utf8(text)) {
    const size_t count = text.size();
    text.clear();
    for (size_t i = 0; i < count; ++i) append_utf8(text, kReplacement);
  }
  next(std::move(text));
}

std::unique_ptr<DecoderStage> FuseStage::fresh() const {
  auto stage = std::make_unique<FuseStage>();
  stage->holds_all_ = holds_all_;
  return stage;
}

void FuseStage::take(std::string piece, const PieceSink& next) {
  if (holds_all_) {
    held_ += piece;
  } else {
    next(std::move(piece));
  }
}

void FuseStage::end(const PieceSink& next) {
  if (!held_.empty()) next(std::exchange(held_, {}));
}

std::unique_ptr<DecoderStage> ReplaceStage::fresh() const {
  return std::make_unique<ReplaceStage>(pattern_, by_);
}

void ReplaceStage::take(std::string piece, const PieceSink& next) {
  next(pattern_.replace_all(piece, by_));
}

std::unique_ptr<DecoderStage> StripStage::fresh() const {
  auto stage = std::make_unique<StripStage>(content_, start_, stop_);
  stage->in_parts_ = in_parts_;
  return stage;
}

void StripStage::take(std::string piece, const PieceSink& next) {
  std::string_view rest = piece;
  if (!in_parts_) left_ = start_;
  for (; left_ > 0 && !rest.empty() && rest.starts_with(content_); --left_) {
    rest.remove_prefix(content_.size());
  }
  if (!rest.empty()) left_ = 0;
  for (int64_t i = 0; i < stop_ && !rest.empty() && rest.ends_with(content_); ++i) {
    rest.remove_suffix(content_.size());
  }
  next(std::string(rest));
}

std::unique_ptr<DecoderStage> WordPieceStage::fresh() const {
  return std::make_unique<WordPieceStage>(prefix_, cleanup_);
}

void WordPieceStage::take(std::string piece, const PieceSink& next) {
  if (!std::exchange(is_first_, false)) {
    if (!prefix_.empty() && piece.starts_with(prefix_)) {
      piece.erase(0, prefix_.size());
    } else {
      piece.insert(0, " ");
    }
  }
  next(cleanup_ ? clean_up(std::move(piece)) : std::move(piece));
}

std::unique_ptr<DecoderStage> MetaspaceStage::fresh() const {
  return std::make_unique<MetaspaceStage>(replacement_, drops_first_);
}

void MetaspaceStage::take(std::string piece, const PieceSink& next) {
  const bool drops = std::exchange(is_first_, false) && drops_first_;
  next(replace_literal(piece, replacement_, drops ? "" : " "));
}

std::unique_ptr<DecoderStage> WordEndStage::fresh() const {
  return std::make_unique<WordEndStage>(suffix_);
}

void WordEndStage::take(std::string piece, const PieceSink& next) {
  if (has_held_) next(replace_literal(held_, suffix_, " "));
  held_ = std::move(piece);
  has_held_ = true;
}

void WordEndStage::end(const PieceSink& next) {
  if (has_held_) next(replace_literal(held_, suffix_, ""));
  has_held_ = false;
}

}  // namespace tidemark::tokenizers
