#include "ops/elementwise/inplace.h"

#include <stdexcept>

#include "ops/elementwise/elementwise.h"
#include "ops/view/view.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using InPlaceTest = SessionTest;

TEST_F(InPlaceTest, WritesTheTargetAndGivesItBack) {
  const Tensor a = from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = from<float>({10, 20, 30}, {3});
  const Tensor y = add_(a, b);
  EXPECT_EQ(y.storage().get(), a.storage().get());
  EXPECT_EQ(to_vector(a), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  mul_(a, 2);
  EXPECT_EQ(to_vector(a), (std::vector<float>{22, 44, 66, 28, 50, 72}));
  fill_(a, -1);
  EXPECT_EQ(to_vector(a), std::vector<float>(6, -1));
  copy_(a, b);
  EXPECT_EQ(to_vector(a), (std::vector<float>{10, 20, 30, 10, 20, 30}));
}

TEST_F(InPlaceTest, WritesThroughViewsOnly) {
  const Tensor a = from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  fill_(narrow(a, 1, 1, 1), 0);
  EXPECT_EQ(to_vector(a), (std::vector<float>{1, 0, 3, 4, 0, 6}));
  copy_(transpose(a, 0, 1), from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  EXPECT_EQ(to_vector(a), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  add_(narrow(a, 0, 1, 1), narrow(a, 0, 0, 1));
  EXPECT_EQ(to_vector(a), (std::vector<float>{1, 3, 5, 3, 7, 11}));
  mul_(narrow(a, 0, 0, 1), 3);
  EXPECT_EQ(to_vector(a), (std::vector<float>{3, 9, 15, 3, 7, 11}));
}

TEST_F(InPlaceTest, TheSameViewTwice) {
  const std::vector<float> values = random_values(70001, 4);
  const Tensor a = from(values, {70001});
  add_(a, a);
  std::vector<float> doubled;
  for (float value : values) doubled.push_back(2 * value);
  EXPECT_EQ(to_vector(a), doubled);
}

TEST_F(InPlaceTest, CopiesAndFillsOtherTypes) {
  const Tensor a = from<int64_t>({1, 2, 3}, {3});
  copy_(a, from<int64_t>({int64_t{1} << 60}, {1}));
  EXPECT_EQ(to_vector<int64_t>(a), std::vector<int64_t>(3, int64_t{1} << 60));
  fill_(a, 5);
  EXPECT_EQ(to_vector<int64_t>(a), std::vector<int64_t>(3, 5));
  const Tensor b = from<uint8_t>({1, 0}, {2}, DType::kBool);
  fill_(b, 1);
  EXPECT_EQ(to_vector<uint8_t>(b), (std::vector<uint8_t>{1, 1}));
  EXPECT_THROW(copy_(a, b), UsageError);
}

TEST_F(InPlaceTest, EmptyTensorsAndScalars) {
  const Tensor empty = from<float>({}, {0, 3});
  fill_(empty, 1);
  add_(empty, from<float>({1, 2, 3}, {3}));
  const Tensor scalar = from<float>({2}, {});
  add_(scalar, scalar);
  EXPECT_EQ(to_vector(scalar), std::vector<float>{4});
}

TEST_F(InPlaceTest, TargetsThatCannotBeWritten) {
  const Tensor a = from<float>({1, 2, 3}, {3}), b = from<float>({1}, {1});
  EXPECT_EQ(usage_error([&] { add_(b, a); }),
            "[add_] shape (3) does not broadcast to the target's, (1)");
  EXPECT_EQ(usage_error([&] { fill_(expand(b, {3}), 0); }),
            "[fill_] the target, of shape (3), is an expanded view");
}

TEST_F(InPlaceTest, TensorsThatNeedGradientsAreRefusedUnlessGradientsAreOff) {
  const Tensor leaf = random_leaf({3}, 1), other = random_tensor({3}, 2);
  EXPECT_THROW(add_(leaf, other), UsageError);
  EXPECT_THROW(add_(other, leaf), UsageError);
  EXPECT_THROW(mul_(relu(leaf), 2), UsageError);
  EXPECT_THROW(fill_(leaf, 2), UsageError);
  EXPECT_THROW(copy_(leaf, other), UsageError);
  const NoGrad no_grad;
  copy_(leaf, other);
  EXPECT_EQ(to_vector(leaf), to_vector(other));
}

TEST_F(InPlaceTest, BackwardNoticesAnOverwrittenInput) {
  const Tensor leaf = random_leaf({3}, 1), other = random_tensor({3}, 2);
  const Tensor y = mul(leaf, other);
  fill_(other, 0);
  EXPECT_THROW(backward(y, from<float>({1, 1, 1}, {3})), std::logic_error);
}

}  // namespace
}  // namespace tidemark::testing
