#include "examples/common/text_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "examples/common/bert_flags.h"
#include "examples/common/text_training.h"
#include "runtime/core/errors.h"
#include "tests/examples/parse_arguments.h"

namespace tidemark {
namespace {

BertFlags parsed_bert(const std::vector<std::string>& arguments) {
  return testing::parsed_arguments(parse_bert_flags, arguments);
}

TEST(BertFlagsTest, DefaultsFollowModelAndTask) {
  const BertFlags plain = parsed_bert({});
  EXPECT_EQ(plain.model, "bert-tiny");
  EXPECT_EQ(plain.task, "mlm");
  EXPECT_EQ(plain.length, 128);
  EXPECT_EQ(plain.batch, 32);
  EXPECT_EQ(plain.steps, 100);
  EXPECT_EQ(plain.optimizer, "adamw");
  EXPECT_EQ(base_rate(plain), 1e-3);
  EXPECT_EQ(plain.schedule, "linear");
  EXPECT_EQ(plain.attention, AttentionImplementation::kMemoryEfficient);
  EXPECT_EQ(parsed_bert({"--model", "gpt2"}).task, "clm");
  const BertFlags squad = parsed_bert({"--task", "squad", "--data", "x"});
  EXPECT_EQ(squad.length, 384);
  EXPECT_EQ(squad.batch, 8);
  EXPECT_EQ(squad.epochs, 1);
  EXPECT_EQ(parsed_bert({"--attention", "materialised"}).attention,
            AttentionImplementation::kMaterialised);
}

// What a new text network must not have to edit: every model has its defaults from the table.
TEST(BertFlagsTest, EveryModelHasDefaultsForEachTask) {
  for (const std::string& name : text_model_names()) {
    const TextModelInfo& model = text_model(name);
    EXPECT_EQ(parsed_bert({"--model", name}).task, model.tasks.front().name) << name;
    for (const std::string& task : names_of(model.tasks)) {
      const BertFlags flags = parsed_bert({"--model", name, "--task", task, "--data", "x"});
      EXPECT_LE(flags.length, model.longest) << name << ' ' << task;
      EXPECT_EQ(base_rate(flags), task == "squad" ? 5e-5 : model.rate.value_or(1e-4)) << name;
      EXPECT_EQ(describe_text(flags)->vocabulary_size,
                model.learnt_vocabulary.value_or(model.vocabulary))
          << name;
    }
  }
}

TEST(DescribeTextTest, RowsOfTheTableAreThePublishedOnes) {
  EXPECT_EQ(describe_text(parsed_bert({"--model", "bert-base"}))->vocabulary_size, 30522);
  EXPECT_EQ(describe_text(parsed_bert({"--model", "gpt2-xl"}))->vocabulary_size, 50257);
  EXPECT_EQ(describe_text(parsed_bert({}))->vocabulary_size, 8192);
  EXPECT_EQ(describe_text(parsed_bert({"--vocab-size", "500"}))->vocabulary_size, 500);
}

class TextDataTest : public ::testing::TestWithParam<const char*> {};

// The dry run of a machine without the data is that of one with them.
TEST_P(TextDataTest, DescriptionOfTheBundledTextIsItsTruth) {
  const BertFlags flags = parsed_bert(
      {"--model", GetParam(), "--vocab-size", "300", "--seq-length", "24", "--batch", "6"});
  const auto described = describe_text(flags), opened = open_text(flags);
  EXPECT_EQ(opened->vocabulary_size, described->vocabulary_size);
  EXPECT_EQ(opened->pad, described->pad);
  EXPECT_GT(opened->batches_per_epoch(), 1000);
  EXPECT_GT(opened->test_batches(), 0);
  for (const auto& [real, sizes] : {std::pair(opened->train(3), described->train(3)),
                                    std::pair(opened->test(0), described->test(0))}) {
    EXPECT_EQ(real.rows, sizes.rows);
    EXPECT_EQ(real.length, sizes.length);
    EXPECT_EQ(real.asked, sizes.asked);
    EXPECT_EQ(static_cast<int64_t>(real.tokens->size()), real.rows * real.length);
    EXPECT_EQ(static_cast<int64_t>(real.labels->size()), real.asked);
    EXPECT_EQ(sizes.tokens, nullptr);
  }
}

// Whose words, 17364 of them, are fewer than the published network knows.
TEST(OpenTextTest, TableHasThePublishedRowsWhereFewerWordsAreLearnt) {
  const BertFlags flags = parsed_bert({"--model", "bert-base"});
  EXPECT_EQ(open_text(flags)->vocabulary_size, describe_text(flags)->vocabulary_size);
}

TEST_P(TextDataTest, StepsAreAFunctionOfTheirNumber) {
  const BertFlags flags = parsed_bert(
      {"--model", GetParam(), "--vocab-size", "300", "--seq-length", "24", "--batch", "6"});
  const auto one = open_text(flags), other = open_text(flags);
  EXPECT_EQ(one->fingerprint(), other->fingerprint());
  const int64_t far = one->batches_per_epoch() + 5;
  EXPECT_EQ(*one->train(far).tokens, *other->train(far).tokens);
  EXPECT_NE(*one->train(5).tokens, *one->train(far).tokens);
}

INSTANTIATE_TEST_SUITE_P(Models, TextDataTest, ::testing::Values("bert-tiny", "gpt2"),
                         [](const auto& one) { return one.index == 0 ? "masked" : "causal"; });

}  // namespace
}  // namespace tidemark
