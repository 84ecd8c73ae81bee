#include "ops/conv/conv.h"

#include "ops/view/view.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark {
namespace {

using testing::Array;
using testing::check_gradients;
using testing::expect_near;
using testing::run_kernel;
using testing::same_bits;
using testing::to_vector;
using testing::usage_error;

struct Case {
  Shape x;
  Shape w;
  Conv3dAttrs attrs;
};

const std::vector<Case> kCases{
    {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {}},
    {{2, 3, 5, 7, 3}, {4, 3, 3, 3, 3}, {.padding = {1, 1, 1}}},
    {{1, 4, 9, 8, 16}, {16, 3, 3, 3, 16}, {.stride = {2, 2, 2}, .padding = {1, 1, 1}}},
    {{2, 3, 15, 13, 3}, {8, 3, 7, 7, 3}, {.stride = {1, 2, 2}, .padding = {1, 3, 3}}},
    {{2, 4, 6, 5, 16}, {24, 1, 1, 1, 16}, {.stride = {2, 2, 2}}},
    {{1, 5, 6, 7, 6},
     {10, 2, 3, 2, 6},
     {.stride = {1, 2, 1}, .padding = {0, 2, 1}, .dilation = {3, 1, 2}}},
    {{1, 3, 4, 4, 8}, {12, 3, 3, 3, 2}, {.padding = {1, 1, 1}, .groups = 4}},
};

// Visits every multiply-add: indices of the elements of x, w and y.
template <class Visit>
void for_each_product(const Case& c, const Shape& y, Visit visit) {
  const int64_t cin = c.w[4], kout = c.w[0] / c.attrs.groups;
  const int64_t positions = y[1] * y[2] * y[3], taps = c.w[1] * c.w[2] * c.w[3];
  for (int64_t place = 0; place < y[0] * positions * taps; ++place) {
    const int64_t n = place / (positions * taps);
    int64_t position = place / taps % positions, tap = place % taps;
    const int64_t at = n * positions + position, weight = tap;
    int64_t from = 0, step = 1;
    bool inside = true;
    for (size_t d = 3; d >= 1; --d) {
      const int64_t in = position % y[d] * c.attrs.stride[d - 1] +
                         tap % c.w[d] * c.attrs.dilation[d - 1] - c.attrs.padding[d - 1];
      inside = inside && in >= 0 && in < c.x[d];
      from += in * step;
      step *= c.x[d];
      position /= y[d];
      tap /= c.w[d];
    }
    if (!inside) continue;
    for (int64_t k = 0; k < c.w[0]; ++k) {
      for (int64_t i = 0; i < cin; ++i) {
        visit(static_cast<size_t>((n * step + from) * c.x[4] + k / kout * cin + i),
              static_cast<size_t>((k * taps + weight) * cin + i),
              static_cast<size_t>(at * c.w[0] + k));
      }
    }
  }
}

class Conv3d : public ::testing::TestWithParam<size_t> {
 protected:
  const Case& c = kCases[GetParam()];
  Array x = Array::random(c.x, 1);
  Array w = Array::random(c.w, 2);
  Array bias = Array::random({c.w[0]}, 3);
  Conv3dGradInputAttrs input_attrs{c.attrs, {c.x[1], c.x[2], c.x[3]}};
  Conv3dGradWeightAttrs weight_attrs{c.attrs, {c.w[1], c.w[2], c.w[3]}, 1};
};

TEST_P(Conv3d, ForwardAgreesWithTheDefinition) {
  const auto run = run_kernel(kConv3d, {x, w}, c.attrs);
  const auto biased = run_kernel(kConv3d, {x, w, bias}, c.attrs);
  std::vector<double> y(run[0].values.size());
  for_each_product(c, run[0].shape,
                   [&](size_t i, size_t j, size_t o) { y[o] += double{x[i]} * w[j]; });
  expect_near(run[0], y, 1e-5, "y");
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.values.size()];
  expect_near(biased[0], y, 1e-5, "y with bias");
}

