// Times counted by hand. A unit is 1 MiB; the link takes 10 ns per unit, each way.
#include "runtime/schedule/simulate.h"

#include <gtest/gtest.h>

#include "runtime/schedule/free_bytes.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/runtime/schedule/schedule_builder.h"
#include "tests/support/trace_builder.h"

namespace tidemark::testing {
namespace {

int64_t at(int64_t unit) { return units(unit).count(); }

// Prices a schedule that is valid, or that only exceeds the space.
ScheduleCost price(const StepTrace& trace, const PlanLimits& limits, const Schedule& schedule) {
  PlanLimits ample = limits;
  ample.space = units(1000);
  const auto violations = schedule_violations(trace, ample, schedule);
  EXPECT_TRUE(violations.empty()) << violations[0];
  return simulate(trace, limits, schedule);
}

// s0 = f(), s1 = g(), h(s0, s1): 100 ns each; outputs of 4 units.
StepTrace three() {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 4), s1 = b.call({}, 100, 4);
  b.run({s0, s1}, 100);
  return b.trace();
}

TEST(Simulate, ComputeRunsInTheCodesOrder) {
  const StepTrace t = three();
  ScheduleBuilder b(t);
  b.run(1, {0}).run(0, {at(4)}).evict(0).again(0, {0}, {at(4)}).run(2).free(0).free(1);
  const ScheduleCost cost = price(t, evict_within(8), b.build());
  EXPECT_EQ(cost,
            (ScheduleCost{.time = Nanos(400), .recomputed = Nanos(100), .peak = units(8)}));
}

//   compute  | f 100 | g 100 | wait 40+40 -> | h
//   out              | s0 40 |
//   in                               s0 40
// g does not lie where s0 was, so the copy out is hidden; the copy in begins at once.
TEST(Simulate, CopiesGoOnBesideCompute) {
  const StepTrace t = three();
  ScheduleBuilder b(t);
  b.run(0, {0}).offload(0).run(1, {at(4)}).copy_in(0, at(8)).run(2).free(0).free(1);
  const ScheduleCost cost = price(t, copy_within(12, 10), b.build());
  // Out from 100 to 140, in from 140 to 180, both behind g, which ends at 200.
  EXPECT_EQ(cost.time, Nanos(300));
  EXPECT_EQ(cost.waited, Nanos(0));
  EXPECT_EQ(cost.copied, Nanos(80));
  EXPECT_EQ(cost.tier_peak, units(4));
  EXPECT_EQ(cost.peak, units(12));
}

// g lies where s0 was: it waits until s0 is out, at 140. s0 comes in elsewhere by 180.
TEST(Simulate, WhoTakesBytesWaitsForCopiesOfThem) {
  const StepTrace t = three();
  ScheduleBuilder b(t);
  b.run(0, {0}).offload(0).run(1, {at(2)}).copy_in(0, at(6)).run(2).free(0).free(1);
  ScheduleCost cost = price(t, copy_within(12, 10), b.build());
  EXPECT_EQ(cost.time, Nanos(100 + 40 + 100 + 100));
  EXPECT_EQ(cost.waited, Nanos(40));
  // Without places, with space for one beside: the bytes of s0 count until it is out.
  Schedule unplaced = b.build();
  unplaced.placed = false;
  unplaced.peak = units(8);
  cost = price(t, copy_within(12, 10), unplaced);
  EXPECT_EQ(cost.waited, Nanos(0)) << "4 units are left";
  // Space for 7: g waits until s0 is out, at 140; s0, which then has no space beside g, is
  // short.
  cost = price(t, copy_within(7, 10), unplaced);
  EXPECT_EQ(cost.waited, Nanos(40));
  EXPECT_EQ(cost.peak, units(8));
}

// A copy in waits until compute is done with the bytes that it takes.
//
//   compute  | f 100 | g 100 | k(s1) 100 | wait 40 | h(s0)
//   out              | s0 40 |
//   in                                   | s0 40   |      where s1 was
TEST(Simulate, ACopyInWaitsForItsBytes) {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 4), s1 = b.call({}, 100, 4);
  b.run({s1}, 100);
  b.run({s0}, 100);
  const StepTrace t = b.trace();
  ScheduleBuilder code(t);
  code.run(0, {0})
      .offload(0)
      .run(1, {at(4)})
      .run(2)
      .free(s1)
      .copy_in(s0, at(4))
      .run(3)
      .free(s0);
  for (const bool placed : {true, false}) {
    Schedule s = code.build();
    s.placed = placed;
    if (!placed) s.peak = units(4);
    const ScheduleCost cost = price(t, copy_within(placed ? 8 : 4, 10), s);
    EXPECT_EQ(cost.copied, Nanos(80));
    if (placed) {
      EXPECT_EQ(cost.time, Nanos(440));
      EXPECT_EQ(cost.waited, Nanos(40));
    } else {  // g waits too: there is space for only one of them
      EXPECT_EQ(cost.time, Nanos(480));
      EXPECT_EQ(cost.waited, Nanos(80));
    }
  }
}

