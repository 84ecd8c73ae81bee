#include "ops/elementwise/gelu.h"

#include <cmath>
#include <numbers>

#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using GeluTest = SessionTest;
constexpr GeluKind kKinds[] = {GeluKind::kExact, GeluKind::kTanh};

double plain(double x, GeluKind kind) {
  if (kind == GeluKind::kExact) return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

double plain_slope(double x, GeluKind kind) {
  if (kind == GeluKind::kExact) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * density;
  }
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

TEST_F(GeluTest, AgreesWithThePlainFormulas) {
  for (const GeluKind kind : kKinds) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5, 7}, Shape{70001}, Shape{0, 3}}) {
      SCOPED_TRACE(shape.to_string());
      const std::vector<float> x = random_values(shape.elements(), 1, -9, 9);
      const std::vector<float> g = random_values(shape.elements(), 2);
      std::vector<double> y, dx;
      for (size_t i = 0; i < x.size(); ++i) {
        y.push_back(plain(x[i], kind));
        dx.push_back(g[i] * plain_slope(x[i], kind));
      }
      Tensor leaf = from(x, shape);
      require_grad(leaf);
      const Tensor out = gelu(leaf, kind);
      expect_close(out, y, 4e-7);
      backward(out, from(g, shape));
      expect_close(grad_of(leaf), dx, 6e-7);
    }
  }
}

// torch.nn.functional.gelu of float64, torch 2.11.
TEST_F(GeluTest, ValuesOfPyTorch) {
  const std::vector<double> y[] = {
      {-0.00404969, -0.15865525, -0.15426877, 0, 0.14967658, 0.84134475, 3.99987332},
      {-0.00363739, -0.15880801, -0.15428599, 0, 0.14967535, 0.84119199, 3.99992975}};
  const std::vector<double> dx[] = {
      {-0.01194565, -0.08331547, 0.13250488, 0.5, 0.69537335, 1.08331547, 1.00050365},
      {-0.01158417, -0.08296408, 0.13263010, 0.5, 0.69535410, 1.08296408, 1.00033512}};
  for (const GeluKind kind : kKinds) {
    Tensor x = from<float>({-3, -1, -0.5, 0, 0.25, 1, 4}, {7});
    require_grad(x);
    const Tensor out = gelu(x, kind);
    expect_close(out, y[static_cast<size_t>(kind)], 3e-7);
    backward(out, from<float>({1, 1, 1, 1, 1, 1, 1}, {7}));
    expect_close(grad_of(x), dx[static_cast<size_t>(kind)], 3e-7);
  }
}

TEST_F(GeluTest, Gradients) {
  for (const GeluKind kind : kKinds) {
    check_gradients([=](std::vector<Tensor> x) { return gelu(x[0], kind); }, {{4, 9}},
                    {.low = -3, .high = 3});
    check_gradients(
        [=](std::vector<Tensor> x) {
          return transpose(gelu(transpose(x[0], 0, 1), kind), 0, 1);
        },
        {{4, 9}});
  }
}

TEST_F(GeluTest, LargeValues) {
  for (const GeluKind kind : kKinds) {
    Tensor x = from<float>({-3e4F, -100, 100, 3e4F}, {4});
    require_grad(x);
    const Tensor y = gelu(x, kind);
    expect_close(y, std::vector<double>{0, 0, 100, 3e4}, 1e-7);
    backward(y, from<float>({1, 1, 1, 1}, {4}));
    expect_close(grad_of(x), std::vector<double>{0, 0, 1, 1}, 1e-7);
  }
}

TEST_F(GeluTest, ThreadsDoNotMatter) {
  const Tensor x = random_tensor({100003}, 1, -4, 4);
  const std::vector<float> exact = to_vector(gelu(x));
  const std::vector<float> tanh = to_vector(gelu(x, GeluKind::kTanh));
  SessionOptions single = options();
  single.threads = 1;
  Session other(single);
  const Tensor again = random_tensor({100003}, 1, -4, 4);
  EXPECT_TRUE(same_bits(to_vector(gelu(again)), exact));
  EXPECT_TRUE(same_bits(to_vector(gelu(again, GeluKind::kTanh)), tanh));
}

TEST_F(GeluTest, Errors) {
  EXPECT_EQ(usage_error([&] { gelu(from<int64_t>({1}, {1})); }),
            "[gelu] input 0 of shape (1) is int64, not float32 or bfloat16");
}

}  // namespace
}  // namespace tidemark::testing
