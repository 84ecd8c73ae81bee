#include "ops/conv/conv.h"

#include "tests/support/run_kernel.h"

namespace tidemark {
namespace {

using testing::Array;
using testing::expect_near;
using testing::run_kernel;
using testing::same_bits;

struct Case {
  Shape x;
  Shape w;
  Conv2dAttrs attrs;
};

const std::vector<Case> kCases{
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{2, 5, 7, 3}, {4, 3, 3, 3}, {}},
    {{2, 5, 7, 3}, {4, 3, 3, 3}, {.padding = {1, 1}}},
    {{1, 9, 8, 16}, {16, 3, 3, 16}, {.stride = {2, 2}, .padding = {1, 1}}},
    {{2, 14, 14, 64}, {32, 1, 1, 64}, {}},
    {{2, 7, 7, 64}, {48, 1, 1, 64}, {.stride = {2, 2}}},
    {{2, 23, 21, 3}, {64, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3}}},
    {{1, 11, 9, 6}, {10, 3, 2, 6}, {.stride = {1, 2}, .padding = {2, 0}, .dilation = {2, 3}}},
    {{2, 6, 6, 8}, {12, 3, 3, 2}, {.padding = {1, 1}, .groups = 4}},
    {{2, 8, 8, 128}, {128, 3, 3, 4}, {.padding = {1, 1}, .groups = 32}},
    {{2, 8, 8, 24}, {24, 3, 3, 1}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 24}},
    {{1, 6, 5, 5}, {15, 3, 3, 1}, {.padding = {1, 1}, .groups = 5}},
};

// Visits every multiply-add: indices of the elements of x, w and y.
template <class Visit>
void for_each_product(const Case& c, const Shape& y, Visit visit) {
  const int64_t cin = c.w[3], kout = c.w[0] / c.attrs.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t p = 0; p < y[1]; ++p)
      for (int64_t q = 0; q < y[2]; ++q)
        for (int64_t k = 0; k < y[3]; ++k)
          for (int64_t r = 0; r < c.w[1]; ++r)
            for (int64_t s = 0; s < c.w[2]; ++s) {
              const int64_t h =
                  p * c.attrs.stride[0] + r * c.attrs.dilation[0] - c.attrs.padding[0];
              const int64_t v =
                  q * c.attrs.stride[1] + s * c.attrs.dilation[1] - c.attrs.padding[1];
              if (h < 0 || h >= c.x[1] || v < 0 || v >= c.x[2]) continue;
              for (int64_t i = 0; i < cin; ++i) {
                const int64_t channel = k / kout * cin + i;
                visit(static_cast<size_t>(((n * c.x[1] + h) * c.x[2] + v) * c.x[3] + channel),
                      static_cast<size_t>(((k * c.w[1] + r) * c.w[2] + s) * cin + i),
                      static_cast<size_t>(((n * y[1] + p) * y[2] + q) * y[3] + k));
              }
            }
}

class Conv2d : public ::testing::TestWithParam<size_t> {
 protected:
  const Case& c = kCases[GetParam()];
  Array x = Array::random(c.x, 1);
  Array w = Array::random(c.w, 2);
  Array bias = Array::random({c.w[0]}, 3);
};

TEST_P(Conv2d, ForwardAgreesWithTheDefinition) {
  const auto run = run_kernel(kConv2d, {x, w}, c.attrs);
  const auto biased = run_kernel(kConv2d, {x, w, bias}, c.attrs);
  std::vector<double> y(run[0].values.size());
  for_each_product(c, run[0].shape,
                   [&](size_t i, size_t j, size_t o) { y[o] += double{x[i]} * w[j]; });
  expect_near(run[0], y, 1e-5, "y");
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.values.size()];
  expect_near(biased[0], y, 1e-5, "y with bias");
}

TEST_P(Conv2d, GradientsAgreeWithTheDefinition) {
  const Shape y_shape = run_kernel(kConv2d, {x, w}, c.attrs)[0].shape;
  const Array gy = Array::random(y_shape, 4);
  const Conv2dGradInputAttrs input_attrs{c.attrs, c.x[1], c.x[2]};
  const Conv2dGradWeightAttrs weight_attrs{c.attrs, c.w[1], c.w[2], 0};
  const Conv2dGradWeightAttrs bias_attrs{c.attrs, c.w[1], c.w[2], 1};
  const auto gx = run_kernel(kConv2dGradInput, {gy, w}, input_attrs);
  const auto gw = run_kernel(kConv2dGradWeight, {x, gy}, weight_attrs);
  const auto gwb = run_kernel(kConv2dGradWeight, {x, gy}, bias_attrs);
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
  expect_near(gwb[0], w_ref, 1e-5, "gw beside the bias");
  expect_near(gwb[1], b_ref, 1e-5, "gbias");
}