// s0 comes from an earlier step, on a tier; s1 = f(s0) is made and stays, on a tier too.
//   compute  | wait 40 -> | f 100 | wait 40 -> |
//   in       | s0 40      |
//   out                           | s1 40      |
TEST(Simulate, WhatIsCarriedComesInAndIsOutByTheEnd) {
  TraceBuilder b;
  const uint32_t s0 = b.outside(4), s1 = b.call({s0}, 100, 4);
  b.keep(s1);
  const StepTrace t = b.trace();
  ScheduleBuilder away(t), resident(t);
  away.copy_in(s0).run(0, {at(4)}).free(s0).offload(s1);
  ScheduleCost cost = price(t, copy_within(8, 10), away.build());
  EXPECT_EQ(cost.time, Nanos(40 + 100 + 40));
  EXPECT_EQ(cost.waited, Nanos(80));
  EXPECT_EQ(cost.copied, Nanos(80));
  EXPECT_EQ(cost.tier_peak, units(4));
  // Both are in the arena; nobody waits for the copy of the one that stays there.
  resident.initial(s0).run(0, {at(4)}).free(s0).copy_out(s1);
  cost = price(t, copy_within(8, 10), resident.build());
  EXPECT_EQ(cost.time, Nanos(100));
  EXPECT_EQ(cost.copied, Nanos(40));
}

// Two uploads share the link inwards.
TEST(Simulate, UploadsGoInOnTheLink) {
  TraceBuilder b;
  const uint32_t x = b.upload(4), y = b.upload(4);
  b.run({y}, 5);
  b.run({x}, 5);
  const StepTrace t = b.trace();
  ScheduleBuilder code(t);
  code.run(0, {0}).run(1, {at(4)}).run(2).free(y).run(3).free(x);
  const ScheduleCost cost = price(t, copy_within(8, 10), code.build());
  EXPECT_EQ(cost.time, Nanos(80 + 5 + 5)) << "y comes in behind x";
  EXPECT_EQ(cost.waited, Nanos(80));
  EXPECT_EQ(cost.copied, Nanos(0)) << "the program's, not the schedule's";
}

//   compute  | s0 = f() 100 |                         | h(s0, x)
//   out                     | s0 40 |
//   in                      | x 40, 2 units | 20, 2 units |
TEST(Simulate, CopiesSlowDownThoseTheOtherWay) {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 4), x = b.upload(4);
  b.run({s0, x}, 5);
  const StepTrace t = b.trace();
  ScheduleBuilder code(t);
  code.run(0, {0}).copy_out(s0).run(1, {at(4)}).run(2).free(s0).free(x);
  PlanLimits limits = copy_within(8, 10);
  EXPECT_EQ(price(t, limits, code.build()).time, Nanos(100 + 40 + 5));
  limits.in_beside_bandwidth = unit_in(20);
  EXPECT_EQ(price(t, limits, code.build()).time, Nanos(100 + 60 + 5));
  limits.out_beside_bandwidth = unit_in(20);
  EXPECT_EQ(price(t, limits, code.build()).time, Nanos(100 + 60 + 5))
      << "a copy that has begun goes on";
}

