#include <gtest/gtest.h>

#include "runtime/device/stream.h"

namespace tidemark {
namespace {

TEST(Fence, NamesNothingAtFirst) {
  for (StreamId stream : kAllStreams) EXPECT_EQ(Fence()[stream], 0u);
}

TEST(Fence, KeepsTheLaterOfEachStream) {
  Fence a = Event{StreamId::kCompute, 5};
  a.include(Event{StreamId::kCompute, 3});
  a.include(Event{StreamId::kReload, 2});
  Fence b = Event{StreamId::kReload, 7};
  b.include(a);
  EXPECT_EQ(b[StreamId::kCompute], 5u);
  EXPECT_EQ(b[StreamId::kOffload], 0u);
  EXPECT_EQ(b[StreamId::kReload], 7u);
  b.include(Fence());
  EXPECT_EQ(b[StreamId::kReload], 7u);
  EXPECT_FALSE(a == b);
  a.include(b);
  EXPECT_TRUE(a == b);
}

}  // namespace
}  // namespace tidemark
