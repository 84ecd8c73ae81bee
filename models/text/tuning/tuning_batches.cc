#include "models/text/tuning/tuning_batches.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "models/data/random.h"
#include "models/text/tuning/packing.h"
#include "runtime/core/errors.h"
#include "runtime/core/hash.h"

namespace tidemark {
namespace {

// A batch without examples.
TuningBatch all_padding(int64_t rows, int64_t length, int64_t pad) {
  const auto size = static_cast<size_t>(rows * length);
  TuningBatch batch{.rows = rows, .length = length};
  batch.tokens.assign(size, pad);
  batch.labels.assign(size, kIgnoreLabel);
  batch.starts.resize(size);
  for (size_t i = 0; i < size; ++i) {
    batch.starts[i] = static_cast<int32_t>(i % static_cast<size_t>(length));
  }
  return batch;
}

// Writes an example to a row, from column `start` on.
void put(TuningBatch& batch, int64_t row, int64_t start, const TuningExample& example) {
  const auto begin = static_cast<size_t>(row * batch.length + start);
  const size_t size = example.ids.size();
  batch.used += static_cast<int64_t>(size);
  for (size_t i = 0; i < size; ++i) {
    batch.tokens[begin + i] = example.ids[i];
    batch.starts[begin + i] = static_cast<int32_t>(start);
    if (i + 1 == size || !example.counts[i + 1]) continue;
    batch.labels[begin + i] = example.ids[i + 1];
    ++batch.counted;
  }
}

}  // namespace

TuningBatches::TuningBatches(TuningData& data, ExampleRange range,
                             const TuningBatchOptions& options)
    : data_(data), range_(range), options_(options) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (options.rows < 1 || options.multiple < 1 || options.bucket < 1 || options.length < 1 ||
      options.length > kMost / options.rows) {
    throw UsageError(
        "[tuning batches] rows, length, multiple and bucket must be at least 1, "
        "and a batch has less than 2^31 tokens");
  }
  if (range.begin < 0 || range.end > data.size() || range.size() < 1) {
    throw UsageError("[tuning batches] examples " + std::to_string(range.begin) + " to " +
                     std::to_string(range.end) + " of " + std::to_string(data.size()));
  }
  if (data.longest() > options.length) {
    throw UsageError("[tuning batches] examples have up to " + std::to_string(data.longest()) +
                     " tokens, more than rows of " + std::to_string(options.length));
  }
  if (options.packing) pack();
}

void TuningBatches::pack() {
  std::vector<int64_t> order(static_cast<size_t>(range_.size()));
  std::iota(order.begin(), order.end(), range_.begin);
  if (options_.shuffle) {
    shuffle(order, CounterRandom(options_.seed, RandomStream::kSplit, 0));
  }
  std::vector<int32_t> sizes;
  sizes.reserve(order.size());
  for (const int64_t i : order) sizes.push_back(static_cast<int32_t>(data_.length(i)));
  const std::vector<int64_t> rows = first_fit(sizes, static_cast<int32_t>(options_.length));
  // Examples by row, in their order: a counting sort.
  row_begins_.assign(static_cast<size_t>(*std::max_element(rows.begin(), rows.end()) + 2), 0);
  for (const int64_t row : rows) ++row_begins_[static_cast<size_t>(row) + 1];
  std::partial_sum(row_begins_.begin(), row_begins_.end(), row_begins_.begin());
  std::vector<int64_t> next(row_begins_.begin(), row_begins_.end() - 1);
  packed_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    packed_[static_cast<size_t>(next[static_cast<size_t>(rows[i])]++)] = order[i];
  }
}

int64_t TuningBatches::row_count() const {
  return options_.packing ? static_cast<int64_t>(row_begins_.size()) - 1 : range_.size();
}

int64_t TuningBatches::steps_per_epoch() const {
  return (row_count() + options_.rows - 1) / options_.rows;
}

