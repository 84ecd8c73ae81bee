#include <algorithm>
#include <numeric>

#include "models/data/random.h"
#include "models/text/squad.h"
#include "models/text/text_corpus.h"
#include "runtime/core/errors.h"

namespace tidemark {

SquadBatches::SquadBatches(std::span<const SquadFeature> features, int64_t pad,
                           const SquadBatchOptions& options)
    : features_(features), pad_(pad), options_(options) {
  if (features.empty()) throw UsageError("[squad batches] no features were given");
  if (options.batch < 1 || options.bucket < 0 || options.pad_to_multiple_of < 1) {
    throw UsageError(
        "[squad batches] batch and multiple must be at least 1, buckets at least 0");
  }
}

int64_t SquadBatches::batches_per_epoch() const {
  return (static_cast<int64_t>(features_.size()) + options_.batch - 1) / options_.batch;
}

void SquadBatches::arrange(int64_t epoch) {
  const auto count = static_cast<int64_t>(features_.size());
  std::vector<int64_t> order(features_.size());
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) order = shuffled_order(count, options_.seed, epoch);
  if (options_.bucket > 0) {
    const auto length = [&](int64_t i) {
      return features_[static_cast<size_t>(i)].tokens.size();
    };
    const int64_t pool = std::min(options_.bucket, count) * std::min(options_.batch, count);
    for (int64_t begin = 0; begin < count; begin += pool) {
      std::stable_sort(order.begin() + begin, order.begin() + std::min(begin + pool, count),
                       [&](int64_t a, int64_t b) { return length(a) < length(b); });
    }
  }
  batches_.clear();
  for (int64_t begin = 0; begin < count; begin += options_.batch) {
    batches_.emplace_back(order.begin() + begin,
                          order.begin() + std::min(begin + options_.batch, count));
  }
  if (options_.bucket > 0 && options_.shuffle) {
    shuffle(batches_, CounterRandom(options_.seed, RandomStream::kEpochSeed,
                                    static_cast<uint64_t>(epoch)));
  }
  epoch_ = epoch;
}

SpanBatch SquadBatches::at(LoaderPosition position) {
  if (position.epoch < 0 || position.batch < 0 || position.batch >= batches_per_epoch()) {
    throw UsageError("[squad batches] there is no batch " + std::to_string(position.batch) +
                     " in epoch " + std::to_string(position.epoch) + "; an epoch has " +
                     std::to_string(batches_per_epoch()));
  }
  const int64_t arranged = options_.shuffle ? position.epoch : 0;
  if (epoch_ != arranged) arrange(arranged);
  const std::vector<int64_t>& numbers = batches_[static_cast<size_t>(position.batch)];
  int64_t longest = 0;
  for (const int64_t number : numbers) {
    const auto size = features_[static_cast<size_t>(number)].tokens.size();
    longest = std::max(longest, static_cast<int64_t>(size));
  }
  const int64_t unit = options_.pad_to_multiple_of;
  const int64_t length = (longest + unit - 1) / unit * unit;
  SpanBatch batch{padded_batch(static_cast<int64_t>(numbers.size()), length, pad_), {}, {}, {}};
  batch.features = numbers;
  for (size_t row = 0; row < numbers.size(); ++row) {
    const SquadFeature& feature = features_[static_cast<size_t>(numbers[row])];
    const auto begin = static_cast<int64_t>(row) * length;
    const auto size = static_cast<int64_t>(feature.tokens.size());
    std::copy(feature.tokens.begin(), feature.tokens.end(), batch.tokens.begin() + begin);
    std::fill_n(batch.mask.begin() + begin, size, 1.0F);
    std::fill(batch.segments.begin() + begin + feature.context_begin,
              batch.segments.begin() + begin + size, 1);
    batch.lengths[row] = size;
    batch.starts.push_back(feature.start);
    batch.ends.push_back(feature.end);
  }
  return batch;
}

}  // namespace tidemark
