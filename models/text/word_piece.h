// Text to numbers and back, as BERT does it: words (basic_tokenizer.h), each split into the
// longest pieces of the vocabulary from the left; a word that cannot be is [UNK] as a whole.
//
// Immutable once made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/basic_tokenizer.h"
#include "models/text/vocabulary.h"

namespace tidemark {

struct WordPieceOptions {
  bool uncased = true;
  size_t longest_word = 100;  // in characters; longer ones are [UNK]
};

struct Token {
  int32_t id;
  size_t begin, end;  // the bytes [begin, end) of the text that it stands for
  bool operator==(const Token&) const = default;
};

class WordPiece {
 public:
  explicit WordPiece(Vocabulary vocabulary, const WordPieceOptions& options = {})
      : vocabulary_(std::move(vocabulary)), options_(options) {}

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // No [CLS] or [SEP] is added.
  std::vector<Token> tokenize(std::string_view text) const;
  std::vector<int32_t> ids(std::string_view text) const;
  std::vector<std::string> pieces(std::string_view text) const;

  // Pieces joined to words, words by single spaces; [PAD], [CLS] and [SEP] left out. What
  // tokenizing dropped (case, accents, spacing) does not come back. Throws UsageError for a
  // number that is no piece.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  void split(const Word& word, std::string& scratch, std::vector<Token>& into) const;

  Vocabulary vocabulary_;
  WordPieceOptions options_;
};

}  // namespace tidemark
