// Operators' variants forced on: each gives the bits of the call whose place it takes, alone
// and in a training step that follows a schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/checksum.h"
#include "models/image_models.h"
#include "models/nn/layers.h"
#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/loss.h"
#include "ops/pool/max_pool2d.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/registry/op_call.h"
#include "runtime/executor/step_planner.h"
#include "runtime/session/call_listener.h"
#include "runtime/session/session.h"
#include "tests/models/image_networks.h"
#include "tests/support/forced_variants.h"
#include "tests/support/same_bits.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

// Convolutions, each followed by another activation whose gradient has variants.
class Activations final : public ImageModel {
 public:
  explicit Activations(ParameterInit& init)
      : a_({.in = 3, .out = 8, .kernel = 3, .padding = 1, .bias = true}, init),
        b_({.in = 8, .out = 8, .kernel = 3, .padding = 1, .bias = true}, init),
        c_({.in = 8, .out = 8, .kernel = 3, .padding = 1}, init),
        norm_(8, init),
        head_(8, 5, init) {
    register_child("a", a_);
    register_child("b", b_);
    register_child("c", c_);
    register_child("norm", norm_);
    register_child("head", head_);
  }
  Tensor forward(const Tensor& images) const override {
    const Scope scope(*this);
    const Tensor x = max_pool2d(relu(a_.forward(images)),
                                {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    const Tensor y = relu6(b_.forward(x));
    const Tensor z = norm_.forward_relu(c_.forward(y), x);
    return head_.forward(mean(z, {1, 2}));
  }

 private:
  Conv2d a_, b_, c_;
  BatchNorm2d norm_;
  Linear head_;
};

SmallTraining training_of(const std::string& name) {
  ParameterInit init(3);
  std::shared_ptr<ImageModel> model;
  if (name == "activations") {
    model = std::make_shared<Activations>(init);
  } else {
    model = make_image_model(name, {.image = 32, .classes = 5}, init);
  }
  const std::shared_ptr<Optimizer> sgd =
      make_sgd(model->parameters(), {.lr = 0.01, .momentum = 0.9});
  return {
      model, sgd, [=] {
        backward(cross_entropy(model->forward(images({4, 32, 32, 3})), labels({0, 1, 2, 0})));
        sgd->step();
        for (const NamedTensor& one : model->parameters()) clear_grad(one.tensor);
      }};
}

struct Outcome {
  std::optional<std::string> bits{};
  int64_t planned = 0, variants = 0;
  std::multiset<std::string> ran;  // operators of the last step that are variants
};

// `choose` null: without a schedule.
Outcome train(const std::string& name, const ChooseVariant& choose) {
  Session session({.device = "cpu",
                   .threads = 1,
                   .budget = Bytes(int64_t{1} << 30),
                   .policy = "delta",
                   .seed = 5});
  const SmallTraining training = training_of(name);
  Outcome outcome;
  std::vector<std::string> said;
  if (choose) {
    PlanOptions options;
    options.background = false;
    options.max_slowdown = 1e9;
    options.producer = forced_variants(choose, &outcome.variants);
    options.report = [&](std::string_view line) { said.emplace_back(line); };
    session.plan_steps(options);
  }
  for (int i = 0; i < 6; ++i) {
    outcome.ran.clear();
    outcome.planned += session.step(training.step).planned;
  }
  if (choose) {
    EXPECT_EQ(session.planner()->counts().mismatches, 0) << ::testing::PrintToString(said);
  }
  session.events().for_each([&](const EventRecord& event) {
    const std::string op = event.op;
    if (op.ends_with("_by_values") || op.ends_with("_from_input")) outcome.ran.insert(op);
  });
  outcome.bits = tensors_checksum(
      {training.model->parameters(), training.model->buffers(), training.optimizer->state()});
  return outcome;
}

TEST(Variants, GiveTheSameBitsInATrainingStep) {
  for (const std::string name : {"activations", "resnet18", "googlenet"}) {
    SCOPED_TRACE(name);
    const Outcome plain = train(name, nullptr);
    EXPECT_EQ(plain.planned, 0);
    const Outcome off = train(name, [](const auto&) { return 0; });
    EXPECT_EQ(off.bits, plain.bits);
    EXPECT_GT(off.planned, 2);
    EXPECT_EQ(off.variants, 0);
    EXPECT_TRUE(off.ran.empty());
    for (uint32_t which = 1; which <= 2; ++which) {
      const Outcome on = train(name, [&](const StepTrace::Op& op) {
        return std::min(which, static_cast<uint32_t>(op.variants.size()));
      });
      EXPECT_EQ(on.bits, plain.bits);
      EXPECT_GT(on.planned, 2);
      EXPECT_GE(on.variants, name == "activations" ? 4 : name == "resnet18" ? 8 : 10);
      EXPECT_FALSE(on.ran.empty());
      if (name == "activations") {
        EXPECT_THAT(
            std::set(on.ran.begin(), on.ran.end()),
            ::testing::ElementsAre("max_pool2d_grad_from_input", "relu_grad_by_values"));
      }
    }
  }
}

// Each call's variants, beside the call, on values with both zeros, infinities and NaN.
TEST(Variants, GiveTheSameBitsAlone) {
  std::map<std::string, int> seen;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Session session(
        {.device = "cpu", .threads = 1, .budget = Bytes(int64_t{1} << 30), .policy = "delta"});
    const Shape shape{2, 7, 9, 5};
    std::vector<float> values;
    const float odd[] = {0, -0.0f, 6, INFINITY, -INFINITY, NAN, 5.97f, 6.03f, 1e-40f};
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float each = static_cast<float>((i * 7919) % 113) / 8 - 6;
      values.push_back(i % 5 == 0 ? odd[(i / 5) % std::size(odd)] : each);
    }
    Tensor leaf = session.upload(TensorMeta::contiguous(DType::kFloat32, shape),
                                 Category::kData, values.data(), nullptr);
    struct Beside {
      std::vector<Tensor> outputs, inputs;
      const OpDef* op;
      Attrs attrs;
    };
    std::vector<Beside> found;
    const CallListener listener(session, [&](const Recipe& recipe) {
      const auto& call = dynamic_cast<const OpCall&>(recipe);
      if (!call.body().op->variants) return;
      for (const OtherCall& other : call.body().op->variants(call)) {
        Beside beside{{}, {}, &other.op, other.attrs};
        for (const Operand& input : other.inputs)
          beside.inputs.emplace_back(StorageUse(input.storage), input.meta);
        for (size_t i = 0; i < call.outputs.size(); ++i) {
          const Operand output = call.output(i);
          beside.outputs.emplace_back(StorageUse(output.storage), output.meta);
        }
        found.push_back(std::move(beside));
      }
    });
    const auto check = [&](auto forward) {
      Tensor x = cast(leaf, dtype);
      require_grad(x);
      const Tensor y = forward(x);
      backward(sum(mul(cast(y, DType::kFloat32), cast(y, DType::kFloat32))));
    };
    check([](const Tensor& x) { return relu(x); });
    check([](const Tensor& x) { return relu6(x); });
    check([](const Tensor& x) {
      return max_pool2d(x, {.window = {3, 2}, .stride = {2, 1}, .padding = {1, 0}});
    });
    check([](const Tensor& x) {
      return max_pool2d(x, {.window = {17, 17}, .stride = {3, 3}, .padding = {8, 8}});
    });
    const std::vector<Beside> all = std::exchange(found, {});
    EXPECT_EQ(all.size(), 2U + 1 + 1 + 1);
    for (const Beside& beside : all) {
      ++seen[beside.op->name];
      const auto again = dispatch(*beside.op, beside.inputs, beside.attrs);
      ASSERT_EQ(again.size(), beside.outputs.size());
      for (size_t i = 0; i < again.size(); ++i) {
        EXPECT_TRUE(same_bits(to_vector(cast(again[i], DType::kFloat32)),
                              to_vector(cast(beside.outputs[i], DType::kFloat32))))
            << beside.op->name;
      }
    }
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre(
                        std::pair("relu_grad_by_values", 4), std::pair("relu6_grad", 2),
                        std::pair("max_pool2d_grad_from_input", 4)));
}

}  // namespace
}  // namespace tidemark::testing
