#include "models/image_models.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/image_networks.h"
#include "tests/support/same_bits.h"

namespace tidemark {
namespace {

using testing::images;
using testing::labels;
using testing::NetworkSize;

// GoogLeNet's without auxiliary classifiers.
const std::map<std::string, NetworkSize>& sizes() {
  static const std::map<std::string, NetworkSize> all{
      {"efficientnet_b0", {5'288'548, 213, 98}}, {"mobilenet_v2", {3'504'872, 158, 104}},
      {"mnasnet1_0", {4'383'312, 158, 104}},     {"alexnet", {61'100'840, 16, 0}},
      {"vgg11", {132'863'336, 22, 0}},           {"vgg16", {138'357'544, 32, 0}},
      {"googlenet", {6'624'904, 173, 114}},      {"vit_b_16", {86'567'656, 152, 0}},
      {"resnet50", {25'557'032, 161, 106}}};
  return all;
}

TEST(ImageModel, SizesAreTorchvisions) {
  Session session({.device = "sim:a100-80gb"});
  for (const auto& [name, size] : sizes()) {
    ParameterInit init(0);
    const auto model = make_image_model(name, {}, init);
    testing::expect_size(*model, size, name);
    std::set<std::string> names;
    for (const NamedTensor& one : model->parameters()) names.insert(one.name);
    EXPECT_EQ(names.size(), size.parameters) << name;
  }
}

TEST(ImageModel, NamesAreTorchvisions) {
  Session session({.device = "sim:a100-80gb"});
  const std::map<std::string, std::map<std::string, Shape>> expected{
      {"efficientnet_b0",
       {{"features.2.1.block.2.fc1.weight", {6, 1, 1, 144}},
        {"features.3.0.block.1.0.weight", {144, 5, 5, 1}},
        {"classifier.1.weight", {1000, 1280}}}},
      {"mobilenet_v2",
       {{"features.2.conv.1.0.weight", {96, 3, 3, 1}}, {"features.2.conv.3.bias", {24}}}},
      {"mnasnet1_0",
       {{"layers.8.0.layers.3.weight", {48, 3, 3, 1}}, {"layers.15.weight", {1280}}}},
      {"alexnet", {{"features.10.bias", {256}}, {"classifier.6.weight", {1000, 4096}}}},
      {"vgg16", {{"features.28.weight", {512, 3, 3, 512}}, {"classifier.3.bias", {4096}}}},
      {"googlenet",
       {{"inception4d.branch3.1.conv.weight", {64, 3, 3, 32}},
        {"inception5b.branch4.1.bn.weight", {128}}}},
      {"vit_b_16",
       {{"class_token", {1, 1, 768}},
        {"encoder.pos_embedding", {1, 197, 768}},
        {"encoder.layers.encoder_layer_11.mlp.3.weight", {768, 3072}},
        {"heads.head.bias", {1000}}}}};
  for (const auto& [name, parameters] : expected) {
    ParameterInit init(0);
    const auto model = make_image_model(name, {}, init);
    std::map<std::string, Shape> shapes;
    for (const NamedTensor& one : model->parameters()) shapes[one.name] = one.tensor.shape();
    for (const auto& [parameter, shape] : parameters) {
      ASSERT_TRUE(shapes.count(parameter)) << name << " " << parameter;
      EXPECT_EQ(shapes.at(parameter), shape) << name << " " << parameter;
    }
  }
}

// Each network, at the sizes that a dry run takes it through.
TEST(ImageModel, EveryNetworkTrainsOnTheSimulator) {
  for (const std::string& name : image_model_names()) {
    SCOPED_TRACE(name);
    Session session({.device = "sim:a100-80gb"});
    ParameterInit init(0);
    const auto model = make_image_model(name, {.image = 224, .classes = 7}, init);
    session.step([&] {
      const Tensor logits = model->forward(images({2, 224, 224, 3}));
      EXPECT_EQ(logits.shape(), (Shape{2, 7}));
      backward(cross_entropy(logits, labels({0, 1})));
      for (const NamedTensor& one : model->parameters()) {
        ASSERT_TRUE(grad_of(one.tensor)) << one.name;
      }
    });
    model->train(false);
    const NoGrad no_grad;
    session.step([&] { model->forward(images({1, 224, 224, 3})); });
  }
}

TEST(ImageModel, SmallImagesWhereThereIsAVariant) {
  Session session({.device = "sim:a100-80gb"});
  for (const std::string name :
       {"resnet18", "efficientnet_b0", "mobilenet_v2", "mnasnet1_0", "googlenet"}) {
    ParameterInit init(0);
    const auto model = make_image_model(
        name, {.image = 16, .channels = 1, .classes = 10, .small_images = true}, init);
    EXPECT_EQ(model->forward(images({3, 16, 16, 1})).shape(), (Shape{3, 10})) << name;
  }
}

TEST(ImageModel, Errors) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  try {
    make_image_model("resnet19", {}, init);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("resnet101"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("efficientnet_b0"));
  }
  EXPECT_THROW(make_image_model("vit_b_16", {.image = 100}, init), UsageError);
  const auto vit = make_image_model("vit_b_16", {.image = 32}, init);
  EXPECT_THROW(vit->forward(images({1, 48, 48, 3})), UsageError);
  EXPECT_THROW(make_image_model("vgg11", {}, init)->forward(images({1, 16, 16, 3})),
               UsageError);
}

// Dropout and stochastic depth draw the same again when they are recomputed.
TEST(ImageModel, TheSameBitsUnderABudget) {
  for (const std::string name : {"efficientnet_b0", "mobilenet_v2", "googlenet"}) {
    SCOPED_TRACE(name);
    testing::expect_same_bits_under_a_budget([name] {
      ParameterInit init(3);
      const std::shared_ptr<ImageModel> model =
          make_image_model(name, {.image = 32, .classes = 5}, init);
      const std::shared_ptr<Optimizer> sgd =
          make_sgd(model->parameters(), {.lr = 0.01, .momentum = 0.9});
      return testing::SmallTraining{
          model, sgd, [=] {
            backward(
                cross_entropy(model->forward(images({4, 32, 32, 3})), labels({0, 1, 2, 0})));
            sgd->step();
          }};
    });
  }
}

}  // namespace
}  // namespace tidemark
