#include "ops/view/view.h"

#include <numeric>

#include "ops/elementwise/elementwise.h"
#include "ops/view/contiguous.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using ViewTest = SessionTest;

// 0, 1, 2, ...: an element's value is its place in row-major order.
Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.F);
  return from(values, shape);
}

TEST_F(ViewTest, ViewsShareTheStorage) {
  const Tensor x = counting({2, 3, 4});
  for (const Tensor& y :
       {reshape(x, {6, 4}), flatten(x), transpose(x, 0, 2), permute(x, {2, 0, 1}),
        narrow(x, 1, 1, 2), expand(x, {5, 2, 3, 4}), unsqueeze(x, 1)}) {
    EXPECT_EQ(y.storage().get(), x.storage().get());
  }
}

TEST_F(ViewTest, Reshape) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(reshape(x, {4, -1}).shape(), (Shape{4, 6}));
  EXPECT_EQ(reshape(x, {24}).shape(), (Shape{24}));
  EXPECT_EQ(to_vector(reshape(x, {4, 6})), to_vector(x));
  // Not contiguous: a copy in the view's order.
  EXPECT_EQ(to_vector(reshape(transpose(counting({2, 3}), 0, 1), {6})),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(reshape(counting({0, 3}), {3, 0}).shape(), (Shape{3, 0}));
  EXPECT_EQ(reshape(counting({1, 1}), {}).shape(), Shape{});
  EXPECT_EQ(usage_error([&] {
              reshape(x, {5, -1});
            }),
            "[reshape] the 24 elements of shape (2, 3, 4) cannot be arranged as (5, -1): they "
            "are not a multiple of 5");
  EXPECT_EQ(usage_error([&] {
              reshape(x, {5, 4});
            }),
            "[reshape] the 24 elements of shape (2, 3, 4) cannot be arranged as (5, 4), which "
            "has 20");
  EXPECT_THROW(reshape(x, {-1, -1}), UsageError);
}

TEST_F(ViewTest, Flatten) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(flatten(x).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(x, 0).shape(), (Shape{24}));
  EXPECT_EQ(flatten(x, -1).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(flatten(counting({}), 0).shape(), (Shape{1}));
  EXPECT_THROW(flatten(x, 3), UsageError);
}

TEST_F(ViewTest, TransposeAndPermute) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(to_vector(transpose(counting({2, 3}), 0, -1)),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const Tensor y = permute(x, {2, 0, -2});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  const std::vector<float> values = to_vector(y);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(values[(i * 2 + j) * 3 + k], static_cast<float>((j * 3 + k) * 4 + i));
      }
    }
  }
  EXPECT_THROW(permute(x, {0, 1}), UsageError);
  EXPECT_THROW(permute(x, {0, 1, 1}), UsageError);
  EXPECT_THROW(transpose(x, 0, 3), UsageError);
}

