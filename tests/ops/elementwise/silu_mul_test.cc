#include "ops/elementwise/silu_mul.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

using SiluMulTest = SessionTest;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(SiluMulTest, AgreesWithTheDefinition) {
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{3, 5, 7}, Shape{33}, Shape{70001}, Shape{0, 3}}) {
    SCOPED_TRACE(shape.to_string());
    const std::vector<float> gate = random_values(shape.elements(), 1, -9, 9);
    const std::vector<float> up = random_values(shape.elements(), 2);
    const std::vector<float> g = random_values(shape.elements(), 3);
    std::vector<double> y, dgate, dup;
    for (size_t i = 0; i < gate.size(); ++i) {
      const double v = gate[i], s = sigmoid_of(v);
      y.push_back(v * s * up[i]);
      dgate.push_back(double{g[i]} * up[i] * (s + v * s * (1 - s)));
      dup.push_back(g[i] * v * s);
    }
    Tensor gates = from(gate, shape), ups = from(up, shape);
    require_grad(gates);
    require_grad(ups);
    const Tensor out = silu_mul(gates, ups);
    expect_close(out, y, 5e-7);
    backward(out, from(g, shape));
    expect_close(grad_of(gates), dgate, 7e-7);
    expect_close(grad_of(ups), dup, 5e-7);
  }
}

TEST_F(SiluMulTest, Gradients) {
  const auto function = [](std::vector<Tensor> in) { return silu_mul(in[0], in[1]); };
  check_gradients(function, {{4, 9}, {4, 9}}, {.low = -3, .high = 3});
  check_gradients(
      [&](std::vector<Tensor> in) {
        return transpose(silu_mul(transpose(in[0], 0, 1), transpose(in[1], 0, 1)), 0, 1);
      },
      {{4, 9}, {4, 9}});
  // Both operands are halves of one product.
  check_gradients(
      [](std::vector<Tensor> in) {
        const std::vector<Tensor> halves = split(in[0], 1, 2);
        return silu_mul(halves[0], halves[1]);
      },
      {{4, 10}});
  check_gradients([](std::vector<Tensor> in) { return silu_mul(in[0], in[0]); }, {{7}});
}

TEST_F(SiluMulTest, OneOperandMayBeFrozen) {
  const Tensor leaf = random_leaf({5}, 1), frozen = random_tensor({5}, 2);
  backward(silu_mul(leaf, frozen), random_tensor({5}, 3));
  EXPECT_TRUE(grad_of(leaf).defined());
  const Tensor other = random_leaf({5}, 1);
  backward(silu_mul(frozen, other), random_tensor({5}, 3));
  EXPECT_TRUE(grad_of(other).defined());
}

TEST_F(SiluMulTest, KeepsOnlyItsResult) {
  const Tensor gate = random_leaf({64, 512}, 1), up = random_leaf({64, 512}, 2);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor y = silu_mul(gate, up);
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before, Bytes(64 * 512 * 4));
}

TEST_F(SiluMulTest, ThreadsDoNotMatter) {
  const Shape shape{100'003};
  const Array gate = Array::random(shape, 1, -4, 4), up = Array::random(shape, 2),
              g = Array::random(shape, 3);
  const KernelRun y = run_kernel(kSiluMul, {gate, up}, {}, 1);
  const KernelRun grad = run_kernel(kSiluMulGrad, {g, gate, up}, {}, 1);
  const KernelRun silu_of = run_kernel(kSilu, {gate}, {}, 1);
  const KernelRun silu_grad = run_kernel(kSiluGrad, {g, gate}, {}, 1);
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(same_bits(y[0], run_kernel(kSiluMul, {gate, up}, {}, threads)[0]));
    const KernelRun again = run_kernel(kSiluMulGrad, {g, gate, up}, {}, threads);
    EXPECT_TRUE(same_bits(grad[0], again[0]));
    EXPECT_TRUE(same_bits(grad[1], again[1]));
    EXPECT_TRUE(same_bits(silu_of[0], run_kernel(kSilu, {gate}, {}, threads)[0]));
    EXPECT_TRUE(same_bits(silu_grad[0], run_kernel(kSiluGrad, {g, gate}, {}, threads)[0]));
  }
}

TEST_F(SiluMulTest, LargeValues) {
  Tensor gate = from<float>({-3e4F, -100, 0, 100, 3e4F}, {5});
  Tensor up = from<float>({1, 2, 3, 4, 5}, {5});
  require_grad(gate);
  require_grad(up);
  const Tensor y = silu_mul(gate, up);
  expect_close(y, std::vector<double>{0, 0, 0, 400, 15e4}, 1e-7);
  backward(y, from<float>({1, 1, 1, 1, 1}, {5}));
  expect_close(grad_of(gate), std::vector<double>{0, 0, 1.5, 4, 5}, 1e-7);
  expect_close(grad_of(up), std::vector<double>{0, 0, 0, 100, 3e4}, 1e-7);
}

TEST_F(SiluMulTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor gate = from<float>({nan, 1, 1, 1}, {4}), up = from<float>({1, nan, 1, 1}, {4});
  require_grad(gate);
  require_grad(up);
  const Tensor y = silu_mul(gate, up);
  backward(y, from<float>({1, 1, nan, 1}, {4}));
  const auto nans = [](const Tensor& tensor) {
    std::vector<bool> found;
    for (const float value : to_vector(tensor)) found.push_back(std::isnan(value));
    return found;
  };
  EXPECT_EQ(nans(y), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(nans(grad_of(gate)), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(nans(grad_of(up)), (std::vector<bool>{true, false, true, false}));
}

TEST_F(SiluMulTest, Errors) {
  const Tensor x = random_tensor({2, 3}, 1);
  EXPECT_EQ(usage_error([&] { silu_mul(x, random_tensor({3}, 1)); }),
            "[silu_mul] inputs must have the same shape, not (2, 3) and (3)");
  EXPECT_EQ(usage_error([&] { silu_mul(x, cast(x, DType::kBFloat16)); }),
            "[silu_mul] input 1 of shape (2, 3) is bfloat16, not float32");
  const Tensor whole = from<int64_t>({1}, {1});
  EXPECT_EQ(usage_error([&] { silu_mul(whole, whole); }),
            "[silu_mul] input 0 of shape (1) is int64, not float32 or bfloat16");
}

}  // namespace
}  // namespace tidemark::testing
