// Operators on bfloat16 against themselves on float32: the same values in, what comes out
// rounded. Through the functions that people call, with gradients.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/rotary.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/gelu.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/silu_mul.h"
#include "ops/elementwise/unary.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/linear/matmul.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/pool/upsample.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using Bfloat16Test = SessionTest;

struct Operand {
  Shape shape;
  bool parameter = false;  // stays float32
};

struct Case {
  std::string name;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  std::vector<Operand> operands;
  DType result = DType::kBFloat16;
};

const std::vector<Case>& cases() {
  using In = std::vector<Tensor>;
  static const std::vector<Case> all{
      {"add", [](const In& x) { return add(x[0], x[1]); }, {{{5, 70}}, {{5, 70}}}},
      {"add, repeated", [](const In& x) { return add(x[0], x[1]); }, {{{6, 5, 7}}, {{5, 1}}}},
      {"sub", [](const In& x) { return sub(x[0], x[1]); }, {{{5, 7}}, {{7}}}},
      {"mul", [](const In& x) { return mul(x[0], x[1]); }, {{{3, 4, 6}}, {{3, 1, 6}}}},
      {"add_scaled",
       [](const In& x) { return add_scaled(x[0], x[1], -0.5); },
       {{{33}}, {{33}}}},
      {"scale", [](const In& x) { return scale(x[0], 3); }, {{{3, 5}}}},
      {"relu", [](const In& x) { return relu(x[0]); }, {{{70003}}}},
      {"relu of a view", [](const In& x) { return relu(transpose(x[0], 0, 1)); }, {{{6, 5}}}},
      {"relu6", [](const In& x) { return relu6(scale(x[0], 8)); }, {{{40}}}},
      {"tanh", [](const In& x) { return tanh(x[0]); }, {{{40}}}},
      {"sigmoid", [](const In& x) { return sigmoid(x[0]); }, {{{40}}}},
      {"silu", [](const In& x) { return silu(x[0]); }, {{{40}}}},
      {"silu_mul", [](const In& x) { return silu_mul(x[0], x[1]); }, {{{7, 33}}, {{7, 33}}}},
      {"gelu", [](const In& x) { return gelu(x[0]); }, {{{7, 33}}}},
      {"gelu, tanh", [](const In& x) { return gelu(x[0], GeluKind::kTanh); }, {{{7, 33}}}},
      {"softmax", [](const In& x) { return softmax(x[0]); }, {{{7, 33}}}},
      {"sum", [](const In& x) { return sum(x[0]); }, {{{7, 333}}}, DType::kFloat32},
      {"sum of columns",
       [](const In& x) { return sum(x[0], {0}); },
       {{{700, 9}}},
       DType::kFloat32},
      {"mean of the middle",
       [](const In& x) { return mean(x[0], {1}, true); },
       {{{3, 4, 5}}},
       DType::kFloat32},
      {"narrow", [](const In& x) { return narrow(x[0], 1, 2, 3); }, {{{4, 7}}}},
      {"concat",
       [](const In& x) {
         return concat({x[0], x[1]}, 1);
       },
       {{{4, 7}}, {{4, 2}}}},
      {"split, one part used", [](const In& x) { return split(x[0], 1, 3)[1]; }, {{{4, 9}}}},
      {"matmul", [](const In& x) { return matmul(x[0], x[1]); }, {{{33, 65}}, {{65, 17}}}},
      {"matmul, transposed",
       [](const In& x) { return matmul(x[0], x[1], true, true); },
       {{{65, 33}}, {{17, 65}}}},
      {"matmul, batched, with bias",
       [](const In& x) { return matmul(x[0], x[1], false, true, x[2]); },
       {{{2, 3, 5, 7}}, {{2, 3, 9, 7}}, {{9}, true}}},
      {"matmul of wide matrices",
       [](const In& x) { return matmul(x[0], x[1]); },
       {{{130, 20}}, {{20, 2100}}}},
      {"linear",
       [](const In& x) { return linear(x[0], x[1], x[2]); },
       {{{4, 9, 24}}, {{16, 24}}, {{16}, true}}},
      {"conv2d",
       [](const In& x) {
         return conv2d(x[0], x[1], x[2], {.stride = {2, 2}, .padding = {1, 1}});
       },
       {{{3, 9, 9, 16}}, {{32, 3, 3, 16}}, {{32}, true}}},
      {"conv2d of images",
       [](const In& x) {
         return conv2d(x[0], x[1], {}, {.stride = {2, 2}, .padding = {3, 3}});
       },
       {{{2, 33, 33, 3}}, {{64, 7, 7, 3}}}},
      {"conv2d, 1x1",
       [](const In& x) { return conv2d(x[0], x[1]); },
       {{{2, 7, 7, 64}}, {{48, 1, 1, 64}}}},
      {"conv2d of odd channels",
       [](const In& x) { return conv2d(x[0], x[1]); },
       {{{2, 5, 5, 5}}, {{7, 3, 3, 5}}}},
      {"conv2d in groups",
       [](const In& x) {
         return conv2d(x[0], x[1], {}, {.padding = {1, 1}, .groups = 4});
       },
       {{{2, 9, 9, 32}}, {{64, 3, 3, 8}}}},
      {"conv2d of each channel",
       [](const In& x) {
         return conv2d(x[0], x[1], {}, {.padding = {1, 1}, .groups = 32});
       },
       {{{2, 9, 9, 32}}, {{32, 3, 3, 1}}}},
      {"conv3d",
       [](const In& x) {
         return conv3d(x[0], x[1], x[2], {.stride = {1, 2, 2}, .padding = {1, 1, 1}});
       },
       {{{2, 4, 9, 9, 16}}, {{32, 3, 3, 3, 16}}, {{32}, true}}},
      {"conv3d of clips",
       [](const In& x) {
         return conv3d(x[0], x[1], {}, {.stride = {1, 2, 2}, .padding = {1, 3, 3}});
       },
       {{{2, 3, 17, 17, 3}}, {{64, 3, 7, 7, 3}}}},
      {"conv3d, 1x1x1",
       [](const In& x) {
         return conv3d(x[0], x[1], {}, {.stride = {2, 2, 2}});
       },
       {{{2, 4, 7, 7, 64}}, {{48, 1, 1, 1, 64}}}},
      {"batch_norm",
       [](const In& x) { return batch_norm(x[0], x[1], x[2]).y; },
       {{{4, 9, 9, 12}}, {{12}, true}, {{12}, true}}},
      {"batch_norm with ReLU",
       [](const In& x) { return batch_norm(x[0], x[1], x[2], 1e-5, Activation::kReLU).y; },
       {{{40, 7, 7, 33}}, {{33}, true}, {{33}, true}}},
      {"batch_norm with ReLU6",
       [](const In& x) { return batch_norm(x[0], x[1], x[2], 1e-5, Activation::kReLU6).y; },
       {{{40, 7, 7, 33}}, {{33}, true}, {{33}, true}}},
      {"batch_norm with SiLU",
       [](const In& x) { return batch_norm(x[0], x[1], x[2], 1e-5, Activation::kSiLU).y; },
       {{{40, 7, 7, 33}}, {{33}, true}, {{33}, true}}},
      {"batch_norm with ReLU and a residual",
       [](const In& x) {
         return batch_norm(x[0], x[1], x[2], 1e-5, Activation::kReLU, x[3]).y;
       },
       {{{9, 5, 5, 8}}, {{8}, true}, {{8}, true}, {{9, 5, 5, 8}}}},
      {"batch_norm_inference with ReLU and a residual",
       [](const In& x) {
         const Tensor mean = from<float>({0.5, 0, -0.5, 0.25}, {4});
         const Tensor var = from<float>({1, 2, 0.5, 1}, {4});
         return batch_norm_inference(x[0], x[1], x[2], mean, var, 1e-5, Activation::kReLU,
                                     x[3]);
       },
       {{{9, 5, 4}}, {{4}, true}, {{4}, true}, {{9, 5, 4}}}},
      {"layer_norm",
       [](const In& x) { return layer_norm(x[0], x[1], x[2]); },
       {{{150, 36}}, {{36}, true}, {{36}, true}}},
      {"layer_norm of odd rows",
       [](const In& x) { return layer_norm(x[0], x[1], x[2]); },
       {{{3, 5, 1037}}, {{1037}, true}, {{1037}, true}}},
      {"rms_norm",
       [](const In& x) { return rms_norm(x[0], x[1]); },
       {{{150, 36}}, {{36}, true}}},
      {"rms_norm of odd rows",
       [](const In& x) { return rms_norm(x[0], x[1]); },
       {{{3, 5, 1037}}, {{1037}, true}}},
      {"rotary",
       [](const In& x) {
         return rotary(x[0], random_tensor({5, 8}, 7), random_tensor({5, 8}, 8));
       },
       {{{2, 5, 3, 16}}}},
      {"rotary of odd pairs",
       [](const In& x) {
         return rotary(x[0], random_tensor({2, 5, 17}, 7), random_tensor({2, 5, 17}, 8));
       },
       {{{2, 5, 3, 34}}}},
      {"embedding",
       [](const In& x) {
         return embedding(x[0], from<int64_t>({2, 0, 2, 6, 2, 5}, {2, 3}), 5);
       },
       {{{7, 33}}}},
      {"embedding of wide rows",
       [](const In& x) {
         return embedding(x[0], from<int64_t>({2, 0, 2, 6, 1}, {5}));
       },
       {{{7, 136}}}},
      {"embedding of one id",
       [](const In& x) {
         return embedding(x[0], from<int32_t>(std::vector<int32_t>(300, 1), {300}));
       },
       {{{3, 5}}}},
      {"attention, memory-efficient",
       [](const In& x) {
         AttentionOptions options{.causal = true};
         options.keys = from<int32_t>({150, 31}, {2});
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{2, 150, 2, 24}}, {{2, 150, 2, 24}}, {{2, 150, 2, 24}}}},
      {"attention of packed rows, memory-efficient",
       [](const In& x) {
         std::vector<int32_t> starts(300);
         for (size_t i = 0; i < starts.size(); ++i) starts[i] = i % 150 < 90 ? 0 : 90;
         const AttentionOptions options{.starts = from(starts, {2, 150}), .causal = true};
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{2, 150, 4, 24}}, {{2, 150, 2, 24}}, {{2, 150, 2, 24}}}},
      {"attention of deep rows",
       [](const In& x) {
         AttentionOptions options{.causal = true};
         options.keys = from<int32_t>({100, 31}, {2});
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{2, 100, 1, 128}}, {{2, 100, 1, 128}}, {{2, 100, 1, 128}}}},
      {"attention of deep packed rows",
       [](const In& x) {
         std::vector<int32_t> starts(140);
         for (size_t i = 0; i < starts.size(); ++i) starts[i] = i < 90 ? 0 : 90;
         const AttentionOptions options{.starts = from(starts, {1, 140}), .causal = true};
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{1, 140, 2, 100}}, {{1, 140, 1, 100}}, {{1, 140, 1, 100}}}},
      {"attention, materialised",
       [](const In& x) {
         AttentionOptions options;
         options.implementation = AttentionImplementation::kMaterialised;
         options.starts =
             from<int32_t>({0, 1, 2, 30, 4, 65, 6, 7, 80, 0, 0, 0, 0, 5, 5, 5, 5, 5}, {2, 9});
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{2, 9, 3, 8}}, {{2, 70, 3, 8}}, {{2, 70, 3, 8}}}},
      {"attention of one query",
       [](const In& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       {{{2, 1, 6, 32}}, {{2, 70, 2, 32}}, {{2, 70, 2, 32}}}},
      {"attention, materialised, of all keys",
       [](const In& x) {
         AttentionOptions options;
         options.implementation = AttentionImplementation::kMaterialised;
         return scaled_dot_product_attention(x[0], x[1], x[2], options);
       },
       {{{2, 9, 3, 8}}, {{2, 70, 3, 8}}, {{2, 70, 3, 8}}}},
      {"max_pool2d",
       [](const In& x) {
         return max_pool2d(x[0], {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
       },
       {{{2, 9, 9, 70}}}},
      {"avg_pool2d",
       [](const In& x) {
         return avg_pool2d(x[0], {.window = {3, 3}, .stride = {2, 2}});
       },
       {{{2, 9, 9, 6}}}},
      {"adaptive_avg_pool2d",
       [](const In& x) { return adaptive_avg_pool2d(x[0], 1, 1); },
       {{{2, 7, 7, 600}}}},
      {"upsample",
       [](const In& x) {
         return upsample(x[0], {2, 3}, Interpolation::kLinear);
       },
       {{{2, 5, 7, 70}}}},
      {"upsample of volumes",
       [](const In& x) {
         return upsample(x[0], {2, 2, 2}, Interpolation::kLinear);
       },
       {{{1, 3, 4, 3, 6}}}},
      {"linear_cross_entropy",
       [](const In& x) {
         const Tensor labels = from<int64_t>({4, 0, 36, 8, 36, 1, 2}, {7});
         return linear_cross_entropy(x[0], x[1], labels).loss;
       },
       {{{7, 24}}, {{37, 24}}},
       DType::kFloat32},
      {"linear of odd sizes",
       [](const In& x) { return linear(x[0], x[1]); },
       {{{3, 5}}, {{7, 5}}}},
  };
  return all;
}

// Those that can run here.
std::vector<Case> possible_cases() {
  std::vector<Case> possible;
  for (const Case& c : cases()) {
    const bool on_onednn = device_under_test() == "cpu" && c.name.starts_with("conv");
    if (!on_onednn || onednn_has_bfloat16()) possible.push_back(c);
  }
  return possible;
}

struct Outcome {
  Tensor y;
  std::vector<Tensor> gradients;
};

// Leaves hold values that bfloat16 has exactly.
Outcome run(const Case& c, bool narrow_types) {
  std::vector<Tensor> leaves;
  uint32_t seed = 1;
  for (const Operand& operand : c.operands) {
    const Tensor exact = cast(random_tensor(operand.shape, seed++), DType::kBFloat16);
    const bool narrow = narrow_types && !operand.parameter;
    leaves.push_back(narrow ? exact : cast(exact, DType::kFloat32));
    require_grad(leaves.back());
  }
  Outcome outcome;
  outcome.y = c.run(leaves);
  const Tensor seed_of_y = cast(random_tensor(outcome.y.shape(), 100), DType::kBFloat16);
  backward(outcome.y, cast(seed_of_y, outcome.y.dtype()));
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(grad_of(leaves[i]).defined()) << i;
    EXPECT_EQ(grad_of(leaves[i]).dtype(), leaves[i].dtype()) << i;
    outcome.gradients.push_back(grad_of(leaves[i]));
  }
  return outcome;
}

