#include "tests/stress/random_shapes.h"

#include "runtime/policy/registry.h"

namespace tidemark::testing {
namespace {

TEST(RandomShapesTest, NothingPilesUpOnTheSimulator) {
  for (const auto& job : {small_resnet(), small_bert()}) {
    for (const double share : {0.02, 0.5}) train_random_shapes(*job, {.share = share});
    train_random_shapes(*job, {.policy = "none"});
  }
}

TEST(RandomShapesTest, UnderEveryPolicy) {
  const auto job = small_resnet();
  for (const PolicyInfo& policy : policies()) {
    train_random_shapes(*job, {.policy = std::string(policy.name), .share = 0.2, .steps = 120});
  }
}

TEST(RandomShapesTest, NothingPilesUpInEarnest) {
  train_random_shapes(*small_resnet(),
                      {.device = "cpu", .share = 0.1, .batch = 2, .steps = 12});
  train_random_shapes(*small_bert(), {.device = "cpu", .share = 0.1, .steps = 20});
}

}  // namespace
}  // namespace tidemark::testing
