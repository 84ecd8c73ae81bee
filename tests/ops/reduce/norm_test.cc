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
  for (const int count : {1, 2, 32}) {
    SCOPED_TRACE(count);
    std::vector<Tensor> tensors;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t size = i % 5 == 1 ? 9000 * i : 5 * (i % 7);
      const std::vector<float> values = random_values(size, static_cast<uint32_t>(i));
      squares += std::pow(plain(values), 2);
      tensors.push_back(from(values, {size}));
    }
    EXPECT_NEAR(to_vector(norm(tensors))[0], std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
}

// The same bits as of the same values in float32.
TEST_F(NormTest, OfBFloat16) {
  std::vector<BFloat16> narrow;
  for (const float value : random_values(90000, 1)) narrow.push_back(value);
  const std::vector<float> wide(narrow.begin(), narrow.end());
  const Tensor x = from(narrow, {300, 300}), y = from(wide, {300, 300});
  EXPECT_TRUE(same_bits(to_vector(norm(x)), to_vector(norm(y))));
  EXPECT_TRUE(
      same_bits(to_vector(norm(transpose(x, 0, 1))), to_vector(norm(transpose(y, 0, 1)))));
  EXPECT_TRUE(same_bits(to_vector(norm(std::vector<Tensor>{x, x})),
                        to_vector(norm(std::vector<Tensor>{y, y}))));
  EXPECT_NE(usage_error([&] { norm(std::vector<Tensor>{x, y}); }), "");
}

TEST_F(NormTest, NormsAreJoined) {
  for (const int count : {1, 2, 32, 33, 200, 1100}) {
    SCOPED_TRACE(count);
    std::vector<Tensor> norms;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      norms.push_back(from<float>({static_cast<float>(i)}, {}));
      squares += i * i;
    }
    EXPECT_NEAR(to_vector(join_norms(norms))[0], std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
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
            "[norm] input 0 of shape (1) is int64, not float32 or bfloat16");
  EXPECT_EQ(usage_error([] { norm(std::vector<Tensor>(33, from<float>({1}, {1}))); }),
            "[norm] 33 tensors, not 1 to 32");
  const Tensor x = random_tensor({2, 3}, 1);
  EXPECT_EQ(usage_error([&] {
              norm(std::vector<Tensor>{x, transpose(x, 0, 1)});
            }),
            "[norm] tensors must be contiguous if there are several");
  EXPECT_EQ(usage_error([] { join_norms({}); }), "[join_norms] there are no norms");
}

}  // namespace
}  // namespace tidemark::testing