void TuningBatches::arrange(int64_t epoch) {
  order_.resize(static_cast<size_t>(row_count()));
  std::iota(order_.begin(), order_.end(), options_.packing ? 0 : range_.begin);
  if (options_.shuffle) {
    shuffle(order_,
            CounterRandom(options_.seed, RandomStream::kOrder, static_cast<uint64_t>(epoch)));
  }
  const int64_t batch = std::min(options_.rows, row_count());
  const int64_t pool = batch * std::min(options_.bucket, steps_per_epoch());
  if (!options_.packing && options_.bucket > 1) {
    for (int64_t begin = 0; begin < row_count(); begin += pool) {
      std::stable_sort(order_.begin() + begin,
                       order_.begin() + std::min(begin + pool, row_count()),
                       [&](int64_t a, int64_t b) { return data_.length(a) < data_.length(b); });
    }
    if (options_.shuffle) {  // the whole batches; one that is not remains the last
      std::vector<int64_t> batches(static_cast<size_t>(row_count() / batch));
      std::iota(batches.begin(), batches.end(), 0);
      shuffle(batches, CounterRandom(options_.seed, RandomStream::kEpochSeed,
                                     static_cast<uint64_t>(epoch)));
      std::vector<int64_t> sorted = order_;
      for (size_t i = 0; i < batches.size(); ++i) {
        std::copy_n(sorted.begin() + batches[i] * batch, batch,
                    order_.begin() + static_cast<int64_t>(i) * batch);
      }
    }
  }
  epoch_ = epoch;
}

std::pair<int64_t, int64_t> TuningBatches::rows_of(int64_t step) const {
  const int64_t first = step % steps_per_epoch() * options_.rows;
  return {first, std::min(first + options_.rows, row_count())};
}

int64_t TuningBatches::length_of(int64_t step) const {
  if (options_.packing) return options_.length;
  int64_t longest = 0;
  const auto [first, last] = rows_of(step);
  for (int64_t i = first; i < last; ++i) {
    longest = std::max(longest, data_.length(order_[static_cast<size_t>(i)]));
  }
  return rounded(longest);
}

int64_t TuningBatches::rounded(int64_t longest) const {
  const int64_t multiple = options_.multiple;
  return std::min((longest + multiple - 1) / multiple * multiple, options_.length);
}

int64_t TuningBatches::longest() const {
  if (options_.packing) return options_.length;
  int64_t longest = 0;
  for (int64_t i = range_.begin; i < range_.end; ++i) {
    longest = std::max(longest, data_.length(i));
  }
  return rounded(longest);
}

TuningBatch TuningBatches::at(int64_t step) {
  if (step < 0) throw UsageError("[tuning batches] steps count from 0");
  const int64_t epoch = options_.shuffle ? step / steps_per_epoch() : 0;
  if (epoch != epoch_) arrange(epoch);
  const auto [first, last] = rows_of(step);
  TuningBatch batch = all_padding(options_.rows, length_of(step), data_.model().pad);
  for (int64_t i = first; i < last; ++i) {
    const int64_t row = order_[static_cast<size_t>(i)];
    if (!options_.packing) {
      put(batch, i - first, 0, data_.example(row));
      continue;
    }
    int64_t start = 0;
    for (int64_t at = row_begins_[static_cast<size_t>(row)];
         at < row_begins_[static_cast<size_t>(row) + 1]; ++at) {
      const TuningExample example = data_.example(packed_[static_cast<size_t>(at)]);
      put(batch, i - first, start, example);
      start += static_cast<int64_t>(example.ids.size());
    }
  }
  return batch;
}

double TuningBatches::filled() {
  int64_t tokens = 0, places = 0;
  for (int64_t i = range_.begin; i < range_.end; ++i) tokens += data_.length(i);
  if (epoch_ != 0) arrange(0);
  for (int64_t step = 0; step < steps_per_epoch(); ++step) {
    places += options_.rows * length_of(step);
  }
  return static_cast<double>(tokens) / static_cast<double>(places);
}

uint64_t TuningBatches::fingerprint() const {
  WordHash hash;
  hash.add(data_.fingerprint());
  for (const int64_t value :
       {range_.begin, range_.end, options_.rows, options_.length, int64_t{options_.packing},
        int64_t{options_.shuffle}, options_.multiple, options_.bucket}) {
    hash.add(static_cast<uint64_t>(value));
  }
  hash.add(options_.seed);
  hash.add(static_cast<uint64_t>(data_.model().pad));
  return hash.value();
}

Bytes TuningBatches::bytes() const {
  // Packing takes the most: order, sizes, bins, tree, rows and examples.
  constexpr int64_t kPerExample = 80, kPerToken = 8 + 8 + 4 + 4;
  return Bytes(range_.size() * kPerExample + options_.rows * options_.length * kPerToken);
}

}  // namespace tidemark
