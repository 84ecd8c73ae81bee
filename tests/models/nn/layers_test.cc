#include "models/nn/layers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>

#include "ops/autograd/autograd.h"
#include "ops/reduce/reduce.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

class LayersTest : public ::testing::Test {
 protected:
  Tensor tensor(const Shape& shape, std::vector<float> values) {
    const auto owned = std::make_shared<const std::vector<float>>(std::move(values));
    return session_.upload(TensorMeta::contiguous(DType::kFloat32, shape), Category::kData,
                           owned->data(), owned);
  }
  std::vector<float> values_of(const Tensor& x) {
    std::vector<float> values(static_cast<size_t>(x.elements()));
    session_.download(x, values.data());
    return values;
  }

  Session session_{{.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)}};
  ParameterInit init_{3};
};

TEST_F(LayersTest, ConvolutionShapes) {
  const Conv2d plain({.in = 4, .out = 6, .kernel = 3, .stride = 2, .padding = 1}, init_);
  const Tensor x = tensor({2, 7, 5, 4}, std::vector<float>(2 * 7 * 5 * 4, 1));
  EXPECT_EQ(plain.forward(x).shape(), (Shape{2, 4, 3, 6}));
  const Conv2d grouped({.in = 4, .out = 6, .kernel = 3, .dilation = 2, .groups = 2}, init_);
  EXPECT_EQ(grouped.forward(x).shape(), (Shape{2, 3, 1, 6}));
  EXPECT_EQ(grouped.parameters()[0].tensor.shape(), (Shape{6, 3, 3, 2}));
}

TEST_F(LayersTest, LinearAddsItsBias) {
  const Linear fc(2, 1, init_);
  const std::vector<float> weight = values_of(fc.parameters()[0].tensor);
  const std::vector<float> bias = values_of(fc.parameters()[1].tensor);
  const std::vector<float> y = values_of(fc.forward(tensor({1, 2}, {2, -3})));
  EXPECT_FLOAT_EQ(y[0], 2 * weight[0] - 3 * weight[1] + bias[0]);
}

// Channel values 1, 2, 3, 6: mean 3, variance 3.5, unbiased 14 / 3.
TEST_F(LayersTest, BatchNormMovesRunningStatisticsInTrainingOnly) {
  BatchNorm2d norm(1, init_);
  const Tensor x = tensor({4, 1, 1, 1}, {1, 2, 3, 6});
  const std::vector<float> trained = values_of(norm.forward(x));
  EXPECT_NEAR(trained[3], 3 / std::sqrt(3.5), 1e-5);
  const auto mean = [&] { return values_of(norm.buffers()[0].tensor)[0]; };
  const auto var = [&] { return values_of(norm.buffers()[1].tensor)[0]; };
  EXPECT_NEAR(mean(), 0.1 * 3, 1e-6);
  EXPECT_NEAR(var(), 0.9 + 0.1 * 14 / 3, 1e-6);

  norm.train(false);
  const float running_mean = mean(), running_var = var();
  const std::vector<float> evaluated = values_of(norm.forward(x));
  EXPECT_NEAR(evaluated[3], (6 - running_mean) / std::sqrt(running_var + 1e-5F), 1e-5);
  EXPECT_EQ(mean(), running_mean);
  EXPECT_EQ(var(), running_var);
}

TEST_F(LayersTest, FusedReluAndResidualInBothModes) {
  BatchNorm2d norm(1, init_);
  const Tensor x = tensor({4, 1, 1, 1}, {1, 2, 3, 6});
  const Tensor residual = tensor({4, 1, 1, 1}, {0, 1, -5, 2});
  for (const bool training : {true, false}) {
    norm.train(training);
    const std::vector<float> plain = values_of(norm.forward(x));
    norm.train(training);
    // In training each call moves the statistics, but none of them enters the result.
    const std::vector<float> relu = values_of(norm.forward_relu(x));
    const std::vector<float> both = values_of(norm.forward_relu(x, residual));
    const std::vector<float> added{0, 1, -5, 2};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(relu[i], std::max(0.0F, plain[i]));
      EXPECT_FLOAT_EQ(both[i], std::max(0.0F, plain[i] + added[i]));
    }
  }
}

TEST_F(LayersTest, LayerNormStartsAsNormalisation) {
  const LayerNorm norm(4, init_, 0);
  EXPECT_EQ(norm.parameters()[0].name, "weight");
  EXPECT_EQ(norm.parameters()[1].name, "bias");
  const std::vector<float> y = values_of(norm.forward(tensor({1, 4}, {1, 2, 3, 6})));
  EXPECT_NEAR(y[0], -2 / std::sqrt(3.5), 1e-6);
  EXPECT_NEAR(y[3], 3 / std::sqrt(3.5), 1e-6);
}

TEST_F(LayersTest, EmbeddingKeepsItsPaddingRowAtZero) {
  for (const int64_t padding : {int64_t{1}, int64_t{-2}}) {
    const Embedding table({.rows = 3, .columns = 2, .padding_idx = padding, .deviation = 0.02},
                          init_);
    ASSERT_EQ(table.parameters()[0].name, "weight");
    const Tensor weight = table.parameters()[0].tensor;
    const std::vector<float> values = values_of(weight);
    EXPECT_NE(values[0], 0);
    EXPECT_EQ(values[2], 0);
    EXPECT_EQ(values[3], 0);
    EXPECT_NE(values[5], 0);
    const auto ids =
        std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 1, 2});
    const Tensor id_tensor = session_.upload(TensorMeta::contiguous(DType::kInt64, {3, 1}),
                                             Category::kData, ids->data(), ids);
    const Tensor y = table.forward(id_tensor);
    EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
    EXPECT_EQ(values_of(y)[1], values[5]);
    backward(sum(y));
    EXPECT_THAT(values_of(grad_of(weight)), ::testing::ElementsAre(0, 0, 0, 0, 2, 2));
  }
}

TEST_F(LayersTest, DropoutAndGeluHaveNoParameters) {
  Dropout drop(0.5);
  const Tensor x = tensor({64}, std::vector<float>(64, 1));
  const std::vector<float> y = values_of(drop.forward(x));
  EXPECT_THAT(y, ::testing::Contains(0));
  EXPECT_THAT(y, ::testing::Contains(2));
  drop.train(false);
  EXPECT_EQ(drop.forward(x).storage().get(), x.storage().get());
  EXPECT_TRUE(drop.parameters().empty());
  EXPECT_NEAR(values_of(Gelu().forward(x))[0], 0.84134474, 1e-6);
  EXPECT_NEAR(values_of(Gelu(GeluKind::kTanh).forward(x))[0], 0.84119199, 1e-6);
}

TEST_F(LayersTest, GradientsReachAllParameters) {
  const Conv2d conv({.in = 1, .out = 2, .kernel = 3, .padding = 1}, init_);
  const BatchNorm2d norm(2, init_);
  const Tensor x = tensor({1, 2, 2, 1}, {1, 2, -3, 4});
  backward(sum(norm.forward_relu(conv.forward(x))));
  EXPECT_TRUE(grad_of(conv.parameters()[0].tensor));
  for (const NamedTensor& one : norm.parameters()) {
    EXPECT_TRUE(grad_of(one.tensor)) << one.name;
  }
}

}  // namespace
}  // namespace tidemark
