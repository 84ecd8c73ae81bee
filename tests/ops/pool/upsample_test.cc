#include "ops/pool/upsample.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "ops/view/view.h"
#include "runtime/core/bfloat16.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

constexpr Interpolation kKinds[] = {Interpolation::kNearest, Interpolation::kLinear,
                                    Interpolation::kLinearAlignCorners};

// Images are volumes of one slice.
struct UpsampleCase {
  Shape x;
  int64_t extents[3];
};

const std::vector<UpsampleCase> kUpsampleCases{
    {{1, 1, 1, 1, 1}, {1, 1, 1}},   {{2, 1, 6, 8, 4}, {1, 12, 16}},
    {{1, 1, 7, 5, 3}, {1, 14, 10}}, {{3, 1, 5, 4, 70}, {1, 9, 11}},
    {{1, 1, 1, 9, 2}, {1, 5, 1}},   {{1, 1, 9, 7, 600}, {1, 3, 4}},
    {{2, 1, 3, 3, 1}, {1, 24, 21}}, {{2, 2, 3, 4, 5}, {4, 6, 8}},
    {{1, 3, 2, 5, 8}, {5, 7, 3}},
};

// By the definition: the weight of input i for output o along one dimension.
double weight(int64_t i, int64_t o, int64_t inputs, int64_t outputs, Interpolation kind) {
  const double in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  const int64_t below = o * inputs / outputs;
  double s = static_cast<double>(below);
  if (kind == Interpolation::kLinear) s = (static_cast<double>(o) + 0.5) * in / out - 0.5;
  if (kind == Interpolation::kLinearAlignCorners) {
    s = outputs == 1 ? 0 : static_cast<double>(o) * (in - 1) / (out - 1);
  }
  s = std::min(std::max(s, 0.0), in - 1);
  return std::max(0.0, 1 - std::abs(s - static_cast<double>(i)));
}

// Visits the elements of x that each element of y reads, with their weights.
template <class Visit>
void for_each_term(const UpsampleCase& c, Interpolation kind, Visit visit) {
  const auto& to = c.extents;
  const int64_t channels = c.x[4], cells = c.x[1] * c.x[2] * c.x[3];
  for (int64_t o = 0; o < c.x[0] * to[0] * to[1] * to[2]; ++o) {
    const int64_t n = o / to[2] / to[1] / to[0];
    for (int64_t i = 0; i < cells; ++i) {
      const double w =
          weight(i % c.x[3], o % to[2], c.x[3], to[2], kind) *
          weight(i / c.x[3] % c.x[2], o / to[2] % to[1], c.x[2], to[1], kind) *
          weight(i / c.x[3] / c.x[2], o / to[2] / to[1] % to[0], c.x[1], to[0], kind);
      if (w == 0) continue;
      for (int64_t k = 0; k < channels; ++k) {
        visit(static_cast<size_t>((n * cells + i) * channels + k),
              static_cast<size_t>(o * channels + k), w);
      }
    }
  }
}

Shape without_slices(const Shape& s) { return {s[0], s[2], s[3], s[4]}; }

UpsampleAttrs attrs_of(const int64_t* extents, Interpolation kind) {
  return {{extents[0], extents[1], extents[2]}, kind};
}

class UpsampleKernel : public ::testing::TestWithParam<size_t> {
 protected:
  const UpsampleCase& case_ = kUpsampleCases[GetParam()];
  Array x_ = Array::random(case_.x, 1);
  Array gy_ = Array::random(
      {case_.x[0], case_.extents[0], case_.extents[1], case_.extents[2], case_.x[4]}, 2);
};

TEST_P(UpsampleKernel, AgreesWithTheDefinition) {
  for (const Interpolation kind : kKinds) {
    SCOPED_TRACE(static_cast<int64_t>(kind));
    std::vector<double> y(gy_.values.size()), gx(x_.values.size());
    for_each_term(case_, kind, [&](size_t i, size_t o, double w) {
      y[o] += w * x_[i];
      gx[i] += w * gy_[o];
    });
    const UpsampleAttrs attrs = attrs_of(case_.extents, kind);
    const UpsampleAttrs grad_attrs = attrs_of(case_.x.begin() + 1, kind);
    const auto run = run_kernel(kUpsample, {x_}, attrs);
    ASSERT_EQ(run[0].shape, gy_.shape);
    expect_near(run[0], y, 1e-6, "y");
    const auto grad = run_kernel(kUpsampleGrad, {gy_}, grad_attrs);
    ASSERT_EQ(grad[0].shape, case_.x);
    expect_near(grad[0], gx, 1e-6, "gx");
    if (case_.x[1] > 1) continue;
    x_.shape = without_slices(case_.x);
    const auto image = run_kernel(kUpsample, {x_}, attrs);
    EXPECT_EQ(image[0].shape, without_slices(gy_.shape));
    EXPECT_EQ(image[0].values, run[0].values);
    x_.shape = case_.x;
  }
}

