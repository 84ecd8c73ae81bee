#include "models/nn/module.h"

#include <gmock/gmock.h>
#include <optional>

#include "models/nn/layers.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"
#include "runtime/session/call_listener.h"
#include "runtime/session/session.h"
#include "tests/models/nn/names.h"
#include "tests/support/machine.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using testing::names;

struct Pair : Module {
  explicit Pair(ParameterInit& init)
      : fc(3, 2, init), norm(4, init), scale(init.constant({1}, 2)) {
    register_child("fc", fc);
    register_child("norm", norm);
    register_parameter("scale", scale);
  }
  Linear fc;
  BatchNorm2d norm;
  Tensor scale;
};

struct Outer : Module {
  explicit Outer(ParameterInit& init) : pair(init) { register_child("pair", pair); }
  Pair pair;
};

class ModuleTest : public ::testing::Test {
 protected:
  Session session_{{.device = "sim:host"}};
  ParameterInit init_{1};
};

TEST_F(ModuleTest, NamesAreJoinedWithDotsOwnOnesFirst) {
  const Outer outer(init_);
  EXPECT_THAT(names(outer.parameters()),
              ElementsAre("pair.scale", "pair.fc.weight", "pair.fc.bias", "pair.norm.weight",
                          "pair.norm.bias"));
  EXPECT_THAT(names(outer.buffers()),
              ElementsAre("pair.norm.running_mean", "pair.norm.running_var"));
  EXPECT_EQ(outer.parameter_elements(), 1 + 3 * 2 + 2 + 4 + 4);
}

TEST_F(ModuleTest, ParametersNeedGradientsAndBuffersDoNot) {
  const Outer outer(init_);
  for (const NamedTensor& one : outer.parameters()) EXPECT_TRUE(requires_grad(one.tensor));
  for (const NamedTensor& one : outer.buffers()) EXPECT_FALSE(requires_grad(one.tensor));
}

TEST_F(ModuleTest, FrozenParametersNeedNoGradientUntilTheyAreFreed) {
  Outer outer(init_);
  const NamedTensor weight = outer.parameters()[1];
  set_grad(weight.tensor, weight.tensor);
  outer.freeze();
  EXPECT_TRUE(outer.trained().empty());
  EXPECT_EQ(outer.parameters().size(), 5U);
  EXPECT_FALSE(grad_of(weight.tensor).defined());
  outer.freeze(false);
  EXPECT_EQ(names(outer.trained()), names(outer.parameters()));
}

TEST_F(ModuleTest, Categories) {
  const Outer outer(init_);
  for (const NamedTensor& one : outer.parameters()) {
    EXPECT_EQ(one.tensor.storage()->category, Category::kParameter) << one.name;
  }
  for (const NamedTensor& one : outer.buffers()) {
    EXPECT_EQ(one.tensor.storage()->category, Category::kBuffer) << one.name;
  }
}

TEST_F(ModuleTest, TrainingModeReachesTheChildren) {
  Outer outer(init_);
  EXPECT_TRUE(outer.pair.norm.training());
  outer.train(false);
  EXPECT_FALSE(outer.training());
  EXPECT_FALSE(outer.pair.norm.training());
  outer.train();
  EXPECT_TRUE(outer.pair.norm.training());
}

TEST_F(ModuleTest, ComputesInBfloat16WithParametersInFloat32) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  Outer outer(init_);
  const Tensor x = upload_constant({5, 3}, 1, Category::kData, "x");
  EXPECT_EQ(outer.pair.fc.forward(x).dtype(), DType::kFloat32);
  outer.compute_in(DType::kBFloat16);
  EXPECT_EQ(outer.pair.norm.compute_type(), DType::kBFloat16);
  int casts = 0;
  std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
    const std::string_view name = call.name();
    casts += name == "cast" ? 1 : 0;
  });
  const Tensor y = outer.pair.fc.forward(x);
  EXPECT_EQ(casts, 2);  // of x and of the weight
  const Tensor z = outer.pair.fc.forward(y.view(TensorMeta::contiguous(y.dtype(), {3, 3})));
  EXPECT_EQ(casts, 3);  // of the weight
  listener.reset();
  EXPECT_EQ(z.dtype(), DType::kBFloat16);
  backward(z, cast(upload_constant({3, 2}, 1, Category::kData, "g"), DType::kBFloat16));
  for (const NamedTensor& parameter : outer.pair.fc.parameters()) {
    EXPECT_EQ(parameter.tensor.dtype(), DType::kFloat32);
    EXPECT_EQ(grad_of(parameter.tensor).dtype(), DType::kFloat32);
  }
  outer.compute_in(DType::kFloat32);
  EXPECT_EQ(outer.pair.fc.forward(x).dtype(), DType::kFloat32);
}

}  // namespace
}  // namespace tidemark
