#include "examples/common/training.h"

#include <gtest/gtest.h>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

Tensor upload(const std::vector<float>& values) {
  const auto kept = std::make_shared<std::vector<float>>(values);
  return Session::current().upload(
      TensorMeta::contiguous(DType::kFloat32, Shape{static_cast<int64_t>(values.size())}),
      Category::kData, kept->data(), kept);
}

TEST(MicroBatches, CoverAllRowsOnce) {
  const std::vector<MicroBatch> parts = micro_batches(5, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].begin, 0);
  EXPECT_EQ(parts[1].begin, 2);
  EXPECT_EQ(parts[2].begin, 4);
  EXPECT_EQ(parts[1].size, 2);
  EXPECT_EQ(parts[2].size, 1);
  EXPECT_EQ(micro_batches(5, 5).size(), 1u);
}

// The mean of w x over all rows, whatever the parts: their own means count by their sizes.
TEST(TrainStep, LossAndGradientsAreThoseOfTheWholeBatch) {
  Session session({.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)});
  const std::vector<float> x{1, 2, 4, 8, 65};  // mean 16
  for (const int64_t size : {5, 2, 3, 1}) {
    Tensor w = upload({3});
    require_grad(w);
    int updates = 0;
    float gradient = 0;
    StepOutcome outcome;
    session.step([&] {
      outcome = train_step(
          micro_batches(5, size),
          [&](const MicroBatch& part) {
            const std::vector<float> rows(x.begin() + part.begin,
                                          x.begin() + part.begin + part.size);
            return Forward{.loss = mean(mul(expand(w, {part.size}), upload(rows))),
                           .guesses = part.size};
          },
          [&] {
            ++updates;
            session.download(grad_of(w), &gradient);
          });
    });
    EXPECT_EQ(updates, 1);
    EXPECT_FLOAT_EQ(gradient, 16);
    EXPECT_FLOAT_EQ(outcome.loss.value(), 48);
    EXPECT_EQ(outcome.guesses, 5);
    EXPECT_FALSE(outcome.correct);
  }
}

}  // namespace
}  // namespace tidemark
