#include "examples/common/text_data.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "examples/common/bundled.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/weight_file.h"
#include "models/checksum.h"
#include "models/text/squad.h"
#include "models/text/text_corpus.h"
#include "models/text/vocabulary.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr double kTestShare = 0.05;   // share of a text
constexpr int64_t kTestBatches = 16;  // at most
constexpr int64_t kBucket = 16;       // batches whose sequences are sorted by length

// The number of rows of the word table in the weights; 0 if there is none.
int64_t rows_in(const std::string& weights, const BertFlags& flags) {
  const auto file = open_weights(weights);
  const WeightEntry* table = file->find(hugging_face_names(*file)(flags.network().words)[0]);
  return table != nullptr && table->shape.rank() == 2 ? table->shape[0] : 0;
}

// The number of rows, from what is known before the text is read, so that a dry run can tell
// what the run will need. A table may have more rows than there are words.
int64_t rows_of(const BertFlags& flags, const std::optional<Vocabulary>& vocabulary) {
  const bool learnt = flags.vocabulary.empty();
  const int64_t known = learnt ? 0 : vocabulary->size();
  if (flags.vocabulary_size == 0) {
    if (!flags.load.empty()) return std::max(known, rows_in(flags.load, flags));
    if (known > 0) return known;
    return flags.network().learnt_vocabulary.value_or(flags.network().vocabulary);
  }
  if (flags.vocabulary_size < known) {
    throw UsageError("--vocab-size: " + flags.vocabulary + " has " + std::to_string(known) +
                     " pieces");
  }
  return flags.vocabulary_size;
}

std::optional<Vocabulary> given_vocabulary(const BertFlags& flags) {
  if (flags.vocabulary.empty()) return std::nullopt;
  return Vocabulary::read(flags.vocabulary);
}

// Uses the given vocabulary, or learns one from the text.
template <class Text>
WordPiece make_pieces(const BertFlags& flags, const Text& text) {
  std::optional<Vocabulary> vocabulary = given_vocabulary(flags);
  if (!vocabulary) {
    vocabulary = build_vocabulary(
        text(), {.size = rows_of(flags, std::nullopt), .uncased = !flags.keeps_case()});
  }
  if (!flags.save_vocabulary.empty()) vocabulary->write(flags.save_vocabulary);
  return WordPiece(*std::move(vocabulary), {.uncased = !flags.keeps_case()});
}

template <class T>
void add_to(Checksum& checksum, const std::vector<T>& values) {
  checksum.add(std::as_bytes(std::span(values)));
}

TextBatch::Ids shared(std::vector<int64_t> values) {
  return std::make_shared<const std::vector<int64_t>>(std::move(values));
}

TextBatch to_batch(MaskedBatch from) {
  TextBatch batch{.rows = from.rows, .length = from.length};
  batch.asked = from.rows * from.per_row;
  batch.tokens = shared(std::move(from.tokens));
  batch.positions = shared(std::move(from.masked_positions));
  batch.labels = shared(std::move(from.masked_labels));
  return batch;
}

TextBatch to_batch(CausalBatch from) {
  TextBatch batch{.rows = from.rows, .length = from.length};
  batch.asked = from.rows * from.length;
  batch.tokens = shared(std::move(from.tokens));
  batch.labels = shared(std::move(from.labels));
  return batch;
}

TextBatch to_batch(SpanBatch from) {
  TextBatch batch{.rows = from.rows, .length = from.length, .asked = from.rows};
  batch.tokens = shared(std::move(from.tokens));
  batch.segments = shared(std::move(from.segments));
  batch.lengths = shared(std::move(from.lengths));
  batch.labels = shared(std::move(from.starts));
  batch.ends = shared(std::move(from.ends));
  return batch;
}

template <class Batches>
LoaderPosition place_of(int64_t step, const Batches& batches) {
  return {.epoch = step / batches.batches_per_epoch(),
          .batch = step % batches.batches_per_epoch()};
}

