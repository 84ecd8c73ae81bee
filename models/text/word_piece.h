// Converts text to numbers and back, as in BERT: each word (basic_tokenizer.h) is split from
// the left into the longest pieces in the vocabulary. A word that cannot be split becomes one
// [UNK].
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
  size_t begin, end;  // the bytes [begin, end) of the text that it came from
  bool operator==(const Token&) const = default;
};

class WordPiece {
 public:
  explicit WordPiece(Vocabulary vocabulary, const WordPieceOptions& options = {})
      : vocabulary_(std::move(vocabulary)), options_(options) {}

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Adds neither [CLS] nor [SEP].
  std::vector<Token> tokenize(std::string_view text) const;
  std::vector<int32_t> ids(std::string_view text) const;
  std::vector<std::string> pieces(std::string_view text) const;

  // Joins pieces to words, and words by single spaces; omits [PAD], [CLS] and [SEP]. Whatever
  // tokenizing dropped (case, accents, spacing) stays lost. Throws UsageError for a number that
  // is not a piece.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  void split(const Word& word, std::string& scratch, std::vector<Token>& into) const;

  Vocabulary vocabulary_;
  WordPieceOptions options_;
};

}  // namespace tidemark
