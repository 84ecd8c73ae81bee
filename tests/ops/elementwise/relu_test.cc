#include "ops/elementwise/relu.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/registry/dispatch.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using ReluTest = SessionTest;

std::vector<uint32_t> bits_of(const Tensor& x) {
  std::vector<uint32_t> bits;
  for (const float value : to_vector(cast(x, DType::kFloat32))) {
    bits.push_back(0);
    std::memcpy(&bits.back(), &value, sizeof value);
  }
  return bits;
}

// The gradient by its definition.
std::vector<uint32_t> where_positive(const Tensor& g, const Tensor& y) {
  std::vector<uint32_t> bits = bits_of(g);
  const std::vector<float> values = to_vector(cast(y, DType::kFloat32));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = values[i] > 0 ? bits[i] : 0;
  return bits;
}

TEST_F(ReluTest, SignsGiveTheBitsOfValues) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const int64_t n : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 257, 70003}) {
      SCOPED_TRACE(n);
      Tensor x = cast(random_tensor({n}, 1), dtype);
      const Tensor g = cast(random_tensor({n}, 2), dtype);
      require_grad(x);
      const Tensor y = relu(x);
      std::vector<uint32_t> positive = bits_of(x);
      for (uint32_t& bits : positive) bits = bits >> 31 ? 0 : bits;
      EXPECT_EQ(bits_of(y), positive);
      backward(y, g);
      EXPECT_EQ(bits_of(grad_of(x)), where_positive(g, y));
      for (const Tensor& values : {x, y})
        EXPECT_EQ(bits_of(dispatch1(kReluGradByValues, {g, values})), where_positive(g, y));
    }
  }
}

TEST_F(ReluTest, SignsAreBitsInRowMajorOrder) {
  std::vector<float> values(70, -1);
  for (const size_t i : {0, 5, 31, 32, 63, 64, 69}) values[i] = 1;
  const std::vector<Tensor> made = dispatch(kRelu, {from(values, {7, 10})});
  EXPECT_EQ(made[1].dtype(), DType::kInt32);
  EXPECT_EQ(to_vector<int32_t>(made[1]),
            (std::vector<int32_t>{static_cast<int32_t>(0x80000021),
                                  static_cast<int32_t>(0x80000001), 0x21}));
}

TEST_F(ReluTest, NanStaysNanAndTheGradientIsZeroAtZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = from<float>({-1, 0, 2, nan, -0.0F}, {5});
  require_grad(x);
  const Tensor y = relu(x);
  EXPECT_TRUE(std::isnan(to_vector(y)[3]));
  backward(y, from<float>({1, 1, 1, 1, 1}, {5}));
  EXPECT_EQ(to_vector(grad_of(x)), (std::vector<float>{0, 0, 1, 0, 0}));
}

TEST_F(ReluTest, ViewsThatAreNotAligned) {
  const Tensor whole = random_leaf({3, 45}, 1);
  const Tensor part = narrow(whole, 1, 3, 40);
  const Tensor row = reshape(narrow(whole, 0, 1, 1), {45});
  for (const Tensor& x : {part, row, narrow(row, 0, 7, 33)}) {
    Tensor copy = from(to_vector(x), x.shape());
    require_grad(copy);
    const Tensor g = random_tensor(x.shape(), 5);
    const Tensor y = relu(x), of_copy = relu(copy);
    EXPECT_EQ(to_vector(y), to_vector(of_copy));
    backward(of_copy, g);
    EXPECT_EQ(bits_of(grad_of(copy)), where_positive(g, y));
  }
}

TEST_F(ReluTest, AGradientThatIsNotAligned) {
  const std::vector<Tensor> made = dispatch(kRelu, {random_tensor({70}, 1)});
  const Tensor g = narrow(random_tensor({90}, 2), 0, 3, 70);
  EXPECT_EQ(bits_of(dispatch1(kReluGrad, {g, made[1]})), where_positive(g, made[0]));
}

TEST_F(ReluTest, KeepsOneBitPerElement) {
  const Tensor x = random_leaf({64, 512}, 1);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor z = neg(relu(x));
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before,
            Bytes(64 * 512 / 8 + 64 * 512 * 4));
}

TEST_F(ReluTest, WithoutGradientSignsAreFreed) {
  const Tensor x = random_tensor({64, 512}, 1);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor y = relu(x);
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before, Bytes(64 * 512 * 4));
}

TEST_F(ReluTest, SignsMustBelongToTheGradient) {
  const std::vector<Tensor> made = dispatch(kRelu, {random_tensor({70}, 1)});
  EXPECT_EQ(usage_error([&] {
              dispatch(kReluGrad, {random_tensor({97}, 2), made[1]});
            }),
            "[relu_grad] the signs do not belong to the gradient");
}

}  // namespace
}  // namespace tidemark::testing
