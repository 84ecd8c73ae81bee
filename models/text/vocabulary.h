// The pieces that WordPiece splits words into, numbered from 0.
//
// A piece that starts with "##" continues a word. "[UNK]" must be there; [PAD], [CLS], [SEP]
// and [MASK] where they are used.
//
// Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidemark {

inline constexpr std::string_view kPadPiece = "[PAD]", kUnknownPiece = "[UNK]",
                                  kClassPiece = "[CLS]", kSeparatorPiece = "[SEP]",
                                  kMaskPiece = "[MASK]", kContinuation = "##";

class Vocabulary {
 public:
  // Throws UsageError if [UNK] is missing, a piece is empty or twice there.
  explicit Vocabulary(const std::vector<std::string>& pieces);

  // vocab.txt: a piece a line, numbered by line. Throws DataError on what is not UTF-8, empty
  // lines before the end, pieces twice there, and a missing [UNK].
  static Vocabulary read(const std::string& path);
  // The same on its content; `name` is for messages.
  static Vocabulary parse(const std::string& name, std::string_view text);
  // Throws DataError if it cannot be written.
  void write(const std::string& path) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  // REQUIRES: 0 <= id < size(); throws UsageError.
  const std::string& piece(int64_t id) const;
  std::optional<int32_t> find(std::string_view piece) const;

  // Each throws UsageError if the vocabulary has no such piece.
  int32_t pad() const { return special(kPadPiece); }
  int32_t unknown() const { return unknown_; }
  int32_t classify() const { return special(kClassPiece); }
  int32_t separator() const { return special(kSeparatorPiece); }
  int32_t mask() const { return special(kMaskPiece); }

  // In bytes.
  size_t longest_piece() const { return longest_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  Vocabulary() = default;
  // False, and nothing done, if it is there already.
  bool add(std::string piece);
  int32_t special(std::string_view piece) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  size_t longest_ = 0;
  int32_t unknown_ = -1;
};

struct BuildVocabularyOptions {
  int64_t size = 8192;  // pieces at most, the five special ones included
  bool uncased = true;
  int64_t least_pair_count = 2;  // pairs seen less often are not merged
  // Characters at most, the most frequent ones; words with others become [UNK].
  int64_t characters = 1000;
};

// Learns pieces from a text: its characters, then the most frequent pair of neighbouring pieces
// within words joined into one, again and again (byte-pair encoding, Sennrich et al. 2016, with
// WordPiece's marks), as the trainers in common use do. The same text and options give the same
// vocabulary. Throws UsageError if `size` has no room for the special pieces.
Vocabulary build_vocabulary(std::string_view text, const BuildVocabularyOptions& options);

}  // namespace tidemark
