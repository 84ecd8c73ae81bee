#include "models/text/text_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::data_error;
using testing::TempFolder;

// Pieces 0 to 4 are special; tokens of the corpus are 5, 6, 7, ... so that each tells its
// place.
Vocabulary numbered_vocabulary(int64_t size) {
  std::vector<std::string> pieces{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (int64_t i = 5; i < size; ++i) pieces.push_back(std::to_string(i));
  return Vocabulary(pieces);
}

TextCorpus counting(int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 5);
  return TextCorpus(tokens);
}

TEST(ReadText, PlainAndPackedAreTheSame) {
  const TempFolder folder;
  const std::string text = "Caf\u00e9 & hackers\n";
  const testing::ByteVector bytes(text.begin(), text.end());
  EXPECT_EQ(read_text(folder.write("a.txt", bytes)), text);
  EXPECT_EQ(read_text(folder.write("a.gz", testing::gzip(bytes))), text);
  EXPECT_EQ(read_text(folder.write("empty", {})), "");
}

TEST(ReadText, DamageIsNamedByOffset) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", {'a', 'b', 0xFF, 'c'});
  EXPECT_EQ(data_error([&] { read_text(path); }, path), 2);
  EXPECT_EQ(data_error([&] { read_text(path, 3); }, path), 3) << "too large";
  testing::ByteVector packed = testing::gzip(testing::ByteVector(1000, 'x'));
  packed.resize(packed.size() - 5);
  const std::string cut = folder.write("cut.gz", packed);
  EXPECT_EQ(data_error([&] { read_text(cut); }, cut), static_cast<int64_t>(packed.size()));
}

TEST(MaskedBatches, AreTheTextBetweenMarks) {
  const TextCorpus corpus = counting(105);
  MaskedBatches batches(corpus, numbered_vocabulary(200),
                        {.batch = 2, .length = 12, .shuffle = false});
  ASSERT_EQ(batches.batches_per_epoch(), 5) << "10 tokens of text a sequence";
  const MaskedBatch batch = batches.at({0, 3});
  ASSERT_EQ(batch.rows, 2);
  ASSERT_EQ(batch.length, 12);
  EXPECT_EQ(batch.per_row, 2) << "15 % of 10, rounded";
  ASSERT_EQ(batch.masked_labels.size(), 4u);
  size_t masked = 0;
  for (size_t i = 0; i < 24; ++i) {
    const auto column = static_cast<int64_t>(i % 12), row = static_cast<int64_t>(i / 12);
    const int64_t original = 5 + 60 + 10 * row + column - 1;
    EXPECT_EQ(batch.positions[i], column);
    EXPECT_EQ(batch.mask[i], 1);
    EXPECT_EQ(batch.segments[i], 0);
    if (column == 0 || column == 11) {
      EXPECT_EQ(batch.tokens[i], column == 0 ? 2 : 3);
      EXPECT_EQ(batch.labels[i], kIgnoreLabel);
    } else if (batch.labels[i] == kIgnoreLabel) {
      EXPECT_EQ(batch.tokens[i], original);
    } else {
      EXPECT_EQ(batch.labels[i], original);
      ASSERT_LT(masked, 4u);
      EXPECT_EQ(batch.masked_positions[masked], static_cast<int64_t>(i));
      EXPECT_EQ(batch.masked_labels[masked++], original);
    }
  }
  EXPECT_EQ(masked, 4u);
}

TEST(MaskedBatches, MaskEightyReplaceTenKeepTen) {
  const TextCorpus corpus = counting(60000);
  MaskedBatches batches(corpus, numbered_vocabulary(60005),
                        {.batch = 100, .length = 102, .seed = 3});
  int64_t mask = 0, kept = 0, other = 0;
  std::map<int64_t, int64_t> places;
  for (int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
    const MaskedBatch batch = batches.at({0, i});
    for (size_t m = 0; m < batch.masked_labels.size(); ++m) {
      const auto at = static_cast<size_t>(batch.masked_positions[m]);
      ++places[batch.positions[at]];
      if (batch.tokens[at] == 4) {
        ++mask;
      } else {
        ++(batch.tokens[at] == batch.masked_labels[m] ? kept : other);
        ASSERT_GE(batch.tokens[at], 0);
        ASSERT_LT(batch.tokens[at], 60005);
      }
    }
  }
  const double all = static_cast<double>(mask + kept + other);
  EXPECT_EQ(all, 600 * 15);
  EXPECT_NEAR(static_cast<double>(mask) / all, 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(kept) / all, 0.1, 0.015);
  EXPECT_NEAR(static_cast<double>(other) / all, 0.1, 0.015);
  EXPECT_EQ(places.size(), 100u) << "every place but the marks";
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 90, 45) << place;
}