TEST(Simulate, AMoveTakesCompute) {
  const StepTrace t = three();
  ScheduleBuilder b(t);
  b.run(0, {0}).move(0, at(2)).run(1, {at(6)}).run(2).free(0).free(1);
  PlanLimits limits = evict_within(10);
  limits.move_bandwidth = unit_in(5);
  EXPECT_EQ(price(t, limits, b.build()).time, Nanos(320));
}

// s0, whose copy is out at 140, moves meanwhile. The next user of its old place waits for the
// copy. The move itself also waits, if it goes down onto a part of the block.
TEST(Simulate, WhatIsBeingCopiedOutMaySlipAway) {
  const StepTrace t = three();
  PlanLimits limits = copy_within(12, 10);
  limits.move_bandwidth = unit_in(5);
  ScheduleBuilder apart(t);
  apart.run(0, {0}).copy_out(0).move(0, at(4)).run(1, {0}).run(2).free(0).free(1);
  ScheduleCost cost = price(t, limits, apart.build());
  EXPECT_EQ(cost.time, Nanos(140 + 100 + 100));
  EXPECT_EQ(cost.waited, Nanos(20));
  ScheduleBuilder elsewhere(t);
  elsewhere.run(0, {0}).copy_out(0).move(0, at(4)).run(1, {at(8)}).run(2).free(0).free(1);
  EXPECT_EQ(price(t, limits, elsewhere.build()).time, Nanos(100 + 20 + 100 + 100));
  ScheduleBuilder down(t);
  down.run(0, {at(2)}).copy_out(0).move(0, 0).run(1, {at(6)}).run(2).free(0).free(1);
  EXPECT_EQ(price(t, limits, down.build()).time, Nanos(140 + 20 + 100 + 100));
}

// In place, an operator waits for a copy that reads what it overwrites.
TEST(Simulate, WhatRunsInPlaceTakesNoSpace) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100, 2);
  const uint32_t b = record.call({a}, 100, 2);
  record.last().may_overwrite = {a};
  record.run({b});
  const StepTrace t = record.trace();
  const PlanLimits limits = copy_within(2, 100);
  const Schedule s = ScheduleBuilder(t, false).run(0).run_over(1, a).run(2).free(b).build();
  const ScheduleCost cost = simulate(t, limits, s);
  EXPECT_EQ(cost.peak, units(2));
  EXPECT_EQ(cost.time, Nanos(300));
  const Schedule copied =
      ScheduleBuilder(t, false).run(0).copy_out(a).run_over(1, a).run(2).free(b).build();
  EXPECT_EQ(simulate(t, limits, copied).waited, Nanos(200));
}

// Storages that are away at the end have their copies out by then. No operator passes a read.
TEST(Simulate, EndsOnceWhatIsAwayIsOut) {
  TraceBuilder b;
  const uint32_t w = b.outside(4, true);
  b.run({w}, 100);
  StepTrace t = b.trace();
  ScheduleBuilder code(t);
  code.initial(w).run(0).offload(w);
  EXPECT_EQ(price(t, copy_within(4, 50), code.build()).time, Nanos(200))
      << "out from 0 to 200: w was written before the step";
  b.run({w}, 100);
  t = b.trace();
  ScheduleBuilder away(t);
  away.copy_in(w, 0).run(0).run(1).offload(w);
  const ScheduleCost cost = price(t, copy_within(4, 50), away.build());
  EXPECT_EQ(cost.time, Nanos(400)) << "in by 200; the copy is still valid";
  EXPECT_EQ(cost.copied, Nanos(200));
  EXPECT_EQ(cost.tier_peak, units(4));

  t.ops.insert(t.ops.begin() + 1, {.kind = StepTrace::Kind::kRead, .name = "read"});
  t.ops[1].inputs = {{w}};
  ScheduleBuilder read(t);
  read.initial(w).run(0).run(1).offload(w).copy_in(w, at(4)).run(2);
  EXPECT_EQ(price(t, copy_within(8, 50), read.build()).time, Nanos(100 + 200 + 200 + 100))
      << "out only after the read";
}

