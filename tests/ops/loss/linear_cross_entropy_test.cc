#include "ops/loss/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "ops/elementwise/elementwise.h"
#include "ops/linear/linear.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

Array array_of(const std::vector<int64_t>& values) {
  Array array{{static_cast<int64_t>(values.size())}, std::vector<float>(2 * values.size())};
  std::memcpy(array.values.data(), values.data(), values.size() * sizeof(int64_t));
  return array;
}

int64_t integer_of(const Array& array) {
  int64_t value = 0;
  std::memcpy(&value, array.values.data(), sizeof(value));
  return value;
}

// The formulas in float64, with labels below 0 ignored.
struct Reference {
  double loss = 0, counted = 0;
  int64_t right = 0;
  std::vector<double> gx, gweight;

  Reference(const Array& x, const Array& weight, const std::vector<int64_t>& labels,
            std::optional<double> scale) {
    const auto width = static_cast<size_t>(x.shape[1]);
    const auto classes = static_cast<size_t>(weight.shape[0]);
    gx.resize(x.values.size());
    gweight.resize(weight.values.size());
    for (const int64_t label : labels) counted += label >= 0;
    const double factor = scale ? *scale : 1 / std::max(counted, 1.0);
    for (size_t n = 0; n < labels.size(); ++n) {
      if (labels[n] < 0) continue;
      std::vector<double> p(classes);
      for (size_t v = 0; v < classes; ++v) {
        for (size_t i = 0; i < width; ++i) {
          p[v] += double{x[n * width + i]} * weight[v * width + i];
        }
      }
      const auto label = static_cast<size_t>(labels[n]);
      const auto largest = std::max_element(p.begin(), p.end());
      right += largest - p.begin() == labels[n];
      const double shift = *largest, mine = p[label] - shift;
      double sum = 0;
      for (double& value : p) sum += value = std::exp(value - shift);
      loss += factor * (std::log(sum) - mine);
      for (size_t v = 0; v < classes; ++v) {
        const double d = (p[v] / sum - (v == label)) * factor;
        for (size_t i = 0; i < width; ++i) {
          gx[n * width + i] += d * weight[v * width + i];
          gweight[v * width + i] += d * x[n * width + i];
        }
      }
    }
  }
};

struct Sizes {
  int64_t rows, width, classes, chunk;
};

class LinearCrossEntropyKernel : public ::testing::TestWithParam<Sizes> {
 protected:
  const Sizes sizes = GetParam();
  const Array x = Array::random({sizes.rows, sizes.width}, 1, -2, 2);
  const Array weight = Array::random({sizes.classes, sizes.width}, 2, -2, 2);

  std::vector<int64_t> labels() const {
    std::vector<int64_t> labels;
    for (int64_t n = 0; n < sizes.rows; ++n) {
      labels.push_back(n % 5 == 3 ? -100 : n * 7 % sizes.classes);
    }
    return labels;
  }
  KernelRun run(bool gx, bool gweight, std::optional<float> scale = {},
                int threads = test_threads()) const {
    const loss::LinearCrossEntropyAttrs attrs{
        .labels = {1, -100}, .chunk = sizes.chunk, .gx = gx, .gweight = gweight};
    std::vector<Array> inputs{x, weight, array_of(labels())};
    if (scale) inputs.push_back(Array::filled({}, *scale));
    return run_kernel(kLinearCrossEntropy, inputs, attrs, threads,
                      {DType::kFloat32, DType::kFloat32, DType::kInt64});
  }
};

TEST_P(LinearCrossEntropyKernel, AgreesWithTheDefinition) {
  for (const std::optional<float> scale : {std::optional<float>(), std::optional(0.25F)}) {
    const Reference expected(x, weight, labels(), scale);
    const KernelRun actual = run(true, true, scale);
    expect_near(actual[0], {expected.loss}, 2e-6, "loss");
    EXPECT_EQ(integer_of(actual[1]), expected.right);
    expect_near(actual[2], expected.gx, 2e-6, "gx");
    expect_near(actual[3], expected.gweight, 2e-6, "gweight");
  }
}

