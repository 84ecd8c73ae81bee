#include "models/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/elementwise/inplace.h"
#include "ops/loss/loss.h"
#include "ops/view/view.h"
#include "tests/support/same_bits.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

TransformerOptions small() {
  return {.vocabulary = 12, .longest = 8, .layers = 1, .width = 16, .heads = 2, .inner = 32};
}

// Rows of words 2 to 11; word 1 begins a target.
constexpr int64_t kRows = 16, kLength = 5, kBegin = 1;

std::vector<int64_t> words(int64_t step) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < kRows * kLength; ++i) {
    values.push_back(2 + (i * i + 7 * i + 3 * step * (i + 1)) % 10);
  }
  return values;
}

Tensor ids(const std::vector<int64_t>& values) {
  const int64_t length = static_cast<int64_t>(values.size()) / kRows;
  const auto owned = std::make_shared<const std::vector<int64_t>>(values);
  return Session::current().upload(
      TensorMeta::contiguous(DType::kInt64, Shape{kRows, length}), Category::kData,
      Session::current().device().has_data() ? owned->data() : nullptr, owned);
}

// Of saying the source backwards.
Tensor loss_of(const Transformer& model, int64_t step) {
  const std::vector<int64_t> source = words(step);
  std::vector<int64_t> target(source.size()), labels(source.size());
  for (int64_t n = 0; n < kRows; ++n) {
    const auto from = source.begin() + n * kLength;
    std::reverse_copy(from, from + kLength, labels.begin() + n * kLength);
    target[static_cast<size_t>(n * kLength)] = kBegin;
    std::copy_n(labels.begin() + n * kLength, kLength - 1, target.begin() + n * kLength + 1);
  }
  return cross_entropy(model.logits(ids(source), ids(target)), reshape(ids(labels), {-1}));
}

class TransformerTest : public SessionTest {
 protected:
  ParameterInit init_{1};
};

// torch.nn.Transformer has 44,140,544 parameters, of which its two last norms are 2,048.
TEST(TransformerSize, IsAsPublished) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(1);
  EXPECT_EQ(Transformer({.final_norms = true}, init).parameter_elements(),
            44'140'544 + 37'000 * 512);
  EXPECT_EQ(Transformer({}, init).parameter_elements(), 44'140'544 - 2'048 + 37'000 * 512);
}

TEST_F(TransformerTest, LearnsToSayItBackwards) {
  TransformerOptions options = small();
  options.dropout = 0;
  Transformer model(options, init_);
  const auto adam = make_adam(model.parameters(), {.lr = 0.01});
  // How soon depends on the processor's rounding: 150 steps were too few on one.
  constexpr int64_t kSteps = 400, kLast = 20;
  float first = 0, last = 0;  // on average of the last ones
  for (int64_t step = 0; step < kSteps; ++step) {
    session_.step([&] {
      const Tensor loss = loss_of(model, step);
      if (step == 0) first = to_vector(loss)[0];
      if (step >= kSteps - kLast) last += to_vector(loss)[0] / kLast;
      backward(loss);
      adam->step();
    });
  }
  EXPECT_GT(first, 2);
  EXPECT_LT(last, 1.5);  // without a look at the source: ln 10 = 2.3
}

// Row t of the target's logits depends on tokens 0 to t of it, and on all of the source but its
// padding.
TEST_F(TransformerTest, SeesTheSourceAndWhatWasSaid) {
  Transformer model(small(), init_);
  model.train(false);
  const auto logits = [&](std::vector<int64_t> source, std::vector<int64_t> target) {
    const Tensor lengths = from(std::vector<int64_t>{3}, {1});
    return to_vector(model.logits(from(source, {1, 4}), from(target, {1, 3}), lengths));
  };
  const std::vector<float> some = logits({2, 3, 4, 0}, {1, 5, 6});
  EXPECT_TRUE(same_bits(some, logits({2, 3, 4, 9}, {1, 5, 6})));
  EXPECT_FALSE(same_bits(some, logits({2, 3, 5, 0}, {1, 5, 6})));
  std::vector<float> other = logits({2, 3, 4, 0}, {1, 5, 7});
  EXPECT_FALSE(same_bits(some, other));
  other.resize(2 * 12);
  EXPECT_TRUE(same_bits(other, std::vector<float>(some.begin(), some.begin() + 2 * 12)));
}

TEST_F(TransformerTest, RefusesWhatDoesNotFit) {
  const Transformer model(small(), init_);
  const Tensor one = from(std::vector<int64_t>(9, 2), {1, 9});
  EXPECT_NE(usage_error([&] { model.logits(one, one); }).find("(1, 9)"), std::string::npos);
}

TEST(TransformerIdentity, TheSameBitsUnderABudget) {
  expect_same_bits_under_a_budget([] {
    ParameterInit init(3);
    const auto model = std::make_shared<Transformer>(small(), init);
    const std::shared_ptr<Optimizer> adam = make_adam(model->parameters(), {.lr = 0.01});
    return SmallTraining{model, adam, [model, adam] {
                           backward(loss_of(*model, 0));
                           adam->step();
                         }};
  });
}

}  // namespace
}  // namespace tidemark::testing
