// Splits a pre-token (roughly a word) into pieces of the vocabulary.
//
// Immutable once made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/text/tokenizer/piece_table.h"

namespace tidemark::tokenizers {

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  // Appends the ids of `word`'s pieces. REQUIRES: `word` is UTF-8 and not empty.
  virtual void split(std::string_view word, std::vector<int32_t>& ids) const = 0;
  // An upper bound on host memory, without the pieces.
  virtual Bytes bytes() const { return Bytes(1 << 10); }
};

// WordPiece: from the left, the longest piece each time; a word that cannot be split so is
// unknown.
class LongestPieces : public SubwordModel {
 public:
  struct Options {
    int32_t unknown = 0;
    std::string continuation;  // in front of pieces that do not begin a word
    size_t longest_word = 0;   // in characters; longer ones are unknown
  };
  // `pieces` must outlive the model.
  LongestPieces(const PieceTable& pieces, Options options)
      : pieces_(pieces), options_(std::move(options)) {}
  void split(std::string_view word, std::vector<int32_t>& ids) const override;

 private:
  const PieceTable& pieces_;
  Options options_;
};

// Byte-pair encoding (Sennrich et al. 2016): starts with characters, and joins the neighbours
// whose merge has the lowest rank, the leftmost of them first, until no merge applies.
// O(n log n) for n characters.
class PairMerges : public SubwordModel {
 public:
  struct Options {
    std::optional<int32_t> unknown;  // without it, unknown characters vanish
    bool fuse_unknown = false;       // neighbouring unknown characters become one piece
    bool byte_fallback = false;      // unknown characters become their bytes, "<0x0A>"
    bool ignore_merges = false;      // a word that is a piece is not split
    std::string continuation;        // in front of characters that do not begin a word
    std::string word_end;            // behind the last character of a word
  };
  // `pieces` must outlive the model.
  PairMerges(const PieceTable& pieces, Options options);

  // Joining `left` and `right` gives `joined`; lower ranks go first. A later merge of the same
  // pair replaces it.
  void add_merge(int32_t left, int32_t right, int64_t rank, int32_t joined);
  void split(std::string_view word, std::vector<int32_t>& ids) const override;
  Bytes bytes() const override;

 private:
  struct Merge {
    int64_t rank;
    int32_t joined;
  };
  const Merge* find(int32_t left, int32_t right) const;
  void start(std::string_view word, std::vector<int32_t>& ids) const;

  const PieceTable& pieces_;
  Options options_;
  std::vector<std::optional<int32_t>> bytes_;   // the pieces of bytes, with byte_fallback
  std::unordered_map<uint64_t, Merge> merges_;  // by both ids
};

}  // namespace tidemark::tokenizers
