// The pieces that WordPiece splits words into, numbered from 0.
//
// A piece that starts with "##" continues a word. "[UNK]" is mandatory; [PAD], [CLS], [SEP] and
// [MASK] only where they are used.
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
  // Throws UsageError if [UNK] is missing, or a piece is empty or a duplicate.
  explicit Vocabulary(const std::vector<std::string>& pieces);

  // Reads a vocab.txt: one piece per line, numbered by line. Throws DataError for invalid
  // UTF-8, empty lines before the end, duplicate pieces, or a missing [UNK].
  static Vocabulary read(const std::string& path);
  // The same on the file's content; `name` is used in messages.
  static Vocabulary parse(const std::string& name, std::string_view text);
  // Throws DataError if it cannot be written.
  void write(const std::string& path) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  // REQUIRES: 0 <= id < size(); throws UsageError otherwise.
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
  // Returns false, and does nothing, if the piece is present already.
  bool add(std::string piece);
  int32_t special(std::string_view piece) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  size_t longest_ = 0;
  int32_t unknown_ = -1;
};

struct BuildVocabularyOptions {
  int64_t size = 8192;  // maximum number of pieces, including the five special ones
  bool uncased = true;
  int64_t least_pair_count = 2;  // rarer pairs are not merged
  // Maximum number of characters, the most frequent ones; words with other characters become
  // [UNK].
  int64_t characters = 1000;
};

// Learns pieces from a text: starts with its characters, then repeatedly joins the most
// frequent pair of neighbouring pieces within words (byte-pair encoding, Sennrich et al. 2016,
// with WordPiece's marks), as common trainers do. The result depends only on the text and the
// options. Throws UsageError if `size` is too small for the special pieces.
Vocabulary build_vocabulary(std::string_view text, const BuildVocabularyOptions& options);

}  // namespace tidemark
