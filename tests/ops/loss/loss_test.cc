#include "ops/loss/loss.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "ops/view/view.h"
#include "runtime/residency/residency.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using LossTest = SessionTest;

std::vector<double> plain_log_softmax(const std::vector<float>& x, size_t classes) {
  std::vector<double> y;
  for (size_t row = 0; row + classes <= x.size(); row += classes) {
    double largest = x[row], sum = 0;
    for (size_t c = 0; c < classes; ++c) largest = std::max(largest, double{x[row + c]});
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[row + c] - largest);
    for (size_t c = 0; c < classes; ++c) y.push_back(x[row + c] - largest - std::log(sum));
  }
  return y;
}

TEST_F(LossTest, SoftmaxAgreesWithPlainLoops) {
  for (const Shape& shape : {Shape{7}, Shape{3, 1}, Shape{5, 10}, Shape{2, 3, 17},
                             Shape{64, 1000}, Shape{3, 5001}, Shape{0, 4}}) {
    SCOPED_TRACE(shape.to_string());
    const std::vector<float> x = random_values(shape.elements(), 1, -8, 8);
    const std::vector<double> logs = plain_log_softmax(x, static_cast<size_t>(shape.back()));
    std::vector<double> probs;
    for (double log : logs) probs.push_back(std::exp(log));
    expect_close(log_softmax(from(x, shape)), logs, 2e-6);
    expect_close(softmax(from(x, shape)), probs, 2e-6);
  }
}

TEST_F(LossTest, LargeValuesDoNotOverflow) {
  const Tensor x = from<float>({1000, 999, -1000}, {1, 3});
  expect_close(log_softmax(x), plain_log_softmax({1000, 999, -1000}, 3), 1e-6);
  const std::vector<float> loss = to_vector(cross_entropy(x, from<int64_t>({2}, {1})));
  EXPECT_NEAR(loss[0], 2000.31326, 1e-3);
}

TEST_F(LossTest, SoftmaxGradients) {
  check_gradients([](std::vector<Tensor> x) { return softmax(x[0]); }, {{3, 5}});
  check_gradients([](std::vector<Tensor> x) { return log_softmax(x[0]); }, {{3, 5}});
  check_gradients([](std::vector<Tensor> x) { return log_softmax(transpose(x[0], 0, 1)); },
                  {{3, 5}});
  check_gradients([](std::vector<Tensor> x) { return transpose(softmax(x[0]), 0, 1); },
                  {{3, 5}});
  check_gradients([](std::vector<Tensor> x) { return softmax(x[0]); }, {{0, 5}});
}

TEST_F(LossTest, CrossEntropyAgreesWithPlainLoopsAndWithItsParts) {
  for (const auto& [rows, classes] :
       {std::pair{1, 1}, {4, 3}, {32, 10}, {64, 1000}, {3, 5001}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(classes));
    const Shape shape{rows, classes};
    const std::vector<float> x = random_values(shape.elements(), 2, -4, 4);
    const std::vector<double> logs = plain_log_softmax(x, static_cast<size_t>(classes));
    std::vector<int64_t> labels;
    double loss = 0;
    for (int64_t row = 0; row < rows; ++row) {
      labels.push_back(row * 7 % classes);
      loss -= logs[static_cast<size_t>(row * classes + labels.back())] / rows;
    }
    Tensor logits = from(x, shape);
    require_grad(logits);
    const Tensor label_tensor = from(labels, {rows});
    const Tensor fused = cross_entropy(logits, label_tensor);
    expect_close(fused, std::vector<double>{loss}, 2e-6);
    backward(fused);
    const std::vector<float> gradient = to_vector(grad_of(logits));
    for (size_t i = 0; i < gradient.size(); ++i) {
      const bool hit = labels[i / static_cast<size_t>(classes)] ==
                       static_cast<int64_t>(i % static_cast<size_t>(classes));
      ASSERT_NEAR(gradient[i], (std::exp(logs[i]) - hit) / rows, 1e-6) << i;
    }
    clear_grad(logits);
    const Tensor parts = nll_loss(log_softmax(logits), label_tensor);
    expect_close(parts, to_vector(fused), 1e-6);
    backward(parts);
    expect_close(grad_of(logits), gradient, 1e-6);
  }
}

