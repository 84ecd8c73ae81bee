// LoRA: what is trained, what y becomes, and the merged weight.
#include "models/nn/lora.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/inplace.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/nn/names.h"
#include "tests/support/values.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names;
using ::testing::ThrowsMessage;
using testing::to_vector;

struct Net : Module {
  explicit Net(ParameterInit& init)
      : up({.in = 6, .out = 4}, init),
        down({.in = 4, .out = 6, .in_first = true}, init),
        head({.in = 6, .out = 5, .bias = false}, init) {
    register_child("block.up", up);
    register_child("block.down", down);
    register_child("lm_head", head);
  }
  Tensor forward(const Tensor& x) const { return head.forward(down.forward(up.forward(x))); }
  Dense up, down, head;
};

class LoraTest : public ::testing::Test {
 protected:
  Tensor input() { return ParameterInit::buffer({3, 6}, draw_normal(5, 0, 18, 1), "input"); }
  // So that changes are not 0.
  static void fill_b(const Module& net) {
    for (const NamedTensor& each : net.parameters()) {
      if (each.name.find("lora_B") == std::string::npos) continue;
      const NoGrad no_grad;
      fill_(each.tensor, 0.25);
    }
  }

  Session session_{{.device = "cpu", .budget = Bytes(1 << 20)}};
  ParameterInit init_{1};
  Net net_{init_};
};

TEST_F(LoraTest, OnlyTheChangesAreTrained) {
  add_lora(net_, {.change = {.rank = 2}, .targets = {"up"}}, init_);
  EXPECT_THAT(names(net_.trained()),
              ElementsAre("block.up.lora_A.weight", "block.up.lora_B.weight"));
  session_.step([&] { backward(sum(net_.forward(input()))); });
  for (const NamedTensor& each : net_.parameters()) {
    EXPECT_EQ(grad_of(each.tensor).defined(), is_lora(each.name)) << each.name;
  }
}

TEST_F(LoraTest, WithoutTargetsAllButTheHeadAreChanged) {
  add_lora(net_, {}, init_);
  EXPECT_THAT(names(net_.trained()),
              ElementsAre("block.up.lora_A.weight", "block.up.lora_B.weight",
                          "block.down.lora_A.weight", "block.down.lora_B.weight"));
}

TEST_F(LoraTest, AtFirstTheOutputIsTheSameToTheBit) {
  const std::vector<float> before = to_vector(net_.forward(input()));
  add_lora(net_, {}, init_);
  EXPECT_EQ(to_vector(net_.forward(input())), before);
}

TEST_F(LoraTest, AnUnknownTargetIsRefusedAndChangesNothing) {
  EXPECT_THAT(
      [&] {
        add_lora(net_, {.targets = {"up", "q_proj"}}, init_);
      },
      ThrowsMessage<UsageError>(HasSubstr("'q_proj'; there are down, up")));
  EXPECT_EQ(net_.trained().size(), net_.parameters().size());
}

TEST_F(LoraTest, APatternNamesWholeLayersButNotTheHead) {
  const auto pattern = [](const char* text, const char* last) {
    return LoraOptions{.pattern = LayerPattern{text, [=](const std::string& layer) {
                                                 return layer.ends_with(last);
                                               }}};
  };
  EXPECT_THAT([&] { add_lora(net_, pattern(".*q", "q"), init_); },
              ThrowsMessage<UsageError>(HasSubstr("'.*q'; there are down, up")));
  EXPECT_THAT([&] { add_lora(net_, pattern(".*", ""), init_); },
              ThrowsMessage<UsageError>(HasSubstr("the head")));
  EXPECT_EQ(net_.trained().size(), net_.parameters().size());
  add_lora(net_, pattern(".*n", "n"), init_);
  EXPECT_TRUE(net_.down.is_adapted());
  EXPECT_FALSE(net_.up.is_adapted());
}

// y = x W^T + alpha / rank (x A^T) B^T + bias, written out.
TEST_F(LoraTest, TheChangeIsThatOfThePaper) {
  const Tensor x = input();
  const std::vector<float> before = to_vector(net_.up.forward(x));
  add_lora(net_, {.change = {.rank = 2, .alpha = 3}, .targets = {"up"}}, init_);
  fill_b(net_);
  const std::vector<NamedTensor> trained = net_.trained();
  const std::vector<float> xs = to_vector(x), a = to_vector(trained[0].tensor);
  const std::vector<float> after = to_vector(net_.up.forward(x));
  for (size_t row = 0; row < 3; ++row) {
    double narrow = 0;
    for (size_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < 6; ++i) narrow += double{xs[row * 6 + i]} * a[r * 6 + i];
    }
    for (size_t out = 0; out < 4; ++out) {
      EXPECT_NEAR(after[row * 4 + out], before[row * 4 + out] + 1.5 * 0.25 * narrow, 1e-5);
    }
  }
}

TEST_F(LoraTest, DropoutIsOfTheChangeAloneAndOnlyInTraining) {
  add_lora(net_, {.change = {.dropout = 0.5}}, init_);
  const std::vector<float> unchanged = to_vector(net_.forward(input()));
  fill_b(net_);
  const std::vector<float> one = to_vector(net_.forward(input()));
  EXPECT_NE(to_vector(net_.forward(input())), one);
  net_.train(false);
  const std::vector<float> all = to_vector(net_.forward(input()));
  EXPECT_EQ(to_vector(net_.forward(input())), all);
  EXPECT_NE(all, unchanged);
}

// Both orders of a weight's dimensions.
TEST_F(LoraTest, MergedWeightsGiveTheSameOutput) {
  add_lora(net_, {}, init_);
  fill_b(net_);
  const std::vector<float> changed = to_vector(net_.forward(input()));
  const Tensor up = net_.up.merged_weight(), down = net_.down.merged_weight();
  ParameterInit again(1);
  const Net plain(again);
  for (const NamedTensor& each : plain.parameters()) {
    const NoGrad no_grad;
    if (each.name == "block.up.weight") copy_(each.tensor, up);
    if (each.name == "block.down.weight") copy_(each.tensor, down);
  }
  const std::vector<float> plainly = to_vector(plain.forward(input()));
  for (size_t i = 0; i < changed.size(); ++i) EXPECT_NEAR(plainly[i], changed[i], 1e-6);
}

TEST_F(LoraTest, ATargetMayBeAWholeName) {
  add_lora(net_, {.targets = {"block.down"}}, init_);
  EXPECT_THAT(names(net_.trained()),
              ElementsAre("block.down.lora_A.weight", "block.down.lora_B.weight"));
}

}  // namespace
}  // namespace tidemark