// A number is rounded by 2^-9 of itself at most; what is calculated from rounded numbers (a
// gradient from y, an operator of several parts) is off by a few times that of the largest.
void expect_rounded(const Tensor& narrow, const Tensor& wide, const std::string& what) {
  const NoGrad no_grad;
  const auto actual = to_vector(cast(narrow, DType::kFloat32));
  const auto expected = to_vector(wide);
  ASSERT_EQ(narrow.shape(), wide.shape()) << what;
  float largest = 1e-3F;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], largest / 128) << what << ", element " << i;
  }
}

TEST_F(Bfloat16Test, AgreesWithFloat32) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  for (const Case& c : possible_cases()) {
    SCOPED_TRACE(c.name);
    const Outcome narrow = run(c, true), wide = run(c, false);
    EXPECT_EQ(narrow.y.dtype(), c.result);
    expect_rounded(narrow.y, wide.y, c.name);
    for (size_t i = 0; i < wide.gradients.size(); ++i) {
      expect_rounded(narrow.gradients[i], wide.gradients[i],
                     c.name + ", gradient " + std::to_string(i));
    }
  }
}

TEST_F(Bfloat16Test, RepeatsToTheBit) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  for (const Case& c : possible_cases()) {
    SCOPED_TRACE(c.name);
    const Outcome one = run(c, true), two = run(c, true);
    for (size_t i = 0; i < one.gradients.size(); ++i) {
      EXPECT_TRUE(same_bits(to_vector(cast(one.gradients[i], DType::kFloat32)),
                            to_vector(cast(two.gradients[i], DType::kFloat32))));
    }
  }
}

