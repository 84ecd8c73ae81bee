#include "tests/stress/random_shapes.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kManySteps = 10'000;

TEST(RandomShapesLongTest, TenThousandSteps) {
  for (const auto& job : {small_resnet(), small_bert()}) {
    train_random_shapes(*job, {.share = 0.1, .batch = 16, .steps = kManySteps});
  }
  train_random_shapes(*small_bert(), {.policy = "none", .batch = 16, .steps = kManySteps});
}

// Of what is worked out per shape no more than so much is kept.
TEST(RandomShapesLongTest, TenThousandStepsOfEverNewShapes) {
  train_random_shapes(*small_resnet(), {.share = 0.1, .batch = 5000, .steps = kManySteps});
}

}  // namespace
}  // namespace tidemark::testing