// A variant's inputs and cost count, not the call's.
TEST(Simulate, VariantsTakeTheirOwnTime) {
  TraceBuilder b;
  const uint32_t x = b.call({}, 100), y = b.call({x}, 100);
  b.call({y}, 100);
  StepTrace t = b.trace();
  t.ops[2].variants = {{.name = "from_x", .inputs = {{x}}, .cost = Nanos(170)}};
  ScheduleBuilder by(t, false), own(t, false);
  by.run(0).run(1).evict(y).run_variant(2, 1);
  own.run(0).run(1).run(2);
  EXPECT_EQ(simulate(t, evict_within(9), own.build()).time, Nanos(300));
  EXPECT_EQ(simulate(t, evict_within(9), by.build()).time, Nanos(370));
}

// Compares with an array that has a time for each byte.
TEST(Simulate, KnowsOfEachByteWhenItIsFree) {
  std::mt19937 random(6);
  for (int i = 0; i < 50; ++i) {
    simulator::FreePlaces places;
    std::vector<Nanos> bytes(40);
    for (int time = 1; time < 60; ++time) {
      const auto begin = static_cast<int64_t>(random() % 40);
      const auto size = static_cast<int64_t>(random() % static_cast<uint64_t>(41 - begin));
      const auto from = bytes.begin() + begin, to = from + size;
      ASSERT_EQ(places.free_from(Offset(begin), Bytes(size)),
                size == 0 ? Nanos(0) : *std::max_element(from, to));
      if (random() % 2 == 0) continue;
      places.leave(Offset(begin), Bytes(size), Nanos(time));
      std::fill(from, to, Nanos(time));
    }
  }
}

TEST(Simulate, CountsWhatIsLeftOfAFreedChunkAtItsTime) {
  simulator::FreeCount count(Bytes(10));
  EXPECT_EQ(count.take(Bytes(10)), Nanos(0));
  count.leave(Bytes(8), Nanos(5));
  count.leave(Bytes(2), Nanos(7));
  EXPECT_EQ(count.take(Bytes(3)), Nanos(5));
  EXPECT_EQ(count.take(Bytes(5)), Nanos(5)) << "the rest of the eight";
  EXPECT_EQ(count.take(Bytes(1)), Nanos(7));
  count.leave(Bytes(4), Nanos(9));
  EXPECT_EQ(count.take(Bytes(2)), Nanos(9)) << "one of the two, and one of the four";
  EXPECT_EQ(count.take(Bytes(9)), Nanos(9)) << "all that is free";
}

TEST(Simulate, NeverBeatsComputeAlone) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const StepTrace t = random_trace(random);
    const Schedule s = RandomSchedule(t, random).run();
    const PlanLimits limits{.space = s.peak,
                            .tier_space = units(1000),
                            .out_bandwidth = unit_in(20),
                            .in_bandwidth = unit_in(30)};
    const ScheduleCost cost = price(t, limits, s);
    EXPECT_EQ(cost.peak, s.peak);
    EXPECT_EQ(cost.time, StepTable(t).duration + cost.recomputed + cost.waited);
    PlanLimits wide = limits;
    wide.space = units(100000);
    EXPECT_LE(simulate(t, wide, s).time, cost.time) << "more room, no more waiting";
    wide.out_bandwidth = wide.in_bandwidth = 1e30;
    EXPECT_EQ(simulate(t, wide, s).waited, Nanos(0));
  }
}

}  // namespace
}  // namespace tidemark::testing
