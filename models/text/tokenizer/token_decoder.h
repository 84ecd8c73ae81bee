// Pieces back to text: a chain of stages, each of which takes pieces and passes others on. What
// the last stage passes on is the text.
//
// A stage holds back what later pieces may change, such as bytes that do not complete a
// character yet, so text can be shown while a model generates it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/text/tokenizer/json_node.h"

namespace tidemark::tokenizers {

// Called with each piece that a stage passes on.
using PieceSink = std::function<void(std::string)>;

// Used by one thread at a time.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  // A stage of the same kind that has seen nothing.
  virtual std::unique_ptr<DecoderStage> fresh() const = 0;
  virtual void take(std::string piece, const PieceSink& next) = 0;
  // Passes on what is held back.
  virtual void end(const PieceSink& next) = 0;

  // Whether it makes one piece of all pieces.
  virtual bool fuses() const { return false; }
  // Prepares a stage behind one that fuses. Returns whether it can take the one piece in parts.
  virtual bool take_parts() { return false; }
  // Prepares a stage that fuses to pass on its piece as a whole, at the end.
  virtual void hold_all() {}
};
using DecoderStages = std::vector<std::shared_ptr<const DecoderStage>>;

// The "decoder" of a tokenizer.json: Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip,
// WordPiece, Metaspace, BPEDecoder. Throws DataError; other types are refused. nullptr stands
// for no decoder: pieces are joined by spaces.
DecoderStages parse_decoder(const JsonNode* json);

// For vocabularies of bytes as characters (byte_level.h).
DecoderStages byte_level_decoder();
// For vocabularies as SentencePiece makes them: U+2581 for a space, byte fallback. A space at
// the start is dropped if `strip_first_space`.
DecoderStages sentence_piece_decoder(bool strip_first_space);

// One text being decoded. Used by one thread at a time.
class Decoding {
 public:
  explicit Decoding(const DecoderStages& stages);
  // Return what is certain of the text and was not returned before.
  std::string add(std::string piece);
  std::string end();

 private:
  void take(size_t stage, std::string piece);

  std::vector<std::unique_ptr<DecoderStage>> stages_;
  std::string text_;
};

}  // namespace tidemark::tokenizers
