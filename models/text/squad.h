// SQuAD v1.1 (Rajpurkar et al. 2016): questions whose answer is a passage of a given text.
//
//   std::vector<SquadExample> train = read_squad("train-v1.1.json");
//   std::vector<SquadFeature> features = squad_features(train, pieces, {});
//   SquadBatches batches(features, pieces.vocabulary().pad(), {.batch = 8});
//
// Positions in texts are bytes here; the file counts code points, which reading converts.
//
// Pure functions and values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/data/loader.h"
#include "models/text/token_batch.h"
#include "models/text/word_piece.h"

namespace tidemark {

struct ByteRange {
  size_t begin, end;
  bool operator==(const ByteRange&) const = default;
};

struct SquadAnswer {
  std::string text;
  // The answer's position in the context; nullopt if the context has other text there.
  std::optional<ByteRange> place;
};

struct SquadExample {
  std::string id;
  std::string question;
  std::shared_ptr<const std::string> context;  // shared by all questions about it
  std::vector<SquadAnswer> answers;            // at least one
};

// The standard JSON file, optionally gzipped. Throws DataError if the file is missing, damaged
// or of another form, if a question has no answer (as in version 2) or a duplicate id, or if an
// answer lies outside its context.
std::vector<SquadExample> read_squad(const std::string& path, int64_t limit = int64_t{1} << 30);
// The same on the file's content; `name` is used in messages.
std::vector<SquadExample> parse_squad(const std::string& name, std::string_view text);

struct SquadFeatureOptions {
  int64_t max_length = 384;    // of a sequence
  int64_t stride = 128;        // from one window of the context to the next, in tokens
  int64_t max_question = 64;   // longer questions are cut to this many tokens
  bool only_answered = false;  // omit windows that do not contain the answer
};

// [CLS] question [SEP] window of the context [SEP]. An example whose context does not fit
// yields several features with overlapping windows.
struct SquadFeature {
  int64_t example = 0;  // index of the example
  std::vector<int32_t> tokens;
  int64_t context_begin = 0;      // the first token of the window
  std::vector<ByteRange> places;  // of the window's tokens in the context
  // Whether, for this token, this window has the most context on both sides.
  std::vector<bool> best_here;
  // First and last token of the first answer, counted from the sequence's start. Both are 0 if
  // the answer is not wholly in this window, or its position is unknown.
  int64_t start = 0, end = 0;
};

// Throws UsageError if the options leave no space for the context.
std::vector<SquadFeature> squad_features(const std::vector<SquadExample>& examples,
                                         const WordPiece& pieces,
                                         const SquadFeatureOptions& options);

struct SpanBatch : TokenBatch {
  std::vector<int64_t> starts, ends;  // (N)
  std::vector<int64_t> features;      // (N): their indices
};

struct SquadBatchOptions {
  int64_t batch = 1;
  bool shuffle = true;  // a new order each epoch, from (seed, epoch)
  uint64_t seed = 0;
  // Sorts by length within pools of this many batches, to reduce padding; 0: no sorting. The
  // batches of an epoch then come in another random order.
  int64_t bucket = 0;
  int64_t pad_to_multiple_of = 1;  // the length of a batch
};

// Batches of varying length: each is as long as its longest sequence. A batch depends on
// (features, options, position) alone. An epoch's last batch may be smaller; with buckets and
// shuffling, the smaller batch may come earlier.
//
// Keeps a view of the features, which must outlive this object. Threads: one at a time.
class SquadBatches {
 public:
  // Throws UsageError if `features` is empty or the options are invalid.
  SquadBatches(std::span<const SquadFeature> features, int64_t pad,
               const SquadBatchOptions& options);
  int64_t batches_per_epoch() const;
  SpanBatch at(LoaderPosition position);  // throws UsageError outside of an epoch

 private:
  void arrange(int64_t epoch);

  std::span<const SquadFeature> features_;
  int64_t pad_;
  SquadBatchOptions options_;
  int64_t epoch_ = -1;                         // the epoch of batches_
  std::vector<std::vector<int64_t>> batches_;  // indices of features
};

// Collects predictions over all windows of each example.
class SquadAnswers {
 public:
  // REQUIRES: `examples` outlives this object.
  explicit SquadAnswers(const std::vector<SquadExample>& examples, int64_t longest = 30)
      : examples_(examples), longest_(longest) {}

  // Takes one logit per token of the feature; further logits are ignored. The prediction is the
  // passage with the largest sum of logits, among all passages of at most `longest` tokens
  // whose first token is best_here.
  void add(const SquadFeature& feature, std::span<const float> start_logits,
           std::span<const float> end_logits);

  // Predicted text by question id, for every example that had a window added.
  std::map<std::string, std::string> texts() const;

 private:
  struct Best {
    float score;
    ByteRange place;
  };
  const std::vector<SquadExample>& examples_;
  int64_t longest_;
  std::map<int64_t, Best> best_;
};

// As in the official script (evaluate-v1.1.py): lower case, without ASCII punctuation, articles
// and extra white space.
std::string normalize_answer(std::string_view text);
double squad_exact_match(std::string_view prediction, std::string_view truth);  // 0 or 1
double squad_f1(std::string_view prediction, std::string_view truth);           // 0 to 1

struct SquadScore {
  double exact_match = 0, f1 = 0;  // percent, over all examples
  int64_t unanswered = 0;          // examples without a prediction, which count as wrong
};
// Scores each prediction against the answer that fits it best.
SquadScore squad_score(const std::vector<SquadExample>& examples,
                       const std::map<std::string, std::string>& predictions);

}  // namespace tidemark
