// The data of train_bert (a text, or questions about texts) as batches of tokens.
//
// A training batch depends on (data, flags, step) alone, so a resumed run gets the same batches
// as an uninterrupted one.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/common/bert_flags.h"
#include "examples/common/training.h"
#include "runtime/core/units.h"

namespace tidemark {

// The input of a step, as in TextInput. Without data, all lists are null, and the sizes are as
// with data.
struct TextBatch {
  using Ids = std::shared_ptr<const std::vector<int64_t>>;
  int64_t rows = 0, length = 0;
  int64_t asked = 0;  // tokens to predict; squad: rows
  Ids tokens{};       // (rows, length)
  Ids segments{};     // (rows, length), squad: 1 in the text
  Ids lengths{};      // (rows), squad
  Ids positions{};    // (asked), mlm: row * length + offset
  Ids labels{};       // (asked): the token there; clm: the one after it; squad: first token
  Ids ends{};         // (rows), squad: last token
};

class TextData {
 public:
  virtual ~TextData() = default;

  virtual TextBatch train(int64_t step) = 0;
  virtual int64_t batches_per_epoch() const = 0;  // 0: unknown before reading
  // Batches to evaluate on; may be 0.
  virtual int64_t test_batches() const = 0;
  virtual TextBatch test(int64_t number) = 0;

  // Squad: collects the logits (rows, length) of test batch `number`; the scores over all
  // batches. By default there are none.
  virtual void answer(int64_t /*number*/, std::span<const float> /*start*/,
                      std::span<const float> /*end*/) {}
  virtual Evaluation score() const { return {}; }

  virtual Bytes bytes() const { return Bytes(0); }
  // Equal tokens give equal fingerprints; empty without data.
  virtual std::string fingerprint() const { return {}; }

  int64_t vocabulary_size = 0;  // rows of the network's table
  int64_t pad = 0;              // the row for padding
};

// Reads the data; learns a vocabulary if none is given. Throws UsageError, DataError.
std::unique_ptr<TextData> open_text(const BertFlags& flags);
// Gives only sizes, at the longest sequences; reads nothing but the vocabulary. Throws
// UsageError, DataError.
std::unique_ptr<TextData> describe_text(const BertFlags& flags);

}  // namespace tidemark