TEST_P(Conv2d, RepeatsToTheBit) {
  const Array y = run_kernel(kConv2d, {x, w}, c.attrs)[0];
  const Array gy = Array::random(y.shape, 4);
  const Conv2dGradInputAttrs input_attrs{c.attrs, c.x[1], c.x[2]};
  const Conv2dGradWeightAttrs weight_attrs{c.attrs, c.w[1], c.w[2], 0};
  const Array gx = run_kernel(kConv2dGradInput, {gy, w}, input_attrs)[0];
  const Array gw = run_kernel(kConv2dGradWeight, {x, gy}, weight_attrs)[0];
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(run_kernel(kConv2d, {x, w}, c.attrs)[0], y));
    EXPECT_TRUE(same_bits(run_kernel(kConv2dGradInput, {gy, w}, input_attrs)[0], gx));
    EXPECT_TRUE(same_bits(run_kernel(kConv2dGradWeight, {x, gy}, weight_attrs)[0], gw));
  }
}

TEST_P(Conv2d, CostCountsTwoOperationsForEachProduct) {
  const std::vector<TensorMeta> in{TensorMeta::contiguous(DType::kFloat32, c.x),
                                   TensorMeta::contiguous(DType::kFloat32, c.w)};
  const Attrs attrs = c.attrs;
  const auto out = kConv2d.infer({in, {}, attrs});
  const OpCost cost = kConv2d.cost({in, out, attrs});
  const double elements = static_cast<double>(out[0].shape.elements());
  EXPECT_EQ(cost.flops, 2 * elements * static_cast<double>(c.w[1] * c.w[2] * c.w[3]));
  EXPECT_EQ(cost.bytes_moved.count(),
            4 * (c.x.elements() + c.w.elements() + out[0].shape.elements()));
  EXPECT_TRUE(cost.matrix);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2d, ::testing::Range(size_t{0}, kCases.size()));

std::string error_of(const std::vector<Shape>& shapes, const Conv2dAttrs& conv) {
  std::vector<TensorMeta> in;
  for (const Shape& s : shapes) in.push_back(TensorMeta::contiguous(DType::kFloat32, s));
  const Attrs attrs = conv;
  try {
    kConv2d.infer({in, {}, attrs});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Conv2dErrors, SayThatChannelsComeLast) {
  EXPECT_EQ(
      error_of({{8, 3, 32, 32}, {16, 5, 5, 3}}, {}),
      "[conv2d] the input has 32 channels, but the weight takes 3; channels come last "
      "here: images are NHWC, weights (K, R, S, C); inputs (8, 3, 32, 32), (16, 5, 5, 3)");
}

TEST(Conv2dErrors, NameTheOperatorAndTheShapes) {
  for (const std::string& error :
       {error_of({{2, 5, 5, 3}, {4, 3, 3, 2}}, {}), error_of({{2, 5, 5, 3}, {4, 7, 7, 3}}, {}),
        error_of({{2, 5, 5, 3}, {4, 3, 3, 3}, {5}}, {}),
        error_of({{2, 5, 5, 3}, {4, 3, 3, 3}}, {.groups = 2}),
        error_of({{2, 5, 5, 3}, {4, 3, 3, 3}}, {.stride = {0, 1}}),
        error_of({{2, 5, 5, 3}, {4, 3, 3, 3}}, {.padding = {-1, 1}}),
        error_of({{2, 0, 5, 3}, {4, 3, 3, 3}}, {.padding = {3, 3}})}) {
    EXPECT_EQ(error.rfind("[conv2d] ", 0), 0u) << error;
    EXPECT_NE(error.find("(4, "), std::string::npos) << error;
  }
  EXPECT_NE(error_of({{5, 5, 3}, {4, 3, 3, 3}}, {}).find("input 0 must have 4 dimensions"),
            std::string::npos);
}

TEST(Conv2dModel, OnlyPlainProductsNeedNoWorkspace) {
  const auto workspace = [](const Shape& w, const Conv2dAttrs& conv, int64_t batch) {
    const std::vector<TensorMeta> in{
        TensorMeta::contiguous(DType::kFloat32, {batch, 56, 56, w[3]}),
        TensorMeta::contiguous(DType::kFloat32, w)};
    const Attrs attrs = conv;
    const auto out = kConv2d.infer({in, {}, attrs});
    return kConv2d.modelled_workspace({in, out, attrs});
  };
  EXPECT_EQ(workspace({256, 1, 1, 64}, {}, 8), Bytes(0));
  EXPECT_GT(workspace({256, 1, 1, 64}, {.stride = {2, 2}}, 1), Bytes(0));
  EXPECT_EQ(workspace({64, 3, 3, 64}, {.padding = {1, 1}}, 1024), Bytes(64 << 20));
}

}  // namespace
}  // namespace tidemark
