#include "models/bert.h"

#include <gtest/gtest.h>

#include "models/gpt2.h"
#include "ops/loss/loss.h"
#include "runtime/core/errors.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

// A device without data, so that large networks cost nothing.
SessionOptions simulated() {
  SessionOptions options;
  options.device = "sim:a100-80gb";
  options.policy = "none";
  return options;
}

template <class Model, class Options>
int64_t count(const Options& options) {
  Session session(simulated());
  ParameterInit init(0);
  return Model(options, init).parameter_elements();
}

// Hugging Face's num_parameters() of BertModel, BertForMaskedLM, XLMRobertaForMaskedLM and
// GPT2LMHeadModel.
TEST(TransformerSizes, AreAsPublished) {
  BertOptions base = bert_options("bert-base");
  EXPECT_EQ(count<BertForMaskedLm>(base), 109'514'298);
  EXPECT_EQ(count<BertForMaskedLm>(bert_options("bert-large")), 335'174'458);
  EXPECT_EQ(count<BertForMaskedLm>(bert_options("xlm-roberta-base")), 278'295'186);
  EXPECT_EQ(count<BertForSpans>(base), 108'893'186);
  base.pooler = true;
  EXPECT_EQ(count<Bert>(base), 109'482'240);
  BertOptions tiny = bert_options("bert-tiny");
  tiny.pooler = true;
  EXPECT_EQ(count<Bert>(tiny), 4'385'920);
  EXPECT_EQ(count<Gpt2>(gpt2_options("gpt2")), 124'439'808);
  EXPECT_EQ(count<Gpt2>(gpt2_options("gpt2-medium")), 354'823'168);
  EXPECT_EQ(count<Gpt2>(gpt2_options("gpt2-large")), 774'030'080);
  EXPECT_EQ(count<Gpt2>(gpt2_options("gpt2-xl")), 1'557'611'200);
}

TEST(TransformerNames, UnknownOnesListTheKnown) {
  for (const auto& make : {+[] { bert_options("bart"); }, +[] { gpt2_options("bart"); }}) {
    EXPECT_THROW(make(), UsageError);
  }
}

class BertTest : public SessionTest {
 protected:
  static BertOptions small() {
    return {
        .vocabulary = 40, .positions = 12, .layers = 2, .width = 16, .heads = 2, .inner = 24};
  }
  static Tensor tokens(int64_t rows, int64_t length) {
    std::vector<int64_t> values(static_cast<size_t>(rows * length));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int64_t>((7 * i + 3) % 39 + 1);
    }
    return from(values, {rows, length});
  }
};

TEST_F(BertTest, ShapesOfEveryHead) {
  ParameterInit init(1);
  BertOptions options = small();
  options.pooler = true;
  const Bert bert(options, init);
  const Tensor x = bert.forward({.tokens = tokens(3, 5)});
  EXPECT_EQ(x.shape(), (Shape{3, 5, 16}));
  EXPECT_EQ(bert.pooled(x).shape(), (Shape{3, 16}));
  const BertForMaskedLm masked(small(), init);
  EXPECT_EQ(masked.logits({.tokens = tokens(3, 5)}).shape(), (Shape{15, 40}));
  const Tensor positions = from(std::vector<int64_t>{2, 14}, {2});
  EXPECT_EQ(masked.logits({.tokens = tokens(3, 5)}, positions).shape(), (Shape{2, 40}));
  const BertForSpans spans(small(), init);
  EXPECT_EQ(spans.logits({.tokens = tokens(3, 5)}).end.shape(), (Shape{3, 5}));
  EXPECT_THROW(bert.forward({.tokens = tokens(1, 13)}), UsageError);
  EXPECT_THROW(Bert(small(), init).pooled(x), UsageError);
}