TEST_P(Conv3d, GradientsAgreeWithTheDefinition) {
  const Shape y_shape = run_kernel(kConv3d, {x, w}, c.attrs)[0].shape;
  const Array gy = Array::random(y_shape, 4);
  const auto gx = run_kernel(kConv3dGradInput, {gy, w}, input_attrs);
  const auto gw = run_kernel(kConv3dGradWeight, {x, gy}, weight_attrs);
  std::vector<double> x_ref(x.values.size()), w_ref(w.values.size()), b_ref(bias.values.size());
  for_each_product(c, y_shape, [&](size_t i, size_t j, size_t o) {
    x_ref[i] += double{gy[o]} * w[j];
    w_ref[j] += double{gy[o]} * x[i];
  });
  for (size_t i = 0; i < gy.values.size(); ++i) b_ref[i % b_ref.size()] += gy[i];
  ASSERT_EQ(gx[0].shape, c.x);
  ASSERT_EQ(gw[0].shape, c.w);
  expect_near(gx[0], x_ref, 1e-5, "gx");
  expect_near(gw[0], w_ref, 1e-5, "gw");
  expect_near(gw[1], b_ref, 1e-5, "gbias");
}

TEST_P(Conv3d, RepeatsToTheBit) {
  const Array y = run_kernel(kConv3d, {x, w}, c.attrs)[0];
  const Array gy = Array::random(y.shape, 4);
  const Array gx = run_kernel(kConv3dGradInput, {gy, w}, input_attrs)[0];
  const Array gw = run_kernel(kConv3dGradWeight, {x, gy}, weight_attrs)[0];
  EXPECT_TRUE(same_bits(run_kernel(kConv3d, {x, w}, c.attrs)[0], y));
  EXPECT_TRUE(same_bits(run_kernel(kConv3dGradInput, {gy, w}, input_attrs)[0], gx));
  EXPECT_TRUE(same_bits(run_kernel(kConv3dGradWeight, {x, gy}, weight_attrs)[0], gw));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv3d, ::testing::Range(size_t{0}, kCases.size()));

// Through the session: the public function and its gradients.
class Conv3dGrad : public testing::SessionTest {};

TEST_F(Conv3dGrad, AgreesWithFiniteDifferences) {
  const auto with = [](const Conv3dAttrs& attrs) {
    return [attrs](std::vector<Tensor> in) {
      return conv3d(in[0], in[1], in.size() == 3 ? in[2] : Tensor(), attrs);
    };
  };
  check_gradients(with({.padding = {1, 1, 1}}), {{1, 3, 4, 3, 2}, {3, 3, 3, 3, 2}});
  check_gradients(with({.stride = {1, 2, 2}, .groups = 2}),
                  {{2, 2, 3, 5, 4}, {4, 2, 3, 2, 2}, {4}});
}

// A clip of one frame is an image.
TEST_F(Conv3dGrad, OfOneFrameIsConv2d) {
  const Tensor x = testing::random_tensor({2, 5, 6, 3}, 1);
  const Tensor w = testing::random_tensor({4, 3, 3, 3}, 2);
  const Tensor images = conv2d(x, w, {}, {.padding = {1, 1}});
  const Tensor clips = conv3d(unsqueeze(x, 1), unsqueeze(w, 1), {}, {.padding = {0, 1, 1}});
  testing::expect_close(squeeze(clips, 1), to_vector(images), 1e-5);
}

TEST_F(Conv3dGrad, RefusesWhatDoesNotFit) {
  const Tensor x = testing::random_tensor({1, 3, 4, 4, 2}, 1);
  const Tensor w = testing::random_tensor({3, 5, 1, 1, 2}, 2);
  const std::string error = usage_error([&] { conv3d(x, w); });
  EXPECT_EQ(error.rfind("[conv3d] ", 0), 0u) << error;
  EXPECT_NE(usage_error([&] {
              conv3d(squeeze(narrow(x, 1, 0, 1), 1), w);
            }).find("input 0 must have 5 dimensions"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark
