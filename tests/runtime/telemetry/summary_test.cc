#include "runtime/telemetry/summary.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark {
namespace {

EventRecord event(EventKind kind, const char* name, int64_t bytes, Nanos expected,
                  Nanos measured = Nanos(0)) {
  EventRecord e;
  e.kind = kind;
  e.name = name;
  e.op = name;
  e.bytes = Bytes(bytes);
  e.expected = expected;
  if (measured > Nanos(0)) {
    e.start = Nanos(1000);
    e.end = e.start + measured;
  }
  return e;
}

std::vector<EventRecord> some_events() {
  return {event(EventKind::kRecompute, "relu", 10, Nanos(5), Nanos(7)),
          event(EventKind::kOperator, "conv2d", 0, Nanos(90)),
          event(EventKind::kRecompute, "conv2d", 40, Nanos(30)),
          event(EventKind::kEvict, "relu", 10, Nanos(0)),
          event(EventKind::kRecompute, "relu", 10, Nanos(5)),
          event(EventKind::kRecompute, "add", 20, Nanos(12)),
          event(EventKind::kOffload, "relu", 1 << 20, Nanos(2'000'000), Nanos(1'500'000))};
}

TEST(SummaryTest, AddsUpByKindPreferringWhatWasMeasured) {
  const auto totals = totals_by_kind(some_events());
  ASSERT_EQ(totals.size(), 4U);
  EXPECT_EQ(totals[0].kind, EventKind::kOperator);
  EXPECT_EQ(totals[0].time, Nanos(90));
  EXPECT_EQ(totals[1].kind, EventKind::kRecompute);
  EXPECT_EQ(totals[1].count, 4);
  EXPECT_EQ(totals[1].bytes, Bytes(80));
  EXPECT_EQ(totals[1].time, Nanos(7 + 30 + 5 + 12));
  EXPECT_EQ(totals[2].kind, EventKind::kEvict);
  EXPECT_EQ(totals[3].kind, EventKind::kOffload);
  EXPECT_EQ(totals[3].time, Nanos(1'500'000));
  EXPECT_TRUE(totals_by_kind({}).empty());
}

TEST(SummaryTest, RanksOperatorsByTheTimeOfTheirRecomputation) {
  const auto events = some_events();
  const auto top = top_recomputed(events, 2);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[0].name, "conv2d");
  EXPECT_EQ(top[0].time, Nanos(30));
  EXPECT_EQ(top[1].name, "add");  // ties with relu, and comes before it by name
  EXPECT_EQ(top[1].time, Nanos(12));
  const auto all = top_recomputed(events, 10);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].name, "relu");
  EXPECT_EQ(all[2].count, 2);
  EXPECT_EQ(all[2].bytes, Bytes(20));
  EXPECT_TRUE(top_recomputed(events, 0).empty());
}

TEST(SummaryTest, FormatsARowPerKind) {
  EXPECT_EQ(format_totals(std::vector<KindTotal>{
                {EventKind::kOffload, 3, Bytes(3 << 20), Nanos(1'540'000)},
                {EventKind::kDropClean, 12, Bytes(512), Nanos(0)}}),
            "offload              3        3.0 MiB         1.5 ms\n"
            "drop clean          12          512 B         0.0 ms\n");
}

}  // namespace
}  // namespace tidemark
