#include "models/text/tuning/tuning_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "models/text/tuning/packing.h"
#include "runtime/core/errors.h"
#include "tests/models/text/tuning/tuning_files.h"

namespace tidemark {
namespace {

using testing::small_model;

constexpr int64_t kPad = 1;  // of small_model()

// Completions that differ: 6 digits that number them, as many tokens; then some more.
class TuningBatchesTest : public ::testing::Test {
 protected:
  TuningData open(int count, int64_t longest, unsigned seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < count; ++i) {
      std::string number = std::to_string(100000 + i);
      const size_t more = random() % 8 == 0 ? random() % 40 : random() % 10;
      const size_t cut = random() % 6;
      text += R"({"prompt": ")" + number.substr(0, cut) + R"(", "completion": ")" +
              number.substr(cut) + std::string(more, '7') + "\"}\n";
    }
    return TuningData(folder_.write("a.jsonl", testing::bytes_of(text)), small_model(),
                      {.longest = longest});
  }

  // Checks a batch on its own, and returns the examples in it, in order.
  static std::vector<TuningExample> examples_in(const TuningBatch& batch) {
    std::vector<TuningExample> found;
    const auto size = static_cast<size_t>(batch.rows * batch.length);
    EXPECT_EQ(batch.tokens.size(), size);
    EXPECT_EQ(batch.labels.size(), size);
    EXPECT_EQ(batch.starts.size(), size);
    int64_t counted = 0;
    for (int64_t row = 0; row < batch.rows; ++row) {
      bool was_padding = false;
      for (int64_t column = 0; column < batch.length; ++column) {
        const auto i = static_cast<size_t>(row * batch.length + column);
        const bool has_label = batch.labels[i] != kIgnoreLabel;
        counted += has_label;
        if (batch.tokens[i] == kPad) {
          EXPECT_EQ(batch.starts[i], column);
          EXPECT_FALSE(has_label);
          was_padding = true;
          continue;
        }
        EXPECT_FALSE(was_padding) << "padding is last";
        if (batch.starts[i] == column) {
          found.emplace_back();
        } else {
          EXPECT_EQ(batch.starts[i], batch.starts[i - 1]);
          EXPECT_EQ(found.back().counts.back(), false) << "not known yet";
          const bool is_label = batch.labels[i - 1] != kIgnoreLabel;
          if (is_label) {
            EXPECT_EQ(batch.labels[i - 1], batch.tokens[i]);
          }
        }
        found.back().ids.push_back(static_cast<int32_t>(batch.tokens[i]));
        found.back().counts.push_back(false);
        // Of the token before it: within the example alone.
        if (batch.starts[i] != column) {
          found.back().counts[found.back().counts.size() - 2] =
              batch.labels[i - 1] != kIgnoreLabel;
        } else if (column > 0) {
          EXPECT_EQ(batch.labels[i - 1], kIgnoreLabel) << "a label of another example";
        }
      }
    }
    EXPECT_EQ(batch.counted, counted);
    return found;
  }

  testing::TempFolder folder_;
};

// By ids: which tokens have a label, of an example as the data give it.
using Seen = std::multimap<std::vector<int32_t>, std::vector<bool>>;

Seen wanted_of(TuningData& data, ExampleRange range) {
  Seen seen;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const TuningExample example = data.example(i);
    std::vector<bool> labels(example.counts.begin() + 1, example.counts.end());
    labels.push_back(false);
    seen.emplace(example.ids, labels);
  }
  return seen;
}

TEST_F(TuningBatchesTest, AnEpochHasEachExampleOnce) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    TuningData data = open(static_cast<int>(pick(2, 90)), pick(8, 60), seed);
    const ExampleRange range =
        seed % 3 ? data.split(0.2).first : ExampleRange{data.size() / 3, data.size()};
    TuningBatches batches(data, range,
                          {.rows = pick(1, 7),
                           .length = data.longest() + pick(0, 30),
                           .packing = seed % 2 == 0,
                           .shuffle = pick(0, 3) > 0,
                           .seed = seed,
                           .multiple = pick(1, 16),
                           .bucket = pick(1, 4)});
    const Seen wanted = wanted_of(data, range);
    int64_t tokens = 0, places = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      Seen seen;
      for (int64_t i = 0; i < batches.steps_per_epoch(); ++i) {
        const TuningBatch batch = batches.at(epoch * batches.steps_per_epoch() + i);
        EXPECT_EQ(batch.rows, batches.options().rows);
        EXPECT_LE(batch.length, batches.options().length);
        EXPECT_GT(batch.counted, 0);
        places += batch.rows * batch.length;
        for (TuningExample& example : examples_in(batch)) {
          tokens += static_cast<int64_t>(example.ids.size());
          seen.emplace(std::move(example.ids), std::move(example.counts));
        }
      }
      ASSERT_EQ(seen, wanted) << "seed " << seed << ", epoch " << epoch;
    }
    if (!batches.options().shuffle || batches.options().packing) {
      EXPECT_DOUBLE_EQ(batches.filled(),
                       static_cast<double>(tokens) / static_cast<double>(places));
    }
  }
}

bool same(const TuningBatch& a, const TuningBatch& b) {
  return a.length == b.length && a.tokens == b.tokens && a.labels == b.labels &&
         a.starts == b.starts && a.counted == b.counted;
}

