#include "models/text/text_corpus.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/data/random.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

constexpr double kMaskedShare = 0.15;
constexpr uint64_t kMaskPercent = 80, kRandomPercent = 10;

// The length of the text between [CLS] and [SEP] in a sequence.
int64_t text_length(int64_t length) {
  if (length < 3) {
    throw UsageError("[masked batches] a sequence of " + std::to_string(length) +
                     " tokens has no space for text between [CLS] and [SEP]");
  }
  return length - 2;
}

}  // namespace

std::string read_text(const std::string& path, int64_t limit) {
  const FileContent content = read_whole_file(path, limit);
  std::string text(reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size());
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (next_code_point(text, at) != kReplacement || at - start > 1) continue;
    throw DataError(path, static_cast<int64_t>(start),
                    std::string("the text is not UTF-8") +
                        (content.unpacked ? " (offset in the unpacked text)" : ""));
  }
  return text;
}

std::pair<TextCorpus, TextCorpus> TextCorpus::split(double share) const {
  if (!(share >= 0 && share <= 1)) {
    throw UsageError("[text corpus] a share must be between 0 and 1, not " +
                     std::to_string(share));
  }
  const auto cut = tokens_.end() - static_cast<std::ptrdiff_t>(
                                       std::floor(share * static_cast<double>(tokens_.size())));
  return {TextCorpus(std::vector<int32_t>(tokens_.begin(), cut)),
          TextCorpus(std::vector<int32_t>(cut, tokens_.end()))};
}

std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, CounterRandom(seed, RandomStream::kOrder, static_cast<uint64_t>(epoch)));
  return order;
}

SequenceOrder::SequenceOrder(int64_t sequences, const CorpusBatchOptions& options)
    : sequences_(sequences), options_(options) {
  if (options.batch < 1 || options.length < 1) {
    throw UsageError("[text corpus] batch and length must be at least 1");
  }
  if (sequences < options.batch) {
    throw UsageError("[text corpus] the text has " + std::to_string(sequences) +
                     " sequences of " + std::to_string(options.length) +
                     " tokens, fewer than a batch of " + std::to_string(options.batch));
  }
}

std::vector<int64_t> SequenceOrder::at(LoaderPosition position) {
  if (position.epoch < 0 || position.batch < 0 || position.batch >= batches_per_epoch()) {
    throw UsageError("[text corpus] there is no batch " + std::to_string(position.batch) +
                     " in epoch " + std::to_string(position.epoch) + "; an epoch has " +
                     std::to_string(batches_per_epoch()));
  }
  std::vector<int64_t> numbers(static_cast<size_t>(options_.batch));
  const int64_t first = position.batch * options_.batch;
  if (!options_.shuffle) {
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }
  if (epoch_ != position.epoch) {
    order_ = shuffled_order(sequences_, options_.seed, position.epoch);
    epoch_ = position.epoch;
  }
  std::copy_n(order_.begin() + first, options_.batch, numbers.begin());
  return numbers;
}

int64_t masked_per_row(int64_t length) {
  return std::max<int64_t>(
      1, std::llround(kMaskedShare * static_cast<double>(text_length(length))));
}

MaskedBatches::MaskedBatches(const TextCorpus& corpus, const Vocabulary& vocabulary,
                             const CorpusBatchOptions& options)
    : tokens_(corpus.tokens()),
      vocabulary_size_(vocabulary.size()),
      classify_(vocabulary.classify()),
      separator_(vocabulary.separator()),
      mask_(vocabulary.mask()),
      pad_(vocabulary.pad()),
      order_(static_cast<int64_t>(tokens_.size()) / text_length(options.length), options) {}

MaskedBatch MaskedBatches::at(LoaderPosition position) {
  const CorpusBatchOptions& options = order_.options();
  const int64_t text = text_length(options.length);
  MaskedBatch batch{padded_batch(options.batch, options.length, pad_), {}, 0, {}, {}};
  batch.per_row = masked_per_row(options.length);
  batch.mask.assign(batch.mask.size(), 1);
  batch.lengths.assign(batch.lengths.size(), options.length);
  batch.labels.assign(batch.tokens.size(), kIgnoreLabel);
  std::vector<int64_t> places(static_cast<size_t>(text));
  int64_t row = 0;
  for (const int64_t sequence : order_.at(position)) {
    const int64_t begin = row++ * options.length;
    const auto tokens = batch.tokens.begin() + begin;
    tokens[0] = classify_;
    std::copy_n(tokens_.begin() + sequence * text, text, tokens + 1);
    tokens[text + 1] = separator_;

    CounterRandom random(options.seed, RandomStream::kAugment,
                         static_cast<uint64_t>(position.epoch * order_.sequences() + sequence));
    std::iota(places.begin(), places.end(), 1);
    for (int64_t i = 0; i < batch.per_row; ++i) {  // the first steps of a shuffle
      const auto other = static_cast<int64_t>(random.below(static_cast<uint64_t>(text - i)));
      std::swap(places[static_cast<size_t>(i)], places[static_cast<size_t>(i + other)]);
    }
    std::sort(places.begin(), places.begin() + batch.per_row);
    for (int64_t i = 0; i < batch.per_row; ++i) {
      const int64_t place = places[static_cast<size_t>(i)];
      batch.labels[static_cast<size_t>(begin + place)] = tokens[place];
      batch.masked_positions.push_back(begin + place);
      batch.masked_labels.push_back(tokens[place]);
      const uint64_t percent = random.below(100);
      if (percent < kMaskPercent) {
        tokens[place] = mask_;
      } else if (percent < kMaskPercent + kRandomPercent) {
        tokens[place] =
            static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary_size_)));
      }
    }
  }
  return batch;
}

// The label of a sequence's last token is the first token of the next sequence, so the stream
// needs one more token.
CausalBatches::CausalBatches(const TextCorpus& corpus, const CorpusBatchOptions& options)
    : tokens_(corpus.tokens()),
      order_(std::max<int64_t>(0, static_cast<int64_t>(tokens_.size()) - 1) /
                 std::max<int64_t>(1, options.length),
             options) {}

CausalBatch CausalBatches::at(LoaderPosition position) {
  const CorpusBatchOptions& options = order_.options();
  CausalBatch batch{padded_batch(options.batch, options.length, 0), {}};
  batch.mask.assign(batch.mask.size(), 1);
  batch.lengths.assign(batch.lengths.size(), options.length);
  batch.labels.resize(batch.tokens.size());
  int64_t row = 0;
  for (const int64_t sequence : order_.at(position)) {
    const auto from = tokens_.begin() + sequence * options.length;
    const int64_t begin = row++ * options.length;
    std::copy_n(from, options.length, batch.tokens.begin() + begin);
    std::copy_n(from + 1, options.length, batch.labels.begin() + begin);
  }
  return batch;
}

}  // namespace tidemark
