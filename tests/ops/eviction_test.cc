// Every family's operators under an ample and a tight budget: the same bits.
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/loss.h"
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
Result run(std::optional<Bytes> budget) {
  SessionOptions options;
  options.threads = 2;
  options.budget = budget;
  options.policy = budget ? PolicyKind::kDelta : PolicyKind::kNone;
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

TEST(EvictionTest, ResultsAreTheSameToTheBit) {
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

}  // namespace
}  // namespace tidemark::testing
