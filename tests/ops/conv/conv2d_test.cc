#include "ops/conv/conv.h"

#include "tests/ops/conv/conv_contract.h"

namespace tidemark {
namespace {

const std::vector<testing::ConvCase<2>> kConv2dCases{
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

class Conv2d : public testing::ConvContract<2> {
 protected:
  Conv2d()
      : ConvContract(kConv2dCases[GetParam()], kConv2d, kConv2dGradInput, kConv2dGradWeight) {}
};

TEST_P(Conv2d, ForwardAgreesWithTheDefinition) { expect_forward_agrees_with_the_definition(); }

TEST_P(Conv2d, GradientsAgreeWithTheDefinition) {
  expect_gradients_agree_with_the_definition();
}

TEST_P(Conv2d, RepeatsToTheBit) { expect_repeats_to_the_bit(); }

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

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2d, ::testing::Range(size_t{0}, kConv2dCases.size()));

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
