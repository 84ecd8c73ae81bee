#include <cmath>

#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

struct PoolCase {
  Shape x;
  Pool2dAttrs attrs;
};

const std::vector<PoolCase> kPoolCases{
    {{1, 1, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}},
    {{2, 6, 8, 4}, {{2, 2}, {2, 2}, {0, 0}}},
    {{2, 7, 9, 5}, {{3, 3}, {2, 2}, {1, 1}}},
    {{1, 56, 56, 64}, {{3, 3}, {2, 2}, {1, 1}}},
    {{3, 9, 5, 70}, {{2, 3}, {1, 3}, {1, 0}}},
    {{1, 11, 11, 3}, {{3, 3}, {5, 4}, {0, 1}}},    // gaps between windows
    {{1, 24, 23, 2}, {{20, 17}, {2, 3}, {3, 8}}},  // more than 256 cells
};

// Visits every cell of every window: the elements of x and y, and the cell's number.
template <class Visit>
void for_each_cell(const PoolCase& c, const Shape& y, Visit visit) {
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t channel = i % y[3], q = i / y[3] % y[2], p = i / y[3] / y[2] % y[1];
    const int64_t n = i / y[3] / y[2] / y[1];
    for (int64_t r = 0; r < c.attrs.window[0]; ++r) {
      for (int64_t s = 0; s < c.attrs.window[1]; ++s) {
        const int64_t h = p * c.attrs.stride[0] - c.attrs.padding[0] + r;
        const int64_t w = q * c.attrs.stride[1] - c.attrs.padding[1] + s;
        if (h < 0 || h >= c.x[1] || w < 0 || w >= c.x[2]) continue;
        visit(static_cast<size_t>(((n * c.x[1] + h) * c.x[2] + w) * c.x[3] + channel),
              static_cast<size_t>(i), r * c.attrs.window[1] + s);
      }
    }
  }
}

class Pool2d : public ::testing::TestWithParam<size_t> {
 protected:
  const PoolCase& c = kPoolCases[GetParam()];
  Array x = Array::random(c.x, 1);
};

TEST_P(Pool2d, MaxAgreesWithTheDefinition) {
  const auto run = run_kernel(kMaxPool2d, {x}, c.attrs);
  const Shape& shape = run[0].shape;
  std::vector<double> y(run[0].values.size(), -1e9), gx(x.values.size());
  std::vector<size_t> from(y.size());
  for_each_cell(c, shape, [&](size_t i, size_t o, int64_t) {
    if (x[i] > y[o]) y[o] = x[i], from[o] = i;
  });
  expect_near(run[0], y, 0, "y");
  const Array gy = Array::random(shape, 2);
  for (size_t o = 0; o < y.size(); ++o) gx[from[o]] += gy[o];
  const Array& index = run[1];
  const auto grad =
      run_kernel(kMaxPool2dGrad, {gy, index}, Pool2dGradAttrs{c.attrs, c.x[1], c.x[2]}, 2,
                 {DType::kFloat32, run.metas[1].dtype});
  ASSERT_EQ(grad[0].shape, c.x);
  expect_near(grad[0], gx, 1e-6, "gx");
  const auto from_input =
      run_kernel(kMaxPool2dGradFromInput, {gy, x}, Pool2dGradAttrs{c.attrs, c.x[1], c.x[2]});
  EXPECT_TRUE(same_bits(from_input[0], grad[0]));
}

