// Convolutions by other algorithms than the default (runtime/session/algorithms.h).
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ops/conv/conv.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  Shape x, w;
  Conv2dAttrs attrs;
};
const std::vector<Case> kCases{
    {{2, 9, 8, 16}, {32, 3, 3, 16}, {.padding = {1, 1}}},
    {{2, 7, 7, 64}, {48, 1, 1, 64}, {.stride = {2, 2}}},
    {{2, 8, 8, 24}, {24, 3, 3, 1}, {.padding = {1, 1}, .groups = 24}},
};

struct Results {
  std::vector<float> y, gx, gw, gbias;
  bool operator==(const Results&) const = default;
};

// Forward and gradients in a session of its own.
Results convolve(const Case& c, const AlgorithmTable& table,
                 AlgorithmOffers* offers = nullptr) {
  SessionOptions options{.device = device_under_test(), .threads = 1, .tf32 = false};
  options.budget = Bytes(8 << 20);
  options.algorithms = std::make_shared<const AlgorithmTable>(table);
  Session session(options);
  session.collect_offers(offers);
  const Tensor x = random_leaf(c.x, 1), w = random_leaf(c.w, 2),
               bias = random_leaf({c.w[0]}, 3);
  const Tensor y = conv2d(x, w, bias, c.attrs);
  const Results results{to_vector(y), {}, {}, {}};
  backward(sum(y));
  return {results.y, to_vector(grad_of(x)), to_vector(grad_of(w)), to_vector(grad_of(bias))};
}

void expect_near(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], 1e-4 * std::max(1.0F, std::abs(expected[i]))) << i;
  }
}

TEST(ConvAlgorithms, DifferFromTheDefaultByRounding) {
  int others = 0, other_bits = 0;
  for (const Case& c : kCases) {
    AlgorithmOffers offers;
    const Results expected = convolve(c, {}, &offers);
    if (offers.empty()) GTEST_SKIP() << "only one algorithm on this device";
    EXPECT_EQ(offers.size(), 3u);  // forward and two gradients
    for (const auto& [signature, offer] : offers) {
      EXPECT_EQ(offer.algorithms.front().name, "");
      for (const Algorithm& each : offer.algorithms) {
        if (each.name.empty()) continue;
        SCOPED_TRACE(offer.call + " by " + each.name);
        const AlgorithmTable table{{signature, each.name}};
        const Results results = convolve(c, table);
        expect_near(results.y, expected.y);
        expect_near(results.gx, expected.gx);
        expect_near(results.gw, expected.gw);
        expect_near(results.gbias, expected.gbias);
        EXPECT_EQ(convolve(c, table), results) << "does not repeat to the bit";
        ++others;
        other_bits += results == expected ? 0 : 1;
      }
    }
  }
  // Each call has at least plain loops.
  EXPECT_GE(others, 9);
  EXPECT_GT(other_bits, 0) << "the table has no effect";
}

TEST(ConvAlgorithms, AnUnknownOneIsAnErrorThatNamesTheCall) {
  AlgorithmOffers offers;
  convolve(kCases[0], {}, &offers);
  if (offers.empty()) GTEST_SKIP() << "only one algorithm on this device";
  for (const auto& [signature, offer] : offers) {
    try {
      convolve(kCases[0], {{signature, "fourier"}});
      ADD_FAILURE() << "no error";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("[conv2d"), HasSubstr("'fourier'"),
                                      HasSubstr(offer.call), HasSubstr("ref:any")));
    }
  }
}

TEST(ConvAlgorithms, OfOtherCallsInATableDoNotMatter) {
  EXPECT_EQ(convolve(kCases[0], {{1234, "fourier"}}), convolve(kCases[0], {}));
}

}  // namespace
}  // namespace tidemark::testing