TEST_F(TuningBatchesTest, AStepsBatchDoesNotDependOnOthers) {
  for (const bool packing : {false, true}) {
    TuningData data = open(50, 40, 1);
    const TuningBatchOptions options{.rows = 3, .length = 48, .packing = packing, .seed = 5};
    TuningBatches one(data, {0, 50}, options), other(data, {0, 50}, options);
    const int64_t steps = 3 * one.steps_per_epoch();
    std::vector<TuningBatch> in_order;
    for (int64_t i = 0; i < steps; ++i) in_order.push_back(one.at(i));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = (i * 31 + 7) % steps;
      EXPECT_TRUE(same(other.at(at), in_order[static_cast<size_t>(at)])) << at;
    }
    EXPECT_FALSE(same(in_order[0], in_order[static_cast<size_t>(one.steps_per_epoch())]))
        << "epochs differ";
    TuningBatchOptions seed = options, fixed = options;
    seed.seed = 6;
    fixed.shuffle = false;
    EXPECT_FALSE(same(TuningBatches(data, {0, 50}, seed).at(0), in_order[0]));
    TuningBatches evaluation(data, {0, 50}, fixed);
    EXPECT_TRUE(same(evaluation.at(1), evaluation.at(1 + evaluation.steps_per_epoch())));
    EXPECT_EQ(one.fingerprint(), other.fingerprint());
    EXPECT_NE(one.fingerprint(), TuningBatches(data, {0, 50}, seed).fingerprint());
    EXPECT_NE(one.fingerprint(), TuningBatches(data, {0, 49}, options).fingerprint());
  }
}

TEST_F(TuningBatchesTest, PaddedBatchesHaveFewLengths) {
  TuningData data = open(200, 60, 2);
  const auto lengths = [&](int64_t bucket) {
    TuningBatches batches(data, {0, 200},
                          {.rows = 4, .length = 60, .multiple = 16, .bucket = bucket});
    std::map<int64_t, int> counts;
    for (int64_t i = 0; i < batches.steps_per_epoch(); ++i) ++counts[batches.at(i).length];
    for (const auto& [length, count] : counts) {
      EXPECT_TRUE(length % 16 == 0 || length == 60) << length;
    }
    return std::pair(counts, batches.filled());
  };
  const auto [sorted, good] = lengths(50);
  const auto [unsorted, bad] = lengths(1);
  EXPECT_LE(sorted.size(), 4u);
  EXPECT_GT(sorted.at(16), unsorted.at(16));
  EXPECT_GT(good, bad);
  EXPECT_GT(TuningBatches(data, {0, 200}, {.rows = 1, .length = 60, .packing = true}).filled(),
            0.9);
}

TEST_F(TuningBatchesTest, TheHeadersPicture) {
  const std::string text = R"({"prompt": "1", "completion": "234"})"
                           "\n"
                           R"({"text": "", "prompt": "", "completion": "5"})"
                           "\n";
  TuningData data(folder_.write("b.jsonl", testing::bytes_of(text)), small_model(),
                  {.longest = 9});
  TuningBatches batches(data, {0, 2},
                        {.rows = 2, .length = 9, .packing = true, .shuffle = false});
  ASSERT_EQ(batches.steps_per_epoch(), 1);
  const TuningBatch batch = batches.at(0);
  const auto id = [&](const char* piece) -> int64_t {
    return *data.model().tokenizer.find(piece);
  };
  const int64_t no = kIgnoreLabel, pad = kPad;
  EXPECT_EQ(
      std::vector(batch.tokens.begin(), batch.tokens.begin() + 9),
      (std::vector<int64_t>{id("1"), id("2"), id("3"), id("4"), 0, id("5"), 0, pad, pad}));
  EXPECT_EQ(std::vector(batch.labels.begin(), batch.labels.begin() + 9),
            (std::vector<int64_t>{id("2"), id("3"), id("4"), 0, no, 0, no, no, no}));
  EXPECT_EQ(std::vector(batch.starts.begin(), batch.starts.begin() + 9),
            (std::vector<int32_t>{0, 0, 0, 0, 0, 5, 5, 7, 8}));
  EXPECT_EQ(batch.tokens[9], pad) << "a row without examples";
  EXPECT_EQ(batch.starts[17], 8);
  EXPECT_EQ(batch.counted, 5);
}

TEST_F(TuningBatchesTest, OptionsOutOfRange) {
  TuningData data = open(5, 20, 3);
  const TuningBatchOptions valid{.rows = 2, .length = 20};
  const auto refuse = [&](ExampleRange range, auto change) {
    TuningBatchOptions options = valid;
    change(options);
    EXPECT_THROW(TuningBatches(data, range, options), UsageError);
  };
  const auto nothing = [](TuningBatchOptions&) {};
  EXPECT_NO_THROW(TuningBatches(data, {0, 5}, valid));
  refuse({0, 0}, nothing);
  refuse({-1, 2}, nothing);
  refuse({0, 6}, nothing);
  refuse({0, 5}, [](auto& options) { options.length = 19; });
  refuse({0, 5}, [](auto& options) { options.rows = 0; });
  refuse({0, 5}, [](auto& options) { options.multiple = 0; });
  refuse({0, 5}, [](auto& options) { options.bucket = 0; });
  refuse({0, 5}, [](auto& options) { options.rows = int64_t{1} << 40; });
  EXPECT_THROW(TuningBatches(data, {0, 5}, valid).at(-1), UsageError);
}

TEST(FirstFit, TakesTheFirstBinWithSpace) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> sizes(random() % 30);
    for (int32_t& size : sizes) size = 1 + static_cast<int32_t>(random() % 10);
    std::vector<int32_t> space;
    std::vector<int64_t> wanted;
    for (const int32_t size : sizes) {
      size_t bin = 0;
      while (bin < space.size() && space[bin] < size) ++bin;
      if (bin == space.size()) space.push_back(10);
      space[bin] -= size;
      wanted.push_back(static_cast<int64_t>(bin));
    }
    ASSERT_EQ(first_fit(sizes, 10), wanted);
  }
}

}  // namespace
}  // namespace tidemark
