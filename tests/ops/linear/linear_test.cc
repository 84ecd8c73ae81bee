// Through the session: the public functions and their gradients.
#include "ops/linear/linear.h"

#include "ops/linear/matmul.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using testing::to_vector;
using testing::usage_error;

class LinearTest : public testing::SessionTest {};

TEST_F(LinearTest, MatmulGradientsAgreeWithFiniteDifferences) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check_gradients([=](std::vector<Tensor> in) { return matmul(in[0], in[1], ta, tb); },
                      {ta ? Shape{5, 3} : Shape{3, 5}, tb ? Shape{4, 5} : Shape{5, 4}});
    }
  }
}

TEST_F(LinearTest, GradientsAgreeWithFiniteDifferences) {
  check_gradients([](std::vector<Tensor> in) { return linear(in[0], in[1], in[2]); },
                  {{6, 5}, {4, 5}, {4}});
  check_gradients([](std::vector<Tensor> in) { return linear(in[0], in[1]); },
                  {{2, 3, 5}, {4, 5}});
  check_gradients([](std::vector<Tensor> in) { return linear(in[0], in[1], in[2]); },
                  {{5}, {4, 5}, {4}});
}

TEST_F(LinearTest, TakesTransposedViews) {
  const Tensor a = random_tensor({3, 5}, 1), b = random_tensor({4, 5}, 2);
  testing::expect_close(matmul(a, transpose(b, 0, 1)), to_vector(matmul(a, b, false, true)));
}

TEST_F(LinearTest, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3, 5}, 1), w = random_tensor({4, 5}, 2);
  const Tensor bias = random_tensor({5}, 3);
  const std::string misfit = usage_error([&] { linear(x, random_tensor({5, 4}, 3)); });
  EXPECT_EQ(misfit.rfind("[linear] ", 0), 0u) << misfit;
  EXPECT_NE(misfit.find("(2, 3, 5), (5, 4)"), std::string::npos) << misfit;
  EXPECT_EQ(usage_error([&] { linear(x, w, bias); }).rfind("[linear] ", 0), 0u);
}

}  // namespace
}  // namespace tidemark