TEST_F(BertTest, PaddingChangesNothing) {
  ParameterInit init(1);
  BertForSpans model(small(), init);
  model.train(false);
  const Tensor whole = model.logits({.tokens = tokens(1, 4)}).start;
  std::vector<int64_t> padded = to_vector<int64_t>(tokens(1, 4));
  padded.resize(9, 0);
  const Tensor lengths = from(std::vector<int64_t>{4}, {1});
  const Tensor longer = model.logits({.tokens = from(padded, {1, 9}), .keys = lengths}).start;
  std::vector<float> there = to_vector(longer);
  there.resize(4);
  expect_close(whole, there);
}

// As XLM-R's do: rows before the first position are never read.
TEST_F(BertTest, PositionsBeginWhereTheyAreTold) {
  ParameterInit init(1);
  BertOptions options = small();
  options.first_position = 2;
  Bert model(options, init);
  EXPECT_THROW(model.forward({.tokens = tokens(1, 11)}), UsageError);
  backward(model.forward({.tokens = tokens(2, 10)}), random_tensor({2, 10, 16}, 1));
  for (const NamedTensor& one : model.parameters()) {
    if (one.name != "embeddings.position_embeddings.weight") continue;
    const std::vector<float> gradient = to_vector(grad_of(one.tensor));
    for (int64_t row = 0; row < 12; ++row) {
      const bool zero =
          std::all_of(gradient.begin() + row * 16, gradient.begin() + (row + 1) * 16,
                      [](float v) { return v == 0; });
      EXPECT_EQ(zero, row < 2) << row;
    }
  }
}

TEST_F(BertTest, UndefinedSegmentsAreZeros) {
  ParameterInit init(1);
  Bert model(small(), init);
  model.train(false);
  const Tensor zeros = from(std::vector<int64_t>(10, 0), {2, 5});
  const Tensor with = model.forward({.tokens = tokens(2, 5), .segments = zeros});
  expect_close(model.forward({.tokens = tokens(2, 5)}), to_vector(with));
}

TEST_F(BertTest, DropoutIsOffInEvaluation) {
  ParameterInit init(1);
  Bert model(small(), init);
  const auto values = [&] { return to_vector(model.forward({.tokens = tokens(2, 5)})); };
  EXPECT_FALSE(same_bits(values(), values()));
  model.train(false);
  EXPECT_TRUE(same_bits(values(), values()));
}

// The words' weight is used twice: by the table and by the last product.
TEST_F(BertTest, TiedWeightGetsBothGradients) {
  ParameterInit init(1);
  BertForMaskedLm model(small(), init);
  const Tensor position = from(std::vector<int64_t>{1}, {1});
  const Tensor label = from(std::vector<int64_t>{30}, {1});
  backward(cross_entropy(model.logits({.tokens = tokens(1, 3)}, position), label));
  Tensor words;
  for (const NamedTensor& one : model.parameters()) {
    if (one.name == "bert.embeddings.word_embeddings.weight") words = one.tensor;
  }
  ASSERT_TRUE(words);
  const std::vector<float> gradient = to_vector(grad_of(words));
  const auto is_zero = [&](int64_t row) {
    return std::all_of(gradient.begin() + row * 16, gradient.begin() + (row + 1) * 16,
                       [](float v) { return v == 0; });
  };
  for (int64_t row = 0; row < 40; ++row) EXPECT_FALSE(is_zero(row)) << row;
}

TEST_F(BertTest, Gpt2DoesNotLookAhead) {
  const Gpt2Options options{
      .vocabulary = 40, .positions = 8, .layers = 2, .width = 16, .heads = 2};
  ParameterInit init(1);
  Gpt2 model(options, init);
  model.train(false);
  const auto first_rows = [&](int64_t last_token) {
    std::vector<int64_t> values{5, 6, 7, last_token};
    std::vector<float> logits = to_vector(model.logits(from(values, {1, 4})));
    logits.resize(3 * 40);
    return logits;
  };
  EXPECT_TRUE(same_bits(first_rows(8), first_rows(9)));
  EXPECT_THROW(model.logits(tokens(1, 9)), UsageError);
}

}  // namespace
}  // namespace tidemark::testing