TEST_P(LinearCrossEntropyKernel, MakesTheGradientsThatAreAskedFor) {
  const KernelRun all = run(true, true);
  for (const auto& [gx, gweight] : {std::pair{false, false}, {false, true}, {true, false}}) {
    const KernelRun some = run(gx, gweight);
    ASSERT_EQ(some.outputs.size(), 2U + gx + gweight);
    EXPECT_TRUE(same_bits(some[0], all[0]));
    EXPECT_TRUE(same_bits(some[1], all[1]));
    if (gx || gweight) {
      EXPECT_TRUE(same_bits(some[2], all[gx ? 2 : 3]));
    }
  }
}

// Without AVX-512, oneDNN divides the depth of some products among the threads.
TEST_P(LinearCrossEntropyKernel, RepeatsToTheBit) {
  const bool whatever_the_threads = device_under_test() != "cpu" || onednn_has_bfloat16();
  const KernelRun one = run(true, true, {}, 1);
  for (const int threads : {1, 2, 3}) {
    const KernelRun first = run(true, true, {}, threads), again = run(true, true, {}, threads);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(same_bits(first[i], again[i])) << threads << ' ' << i;
      if (whatever_the_threads) {
        EXPECT_TRUE(same_bits(first[i], one[i])) << threads << ' ' << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearCrossEntropyKernel,
                         ::testing::Values(Sizes{1, 1, 1, 16}, Sizes{5, 3, 1, 16},
                                           Sizes{4, 8, 3, 4}, Sizes{32, 20, 50, 16},
                                           Sizes{37, 5, 33, 16}, Sizes{50, 33, 129, 32},
                                           Sizes{40, 16, 1031, 16}, Sizes{9, 7, 6, 400}));

class LinearCrossEntropyTest : public SessionTest {
 protected:
  // The same by operators that hold all logits.
  static LinearCrossEntropy whole(const Tensor& x, const Tensor& weight, const Tensor& labels,
                                  std::optional<int64_t> ignored = {}) {
    const Tensor logits = linear(x, weight);
    return {cross_entropy(logits, labels, ignored), accuracy_count(logits, labels)};
  }
  static int64_t integer(const Tensor& tensor) { return to_vector<int64_t>(tensor)[0]; }
};

TEST_F(LinearCrossEntropyTest, ChunksAreOfShapesAlone) {
  const auto expect_chunk = [](int64_t rows, int64_t classes, int64_t chunk) {
    EXPECT_EQ(loss::rows_of_chunk(rows, classes), chunk) << rows << " x " << classes;
  };
  expect_chunk(2048, 49152, 256);
  expect_chunk(2048, 128256, 256);
  expect_chunk(100, 128256, 100);
  expect_chunk(300, 128256, 160);  // 160 and 140
  expect_chunk(257, 128256, 144);  // 144 and 113
  expect_chunk(1000, 5000, 256);
  expect_chunk(5000, 256, 2512);
  expect_chunk(4096, 256, 4096);
  expect_chunk(7, 1, 7);
  expect_chunk(0, 10, 1);
}

// In several chunks, with labels that have gaps.
TEST_F(LinearCrossEntropyTest, IsTheCrossEntropyOfTheProjection) {
  constexpr int64_t kRows = 300, kWidth = 12, kClasses = 4500;
  ASSERT_LT(loss::rows_of_chunk(kRows, kClasses), kRows);
  std::vector<int64_t> values;
  for (int64_t n = 0; n < kRows; ++n) {
    values.push_back(n % 3 == 1 ? -100 : n * 13);
    values.push_back(0);
  }
  const Tensor labels = squeeze(narrow(from(values, {kRows, 2}), 1, 0, 1), 1);
  std::vector<std::vector<float>> results[2];
  for (const bool fused : {false, true}) {
    const Tensor x = random_leaf({kRows, kWidth}, 1),
                 weight = random_leaf({kClasses, kWidth}, 2);
    const LinearCrossEntropy y =
        fused ? linear_cross_entropy(x, weight, labels, {.ignore_index = -100})
              : whole(x, weight, labels, -100);
    backward(scale(y.loss, 100));
    results[fused] = {to_vector(y.loss),
                      to_vector(grad_of(x)),
                      to_vector(grad_of(weight)),
                      {static_cast<float>(integer(y.correct))}};
  }
  EXPECT_EQ(results[0][3], results[1][3]);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(results[0][i].size(), results[1][i].size());
    for (size_t k = 0; k < results[0][i].size(); ++k) {
      ASSERT_NEAR(results[0][i][k], results[1][i][k], 1e-5) << i << ' ' << k;
    }
  }
}

TEST_F(LinearCrossEntropyTest, Gradients) {
  const Tensor labels = from<int64_t>({2, -100, 1, 6, 0}, {5});
  const LinearCrossEntropyOptions mean{.ignore_index = -100};
  check_gradients(
      [&](std::vector<Tensor> in) {
        return linear_cross_entropy(in[0], in[1], labels, mean).loss;
      },
      {{5, 4}, {7, 4}});
  const LinearCrossEntropyOptions scaled{.ignore_index = -100,
                                         .scale = from<float>({0.5F}, {})};
  check_gradients(
      [&](std::vector<Tensor> in) {
        return mul(linear_cross_entropy(in[0], in[1], labels, scaled).loss, in[2]);
      },
      {{5, 4}, {7, 4}, {}});
  check_gradients(
      [&](std::vector<Tensor> in) {
        return linear_cross_entropy(transpose(in[0], 0, 1), transpose(in[1], 0, 1), labels,
                                    mean)
            .loss;
      },
      {{4, 5}, {4, 7}});
  const Tensor fixed = random_tensor({7, 4}, 9);
  check_gradients(
      [&](std::vector<Tensor> in) {
        return linear_cross_entropy(in[0], fixed, labels, mean).loss;
      },
      {{5, 4}});
  const Tensor data = random_tensor({5, 4}, 9);
  check_gradients(
      [&](std::vector<Tensor> in) {
        return linear_cross_entropy(data, in[0], labels, mean).loss;
      },
      {{7, 4}});
}

TEST_F(LinearCrossEntropyTest, BackwardOnlyMultiplies) {
  for (const bool weight_needed : {true, false}) {
    const Tensor x = random_leaf({6, 4}, 1);
    Tensor weight = random_tensor({5, 4}, 2);
    if (weight_needed) require_grad(weight);
    std::vector<std::string> names;
    std::optional<CallListener> listener(
        std::in_place, session_, [&](const Recipe& call) { names.emplace_back(call.name()); });
    const Tensor loss =
        linear_cross_entropy(x, weight, from<int64_t>({0, 1, 2, 3, 4, 0}, {6})).loss;
    backward(loss);
    listener.reset();
    std::vector<std::string> expected(weight_needed ? 3 : 2, "linear_cross_entropy_grad");
    expected[0] = "linear_cross_entropy";
    EXPECT_EQ(names, expected);
  }
}

TEST_F(LinearCrossEntropyTest, NoGradientIsMadeUnlessNeeded) {
  const auto outputs = [&](const Tensor& x, const Tensor& weight) {
    size_t count = 0;
    const CallListener listener(session_,
                                [&](const Recipe& call) { count = call.outputs.size(); });
    linear_cross_entropy(x, weight, from<int64_t>({0, 1}, {2}));
    return count;
  };
  const Tensor x = random_tensor({2, 3}, 1), weight = random_tensor({4, 3}, 2);
  const Tensor x_leaf = random_leaf({2, 3}, 1), weight_leaf = random_leaf({4, 3}, 2);
  EXPECT_EQ(outputs(x, weight), 2U);
  EXPECT_EQ(outputs(x_leaf, weight), 3U);
  EXPECT_EQ(outputs(x, weight_leaf), 3U);
  EXPECT_EQ(outputs(x_leaf, weight_leaf), 4U);
  const NoGrad no_grad;
  EXPECT_EQ(outputs(x_leaf, weight_leaf), 2U);
}

// Micro-batches of different counts add up to the mean over all.
TEST_F(LinearCrossEntropyTest, ScaledSumsOfPartsAreTheMeanOfTheWhole) {
  const Tensor labels = from<int64_t>({2, -100, 1, -100, -100, 3, 0, 2}, {8});
  const LinearCrossEntropyOptions mean{.ignore_index = -100};
  const LinearCrossEntropyOptions fifth{.ignore_index = -100, .scale = from<float>({0.2F}, {})};
  const Tensor x = random_leaf({8, 3}, 1), weight = random_leaf({4, 3}, 2);
  const LinearCrossEntropy all = linear_cross_entropy(x, weight, labels, mean);
  backward(all.loss);
  const std::vector<float> gx = to_vector(grad_of(x)), gweight = to_vector(grad_of(weight));
  clear_grad(x);
  clear_grad(weight);
  float loss = 0;
  int64_t correct = 0;
  for (const int64_t begin : {0, 5}) {
    const int64_t rows = begin == 0 ? 5 : 3;
    const LinearCrossEntropy part = linear_cross_entropy(narrow(x, 0, begin, rows), weight,
                                                         narrow(labels, 0, begin, rows), fifth);
    loss += to_vector(part.loss)[0];
    correct += integer(part.correct);
    backward(part.loss);
  }
  EXPECT_NEAR(loss, to_vector(all.loss)[0], 1e-6);
  EXPECT_EQ(correct, integer(all.correct));
  expect_close(grad_of(x), gx);
  expect_close(grad_of(weight), gweight);
}

TEST_F(LinearCrossEntropyTest, LabelsOutOfRangeMakeNan) {
  const Tensor x = random_leaf({4, 3}, 1), weight = random_leaf({5, 3}, 2);
  const Tensor loss =
      linear_cross_entropy(x, weight, from<int64_t>({0, 5, -1, 2}, {4}), {.ignore_index = -1})
          .loss;
  EXPECT_TRUE(std::isnan(to_vector(loss)[0]));
  backward(loss);
  const std::vector<float> gx = to_vector(grad_of(x));
  for (size_t i = 0; i < gx.size(); ++i) {
    EXPECT_EQ(std::isnan(gx[i]), i / 3 == 1) << i;
    EXPECT_EQ(gx[i] == 0, i / 3 == 2) << i;
  }
  for (const float value : to_vector(grad_of(weight))) EXPECT_TRUE(std::isnan(value));
}

TEST_F(LinearCrossEntropyTest, WhereNoLabelCountsAllIsZero) {
  const Tensor x = random_leaf({2, 3}, 1), weight = random_leaf({4, 3}, 2);
  for (const bool scaled : {false, true}) {
    LinearCrossEntropyOptions options{.ignore_index = 1};
    if (scaled) options.scale = from<float>({3}, {});
    clear_grad(x);
    clear_grad(weight);
    const LinearCrossEntropy y =
        linear_cross_entropy(x, weight, from<int64_t>({1, 1}, {2}), options);
    EXPECT_EQ(to_vector(y.loss)[0], 0);
    EXPECT_EQ(integer(y.correct), 0);
    backward(y.loss);
    EXPECT_EQ(to_vector(grad_of(x)), std::vector<float>(6, 0));
    EXPECT_EQ(to_vector(grad_of(weight)), std::vector<float>(12, 0));
  }
}

TEST_F(LinearCrossEntropyTest, WithoutRowsOnlyTheWeightHasAGradient) {
  const Tensor x = from<float>({}, {0, 3}), none = from<int64_t>({}, {0});
  const Tensor weight = random_leaf({4, 3}, 2);
  EXPECT_TRUE(std::isnan(to_vector(linear_cross_entropy(x, weight, none).loss)[0]));
  const Tensor loss = linear_cross_entropy(x, weight, none, {.ignore_index = -100}).loss;
  EXPECT_EQ(to_vector(loss)[0], 0);
  backward(loss);
  EXPECT_EQ(to_vector(grad_of(weight)), std::vector<float>(12, 0));
}

// As accuracy_count: of equal logits the first is the largest, and NaN is larger than all.
TEST_F(LinearCrossEntropyTest, CountsWhatAccuracyCountCounts) {
  const std::vector<float> logits{0,           2,           2, 1,            //
                                  3,           0,           3, 3,            //
                                  1,           kNotANumber, 5, 0,            //
                                  5,           1,           1, kNotANumber,  //
                                  kNotANumber, 1,           1, kNotANumber};
  const Tensor x = from(logits, {5, 4});
  // The weight is the identity, but NaN times 0 would spread: rows of one are chosen instead.
  for (int64_t row = 0; row < 5; ++row) {
    const Tensor weight = reshape(narrow(x, 0, row, 1), {4, 1});
    const Tensor one = from<float>({1}, {1, 1});
    for (int64_t label = 0; label < 4; ++label) {
      const Tensor labels = from<int64_t>({label}, {1});
      EXPECT_EQ(integer(linear_cross_entropy(one, weight, labels).correct),
                integer(accuracy_count(narrow(x, 0, row, 1), labels)))
          << row << ' ' << label;
      EXPECT_EQ(
          integer(linear_cross_entropy(one, weight, labels, {.ignore_index = label}).correct),
          0);
    }
  }
}

// All outputs and the workspace take less than the logits alone.
TEST_F(LinearCrossEntropyTest, NeedsLessMemoryThanTheLogits) {
  constexpr int64_t kRows = 1000, kWidth = 64, kClasses = 5000;
  const loss::LinearCrossEntropyAttrs all{
      .chunk = loss::rows_of_chunk(kRows, kClasses), .gx = 1, .gweight = 1};
  const Attrs attrs = all;
  const std::vector<TensorMeta> inputs{
      TensorMeta::contiguous(DType::kFloat32, {kRows, kWidth}),
      TensorMeta::contiguous(DType::kFloat32, {kClasses, kWidth}),
      TensorMeta::contiguous(DType::kInt64, {kRows})};
  const std::vector<TensorMeta> outputs = kLinearCrossEntropy.infer({inputs, {}, attrs});
  const OpQuery query{inputs, outputs, attrs, test_threads()};
  const auto prepare = find_kernel(kLinearCrossEntropy, session_.device().profile().backend);
  Bytes needed = prepare(query).workspace;
  for (const TensorMeta& output : outputs) needed += output.bytes();
  EXPECT_LT(needed, Bytes(kRows * kClasses * 4));
  EXPECT_GT(kLinearCrossEntropy.modelled_workspace(query), Bytes(256 * kClasses * 4));
}

TEST_F(LinearCrossEntropyTest, BFloat16) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  constexpr int64_t kRows = 200, kWidth = 24, kClasses = 300;  // enough for several threads
  std::vector<int64_t> values;
  for (int64_t n = 0; n < kRows; ++n) values.push_back(n * 3 % kClasses);
  const Tensor labels = from(values, {kRows});
  std::vector<std::vector<float>> results[2];
  for (const bool narrow : {false, true}) {
    Tensor x = cast(random_tensor({kRows, kWidth}, 1), DType::kBFloat16);
    Tensor weight = cast(random_tensor({kClasses, kWidth}, 2), DType::kBFloat16);
    if (!narrow) {
      x = cast(x, DType::kFloat32);
      weight = cast(weight, DType::kFloat32);
    }
    require_grad(x);
    require_grad(weight);
    const Tensor loss = linear_cross_entropy(x, weight, labels).loss;
    backward(scale(loss, kRows));
    EXPECT_EQ(grad_of(x).dtype(), x.dtype());
    EXPECT_EQ(grad_of(weight).dtype(), weight.dtype());
    results[narrow] = {to_vector(loss), to_vector(cast(grad_of(x), DType::kFloat32)),
                       to_vector(cast(grad_of(weight), DType::kFloat32))};
  }
  // The logits are not rounded, so the loss agrees as in float32.
  EXPECT_NEAR(results[1][0][0], results[0][0][0], 2e-6 * results[0][0][0]);
  for (size_t i = 1; i < 3; ++i) {
    for (size_t k = 0; k < results[0][i].size(); ++k) {
      ASSERT_NEAR(results[1][i][k], results[0][i][k], 0.02) << i << ' ' << k;
    }
  }
}