TEST_P(Pool2d, AverageAgreesWithTheDefinition) {
  for (const bool include : {false, true}) {
    const AvgPool2dAttrs attrs{c.attrs, include, 0, 0, 0};
    const auto run = run_kernel(kAvgPool2d, {x}, attrs);
    const Shape& shape = run[0].shape;
    const Array gy = Array::random(shape, 2);
    std::vector<double> y(run[0].values.size()), gx(x.values.size());
    std::vector<double> cells(y.size());
    for_each_cell(c, shape, [&](size_t i, size_t o, int64_t) { y[o] += x[i], cells[o] += 1; });
    if (include) {
      const double all = static_cast<double>(c.attrs.window[0] * c.attrs.window[1]);
      cells.assign(y.size(), all);
    }
    for (size_t o = 0; o < y.size(); ++o) y[o] /= cells[o];
    for_each_cell(c, shape, [&](size_t i, size_t o, int64_t) { gx[i] += gy[o] / cells[o]; });
    expect_near(run[0], y, 1e-6, "y");
    const auto grad =
        run_kernel(kAvgPool2dGrad, {gy}, AvgPool2dAttrs{c.attrs, include, 0, c.x[1], c.x[2]});
    ASSERT_EQ(grad[0].shape, c.x);
    expect_near(grad[0], gx, 1e-6, "gx");
  }
}

