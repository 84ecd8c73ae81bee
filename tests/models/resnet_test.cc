#include "models/resnet.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "models/checksum.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/image_networks.h"

namespace tidemark {
namespace {

using testing::images;
using testing::labels;
using testing::NetworkSize;

TEST(ResNet, SizesAreTorchvisions) {
  const std::map<std::string, NetworkSize> sizes{{"resnet18", {11'689'512, 62, 40}},
                                                 {"resnet34", {21'797'672, 110, 72}},
                                                 {"resnet50", {25'557'032, 161, 106}},
                                                 {"resnet101", {44'549'160, 314, 208}},
                                                 {"resnext50_32x4d", {25'028'904, 161, 106}}};
  ASSERT_EQ(resnet_names().size(), sizes.size());
  Session session({.device = "sim:a100-80gb"});
  for (const auto& [name, size] : sizes) {
    ParameterInit init(0);
    const ResNet model(resnet_options(name), init);
    testing::expect_size(model, size, name);
  }
}

TEST(ResNet, NamesAndShapesMapToTorchvisions) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const ResNet model(resnet_options("resnext50_32x4d"), init);
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& one : model.parameters()) shapes[one.name] = one.tensor.shape();
  EXPECT_EQ(shapes.at("conv1.weight"), (Shape{64, 7, 7, 3}));
  EXPECT_EQ(shapes.at("layer1.0.conv2.weight"), (Shape{128, 3, 3, 4}));
  EXPECT_EQ(shapes.at("layer1.0.downsample.0.weight"), (Shape{256, 1, 1, 64}));
  EXPECT_EQ(shapes.at("layer1.0.downsample.1.bias"), (Shape{256}));
  EXPECT_EQ(shapes.at("layer4.2.bn3.weight"), (Shape{2048}));
  EXPECT_EQ(shapes.at("fc.weight"), (Shape{1000, 2048}));
  EXPECT_EQ(shapes.count("layer1.1.downsample.0.weight"), 0u);
}

TEST(ResNet, LogitsOfBothStemsAtOddSizes) {
  Session session({.device = "sim:a100-80gb"});
  for (const std::string& name : resnet_names()) {
    ParameterInit init(0);
    ResNetOptions options = resnet_options(name);
    const ResNet imagenet(options, init);
    EXPECT_EQ(imagenet.forward(images({2, 97, 65, 3})).shape(), (Shape{2, 1000})) << name;
    options.cifar_stem = true;
    options.in_channels = 1;
    options.classes = 10;
    const ResNet cifar(options, init);
    EXPECT_EQ(cifar.forward(images({3, 9, 11, 1})).shape(), (Shape{3, 10})) << name;
  }
}

TEST(ResNet, UnknownNamesListTheKnownOnes) {
  try {
    resnet_options("resnet19");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("resnet50, resnet101"));
  }
}

class SmallResNet : public ::testing::Test {
 protected:
  static ResNetOptions options() {
    ResNetOptions small = resnet_options("resnet18");
    small.cifar_stem = true;
    small.in_channels = 1;
    small.classes = 4;
    return small;
  }
  std::vector<float> forward(const ResNet& model, const Tensor& x) {
    const NoGrad no_grad;
    std::vector<float> logits(static_cast<size_t>(x.extent(0)) * 4);
    session_.step([&] { session_.download(model.forward(x), logits.data()); });
    return logits;
  }

  Session session_{{.device = "cpu", .threads = 1, .budget = Bytes(256 << 20)}};
  ParameterInit init_{5};
  ResNet model_{options(), init_};
};

TEST_F(SmallResNet, EvaluationIsPerImageAndTrainingIsNot) {
  const Tensor four = images({4, 8, 8, 1});
  const Tensor first = four.view(TensorMeta::contiguous(DType::kFloat32, {2, 8, 8, 1}));
  model_.train(false);
  const std::vector<float> alone = forward(model_, first), among = forward(model_, four);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(alone[i], among[i], 1e-4F) << i;
  model_.train(true);
  EXPECT_GT(std::abs(forward(model_, first)[0] - forward(model_, four)[0]), 1e-3F);
}

TEST_F(SmallResNet, OnlyTrainingTouchesBuffers) {
  const Tensor x = images({4, 8, 8, 1});
  const auto buffers = [&] { return tensors_checksum({model_.buffers()}); };
  const std::optional<std::string> before = buffers();
  model_.train(false);
  forward(model_, x);
  EXPECT_EQ(buffers(), before);
  model_.train(true);
  forward(model_, x);
  EXPECT_NE(buffers(), before);
}

TEST_F(SmallResNet, EveryParameterGetsAGradient) {
  session_.step([&] {
    backward(cross_entropy(model_.forward(images({2, 8, 8, 1})), labels({0, 3})));
    for (const NamedTensor& one : model_.parameters()) {
      ASSERT_TRUE(grad_of(one.tensor)) << one.name;
      EXPECT_EQ(grad_of(one.tensor).shape(), one.tensor.shape()) << one.name;
    }
  });
}

TEST_F(SmallResNet, SameSeedSameWeights) {
  ParameterInit again(5), other(6);
  const ResNet twin(options(), again), stranger(options(), other);
  EXPECT_EQ(tensors_checksum({model_.parameters()}), tensors_checksum({twin.parameters()}));
  EXPECT_NE(tensors_checksum({model_.parameters()}), tensors_checksum({stranger.parameters()}));
}

}  // namespace
}  // namespace tidemark
