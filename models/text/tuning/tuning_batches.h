// Batches of examples to fine-tune a language model on.
//
//   TuningBatches batches(data, data.split(0.05).first, {.rows = 8, .length = 512});
//   const TuningBatch batch = batches.at(step);
//
// Packed, rows have exactly `length` tokens and hold several examples, which do not see each
// other:
//            tokens     a a a a b b c c c . .
//            starts     0 0 0 0 4 4 6 6 6 9 10      padding sees only itself
//            labels     a a a - b - c c - - -       the next token; - is kIgnoreLabel
// Not packed, a row has one example, and a batch is as long as its longest one, rounded up to
// `multiple`: few different shapes. Examples of similar length share a batch.
//
// A batch depends on (data, range, options, step) alone. An epoch has each example of the range
// once. Its last batch has as many rows as the others; rows without an example are padding.
// Which examples share a packed row is the same in all epochs, so all have as many steps.
//
// Threads: one at a time, and not while the data are used otherwise.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/text/token_batch.h"
#include "models/text/tuning/tuning_data.h"

namespace tidemark {

struct TuningBatchOptions {
  int64_t rows = 8;
  int64_t length = 1024;  // of packed rows; the most of others. At least data.longest()
  bool packing = false;
  bool shuffle = true;  // a new order each epoch, from (seed, epoch); else the file's
  uint64_t seed = 0;
  int64_t multiple = 64;
  // Sorts by length within as many batches at once, so that less is padded. 1: does not.
  int64_t bucket = 16;
};

struct TuningBatch {
  int64_t rows = 0, length = 0;   // N, L
  int64_t used = 0;               // tokens that are not padding
  int64_t counted = 0;            // labels that are not kIgnoreLabel
  std::vector<int64_t> tokens{};  // (N, L)
  std::vector<int64_t> labels{};  // (N, L): the next token of the same example, or kIgnoreLabel
  std::vector<int32_t> starts{};  // (N, L): where in its row the token's example begins;
                                  // attention sees keys from there on
};

class TuningBatches {
 public:
  // Throws UsageError for options out of range, an empty range, or examples longer than rows.
  // REQUIRES: `data` outlives the batches.
  TuningBatches(TuningData& data, ExampleRange range, const TuningBatchOptions& options);

  int64_t steps_per_epoch() const;
  // Step 0 begins epoch 0; later epochs follow. Throws DataError if the file has changed.
  TuningBatch at(int64_t step);

  const TuningBatchOptions& options() const { return options_; }
  ExampleRange range() const { return range_; }
  // The longest that a batch can be.
  int64_t longest() const;
  // Tokens of examples as a share of the places in the batches of epoch 0; 1 is best.
  double filled();
  // Of the data, the range and the options: equal for equal batches.
  uint64_t fingerprint() const;
  // An upper bound on host memory beside that of the data, with one batch.
  Bytes bytes() const;

 private:
  int64_t row_count() const;
  void pack();
  void arrange(int64_t epoch);
  // Of the epoch that is arranged: a step's rows in order_, and the length of its batch.
  std::pair<int64_t, int64_t> rows_of(int64_t step) const;
  int64_t length_of(int64_t step) const;
  // The length of a batch whose longest example has so many tokens.
  int64_t rounded(int64_t longest) const;

  TuningData& data_;
  ExampleRange range_;
  TuningBatchOptions options_;
  int64_t epoch_ = -1;          // of order_
  std::vector<int64_t> order_;  // rows of an epoch; each is an example unless packed
  // Packed: row i has packed_[row_begins_[i]] up to packed_[row_begins_[i + 1]].
  std::vector<int64_t> packed_, row_begins_;
};

}  // namespace tidemark