TEST_F(LossTest, Gradients) {
  const Tensor labels = from<int64_t>({2, 0, 1, 1}, {4});
  check_gradients([&](std::vector<Tensor> x) { return cross_entropy(x[0], labels); }, {{4, 3}});
  check_gradients([&](std::vector<Tensor> x) { return nll_loss(x[0], labels); }, {{4, 3}});
  check_gradients(
      [&](std::vector<Tensor> x) { return cross_entropy(transpose(x[0], 0, 1), labels); },
      {{3, 4}});
  check_gradients([&](std::vector<Tensor> x) { return scale(cross_entropy(x[0], labels), 3); },
                  {{4, 3}});
}

// A loss is never below 0, even of a class that is certain, and a class that is impossible has
// no gradient to speak of.
TEST_F(LossTest, CertainAndImpossibleClasses) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Tensor x = from<float>({80, -80, 0.5F, -kInfinity, 3, 3}, {2, 3});
  require_grad(x);
  const Tensor loss = cross_entropy(x, from<int64_t>({0, 1}, {2}));
  EXPECT_FLOAT_EQ(to_vector(loss)[0], std::log(2.0F) / 2);
  backward(loss);
  const std::vector<float> gradient = to_vector(grad_of(x));
  EXPECT_EQ(gradient[0], 0);
  EXPECT_LT(gradient[1], 1e-30F);
  EXPECT_LT(gradient[3], 1e-30F);
  EXPECT_FLOAT_EQ(gradient[4], -0.25F);
  EXPECT_GE(
      to_vector(cross_entropy(from<float>({100, -100}, {1, 2}), from<int64_t>({0}, {1})))[0],
      0);
}

// Wherever in its row a score stands: scores that come to be the largest late, behind many
// impossible ones, and what is not a number.
TEST_F(LossTest, TheOrderOfScoresDoesNotMatter) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t classes : {300, 3000}) {
    std::vector<float> rising(static_cast<size_t>(classes), -kInfinity);
    const size_t begin = rising.size() * 3 / 4;
    for (size_t c = begin; c < rising.size(); ++c) rising[c] = static_cast<float>(c) / 10;
    std::vector<float> falling(rising.rbegin(), rising.rend());
    std::vector<float> both = rising;
    both.insert(both.end(), falling.begin(), falling.end());
    const std::vector<double> logs = plain_log_softmax(
        {rising.begin() + static_cast<int64_t>(begin), rising.end()}, rising.size() - begin);
    Tensor x = from(both, {2, classes});
    require_grad(x);
    const Tensor loss = cross_entropy(x, from<int64_t>({classes - 2, 1}, {2}));
    expect_close(loss, std::vector<double>{-logs[logs.size() - 2]}, 2e-6);
    backward(loss);
    const std::vector<float> gradient = to_vector(grad_of(x));
    for (size_t c = 0; c < rising.size(); ++c) {
      const double p = c < begin ? 0 : std::exp(logs[c - begin]);
      const double expected = (p - (c == rising.size() - 2)) / 2;
      ASSERT_NEAR(gradient[c], expected, 1e-6) << c;
      ASSERT_NEAR(gradient[both.size() - 1 - c], expected, 1e-6) << c;
    }
    for (const size_t at : {size_t{0}, rising.size() - 1}) {
      std::vector<float> spoilt(rising.size(), 1);
      spoilt[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(
          to_vector(cross_entropy(from(spoilt, {1, classes}), from<int64_t>({5}, {1})))[0]));
    }
  }
}

// Beside the logits, which are kept: two numbers for each row, and the loss.
TEST_F(LossTest, NothingOfTheLogitsSizeIsMade) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Tensor logits = cast(random_leaf({64, 4096}, 1), dtype);
    const Tensor labels = from(std::vector<int64_t>(64, 5), {64});
    const Bytes before = session_.residency().storages().bytes_in_use();
    const Tensor loss = cross_entropy(logits, labels);
    EXPECT_LE(session_.residency().storages().bytes_in_use() - before, Bytes(64 * 8 + 512))
        << to_string(dtype);
  }
}

TEST_F(LossTest, LabelsOutOfRangeMakeNanAndNothingElse) {
  const Tensor labels = from<int64_t>({0, 3, -1}, {3});
  for (const bool fused : {true, false}) {
    Tensor x = random_leaf({3, 3}, 1);
    const Tensor loss = fused ? cross_entropy(x, labels) : nll_loss(x, labels);
    EXPECT_TRUE(std::isnan(to_vector(loss)[0]));
    backward(loss);
    const std::vector<float> gradient = to_vector(grad_of(x));
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(gradient[i]), i >= 3) << i;
  }
}