// What is dropped does not depend on the type.
TEST_F(Bfloat16Test, DropoutDropsTheSameElements) {
  const auto drop = [&](const std::function<Tensor(const Tensor&)>& call) {
    std::vector<std::vector<float>> values;
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      Session session(SessionTest::options());  // at the start of its random numbers
      const Tensor x = cast(from(std::vector<float>(1000, 1), {10, 100}), dtype);
      values.push_back(to_vector(cast(call(x), DType::kFloat32)));
    }
    EXPECT_EQ(values[0], values[1]);
    EXPECT_NEAR(static_cast<double>(std::count(values[0].begin(), values[0].end(), 0)), 500,
                100);
  };
  drop([](const Tensor& x) { return dropout(x, 0.5); });
  drop([](const Tensor& x) { return dropout(transpose(x, 0, 1), 0.5); });
}

TEST_F(Bfloat16Test, AttentionDropsTheSameProbabilities) {
  for (const Shape& shape : {Shape{2, 40, 2, 8}, Shape{1, 40, 1, 120}}) {
    for (const auto kind :
         {AttentionImplementation::kMaterialised, AttentionImplementation::kMemoryEfficient}) {
      const AttentionOptions attention{.dropout = 0.5, .implementation = kind};
      const auto attend = [&](DType dtype) {
        Session session(SessionTest::options());  // at the start of its random numbers
        const auto operand = [&](uint32_t seed) {
          return cast(cast(random_tensor(shape, seed), DType::kBFloat16), dtype);
        };
        return to_vector(
            cast(scaled_dot_product_attention(operand(1), operand(2), operand(3), attention),
                 DType::kFloat32));
      };
      const Tensor narrow = from(attend(DType::kBFloat16), shape);
      const Tensor wide = from(attend(DType::kFloat32), shape);
      expect_rounded(narrow, wide, "y");
    }
  }
}