TEST_P(UpsampleKernel, RepeatsToTheBitWithAnyNumberOfThreads) {
  for (const Interpolation kind : kKinds) {
    const UpsampleAttrs attrs = attrs_of(case_.extents, kind);
    const UpsampleAttrs grad_attrs = attrs_of(case_.x.begin() + 1, kind);
    const auto y = run_kernel(kUpsample, {x_}, attrs);
    const auto gx = run_kernel(kUpsampleGrad, {gy_}, grad_attrs);
    for (const int threads : {1, 2, 5}) {
      EXPECT_TRUE(same_bits(run_kernel(kUpsample, {x_}, attrs, threads)[0], y[0]));
      EXPECT_TRUE(same_bits(run_kernel(kUpsampleGrad, {gy_}, grad_attrs, threads)[0], gx[0]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, UpsampleKernel,
                         ::testing::Range(size_t{0}, kUpsampleCases.size()));

// Sums are in float32. (bfloat16_test.cc needs a processor that multiplies bfloat16.)
TEST(UpsampleBfloat16, RoundsWhatFloat32Gives) {
  const Array drawn = Array::random({2, 5, 7, 70}, 1);
  const std::vector<BFloat16> narrow(drawn.values.begin(), drawn.values.end());
  const Array wide{drawn.shape, {narrow.begin(), narrow.end()}};
  Array stored = drawn;
  std::memcpy(stored.values.data(), narrow.data(), narrow.size() * sizeof(BFloat16));
  const int64_t extents[] = {1, 9, 20};
  for (const OpDef* op : {&kUpsample, &kUpsampleGrad}) {
    const UpsampleAttrs attrs = attrs_of(extents, Interpolation::kLinear);
    const auto expected = run_kernel(*op, {wide}, attrs);
    const auto actual = run_kernel(*op, {stored}, attrs, 2, {DType::kBFloat16});
    std::vector<BFloat16> y(expected[0].values.size());
    std::memcpy(y.data(), actual[0].values.data(), y.size() * sizeof(BFloat16));
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(float{y[i]}, expected[0][i], 0x1p-8 * std::abs(expected[0][i]) + 1e-6) << i;
    }
  }
}

// Products of extents that do not fit into 32 bits.
TEST(UpsampleAxis, SourcesAndTargetsAgreeOnLongAxes) {
  const std::vector<TensorMeta> x{
      TensorMeta::contiguous(DType::kFloat32, {1, kMaxCells, 1, 1})};
  for (const int64_t outputs : {kMaxCells, kMaxCells - 1, int64_t{7}}) {
    for (const Interpolation kind : kKinds) {
      const Attrs attrs = UpsampleAttrs{{1, outputs, 1}, kind};
      const std::vector<TensorMeta> y = kUpsample.infer({x, {}, attrs});
      const UpsampleAxis axis = upsample_grid({x, y, attrs}, /*gradient=*/false).rows;
      UpsampleAxis gradient = axis;
      gradient.gradient = true;
      for (const int64_t output : {int64_t{0}, outputs / 3, outputs - 1}) {
        const Range inputs = axis.sources_of(output);
        float sum = 0;
        for (int64_t input = inputs.begin; input < inputs.end; ++input) {
          const Range seen = gradient.sources_of(input);
          EXPECT_TRUE(seen.begin <= output && output < seen.end) << input;
          EXPECT_EQ(gradient.weight(input, output), axis.weight(output, input));
          sum += axis.weight(output, input);
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    }
  }
}

class Upsample : public SessionTest {};

// torch.nn.functional.interpolate(x, size, mode, align_corners) and its gradient for 1, 2, ...;
// torch 2.15.
TEST_F(Upsample, AgreesWithPyTorch) {
  struct Golden {
    Shape extents;
    Interpolation kind;
    std::vector<float> y, gx;
  };
  const std::vector<Golden> cases{
      {{3, 5},
       Interpolation::kNearest,
       {1, 1, 2, 2, 4, 1, 1, 2, 2, 4, 8, 8, 16, 16, -32},
       {16, 24, 15, 23, 27, 15}},
      {{3, 5},
       Interpolation::kLinear,
       {1, 1.4F, 2, 3.2F, 4, 4.5F, 6.3F, 9, -4.8F, -14, 8, 11.2F, 16, -12.8F, -32},
       {7.3F, 12.6F, 15.1F, 23.3F, 30.6F, 31.1F}},
      {{3, 5},
       Interpolation::kLinearAlignCorners,
       {1, 1.5F, 2, 3, 4, 4.5F, 6.75F, 9, -2.5F, -14, 8, 12, 16, -8, -32},
       {6.75F, 14, 14.25F, 21.75F, 34, 29.25F}},
      {{1, 2}, Interpolation::kNearest, {1, 2}, {1, 2, 0, 0, 0, 0}},
      {{1, 2},
       Interpolation::kLinear,
       {5.625F, -8.25F},
       {0.375F, 0.375F, 0.75F, 0.375F, 0.375F, 0.75F}},
      {{1, 2}, Interpolation::kLinearAlignCorners, {1, 4}, {1, 0, 2, 0, 0, 0}},
  };
  for (const Golden& golden : cases) {
    Tensor x = from<float>({1, 2, 4, 8, 16, -32}, {1, 2, 3, 1});
    require_grad(x);
    const Tensor y = upsample_to(x, golden.extents, golden.kind);
    expect_close(y, golden.y);
    std::vector<float> gy(golden.y.size());
    for (size_t i = 0; i < gy.size(); ++i) gy[i] = static_cast<float>(i + 1);
    backward(y, from(gy, y.shape()));
    expect_close(grad_of(x), golden.gx);
  }
  const Tensor volume = from<float>({0, 1, 4, 9, 16, 25, 36, 49}, {1, 2, 2, 2, 1});
  expect_close(upsample_to(volume, {3, 2, 3}, Interpolation::kLinear),
               std::vector<float>{0, 0.5F, 1, 4, 6.5F, 9, 8, 10.5F, 13, 20, 24.5F, 29, 16,
                                  20.5F, 25, 36, 42.5F, 49});
}

TEST_F(Upsample, MultipliesTheExtentsByItsFactors) {
  const Tensor x = random_tensor({2, 3, 5, 4}, 1);
  const Tensor y = upsample(x, {2, 3});
  EXPECT_EQ(y.shape(), (Shape{2, 6, 15, 4}));
  const Tensor pixels = reshape(x, {2, 3, 1, 5, 1, 4});
  EXPECT_EQ(to_vector(y), to_vector(reshape(expand(pixels, {2, 3, 2, 5, 3, 4}), y.shape())));
  const Tensor volumes = random_tensor({1, 2, 3, 4, 5}, 2);
  EXPECT_EQ(upsample(volumes, {1, 2, 3}, Interpolation::kLinear).shape(),
            (Shape{1, 2, 6, 12, 5}));
}

TEST_F(Upsample, TakesStridedImages) {
  const Tensor x = transpose(random_tensor({2, 5, 3, 4}, 1), 1, 2);
  EXPECT_EQ(to_vector(upsample(x, {2, 2}, Interpolation::kLinear)),
            to_vector(upsample(contiguous(x), {2, 2}, Interpolation::kLinear)));
}

TEST_F(Upsample, GradientsAgreeWithFiniteDifferences) {
  for (const Interpolation kind : kKinds) {
    check_gradients(
        [=](std::vector<Tensor> in) {
          return upsample(in[0], {2, 2}, kind);
        },
        {{2, 3, 5, 3}});
    check_gradients(
        [=](std::vector<Tensor> in) {
          return upsample_to(in[0], {2, 7}, kind);
        },
        {{1, 5, 3, 2}});
    check_gradients(
        [=](std::vector<Tensor> in) {
          return upsample_to(in[0], {3, 5, 4}, kind);
        },
        {{1, 2, 2, 3, 2}});
  }
}

TEST_F(Upsample, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3, 5, 4}, 1);
  const auto error = [](const auto& call) { return usage_error(call); };
  EXPECT_THAT(error([&] { upsample(x, {2}); }),
              HasSubstr("[upsample] takes (N, H, W, C) and two sizes, or (N, D, H, W, C) and "
                        "three, not (2, 3, 5, 4) and (2)"));
  EXPECT_THAT(error([&] { upsample_to(x, {2, 3, 4}); }), HasSubstr("and (2, 3, 4)"));
  EXPECT_THAT(error([&] {
                upsample(random_tensor({3, 5, 4}, 1), {2});
              }),
              HasSubstr("not (3, 5, 4)"));
  EXPECT_THAT(error([&] {
                upsample(x, {2, 0});
              }),
              HasSubstr("factors must be positive and at most 2^30, not (2, 0)"));
  EXPECT_THAT(error([&] {
                upsample_to(x, {0, 4});
              }),
              HasSubstr("[upsample] each extent must be positive and at most 2^30; inputs "
                        "(2, 3, 5, 4)"));
  EXPECT_THAT(error([&] { upsample(x, {kMaxCells, 1}); }), HasSubstr("at most 2^30"));
  EXPECT_THAT(error([&] {
                upsample(from<int64_t>({1}, {1, 1, 1, 1}), {2, 2});
              }),
              HasSubstr("[upsample] input 0 must be float32 or bfloat16"));
  EXPECT_THAT(error([&] {
                upsample(random_tensor({0, 3, 5, 4}, 1), {2, 2});
              }),
              HasSubstr("[upsample] input 0 is empty"));
}

}  // namespace
}  // namespace tidemark::testing
