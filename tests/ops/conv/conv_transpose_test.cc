#include "ops/conv/conv_transpose.h"

#include <gmock/gmock.h>

#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;
using testing::from;
using testing::random_values;
using testing::to_vector;
using testing::usage_error;

class ConvTranspose : public testing::SessionTest {};

// y by the definition: each element of x, times each weight of its channel, lands in y. In 3-D;
// images are clips of one frame.
std::vector<double> expected(const std::vector<float>& x, const Shape& xs,
                             const std::vector<float>& w, const Shape& ws,
                             const ConvTransposeAttrs<3>& attrs, const Shape& ys) {
  std::vector<double> y(static_cast<size_t>(ys.elements()));
  const ConvAttrs<3>& conv = attrs.conv;
  const int64_t inputs = xs[4] / conv.groups, outputs = ws[4];
  for (int64_t i = 0; i < xs.elements(); ++i) {
    const int64_t c = i % xs[4], q = i / xs[4] % xs[3], p = i / xs[4] / xs[3] % xs[2];
    const int64_t o = i / xs[4] / xs[3] / xs[2] % xs[1], n = i / xs[4] / xs[3] / xs[2] / xs[1];
    for (int64_t j = 0; j < ws.elements() / ws[0]; ++j) {
      const int64_t k = j % ws[4], s = j / ws[4] % ws[3], r = j / ws[4] / ws[3] % ws[2];
      const int64_t t = j / ws[4] / ws[3] / ws[2];
      const int64_t d = o * conv.stride[0] + t * conv.dilation[0] - conv.padding[0];
      const int64_t h = p * conv.stride[1] + r * conv.dilation[1] - conv.padding[1];
      const int64_t v = q * conv.stride[2] + s * conv.dilation[2] - conv.padding[2];
      if (d < 0 || d >= ys[1] || h < 0 || h >= ys[2] || v < 0 || v >= ys[3]) continue;
      const int64_t channel = c / inputs * outputs + k;
      const int64_t to = (((n * ys[1] + d) * ys[2] + h) * ys[3] + v) * ys[4] + channel;
      const int64_t weight = c * (ws.elements() / ws[0]) + j;
      y[static_cast<size_t>(to)] +=
          double{x[static_cast<size_t>(i)]} * w[static_cast<size_t>(weight)];
    }
  }
  return y;
}

TEST_F(ConvTranspose, AgreesWithTheDefinition) {
  struct Case {
    Shape x, w;
    ConvTransposeAttrs<3> attrs;
    Shape y;
  };
  const std::vector<Case> cases{
      {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {}, {1, 1, 1, 1, 1}},
      {{2, 1, 3, 4, 6}, {6, 1, 2, 2, 5}, {{.stride = {1, 2, 2}}}, {2, 1, 6, 8, 5}},
      {{1, 1, 4, 3, 4},
       {4, 1, 3, 3, 3},
       {{.stride = {1, 2, 2}, .padding = {0, 1, 1}}, {0, 1, 1}},
       {1, 1, 8, 6, 3}},
      {{2, 1, 5, 4, 3},
       {3, 1, 3, 2, 2},
       {{.padding = {0, 0, 1}, .dilation = {1, 2, 3}}},
       {2, 1, 9, 5, 2}},
      {{1, 1, 3, 5, 8},
       {8, 1, 3, 3, 2},
       {{.stride = {1, 3, 2}, .padding = {0, 1, 1}, .groups = 4}, {0, 2, 0}},
       {1, 1, 9, 9, 8}},
      {{1, 2, 3, 3, 4}, {4, 2, 2, 2, 3}, {{.stride = {2, 2, 2}}}, {1, 4, 6, 6, 3}},
      {{1, 3, 2, 3, 4},
       {4, 3, 1, 3, 1},
       {{.stride = {2, 1, 3}, .padding = {1, 0, 0}, .groups = 2}, {1, 0, 1}},
       {1, 6, 2, 10, 2}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.x.to_string() + " by " + c.w.to_string());
    const auto x = random_values(c.x.elements(), 1), w = random_values(c.w.elements(), 2);
    const auto bias = random_values(c.y.back(), 3);
    std::vector<double> y = expected(x, c.x, w, c.w, c.attrs, c.y);
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
    const std::vector<float> floats(y.begin(), y.end());
    const Tensor b = from(bias, {c.y.back()});
    const Tensor clips = conv_transpose3d(from(x, c.x), from(w, c.w), b, c.attrs);
    EXPECT_EQ(clips.shape(), c.y);
    testing::expect_close(clips, floats, 1e-5);
    if (c.x[1] > 1) continue;
    const auto image = [](const Shape& s) { return Shape{s[0], s[2], s[3], s[4]}; };
    const auto two = [](const std::array<int64_t, 3>& a) { return std::array{a[1], a[2]}; };
    const ConvAttrs<3>& conv = c.attrs.conv;
    const Tensor images = conv_transpose2d(
        from(x, image(c.x)), from(w, image(c.w)), b,
        {{two(conv.stride), two(conv.padding), two(conv.dilation), conv.groups},
         two(c.attrs.output_padding)});
    EXPECT_EQ(images.shape(), image(c.y));
    testing::expect_close(images, floats, 1e-5);
  }
}

TEST_F(ConvTranspose, GradientsAgreeWithFiniteDifferences) {
  const auto two = [](const ConvTransposeAttrs<2>& attrs) {
    return [attrs](std::vector<Tensor> in) {
      return conv_transpose2d(in[0], in[1], in.size() == 3 ? in[2] : Tensor(), attrs);
    };
  };
  check_gradients(two({}), {{2, 3, 4, 3}, {3, 3, 3, 2}});
  check_gradients(two({{.stride = {2, 2}, .padding = {1, 0}, .groups = 2}, {1, 0}}),
                  {{1, 3, 3, 4}, {4, 3, 2, 3}, {6}});
  check_gradients(
      [](std::vector<Tensor> in) {
        return conv_transpose3d(in[0], in[1], in[2], {{.stride = {2, 2, 2}}});
      },
      {{1, 2, 2, 3, 2}, {2, 2, 2, 2, 3}, {3}});
}

TEST_F(ConvTranspose, RefusesWhatDoesNotFit) {
  const Tensor x = testing::random_tensor({1, 4, 4, 6}, 1);
  const Tensor w = testing::random_tensor({6, 3, 3, 2}, 2);
  const auto error = [&](const ConvTransposeAttrs<2>& attrs, const Tensor& bias = {}) {
    return usage_error([&] { conv_transpose2d(x, w, bias, attrs); });
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error({{.groups = 4}}), HasSubstr("[conv_transpose2d] groups must divide"));
  EXPECT_THAT(error({{}, {1, 0}}), HasSubstr("output_padding must be less than the stride"));
  EXPECT_THAT(error({{.padding = {3, 3}}}), HasSubstr("leaves no output"));
  EXPECT_THAT(error({{.stride = {0, 1}}}), HasSubstr("must be positive"));
  EXPECT_THAT(error({}, testing::random_tensor({3}, 3)), HasSubstr("one element for each"));
  EXPECT_THAT(usage_error([&] { conv_transpose2d(w, x); }), HasSubstr("(6, 3, 3, 2)"));
  EXPECT_THAT(usage_error([&] { conv_transpose3d(x, w); }), HasSubstr("5 dimensions"));
  EXPECT_THAT(usage_error([&] { conv_transpose2d({}, w); }), HasSubstr("must be defined"));
}

}  // namespace
}  // namespace tidemark
