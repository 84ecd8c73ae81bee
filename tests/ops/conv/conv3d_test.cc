#include "ops/conv/conv.h"

#include "ops/view/view.h"
#include "tests/ops/conv/conv_contract.h"
#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;
using testing::to_vector;
using testing::usage_error;

const std::vector<testing::ConvCase<3>> kConv3dCases{
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

class Conv3d : public testing::ConvContract<3> {
 protected:
  Conv3d()
      : ConvContract(kConv3dCases[GetParam()], kConv3d, kConv3dGradInput, kConv3dGradWeight) {}
};

TEST_P(Conv3d, ForwardAgreesWithTheDefinition) { expect_forward_agrees_with_the_definition(); }

TEST_P(Conv3d, GradientsAgreeWithTheDefinition) {
  expect_gradients_agree_with_the_definition();
}

TEST_P(Conv3d, RepeatsToTheBit) { expect_repeats_to_the_bit(); }

INSTANTIATE_TEST_SUITE_P(Shapes, Conv3d, ::testing::Range(size_t{0}, kConv3dCases.size()));

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
