// Through the session: the public function, its gradients, and what it keeps for them.
#include "ops/conv/conv.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;
using testing::random_leaf;
using testing::random_tensor;
using testing::to_vector;
using testing::usage_error;

class Conv2dGrad : public testing::SessionTest {};

TEST_F(Conv2dGrad, AgreesWithFiniteDifferences) {
  const auto with = [](const Conv2dAttrs& attrs) {
    return [attrs](std::vector<Tensor> in) {
      return conv2d(in[0], in[1], in.size() == 3 ? in[2] : Tensor(), attrs);
    };
  };
  check_gradients(with({.padding = {1, 1}}), {{2, 5, 4, 3}, {4, 3, 3, 3}});
  check_gradients(with({.stride = {2, 1}}), {{2, 5, 6, 3}, {4, 3, 2, 3}, {4}});
  check_gradients(with({.padding = {2, 1}, .dilation = {2, 1}, .groups = 2}),
                  {{1, 6, 5, 4}, {6, 3, 3, 2}, {6}});
}

TEST_F(Conv2dGrad, OfTheFirstLayersInputIsNotComputed) {
  std::vector<std::string> seen;
  const CallListener listener(session_,
                              [&](const Recipe& call) { seen.emplace_back(call.name()); });
  const Tensor x = random_tensor({1, 4, 4, 2}, 1);
  const Tensor w = random_leaf({3, 1, 1, 2}, 2);
  const Tensor y = conv2d(x, w);
  backward(y, random_tensor(y.shape(), 3));
  EXPECT_TRUE(grad_of(w).defined());
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "conv2d_grad_weight"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "conv2d_grad_input"), 0);
}

TEST_F(Conv2dGrad, OfTheBiasAlone) {
  const Tensor x = random_tensor({2, 3, 3, 2}, 1);
  const Tensor w = random_tensor({3, 1, 1, 2}, 2);
  const Tensor bias = random_leaf({3}, 3);
  const Tensor y = conv2d(x, w, bias);
  backward(y, testing::from(std::vector<float>(54, 1), y.shape()));
  testing::expect_close(grad_of(bias), std::vector<float>{18, 18, 18});
}

TEST_F(Conv2dGrad, TakesViewsWithGaps) {
  const Tensor x = random_tensor({2, 6, 5, 4}, 1);
  const Tensor w = random_tensor({3, 1, 1, 4}, 2);
  const Tensor part = narrow(x, 1, 1, 4);
  EXPECT_EQ(to_vector(conv2d(part, w)), to_vector(narrow(conv2d(x, w), 1, 1, 4)));
}

TEST_F(Conv2dGrad, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 6, 5, 4}, 1);
  const Tensor w = random_tensor({3, 1, 1, 5}, 2);
  EXPECT_EQ(usage_error([&] { conv2d(x, w); }).rfind("[conv2d] ", 0), 0u);
}

}  // namespace
}  // namespace tidemark