class SizesAlone final : public TextData {
 public:
  explicit SizesAlone(const BertFlags& flags) {
    const std::optional<Vocabulary> vocabulary = given_vocabulary(flags);
    vocabulary_size = rows_of(flags, vocabulary);
    if (vocabulary && flags.task != "clm") pad = vocabulary->pad();
    batch_ = {.rows = flags.batch, .length = flags.length, .asked = flags.batch};
    if (flags.task == "mlm") batch_.asked *= masked_per_row(flags.length);
    if (flags.task == "clm") batch_.asked *= flags.length;
  }
  TextBatch train(int64_t /*step*/) override { return batch_; }
  int64_t batches_per_epoch() const override { return 0; }
  int64_t test_batches() const override { return 1; }
  TextBatch test(int64_t /*number*/) override { return batch_; }

 private:
  TextBatch batch_;
};

// Pretraining on a text whose last part is for testing.
template <class Batches>
class CorpusData final : public TextData {
 public:
  CorpusData(const BertFlags& flags, const WordPiece& pieces, std::string_view text)
      : parts_(TextCorpus(text, pieces).split(kTestShare)),
        batches_(make(parts_.first, pieces, options_of(flags))) {
    vocabulary_size = rows_of(flags, pieces.vocabulary());
    if (flags.task != "clm") pad = pieces.vocabulary().pad();
    CorpusBatchOptions options = options_of(flags);
    options.shuffle = false;
    // No more sequences than there are; one token is left for special tokens and the last
    // label.
    const auto tokens = static_cast<int64_t>(parts_.second.tokens().size());
    options.batch = std::min(options.batch, (tokens - 1) / options.length);
    if (options.batch > 0) test_.emplace(make(parts_.second, pieces, options));
  }

  TextBatch train(int64_t step) override {
    return to_batch(batches_.at(place_of(step, batches_)));
  }
  int64_t batches_per_epoch() const override { return batches_.batches_per_epoch(); }
  int64_t test_batches() const override {
    return test_ ? std::min(kTestBatches, test_->batches_per_epoch()) : 0;
  }
  TextBatch test(int64_t number) override {
    return to_batch(test_->at({.epoch = 0, .batch = number}));
  }
  Bytes bytes() const override {
    const size_t tokens = parts_.first.tokens().size() + parts_.second.tokens().size();
    return Bytes(static_cast<int64_t>(tokens * sizeof(int32_t)));
  }
  std::string fingerprint() const override {
    Checksum checksum;
    checksum.add(std::as_bytes(parts_.first.tokens()));
    return checksum.hex();
  }

 private:
  static CorpusBatchOptions options_of(const BertFlags& flags) {
    return {.batch = flags.batch, .length = flags.length, .seed = flags.seed};
  }
  static Batches make(const TextCorpus& corpus, const WordPiece& pieces,
                      const CorpusBatchOptions& options) {
    if constexpr (std::is_same_v<Batches, MaskedBatches>) {
      return Batches(corpus, pieces.vocabulary(), options);
    } else {
      return Batches(corpus, options);
    }
  }

  const std::pair<TextCorpus, TextCorpus> parts_;
  Batches batches_;
  std::optional<Batches> test_;
};

// Sequences are padded to a multiple of this, so that few lengths occur.
int64_t length_unit(int64_t length) {
  int64_t unit = 32;
  while (length % unit != 0) unit /= 2;
  return unit;
}