TEST_P(Pool2d, RepeatsToTheBitWithAnyNumberOfThreads) {
  const auto max = run_kernel(kMaxPool2d, {x}, c.attrs);
  const auto average = run_kernel(kAvgPool2d, {x}, AvgPool2dAttrs{c.attrs, 1, 0, 0, 0});
  for (int threads : {1, 2, 5}) {
    EXPECT_TRUE(same_bits(run_kernel(kMaxPool2d, {x}, c.attrs, threads)[0], max[0]));
    EXPECT_TRUE(
        same_bits(run_kernel(kAvgPool2d, {x}, AvgPool2dAttrs{c.attrs, 1, 0, 0, 0}, threads)[0],
                  average[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pool2d, ::testing::Range(size_t{0}, kPoolCases.size()));

TEST(MaxPool2d, NotANumberWinsAndEqualValuesGiveTheFirst) {
  Array x = Array::filled({1, 4, 4, 2}, 3);
  x.values[2 * 2 + 1] = std::nanf("");  // row 0, column 2, channel 1
  const auto run = run_kernel(kMaxPool2d, {x}, Pool2dAttrs{});
  EXPECT_EQ(run[0][0], 3);
  EXPECT_TRUE(std::isnan(run[0][3]));
  const Array gy = Array::filled(run[0].shape, 1);
  const auto grad = run_kernel(kMaxPool2dGrad, {gy, run[1]}, Pool2dGradAttrs{{}, 4, 4}, 2,
                               {DType::kFloat32, DType::kUInt8});
  EXPECT_EQ(grad[0][0], 1);  // the window's first cell
  EXPECT_EQ(grad[0][2], 0);
}

// torch.nn.functional.max_pool2d(..., ceil_mode=True), torch 2.11.
TEST(MaxPool2d, TheLastWindowMayReachPastTheEnd) {
  struct Ceil {
    int64_t extent, window, stride, padding, expected;
  };
  for (const Ceil& c : {Ceil{112, 3, 2, 0, 56},
                        {113, 3, 2, 0, 56},
                        {14, 2, 2, 0, 7},
                        {15, 2, 2, 0, 8},
                        {28, 3, 1, 1, 28},
                        {6, 2, 3, 0, 2},
                        {7, 2, 3, 1, 3},
                        {7, 1, 4, 0, 2},
                        {8, 3, 3, 1, 3}}) {
    const PoolCase shapes{{1, c.extent, 9, 2},
                          {{c.window, 3}, {c.stride, 2}, {c.padding, 1}, 1}};
    const Array x = Array::random(shapes.x, 1);
    const auto run = run_kernel(kMaxPool2d, {x}, shapes.attrs);
    ASSERT_EQ(run[0].shape, Shape({1, c.expected, 5, 2})) << c.extent;
    std::vector<double> y(run[0].values.size(), -1e9), gx(x.values.size());
    std::vector<size_t> from(y.size());
    for_each_cell(shapes, run[0].shape, [&](size_t i, size_t o, int64_t) {
      if (x[i] > y[o]) y[o] = x[i], from[o] = i;
    });
    expect_near(run[0], y, 0, "y");
    const Array gy = Array::random(run[0].shape, 2);
    for (size_t o = 0; o < y.size(); ++o) gx[from[o]] += gy[o];
    const auto grad =
        run_kernel(kMaxPool2dGrad, {gy, run[1]}, Pool2dGradAttrs{shapes.attrs, c.extent, 9}, 2,
                   {DType::kFloat32, DType::kUInt8});
    expect_near(grad[0], gx, 1e-6, "gx");
  }
}

TEST(MaxPool2d, MinusInfinityHasAPlaceToo) {
  const Array x = Array::filled({1, 2, 2, 1}, -std::numeric_limits<float>::infinity());
  const auto run = run_kernel(kMaxPool2d, {x}, Pool2dAttrs{});
  const auto grad = run_kernel(kMaxPool2dGrad, {Array::filled({1, 1, 1, 1}, 5), run[1]},
                               Pool2dGradAttrs{{}, 2, 2}, 2, {DType::kFloat32, DType::kUInt8});
  EXPECT_EQ(grad[0][0], 5);
}

TEST(AdaptiveAvgPool2d, AgreesWithTheDefinition) {
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 2}, {7, 9}, {8, 12}}) {
    const Array x = Array::random({2, 7, 9, 5}, 1);
    const AvgPool2dAttrs attrs{{}, 1, 1, height, width};
    const auto run = run_kernel(kAvgPool2d, {x}, attrs);
    ASSERT_EQ(run[0].shape, Shape({2, height, width, 5}));
    const Array gy = Array::random(run[0].shape, 2);
    std::vector<double> y(run[0].values.size()), gx(x.values.size());
    for (int64_t o = 0; o < gy.shape.elements(); ++o) {
      const int64_t c = o % 5, q = o / 5 % width, p = o / 5 / width % height;
      const int64_t n = o / 5 / width / height;
      const double bottom = std::ceil((p + 1) * 7.0 / height),
                   right = std::ceil((q + 1) * 9.0 / width);
      const double cells = (bottom - p * 7 / height) * (right - q * 9 / width);
      for (int64_t h = p * 7 / height; h < bottom; ++h) {
        for (int64_t w = q * 9 / width; w < right; ++w) {
          const auto i = static_cast<size_t>(((n * 7 + h) * 9 + w) * 5 + c);
          y[static_cast<size_t>(o)] += x[i] / cells;
          gx[i] += gy[static_cast<size_t>(o)] / cells;
        }
      }
    }
    expect_near(run[0], y, 1e-6, "y");
    expect_near(run_kernel(kAvgPool2dGrad, {gy}, AvgPool2dAttrs{{}, 1, 1, 7, 9})[0], gx, 1e-6,
                "gx");
  }
}

TEST(Pool2dErrors, NameTheOperatorAndTheShapes) {
  const std::vector<TensorMeta> in{TensorMeta::contiguous(DType::kFloat32, {2, 5, 5, 3})};
  const auto error_of = [&](const OpDef& op, const Attrs& attrs) -> std::string {
    try {
      op.infer({in, {}, attrs});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const Pool2dAttrs& attrs : {Pool2dAttrs{{6, 6}, {1, 1}, {0, 0}},
                                   {{3, 3}, {0, 1}, {0, 0}},
                                   {{2, 2}, {1, 1}, {2, 0}},
                                   {{2, 2}, {kMaxCells + 1, 1}, {0, 0}},
                                   {{0, 2}, {1, 1}, {0, 0}}}) {
    const std::string max = error_of(kMaxPool2d, attrs);
    const std::string average = error_of(kAvgPool2d, AvgPool2dAttrs{attrs, 1, 0, 0, 0});
    EXPECT_EQ(max.rfind("[max_pool2d] ", 0), 0u) << max;
    EXPECT_EQ(average.rfind("[avg_pool2d] ", 0), 0u) << average;
    EXPECT_NE(max.find("(2, 5, 5, 3)"), std::string::npos) << max;
  }
  EXPECT_NE(error_of(kAvgPool2d, AvgPool2dAttrs{{}, 1, 1, 0, 1}), "");
  EXPECT_NE(error_of(kAvgPool2d, AvgPool2dAttrs{{.ceil = 1}, 1, 0, 0, 0}), "");
}

}  // namespace
}  // namespace tidemark::testing
