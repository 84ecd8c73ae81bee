#include "models/nn/attention.h"

#include <gtest/gtest.h>
#include <optional>

#include "runtime/session/call_listener.h"
#include "tests/models/nn/names.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

class MultiHeadAttentionTest : public SessionTest {
 protected:
  ParameterInit init_{1};
};

TEST_F(MultiHeadAttentionTest, CarriesTheNamesOfBertAndGpt2) {
  const MultiHeadAttention bert({.width = 8,
                                 .heads = 2,
                                 .query = "self.query",
                                 .key = "self.key",
                                 .value = "self.value",
                                 .output = "output.dense"},
                                init_);
  EXPECT_EQ(names(bert.parameters()),
            (std::vector<std::string>{"self.query.weight", "self.query.bias", "self.key.weight",
                                      "self.key.bias", "self.value.weight", "self.value.bias",
                                      "output.dense.weight", "output.dense.bias"}));
  const MultiHeadAttention gpt2({.width = 8, .heads = 2, .fused = true, .output = "c_proj"},
                                init_);
  EXPECT_EQ(names(gpt2.parameters()),
            (std::vector<std::string>{"c_attn.weight", "c_attn.bias", "c_proj.weight",
                                      "c_proj.bias"}));
  EXPECT_EQ(gpt2.parameters()[0].tensor.shape(), Shape({8, 24}));
}

// Between the projections and attention nothing is copied, forward; backward, the fused
// gradients are put behind one another.
TEST_F(MultiHeadAttentionTest, ViewsNeedNoCopies) {
  for (const bool fused : {false, true}) {
    SCOPED_TRACE(fused);
    const MultiHeadAttention attention({.width = 8, .heads = 2, .fused = fused}, init_);
    std::vector<std::string> ops;
    std::optional<CallListener> listener(
        std::in_place, session_, [&](const Recipe& call) { ops.emplace_back(call.name()); });
    const Tensor y = attention.forward(random_tensor({2, 5, 8}, 1));
    std::vector<std::string> expected(fused ? 1 : 3, "matmul");
    expected.insert(expected.end(), {"attention", "matmul"});
    EXPECT_EQ(ops, expected);
    ops.clear();
    backward(y, random_tensor({2, 5, 8}, 2));
    listener.reset();
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "concat"), fused ? 1 : 0);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "copy"), 0);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "narrow_grad"), 0);
    for (const NamedTensor& parameter : attention.parameters()) {
      EXPECT_EQ(grad_of(parameter.tensor).shape(), parameter.tensor.shape()) << parameter.name;
    }
  }
}

TEST_F(MultiHeadAttentionTest, DropsInTrainingOnly) {
  MultiHeadAttention attention({.width = 8, .heads = 2, .dropout = 0.5}, init_);
  const Tensor x = random_tensor({1, 20, 8}, 1);
  EXPECT_NE(to_vector(attention.forward(x)), to_vector(attention.forward(x)));
  attention.train(false);
  EXPECT_EQ(to_vector(attention.forward(x)), to_vector(attention.forward(x)));
}

// Keys and values come from the other sequence, which may have another length; its own values
// do not matter but through the queries.
TEST_F(MultiHeadAttentionTest, AttendsToAnotherSequence) {
  const MultiHeadAttention attention({.width = 8, .heads = 2}, init_);
  const Tensor x = random_tensor({2, 3, 8}, 1), memory = random_leaf({2, 6, 8}, 2);
  const Tensor y = attention.forward(x, {}, memory);
  EXPECT_EQ(y.shape(), x.shape());
  backward(y, random_tensor({2, 3, 8}, 3));
  EXPECT_EQ(grad_of(memory).shape(), memory.shape());
  // With the sequence itself it is self-attention.
  EXPECT_TRUE(
      same_bits(to_vector(attention.forward(x, {}, x)), to_vector(attention.forward(x))));
  // Of one position that is there, the weights are 1 whatever the query.
  const Tensor one = from(std::vector<int64_t>{1, 1}, {2});
  const std::vector<float> values = to_vector(attention.forward(x, one, memory));
  for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(values[i], values[8 + i]);
  EXPECT_NE(usage_error([&] { attention.forward(x, {}, random_tensor({2, 6, 4}, 4)); }), "");
  const MultiHeadAttention fused({.width = 8, .heads = 2, .fused = true}, init_);
  EXPECT_NE(usage_error([&] { fused.forward(x, {}, memory); }), "");
}

TEST_F(MultiHeadAttentionTest, RefusesWhatDoesNotFit) {
  EXPECT_NE(usage_error([&] { MultiHeadAttention({.width = 8, .heads = 3}, init_); }), "");
  const MultiHeadAttention attention({.width = 8, .heads = 2}, init_);
  EXPECT_NE(usage_error([&] {
              attention.forward(random_tensor({2, 5, 6}, 1));
            }).find("(2, 5, 6)"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark::testing
