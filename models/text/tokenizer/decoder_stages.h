// The kinds of decoder stages (token_decoder.h), as Hugging Face's tokenizers define them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "models/text/tokenizer/pattern.h"
#include "models/text/tokenizer/token_decoder.h"

namespace tidemark::tokenizers {

// Characters that stand for bytes become those, and all pieces one text. A piece with another
// character stays as it is. What is not UTF-8 becomes U+FFFD.
class ByteLevelStage : public DecoderStage {
 public:
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink& next) override;
  bool fuses() const override { return true; }
  void hold_all() override { holds_all_ = true; }

 private:
  bool holds_all_ = false;
  std::string held_;
};

// Runs of "<0x0A>" become the text of those bytes; if it is not UTF-8, each byte U+FFFD.
class ByteFallbackStage : public DecoderStage {
 public:
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink& next) override;

 private:
  std::string held_;
};

// Joins all pieces.
class FuseStage : public DecoderStage {
 public:
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink& next) override;
  bool fuses() const override { return true; }
  bool take_parts() override { return true; }
  void hold_all() override { holds_all_ = true; }

 private:
  bool holds_all_ = false;
  std::string held_;
};

class ReplaceStage : public DecoderStage {
 public:
  ReplaceStage(Pattern pattern, std::string by)
      : pattern_(std::move(pattern)), by_(std::move(by)) {}
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink&) override {}

 private:
  Pattern pattern_;
  std::string by_;
};

// Drops up to `start` times `content` at a piece's start, and up to `stop` times at its end.
class StripStage : public DecoderStage {
 public:
  StripStage(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop), left_(start) {}
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink&) override {}
  bool take_parts() override { return in_parts_ = stop_ == 0; }

 private:
  std::string content_;
  int64_t start_, stop_;
  bool in_parts_ = false;
  int64_t left_;  // to drop at the start
};

// Joins pieces with `prefix` to the one before; a space comes before the others but the first.
// `cleanup` removes the space before punctuation and English contractions.
class WordPieceStage : public DecoderStage {
 public:
  WordPieceStage(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink&) override {}

 private:
  std::string prefix_;
  bool cleanup_;
  bool is_first_ = true;
};

// `replacement` becomes a space; if `drops_first`, it becomes nothing in the first piece.
class MetaspaceStage : public DecoderStage {
 public:
  MetaspaceStage(std::string replacement, bool drops_first)
      : replacement_(std::move(replacement)), drops_first_(drops_first) {}
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink&) override {}

 private:
  std::string replacement_;
  bool drops_first_;
  bool is_first_ = true;
};

// The suffix that ends words becomes a space; in the last piece, it becomes nothing.
class WordEndStage : public DecoderStage {
 public:
  explicit WordEndStage(std::string suffix) : suffix_(std::move(suffix)) {}
  std::unique_ptr<DecoderStage> fresh() const override;
  void take(std::string piece, const PieceSink& next) override;
  void end(const PieceSink& next) override;

 private:
  std::string suffix_;
  bool has_held_ = false;
  std::string held_;
};

}  // namespace tidemark::tokenizers
