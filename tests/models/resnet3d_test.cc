#include "models/resnet3d.h"

#include <gtest/gtest.h>
#include <optional>

#include <set>
#include <string>

#include "ops/loss/loss.h"
#include "runtime/session/call_listener.h"
#include "tests/support/same_bits.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

// torchvision's r3d_18: 33,371,472 values in 62 parameters, 40 buffers without
// num_batches_tracked.
TEST(ResNet3d, SizesAndNamesAreTorchvisions) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const ResNet3d model({.classes = 400}, init);
  EXPECT_EQ(model.parameter_elements(), 33'371'472);
  EXPECT_EQ(model.parameters().size(), 62u);
  EXPECT_EQ(model.buffers().size(), 40u);
  std::set<std::string> names;
  for (const NamedTensor& one : model.parameters()) names.insert(one.name);
  for (const char* name :
       {"stem.0.weight", "layer1.0.conv1.0.weight", "layer2.0.conv2.1.bias",
        "layer4.0.downsample.0.weight", "layer4.1.conv2.1.weight", "fc.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ResNet3d, HalvesTimeAndSizeThreeTimes) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const ResNet3d model({.classes = 7}, init);
  const Tensor clips =
      session.upload(TensorMeta::contiguous(DType::kFloat32, {2, 16, 112, 112, 3}),
                     Category::kData, nullptr, {});
  std::set<std::string> ops;
  std::optional<CallListener> listener(std::in_place, session,
                                       [&](const Recipe& call) { ops.emplace(call.name()); });
  EXPECT_EQ(model.forward(clips).shape(), (Shape{2, 7}));
  listener.reset();
  EXPECT_EQ(ops, (std::set<std::string>{"avg_pool2d", "batch_moments", "batch_norm", "conv3d",
                                        "matmul", "update_running_stats_"}));
  const Tensor images = session.upload(
      TensorMeta::contiguous(DType::kFloat32, {2, 112, 112, 3}), Category::kData, nullptr, {});
  EXPECT_NE(usage_error([&] { model.forward(images); }).find("(2, 112, 112, 3)"),
            std::string::npos);
}

TEST(ResNet3d, ComputesInBfloat16) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  ResNet3d model({.classes = 7}, init);
  model.compute_in(DType::kBFloat16);
  const Tensor clips = session.upload(
      TensorMeta::contiguous(DType::kFloat32, {2, 4, 32, 32, 3}), Category::kData, nullptr, {});
  int casts = 0;
  std::optional<CallListener> listener(std::in_place, session, [&](const Recipe& call) {
    const std::string_view name = call.name();
    casts += name == "cast" ? 1 : 0;
  });
  EXPECT_EQ(model.forward(clips).dtype(), DType::kBFloat16);
  listener.reset();
  EXPECT_EQ(casts, 1 + 20 + 1);  // of the clips, the convolutions' weights and the last layer's
}

TEST(ResNet3d, TheSameBitsUnderABudget) {
  expect_same_bits_under_a_budget([] {
    ParameterInit init(3);
    const auto model =
        std::make_shared<ResNet3d>(ImageModelOptions{.channels = 1, .classes = 5}, init);
    const std::shared_ptr<Optimizer> sgd =
        make_sgd(model->parameters(), {.lr = 0.01, .momentum = 0.9});
    const auto values = std::make_shared<const std::vector<float>>(random_values(4 * 4096, 1));
    const auto labels = std::make_shared<const std::vector<int64_t>>(4, 2);
    return SmallTraining{model, sgd, [=] {
                           Session& session = Session::current();
                           const bool real = session.device().has_data();
                           const Tensor clips = session.upload(
                               TensorMeta::contiguous(DType::kFloat32, {4, 4, 32, 32, 1}),
                               Category::kData, real ? values->data() : nullptr, values);
                           const Tensor classes = session.upload(
                               TensorMeta::contiguous(DType::kInt64, {4}), Category::kData,
                               real ? labels->data() : nullptr, labels);
                           backward(cross_entropy(model->forward(clips), classes));
                           sgd->step();
                         }};
  });
}

}  // namespace
}  // namespace tidemark::testing
