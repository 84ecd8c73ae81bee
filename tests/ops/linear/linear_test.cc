// Through the session: the public functions and their gradients.
#include "ops/linear/linear.h"

#include "ops/linear/matmul.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
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

TEST_F(LinearTest, BatchedMatmulGradientsAgreeWithFiniteDifferences) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check_gradients(
          [=](std::vector<Tensor> in) { return matmul(in[0], in[1], ta, tb, in[2]); },
          {ta ? Shape{2, 2, 5, 3} : Shape{2, 2, 3, 5},
           tb ? Shape{2, 2, 4, 5} : Shape{2, 2, 5, 4},
           {4}});
    }
  }
}

// Heads of attention, and a matrix for the whole batch.
TEST_F(LinearTest, MatmulTakesViewsAsTheyLie) {
  const Tensor q = random_tensor({2, 6, 3, 8}, 1), k = random_tensor({2, 5, 3, 8}, 2);
  const auto heads = [](const Tensor& x) { return permute(x, {0, 2, 1, 3}); };
  int copies = 0;
  std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
    const std::string_view name = call.name();
    copies += name == "copy";
  });
  const Tensor scores = matmul(heads(q), heads(k), false, true);
  const Tensor mixed = matmul(scores, heads(k));
  const Tensor shared = matmul(q, expand(random_tensor({8, 4}, 3), {2, 6, 8, 4}));
  const Tensor turned = matmul(transpose(scores, 2, 3), heads(q));
  EXPECT_EQ(copies, 0);
  listener.reset();
  const Tensor q_heads = contiguous(heads(q)), k_heads = contiguous(heads(k));
  testing::expect_close(scores, to_vector(matmul(q_heads, k_heads, false, true)));
  testing::expect_close(mixed, to_vector(matmul(scores, k_heads)));
  testing::expect_close(turned, to_vector(matmul(scores, q_heads, true, false)));
  testing::expect_close(reshape(shared, {36, 4}),
                        to_vector(matmul(reshape(q, {36, 8}), random_tensor({8, 4}, 3))));
  // Neither of the last two dimensions is gapless: a copy.
  testing::expect_close(matmul(permute(q, {3, 1, 2, 0}), permute(q, {3, 1, 0, 2})),
                        to_vector(matmul(contiguous(permute(q, {3, 1, 2, 0})),
                                         contiguous(permute(q, {3, 1, 0, 2})))));
}

TEST_F(LinearTest, GradientsOfViewsAgreeWithFiniteDifferences) {
  check_gradients(
      [](std::vector<Tensor> in) {
        const Tensor heads = permute(in[0], {0, 2, 1, 3});
        return permute(matmul(matmul(heads, permute(in[1], {0, 2, 1, 3}), false, true), heads),
                       {0, 2, 1, 3});
      },
      {{2, 4, 3, 5}, {2, 4, 3, 5}}, {.tolerance = 2e-2});
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
