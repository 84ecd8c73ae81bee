// Tests that a policy's step becomes a schedule: releases are hoisted, and blocks get places.
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
// < copy in. Below each is its subject: operators by number, storages by letter.
std::string picture(const Schedule& schedule) {
  std::string kinds, of;
  for (const Schedule::Instruction& instruction : schedule.code) {
    kinds += instruction.again ? 'A' : "R^?.->~<!m"[static_cast<size_t>(instruction.what)];
    const bool names_op = is_program_op(instruction) || instruction.what == Do::kRun;
    of += static_cast<char>((names_op ? '0' : 'a') + instruction.subject);
  }
  return kinds + "\n" + of;
}

// a is made, four calls pass, and a is read; b takes space in between.
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

// The policy evicts when b needs the space; the schedule evicts at once.
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

// Before a write in place, evicted readers of the old contents come back. The eviction
// therefore comes after the write.
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

// A step begins as it ends: a storage that is copied out before its first use is instead copied
// out after its last use in the previous step.
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