TEST_F(ViewTest, Narrow) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(to_vector(narrow(x, 0, 1, 1)), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(to_vector(narrow(x, -1, 2, 2)), (std::vector<float>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(narrow(x, 0, 3, 0).elements(), 0);
  EXPECT_EQ(usage_error([&] { narrow(x, 1, 3, 2); }),
            "[narrow] elements 3 to 5 of dimension 1 of shape (3, 4) do not exist");
  EXPECT_THROW(narrow(x, 1, -1, 2), UsageError);
}

TEST_F(ViewTest, Expand) {
  EXPECT_EQ(to_vector(expand(counting({2, 1}), {2, 2, 3})),
            (std::vector<float>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(to_vector(expand(counting({}), {3})), (std::vector<float>{0, 0, 0}));
  EXPECT_THROW(expand(counting({2}), {3}), UsageError);
  EXPECT_THROW(expand(counting({2, 3}), {3}), UsageError);
}

TEST_F(ViewTest, SqueezeAndUnsqueeze) {
  const Tensor x = counting({2, 1, 3});
  EXPECT_EQ(squeeze(x, 1).shape(), (Shape{2, 3}));
  EXPECT_THROW(squeeze(x, 0), UsageError);
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 2, 1, 3}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(unsqueeze(counting({}), 0).shape(), (Shape{1}));
  EXPECT_THROW(unsqueeze(x, 4), UsageError);
}

TEST_F(ViewTest, ContiguousCopiesOnlyWhatNeedsIt) {
  const Tensor x = counting({40, 16});
  EXPECT_EQ(contiguous(x).storage().get(), x.storage().get());
  EXPECT_EQ(contiguous(narrow(x, 0, 4, 3)).storage().get(), x.storage().get());
  const Tensor unaligned = narrow(reshape(x, {640}), 0, 3, 100);
  const Tensor y = contiguous(unaligned);
  EXPECT_NE(y.storage().get(), x.storage().get());
  EXPECT_EQ(y.meta().offset, 0);
  EXPECT_EQ(to_vector(y)[0], 3);
  EXPECT_EQ(
      to_vector<int64_t>(contiguous(transpose(from<int64_t>({1, 2, 3, 4}, {2, 2}), 0, 1))),
      (std::vector<int64_t>{1, 3, 2, 4}));
  EXPECT_EQ(
      to_vector<uint8_t>(contiguous(transpose(from<uint8_t>({1, 2, 3, 4}, {2, 2}), 0, 1))),
      (std::vector<uint8_t>{1, 3, 2, 4}));
}

TEST_F(ViewTest, LargePermutedCopy) {
  const Tensor x = counting({37, 41, 53});
  const std::vector<float> values = to_vector(permute(x, {1, 2, 0}));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t n = i % 37, c = i / 37 % 53, h = i / 37 / 53;
    ASSERT_EQ(values[i], static_cast<float>((n * 41 + h) * 53 + c));
  }
}

TEST_F(ViewTest, Concat) {
  const Tensor a = counting({2, 2}), b = counting({2, 1}), none = counting({2, 0});
  EXPECT_EQ(to_vector(concat({a, b, none}, 1)), (std::vector<float>{0, 1, 0, 2, 3, 1}));
  EXPECT_EQ(to_vector(concat({a, transpose(a, 0, 1)}, 0)),
            (std::vector<float>{0, 1, 2, 3, 0, 2, 1, 3}));
  EXPECT_EQ(usage_error([&] {
              concat({a, b}, 0);
            }),
            "[concat] shapes (2, 2) and (2, 1) differ in more than dimension 0");
  EXPECT_THROW(concat({}, 0), UsageError);
}

TEST_F(ViewTest, Gradients) {
  const auto check = [](const std::function<Tensor(const Tensor&)>& view, const Shape& shape) {
    SCOPED_TRACE(shape.to_string());
    // Squared, so that the gradient is not the same for all elements.
    check_gradients([&](std::vector<Tensor> x) { return view(mul(x[0], x[0])); }, {shape});
    check_gradients([&](std::vector<Tensor> x) { return view(x[0]); }, {shape});
  };
  check([](const Tensor& x) { return reshape(x, {3, -1}); }, {2, 3, 2});
  check([](const Tensor& x) { return reshape(transpose(x, 0, 1), {-1}); }, {2, 3});
  check([](const Tensor& x) { return flatten(x); }, {2, 3, 2});
  check([](const Tensor& x) { return transpose(x, 0, 2); }, {2, 3, 4});
  check([](const Tensor& x) { return permute(x, {2, 0, 1}); }, {2, 3, 4});
  check([](const Tensor& x) { return narrow(x, 1, 1, 2); }, {2, 4, 3});
  check([](const Tensor& x) { return narrow(x, 0, 0, 0); }, {2, 4});
  check([](const Tensor& x) { return expand(x, {4, 2, 3}); }, {2, 1});
  check([](const Tensor& x) { return expand(x, {2, 2}); }, {});
  check([](const Tensor& x) { return squeeze(x, 1); }, {2, 1, 3});
  check([](const Tensor& x) { return unsqueeze(x, 1); }, {2, 3});
  check([](const Tensor& x) { return contiguous(transpose(x, 0, 1)); }, {2, 3});
}

TEST_F(ViewTest, GradientsOfConcat) {
  check_gradients(
      [](std::vector<Tensor> x) {
        return concat({x[0], x[1], x[0]}, 1);
      },
      {{2, 3}, {2, 1}});
}

TEST_F(ViewTest, SplitIsTheReverseOfConcat) {
  const Tensor x = random_tensor({2, 6}, 1);
  const std::vector<Tensor> parts = split(x, -1, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].storage().get(), x.storage().get());
  EXPECT_EQ(to_vector(parts[1]), to_vector(narrow(x, 1, 2, 2)));
  EXPECT_EQ(to_vector(concat({parts[0], parts[1], parts[2]}, 1)), to_vector(x));
  EXPECT_EQ(usage_error([&] { split(x, 1, 4); }),
            "[split] dimension 1 of shape (2, 6) does not have 4 equal parts");
  check_gradients(
      [](std::vector<Tensor> in) {
        const std::vector<Tensor> part = split(in[0], 1, 3);
        return mul(part[2], transpose(part[0], 0, 1));
      },
      {{2, 6}});
}

TEST_F(ViewTest, GradientsOfOverlappingNarrows) {
  check_gradients(
      [](std::vector<Tensor> x) { return mul(narrow(x[0], 0, 0, 3), narrow(x[0], 0, 1, 3)); },
      {{4}});
}

}  // namespace
}  // namespace tidemark::testing
