#include "ops/pool/window_ranges.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

void expect_same(const WindowAxis& axis, const Windows& windows) {
  ASSERT_EQ(axis.outputs, static_cast<int64_t>(windows.size()));
  for (int64_t i = 0; i < axis.outputs; ++i) {
    const Range range = axis.seen_from(i), expected = windows[static_cast<size_t>(i)];
    EXPECT_EQ(range.begin, expected.begin) << "output " << i;
    EXPECT_EQ(range.end, expected.end) << "output " << i;
  }
  const Windows seen = seen_by(windows, axis.inputs);
  for (int64_t i = 0; i < axis.inputs; ++i) {
    const Range range = axis.that_see(i), expected = seen[static_cast<size_t>(i)];
    EXPECT_EQ(range.size(), expected.size()) << "input " << i;
    if (expected.size() > 0) {
      EXPECT_EQ(range.begin, expected.begin) << "input " << i;
    }
  }
}

TEST(WindowRangesTest, SlidingOnesAreThoseOfTheTables) {
  for (int64_t inputs = 1; inputs < 14; ++inputs) {
    for (int64_t window = 1; window < 6; ++window) {
      for (int64_t stride = 1; stride < 6; ++stride) {
        for (int64_t padding = 0; 2 * padding <= window; ++padding) {
          if (inputs + 2 * padding < window) continue;
          SCOPED_TRACE(::testing::Message()
                       << inputs << " inputs, window " << window << ", stride " << stride
                       << ", padding " << padding);
          const int64_t outputs = (inputs + 2 * padding - window) / stride + 1;
          expect_same({inputs, outputs, window, stride, padding},
                      sliding_windows(inputs, outputs, window, stride, padding));
        }
      }
    }
  }
}

// Positions do not fit 31 bits.
TEST(WindowRangesTest, TheLongestAxes) {
  const int64_t most = kMaxCells;
  const auto expect_range = [](const Range& range, int64_t begin, int64_t end) {
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.end, end);
  };
  const WindowAxis small{most, most / 2, 2, 2, 0};
  expect_range(small.that_see(most - 1), most / 2 - 1, most / 2);
  const WindowAxis wide{most, most + 1, most, 1, most / 2};
  expect_range(wide.that_see(most - 1), most / 2, most + 1);
  const WindowAxis apart{most, 2, most, most, most / 2};
  expect_range(apart.that_see(most / 2 - 1), 0, 1);
  expect_range(apart.that_see(most / 2), 1, 2);
}

TEST(WindowRangesTest, AdaptiveOnesAreThoseOfTheTables) {
  for (int64_t inputs = 1; inputs < 16; ++inputs) {
    for (int64_t outputs = 1; outputs < 16; ++outputs) {
      SCOPED_TRACE(::testing::Message() << inputs << " inputs, " << outputs << " outputs");
      expect_same({inputs, outputs}, adaptive_windows(inputs, outputs));
    }
  }
}

}  // namespace
}  // namespace tidemark
