// A policy's step as a schedule: releases made early, blocks given places.
#include "runtime/planner/recorded_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/schedule/schedule_validator.h"
#include "tests/runtime/schedule/schedule_builder.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Do = Schedule::Do;

// Instructions from left to right: R run, A run again, . free, - evict, > copy out, ~ offload,
// < copy in; and below what they are of: operators by number, storages by letter.
std::string picture(const Schedule& schedule) {
  std::string kinds, of;
  for (const Schedule::Instruction& instruction : schedule.code) {
    kinds += instruction.again ? 'A' : "R^?.->~<!m"[static_cast<size_t>(instruction.what)];
    const bool names_op = is_program_op(instruction) || instruction.what == Do::kRun;
    of += static_cast<char>((names_op ? '0' : 'a') + instruction.subject);
  }
  return kinds + "\n" + of;
}

// a is made, four calls pass, it is read; b takes space in between.
struct Sleeper {
  Sleeper() {
    a = record.call({});
    b = record.call({});
    record.run({b});
    record.idle(1);
    record.run({a});
    trace = record.trace();
  }
  TraceBuilder record;
  uint32_t a, b;
  StepTrace trace;
};

// Evicted when b wants the space; better at once.
TEST(RecordedSchedule, EvictsRightAfterTheLastUse) {
  const Sleeper step;
  const Schedule recorded = ScheduleBuilder(step.trace, /*placed=*/false)
                                .run(0)
                                .run(1)
                                .evict(step.a)
                                .run(2)
                                .free(step.b)
                                .run(3)
                                .again(0, {step.a})
                                .run(4)
                                .free(step.a)
                                .build();
  ASSERT_EQ(picture(recorded), "RR-R.RAR.\n01a2b304a");
  const Schedule hoisted = hoist_releases(step.trace, recorded);
  EXPECT_EQ(picture(hoisted), "R-RR.RAR.\n0a12b304a");
  EXPECT_LT(max_resident(hoisted), max_resident(recorded));
  const auto placed = place_recorded(step.trace, hoisted, {.space = units(1)}, 10'000);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->peak, units(1));
  EXPECT_EQ(schedule_violations(step.trace, {.space = units(1)}, *placed),
            std::vector<std::string>());
  EXPECT_FALSE(place_recorded(step.trace, recorded, {.space = units(1)}, 10'000));
}

// Before a write in place what would read it has to be there: it is evicted after the write.
TEST(RecordedSchedule, DoesNotEvictBeforeAWriteOfItsSource) {
  TraceBuilder record;
  const uint32_t w = record.outside(1, /*persistent=*/true);
  const uint32_t v = record.call({w}), a = record.call({v});
  record.run({v});
  record.update(w);
  record.idle(2);
  record.run({a, v});
  const StepTrace trace = record.trace();
  const Schedule recorded = ScheduleBuilder(trace, /*placed=*/false)
                                .initial(w)
                                .run(0)
                                .run(1)
                                .run(2)
                                .run(3)
                                .run(4)
                                .evict(a)
                                .run(5)
                                .again(1, {a})
                                .run(6)
                                .free(v)
                                .free(a)
                                .build();
  EXPECT_EQ(picture(hoist_releases(trace, recorded)), "RRRR-RRAR..\n0123c4516bc");
}

// The step begins as it ends: what is copied out before its first use goes after its last use
// in the step before.
TEST(RecordedSchedule, BeginsAsItEnds) {
  TraceBuilder record;
  const uint32_t s = record.outside(1, /*persistent=*/true);
  record.idle(2);
  record.run({s});
  record.idle(1);
  const StepTrace trace = record.trace();
  const Schedule recorded = ScheduleBuilder(trace, /*placed=*/false)
                                .initial(s)
                                .run(0)
                                .offload(s)
                                .run(1)
                                .copy_in(s)
                                .run(2)
                                .run(3)
                                .build();
  const Schedule hoisted = hoist_releases(trace, recorded);
  EXPECT_EQ(picture(hoisted), "RR<R~R\n01a2a3");
  EXPECT_EQ(hoisted.initial_blocks, 0U);
}

}  // namespace
}  // namespace tidemark::planner::testing