// Sums of many numbers would stop growing at 256 if they were kept in bfloat16.
TEST_F(Bfloat16Test, SumsAreKeptInFloat32) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  const Tensor ones = cast(from(std::vector<float>(4096, 1), {2, 2048}), DType::kBFloat16);
  EXPECT_EQ(to_vector(sum(ones)), (std::vector<float>{4096}));
  const Tensor product = matmul(ones, ones, false, true);
  EXPECT_EQ(to_vector(cast(product, DType::kFloat32)), (std::vector<float>(4, 2048)));
}

TEST_F(Bfloat16Test, LossesAreFloat32) {
  Tensor logits = cast(random_tensor({6, 9}, 1, -4, 4), DType::kBFloat16);
  Tensor wide = cast(logits, DType::kFloat32);
  require_grad(logits);
  require_grad(wide);
  const Tensor labels = from<int64_t>({0, 8, 3, 3, 1, 2}, {6});
  const Tensor loss = cross_entropy(logits, labels), of_wide = cross_entropy(wide, labels);
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  EXPECT_EQ(to_vector(loss), to_vector(of_wide));
  backward(loss);
  backward(of_wide);
  expect_rounded(grad_of(logits), grad_of(wide), "the logits' gradient");
  EXPECT_EQ(to_vector<int64_t>(accuracy_count(logits, labels)),
            to_vector<int64_t>(accuracy_count(wide, labels)));
}