TEST_F(LinearCrossEntropyTest, Errors) {
  const Tensor x = random_tensor({3, 4}, 1), weight = random_tensor({5, 4}, 2);
  const Tensor labels = from<int64_t>({1, 2, 3}, {3});
  EXPECT_EQ(usage_error([&] {
              linear_cross_entropy(x, random_tensor({5, 3}, 2), labels);
            }),
            "[linear_cross_entropy] x must be (N, I), the weight (V, I) and labels (N); inputs "
            "(3, 4), (5, 3), (3)");
  const auto expect_refusal = [](const auto& call) {
    const std::string error = usage_error(call);
    EXPECT_EQ(error.rfind("[linear_cross_entropy] ", 0), 0U) << error;
  };
  expect_refusal([&] { linear_cross_entropy(x, weight, from<int64_t>({1, 2}, {2})); });
  expect_refusal([&] { linear_cross_entropy(x, weight, random_tensor({3}, 1)); });
  expect_refusal([&] { linear_cross_entropy(random_tensor({4}, 1), weight, labels); });
  expect_refusal([&] { linear_cross_entropy(x, from<float>({}, {0, 4}), labels); });
  expect_refusal([&] { linear_cross_entropy(x, cast(weight, DType::kBFloat16), labels); });
  expect_refusal(
      [&] { linear_cross_entropy(x, weight, labels, {.scale = from<float>({1}, {1})}); });
}

}  // namespace
}  // namespace tidemark::testing
