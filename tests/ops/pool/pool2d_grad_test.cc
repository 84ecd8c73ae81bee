// Through the session: the public functions and their gradients.
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;

class Pool2dGrad : public testing::SessionTest {};

const Pool2dAttrs kOverlapping{{3, 3}, {2, 1}, {1, 0}};

// Values far apart, so that no step of finite differences changes which is the largest.
TEST_F(Pool2dGrad, OfMaxAgreesWithFiniteDifferences) {
  check_gradients([](std::vector<Tensor> in) { return max_pool2d(in[0], kOverlapping); },
                  {{2, 6, 5, 3}}, {.step = 1e-4F, .tolerance = 2e-2});
}

TEST_F(Pool2dGrad, OfAverageAgreesWithFiniteDifferences) {
  for (const bool include : {false, true}) {
    check_gradients(
        [=](std::vector<Tensor> in) { return avg_pool2d(in[0], kOverlapping, include); },
        {{2, 6, 5, 3}});
  }
}

TEST_F(Pool2dGrad, OfAdaptiveAverageAgreesWithFiniteDifferences) {
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 3}, {7, 4}}) {
    check_gradients(
        [=](std::vector<Tensor> in) { return adaptive_avg_pool2d(in[0], height, width); },
        {{2, 6, 5, 3}});
  }
}

TEST_F(Pool2dGrad, MaxPoolKeepsItsInputNeitherInWholeNorInPart) {
  Tensor x = testing::random_leaf({2, 8, 8, 4}, 1);
  Tensor y = max_pool2d(x, {});
  const int64_t users = x.storage()->users();
  EXPECT_EQ(users, 1);
}

}  // namespace
}  // namespace tidemark