TEST_F(Bfloat16Test, TypesAreNotMixed) {
  const Tensor narrow = cast(random_tensor({3, 3}, 1), DType::kBFloat16);
  const Tensor wide = random_tensor({3, 3}, 2);
  EXPECT_EQ(usage_error([&] { add(narrow, wide); }),
            "[add] input 1 of shape (3, 3) is float32, not bfloat16");
  EXPECT_EQ(usage_error([&] { matmul(wide, narrow); }),
            "[matmul] input 1 must be float32, not bfloat16; inputs (3, 3), (3, 3)");
}

TEST_F(Bfloat16Test, BackwardTakesAGradientOfTheTensorsType) {
  const Tensor x = cast(random_leaf({1}, 1), DType::kBFloat16);
  EXPECT_EQ(usage_error([&] { backward(x); }),
            "[backward] the tensor, of shape (1), is bfloat16; give its gradient, or cast it");
  EXPECT_EQ(usage_error([&] { backward(x, random_tensor({1}, 2)); }),
            "[backward] the tensor, of shape (1), is bfloat16; its gradient is float32");
}

TEST_F(Bfloat16Test, OperatorsWithoutAKernelSaySo) {
  const Tensor x = cast(random_tensor({3, 3}, 1), DType::kBFloat16);
  for (const auto& [name, call] :
       std::vector<std::pair<std::string, std::function<void()>>>{{"exp", [&] { exp(x); }},
                                                                  {"div", [&] { div(x, x); }},
                                                                  {"max", [&] { max(x); }},
                                                                  {"log", [&] { log(x); }}}) {
    const std::string error = usage_error(call);
    EXPECT_EQ(error.rfind("[" + name + "] ", 0), 0u) << error;
    EXPECT_NE(error.find("bfloat16"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace tidemark::testing