class SquadData final : public TextData {
 public:
  explicit SquadData(const BertFlags& flags) {
    if (!flags.evaluate) examples_ = read_squad(flags.data);
    if (!flags.test.empty()) test_examples_ = read_squad(flags.test);
    const WordPiece pieces = make_pieces(flags, [&] { return whole_text(); });
    vocabulary_size = rows_of(flags, pieces.vocabulary());
    pad = pieces.vocabulary().pad();
    const SquadFeatureOptions options{.max_length = flags.length,
                                      .stride = std::min<int64_t>(128, flags.length / 3),
                                      .max_question = std::min<int64_t>(64, flags.length / 3)};
    features_ = squad_features(examples_, pieces, options);
    const int64_t unit = length_unit(flags.length);
    if (!flags.evaluate) {
      batches_.emplace(features_, pad,
                       SquadBatchOptions{.batch = flags.batch,
                                         .seed = flags.seed,
                                         .bucket = kBucket,
                                         .pad_to_multiple_of = unit});
    }
    if (test_examples_.empty()) return;
    test_features_ = squad_features(test_examples_, pieces, options);
    test_.emplace(
        test_features_, pad,
        SquadBatchOptions{.batch = flags.batch, .shuffle = false, .pad_to_multiple_of = unit});
    answers_.emplace(test_examples_);
  }

  TextBatch train(int64_t step) override {
    return to_batch(batches_->at(place_of(step, *batches_)));
  }
  int64_t batches_per_epoch() const override {
    return batches_ ? batches_->batches_per_epoch() : 0;
  }
  int64_t test_batches() const override { return test_ ? test_->batches_per_epoch() : 0; }
  TextBatch test(int64_t number) override {
    return to_batch(test_->at({.epoch = 0, .batch = number}));
  }

  void answer(int64_t number, std::span<const float> start,
              std::span<const float> end) override {
    const SpanBatch batch = test_->at({.epoch = 0, .batch = number});
    const auto length = static_cast<size_t>(batch.length);
    for (size_t row = 0; row < batch.features.size(); ++row) {
      const SquadFeature& feature = test_features_[static_cast<size_t>(batch.features[row])];
      const size_t tokens = feature.tokens.size();
      answers_->add(feature, start.subspan(row * length, tokens),
                    end.subspan(row * length, tokens));
    }
  }
  Evaluation score() const override {
    const SquadScore score = squad_score(test_examples_, answers_->texts());
    Evaluation evaluation{.accuracy = score.exact_match / 100, .of = "questions"};
    evaluation.scores = {{"exact_match", score.exact_match}, {"f1", score.f1}};
    return evaluation;
  }

  Bytes bytes() const override {
    int64_t sum = 0;
    for (const auto* features : {&features_, &test_features_}) {
      for (const SquadFeature& feature : *features) {
        sum += static_cast<int64_t>(sizeof(feature) + feature.tokens.size() * sizeof(int32_t) +
                                    feature.places.size() * (sizeof(ByteRange) + 1));
      }
    }
    return Bytes(sum);
  }
  std::string fingerprint() const override {
    Checksum checksum;
    for (const SquadFeature& feature : features_) {
      add_to(checksum, feature.tokens);
      add_to(checksum, std::vector<int64_t>{feature.start, feature.end});
    }
    return checksum.hex();
  }

 private:
  std::string whole_text() const {
    std::string text;
    std::unordered_set<const std::string*> seen;
    for (const SquadExample& example : examples_) {
      text += example.question + '\n';
      if (seen.insert(example.context.get()).second) text += *example.context + '\n';
    }
    return text;
  }

  std::vector<SquadExample> examples_, test_examples_;
  std::vector<SquadFeature> features_, test_features_;
  std::optional<SquadBatches> batches_, test_;
  std::optional<SquadAnswers> answers_;
};

}  // namespace

std::unique_ptr<TextData> open_text(const BertFlags& flags) {
  if (flags.task == "squad") return std::make_unique<SquadData>(flags);
  const std::string text =
      read_text(flags.data.empty() ? bundled_path("text/jargon-4.4.7.txt.gz") : flags.data);
  const WordPiece pieces = make_pieces(flags, [&]() -> const std::string& { return text; });
  if (flags.task == "clm") {
    return std::make_unique<CorpusData<CausalBatches>>(flags, pieces, text);
  }
  return std::make_unique<CorpusData<MaskedBatches>>(flags, pieces, text);
}

std::unique_ptr<TextData> describe_text(const BertFlags& flags) {
  return std::make_unique<SizesAlone>(flags);
}

}  // namespace tidemark
