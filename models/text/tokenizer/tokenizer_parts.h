// What a Tokenizer consists of; tokenizer_json.cc and tokenizer_gguf.cc make it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "models/text/tokenizer/added_tokens.h"
#include "models/text/tokenizer/normalizer.h"
#include "models/text/tokenizer/piece_table.h"
#include "models/text/tokenizer/pre_tokenizer.h"
#include "models/text/tokenizer/sequence_template.h"
#include "models/text/tokenizer/subword_model.h"
#include "models/text/tokenizer/token_decoder.h"

namespace tidemark::tokenizers {

struct TokenizerParts {
  PieceTable model_pieces;  // the model's own
  PieceTable added_pieces;  // of added tokens that the model lacks
  // Added tokens that normalization changes, as it leaves them: they decode to that.
  std::unordered_map<int32_t, std::string> normalized_pieces;
  std::unique_ptr<const SubwordModel> model;
  AddedTokens in_text;         // found before normalization
  AddedTokens in_normalized;   // found after it
  Normalizer normalizer;       // may be empty
  PreTokenizer pre_tokenizer;  // may be empty
  SequenceTemplate sequence;
  DecoderStages decoder;

  const std::string* piece(int32_t id) const {
    const auto normalized = normalized_pieces.find(id);
    if (normalized != normalized_pieces.end()) return &normalized->second;
    const std::string* const added = added_pieces.piece(id);
    return added != nullptr ? added : model_pieces.piece(id);
  }
  bool is_special(int32_t id) const {
    return in_text.is_special(id) || in_normalized.is_special(id);
  }
};

}  // namespace tidemark::tokenizers
