// A text as one stream of tokens, and fixed-length batches of it for language modelling.
//
//   TextCorpus corpus = TextCorpus::read("data/text/jargon-4.4.7.txt.gz", pieces);
//   MaskedBatches batches(corpus, pieces.vocabulary(), {.batch = 32, .length = 128, .seed =
//   1}); MaskedBatch batch = batches.at({.epoch = 0, .batch = 7});
//
// A batch depends on (tokens, options, position) alone, so a position saved in a checkpoint
// resumes with the same batches. Sequences do not overlap. Tokens left over at the end of the
// text, and sequences left over at the end of an epoch, are not used.
//
// Threads: a corpus is immutable; one thread at a time may use a set of batches. Batches keep a
// view of the corpus, which must outlive them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/data/loader.h"
#include "models/text/token_batch.h"
#include "models/text/word_piece.h"

namespace tidemark {

// A text file, decompressed if it is gzip. Throws DataError if the file is missing or damaged,
// longer than `limit` bytes after decompression, or not UTF-8.
std::string read_text(const std::string& path, int64_t limit = int64_t{1} << 30);

class TextCorpus {
 public:
  explicit TextCorpus(std::vector<int32_t> tokens) : tokens_(std::move(tokens)) {}
  TextCorpus(std::string_view text, const WordPiece& pieces) : tokens_(pieces.ids(text)) {}
  static TextCorpus read(const std::string& path, const WordPiece& pieces) {
    return TextCorpus(read_text(path), pieces);
  }

  std::span<const int32_t> tokens() const { return tokens_; }
  // The beginning, to train on, and the last `share` of the text, to evaluate on.
  std::pair<TextCorpus, TextCorpus> split(double share) const;

 private:
  std::vector<int32_t> tokens_;
};

struct CorpusBatchOptions {
  int64_t batch = 1;
  int64_t length = 128;  // of a sequence, including special tokens
  bool shuffle = true;   // a new order each epoch, from (seed, epoch)
  uint64_t seed = 0;     // for order and masking
};

// Decides which sequences make up a batch; shared by both kinds of batches.
class SequenceOrder {
 public:
  // Throws UsageError if the sequences do not fill one batch.
  SequenceOrder(int64_t sequences, const CorpusBatchOptions& options);
  int64_t batches_per_epoch() const { return sequences_ / options_.batch; }
  // Indices of the sequences in a batch. Throws UsageError for a position outside an epoch.
  std::vector<int64_t> at(LoaderPosition position);
  const CorpusBatchOptions& options() const { return options_; }
  int64_t sequences() const { return sequences_; }

 private:
  int64_t sequences_;
  CorpusBatchOptions options_;
  int64_t epoch_ = -1;  // the epoch of order_
  std::vector<int64_t> order_;
};

// `count` sequences in the order of (seed, epoch).
std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch);

struct MaskedBatch : TokenBatch {
  std::vector<int64_t> labels;  // (N, L): the original token, or kIgnoreLabel
  // The same, compacted to P per row, ascending: positions (n L + l), and the tokens there.
  int64_t per_row = 0;                    // P
  std::vector<int64_t> masked_positions;  // (N, P)
  std::vector<int64_t> masked_labels;     // (N, P)
};

// Number of tokens to predict in a sequence of `length`. Throws UsageError if the sequence has
// no space for text.
int64_t masked_per_row(int64_t length);

// Masked language modelling as in BERT: [CLS] text [SEP]. 15 % of the text's tokens (at least
// one) are to be predicted; 80 % of those become [MASK], 10 % a token drawn from the
// vocabulary, and 10 % stay. Drawn anew in every epoch.
class MaskedBatches {
 public:
  MaskedBatches(const TextCorpus& corpus, const Vocabulary& vocabulary,
                const CorpusBatchOptions& options);
  int64_t batches_per_epoch() const { return order_.batches_per_epoch(); }
  MaskedBatch at(LoaderPosition position);

 private:
  std::span<const int32_t> tokens_;
  int64_t vocabulary_size_;
  int32_t classify_, separator_, mask_, pad_;
  SequenceOrder order_;
};

struct CausalBatch : TokenBatch {
  std::vector<int64_t> labels;  // (N, L): the next token
};

// Each token predicts the next; no special tokens.
class CausalBatches {
 public:
  CausalBatches(const TextCorpus& corpus, const CorpusBatchOptions& options);
  int64_t batches_per_epoch() const { return order_.batches_per_epoch(); }
  CausalBatch at(LoaderPosition position);

 private:
  std::span<const int32_t> tokens_;
  SequenceOrder order_;
};

}  // namespace tidemark
