// Every family's operators under an ample and a tight budget: the same bits.
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/norm/layer_norm.h"
#include "ops/optimizer/optimizer.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

struct Result {
  std::vector<float> loss, x, bias;
  int64_t recomputes = 0;
  Bytes peak{0};
};

// A chain of layers whose outputs backward needs.
Result run_layers(std::optional<Bytes> budget) {
  SessionOptions options;
  options.threads = 2;
  options.budget = budget;
  options.policy = budget ? "dtr" : "none";
  Session session(options);
  Result result;
  const StepStats stats = session.step([&] {
    Tensor x = random_leaf({64, 256}, 1), bias = random_leaf({256}, 2);
    const Tensor labels = cast(scale(uniform({64}), 256), DType::kInt64);
    Tensor h = x;
    for (int layer = 0; layer < 6; ++layer) {
      h = dropout(relu(add(h, bias)), 0.2);
      h = mul(h, sigmoid(transpose(transpose(h, 0, 1), 0, 1)));
      h = add_scaled(h, concat({narrow(h, 1, 128, 128), narrow(h, 1, 0, 128)}, 1), 0.5);
      h = sub(h, expand(mean(h, {1}, true), h.shape()));
      h = div(h, add(sqrt(abs(h)), full({}, 1)));
      h = where(gt(h, normal(h.shape(), -1)), tanh(h), exp(neg(abs(h))));
    }
    const Tensor loss = add(cross_entropy(h, labels), nll_loss(log_softmax(h), labels));
    backward(add(loss, mean(softmax(reshape(h, {256, 64})))));
    result.loss = to_vector(loss);
    result.x = to_vector(grad_of(x));
    result.bias = to_vector(grad_of(bias));
  });
  result.recomputes = stats.recomputes;
  result.peak = session.peak_reserved();
  return result;
}

// What a transformer is made of beside attention, and its update with clipped gradients.
Result run_transformer(std::optional<Bytes> budget) {
  SessionOptions options;
  options.threads = 2;
  options.budget = budget;
  options.host_limit = Bytes(64 << 20);
  options.policy = budget ? "delta" : "none";
  Session session(options);
  Result result;
  std::vector<Tensor> leaves{random_leaf({1000, 128}, 1), random_leaf({128}, 2, 0.5, 1.5),
                             random_leaf({128}, 3), random_leaf({50, 128}, 4)};
  const StepStats stats = session.step([&] {
    const Tensor ids = cast(scale(uniform({4, 64}), 1000), DType::kInt64);
    const Tensor labels = cast(scale(uniform({256}), 8), DType::kInt64);
    Tensor h = embedding(leaves[0], ids, 0);
    for (int layer = 0; layer < 6; ++layer) {
      const Tensor normal = layer_norm(h, leaves[1], leaves[2]);
      h = add(h, dropout(gelu(normal, layer % 2 ? GeluKind::kTanh : GeluKind::kExact), 0.1));
    }
    const Tensor rows = reshape(h, {256, 128});
    const Tensor loss =
        add(cross_entropy(rows, labels, 3), linear_cross_entropy(rows, leaves[3], labels).loss);
    backward(loss);
    const NoGrad no_grad;
    std::vector<Tensor> gradients;
    for (const Tensor& leaf : leaves) gradients.push_back(grad_of(leaf));
    const Tensor all = norm(gradients);
    clip_(gradients, all, 0.01);
    result.loss = to_vector(loss);
    result.loss.push_back(to_vector(all)[0]);
    result.x = to_vector(grad_of(leaves[0]));
    result.bias = to_vector(grad_of(leaves[1]));
  });
  result.recomputes = stats.recomputes;
  result.peak = session.peak_reserved();
  return result;
}

class EvictionTest : public ::testing::TestWithParam<Result (*)(std::optional<Bytes>)> {};

TEST_P(EvictionTest, ResultsAreTheSameToTheBit) {
  const auto run = GetParam();
  const Result ample = run(std::nullopt);
  ASSERT_EQ(ample.recomputes, 0);
  for (const int percent : {60, 35}) {
    SCOPED_TRACE(percent);
    const Bytes budget = align_down(Bytes(ample.peak.count() * percent / 100));
    const Result tight = run(budget);
    EXPECT_LE(tight.peak, budget);
    EXPECT_GT(tight.recomputes, 0);
    EXPECT_TRUE(same_bits(tight.loss, ample.loss));
    EXPECT_TRUE(same_bits(tight.x, ample.x));
    EXPECT_TRUE(same_bits(tight.bias, ample.bias));
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, EvictionTest,
                         ::testing::Values(run_layers, run_transformer));

}  // namespace
}  // namespace tidemark::testing