TEST(MaskedBatches, DependOnThePositionAlone) {
  const TextCorpus corpus = counting(1000);
  const CorpusBatchOptions options{.batch = 3, .length = 20, .seed = 7};
  MaskedBatches one(corpus, numbered_vocabulary(2000), options);
  MaskedBatches two(corpus, numbered_vocabulary(2000), options);
  (void)two.at({5, 0});
  const MaskedBatch a = one.at({2, 4}), b = two.at({2, 4});
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_NE(a.tokens, one.at({2, 5}).tokens);
  EXPECT_NE(a.tokens, one.at({3, 4}).tokens);
  MaskedBatches other_seed(corpus, numbered_vocabulary(2000),
                           {.batch = 3, .length = 20, .seed = 8});
  EXPECT_NE(a.tokens, other_seed.at({2, 4}).tokens);
}

TEST(MaskedBatches, AnEpochHasEverySequenceOnceAndMasksAnewInTheNext) {
  const TextCorpus corpus = counting(1000);
  MaskedBatches batches(corpus, numbered_vocabulary(2000),
                        {.batch = 10, .length = 12, .seed = 1});
  const auto masked_in = [&](int64_t epoch) {
    std::set<int64_t> masked;
    for (int64_t i = 0; i < 10; ++i) {
      const MaskedBatch batch = batches.at({epoch, i});
      masked.insert(batch.masked_labels.begin(), batch.masked_labels.end());
    }
    return masked;
  };
  const std::set<int64_t> first = masked_in(0);
  EXPECT_EQ(first.size(), 200u) << "no sequence twice";
  EXPECT_NE(first, masked_in(1));
}

TEST(CausalBatches, LabelsAreTheNextTokens) {
  const TextCorpus corpus = counting(41);
  CausalBatches batches(corpus, {.batch = 2, .length = 10, .seed = 1});
  EXPECT_EQ(batches.batches_per_epoch(), 2);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 2; ++i) {
    const CausalBatch batch = batches.at({0, i});
    for (size_t t = 0; t < 20; ++t) {
      EXPECT_EQ(batch.labels[t], batch.tokens[t] + 1);
      seen.insert(batch.tokens[t]);
    }
  }
  EXPECT_EQ(seen.size(), 40u);
  const TextCorpus shorter = counting(40);
  CausalBatches fewer(shorter, {.batch = 1, .length = 10});
  EXPECT_EQ(fewer.batches_per_epoch(), 3) << "the last token has no next one";
}

TEST(Corpus, SplitsOffItsEnd) {
  const auto [train, held_out] = counting(100).split(0.25);
  EXPECT_EQ(train.tokens().size(), 75u);
  EXPECT_EQ(held_out.tokens().size(), 25u);
  EXPECT_EQ(held_out.tokens()[0], 80);
  EXPECT_THROW(counting(10).split(1.5), UsageError);
}

TEST(Corpus, RefusesWhatGivesNoBatch) {
  const TextCorpus corpus = counting(100);
  const Vocabulary vocabulary = numbered_vocabulary(200);
  EXPECT_THROW(MaskedBatches(corpus, vocabulary, {.length = 2}), UsageError);
  EXPECT_THROW(MaskedBatches(corpus, vocabulary, {.batch = 6, .length = 22}), UsageError);
  EXPECT_THROW(MaskedBatches(corpus, vocabulary, {.batch = 0, .length = 22}), UsageError);
  EXPECT_THROW(CausalBatches(corpus, {.length = 0}), UsageError);
  EXPECT_THROW(CausalBatches(corpus, {.length = 100}), UsageError);
  CausalBatches batches(corpus, {.batch = 3, .length = 10});
  EXPECT_THROW(batches.at({0, 3}), UsageError);
  EXPECT_THROW(batches.at({-1, 0}), UsageError);
  EXPECT_THROW(batches.at({0, -1}), UsageError);
}

TEST(Corpus, TheBundledText) {
  const std::string text = read_text(TIDEMARK_TEXT);
  EXPECT_EQ(text.size(), 1681817u);
  EXPECT_NE(text.find("The Jargon File"), std::string::npos);
  const WordPiece pieces(build_vocabulary(text.substr(0, 200000), {.size = 2000}));
  const TextCorpus corpus(text, pieces);
  MaskedBatches batches(corpus, pieces.vocabulary(), {.batch = 8, .length = 128});
  EXPECT_GT(batches.batches_per_epoch(), 300);
}

}  // namespace
}  // namespace tidemark