// The mean over the rows that count: what cross entropy makes of those alone.
TEST_F(LossTest, IgnoredLabelsDoNotCount) {
  for (const int64_t ignored : {int64_t{-100}, int64_t{1}}) {
    const std::vector<float> values = random_values(5 * 4, 1, -3, 3);
    Tensor all = from(values, {5, 4});
    require_grad(all);
    const Tensor loss =
        cross_entropy(all, from<int64_t>({ignored, 2, ignored, 0, 3}, {5}), ignored);
    backward(scale(loss, 2));
    std::vector<float> kept(values.begin() + 4, values.begin() + 8);
    kept.insert(kept.end(), values.begin() + 12, values.end());
    Tensor few = from(kept, {3, 4});
    require_grad(few);
    const Tensor expected = cross_entropy(few, from<int64_t>({2, 0, 3}, {3}));
    backward(scale(expected, 2));
    EXPECT_EQ(to_vector(loss), to_vector(expected));
    const std::vector<float> gradient = to_vector(grad_of(all));
    const std::vector<float> of_few = to_vector(grad_of(few));
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(gradient[i], 0);
      EXPECT_EQ(gradient[4 + i], of_few[i]);
      EXPECT_EQ(gradient[8 + i], 0);
      EXPECT_EQ(gradient[16 + i], of_few[8 + i]);
    }
  }
}

TEST_F(LossTest, IgnoringIsDifferentiable) {
  const Tensor labels = from<int64_t>({2, -100, 1, -100}, {4});
  check_gradients([&](std::vector<Tensor> x) { return cross_entropy(x[0], labels, -100); },
                  {{4, 3}});
}

TEST_F(LossTest, WhereNoLabelCountsTheLossIsZero) {
  Tensor x = random_leaf({2, 3}, 1);
  const Tensor loss = cross_entropy(x, from<int64_t>({-100, -100}, {2}), -100);
  EXPECT_EQ(to_vector(loss)[0], 0);
  backward(loss);
  EXPECT_EQ(to_vector(grad_of(x)), std::vector<float>(6, 0));
  const Tensor none = from<float>({}, {0, 3});
  EXPECT_EQ(to_vector(cross_entropy(none, from<int64_t>({}, {0}), -100))[0], 0);
}

TEST_F(LossTest, OtherLabelsOutOfRangeAreStillNan) {
  Tensor x = random_leaf({3, 3}, 1);
  const Tensor loss = cross_entropy(x, from<int64_t>({0, -100, 7}, {3}), -100);
  EXPECT_TRUE(std::isnan(to_vector(loss)[0]));
  backward(loss);
  const std::vector<float> gradient = to_vector(grad_of(x));
  EXPECT_EQ(gradient[4], 0);
  EXPECT_TRUE(std::isnan(gradient[8]));
}

TEST_F(LossTest, LabelsMayBeStrided) {
  const Tensor x = random_tensor({3, 4}, 1);
  const Tensor all = from<int64_t>({1, 9, 2, 9, 3, 9}, {3, 2});
  const Tensor labels = squeeze(narrow(all, 1, 0, 1), 1);
  EXPECT_EQ(to_vector(cross_entropy(x, labels)),
            to_vector(cross_entropy(x, from<int64_t>({1, 2, 3}, {3}))));
}

TEST_F(LossTest, EmptyBatchIsNan) {
  const Tensor x = from<float>({}, {0, 4});
  EXPECT_TRUE(std::isnan(to_vector(cross_entropy(x, from<int64_t>({}, {0})))[0]));
}

TEST_F(LossTest, Errors) {
  const Tensor x = random_tensor({3, 4}, 1);
  EXPECT_EQ(usage_error([&] {
              cross_entropy(x, from<int64_t>({1, 2}, {2}));
            }),
            "[cross_entropy] scores must be (N, C) and labels (N), not (3, 4) and (2)");
  EXPECT_THROW(nll_loss(x, random_tensor({3}, 1)), UsageError);
  EXPECT_THROW(softmax(random_tensor({}, 1)), UsageError);
}

}  // namespace
}  // namespace tidemark::testing
