#include <cmath>

#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using NormTest = SessionTest;

double plain(const std::vector<float>& x) {
  double sum = 0;
  for (float value : x) sum += double{value} * value;
  return std::sqrt(sum);
}

TEST_F(NormTest, AgreesWithPlainLoops) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7, 3}, Shape{16384}, Shape{16385},
                             Shape{300, 1000}, Shape{0}}) {
    SCOPED_TRACE(shape.to_string());
    const std::vector<float> x = random_values(shape.elements(), 1, -3, 3);
    EXPECT_NEAR(to_vector(norm(from(x, shape)))[0], plain(x), 1e-7 * plain(x));
  }
}

TEST_F(NormTest, OfViews) {
  const Tensor x = random_tensor({40, 50}, 1);
  const Tensor part = narrow(transpose(x, 0, 1), 0, 3, 20);
  EXPECT_NEAR(to_vector(norm(part))[0], plain(to_vector(part)), 1e-6);
  EXPECT_FLOAT_EQ(to_vector(norm(expand(from<float>({2}, {1}), {9})))[0], 6);
}

TEST_F(NormTest, OfManyTensorsIsThatOfAllTheirElements) {
  for (const int count : {1, 2, 32, 33, 200, 1100}) {
    SCOPED_TRACE(count);
    std::vector<Tensor> tensors;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      const std::vector<float> values = random_values(5 + i, static_cast<uint32_t>(i));
      squares += std::pow(plain(values), 2);
      tensors.push_back(from(values, {5 + i}));
    }
    EXPECT_NEAR(to_vector(norm(tensors))[0], std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
  EXPECT_EQ(usage_error([] { norm(std::span<const Tensor>()); }),
            "[norm] there are no tensors");
}

TEST_F(NormTest, SquaresMayBeOutOfRange) {
  EXPECT_FLOAT_EQ(to_vector(norm(from<float>({3e30F, 4e30F}, {2})))[0], 5e30F);
  EXPECT_FLOAT_EQ(to_vector(norm(from<float>({3e-30F, 4e-30F}, {2})))[0], 5e-30F);
  EXPECT_TRUE(std::isnan(to_vector(norm(from<float>({1, NAN}, {2})))[0]));
}

TEST_F(NormTest, ThreadsDoNotMatter) {
  const std::vector<float> values = to_vector(norm(random_tensor({500000}, 1)));
  SessionOptions single = options();
  single.threads = 1;
  Session other(single);
  EXPECT_TRUE(same_bits(to_vector(norm(random_tensor({500000}, 1))), values));
}

TEST_F(NormTest, Errors) {
  EXPECT_EQ(usage_error([] { norm(from<int64_t>({1}, {1})); }),
            "[norm] input 0 of shape (1) is int64, not float32");
}

}  // namespace
}  // namespace tidemark::testing
