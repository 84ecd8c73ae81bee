#include "runtime/schedule/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "tests/support/trace_builder.h"

namespace tidemark::testing {
namespace {

StepTrace step() {
  TraceBuilder builder;
  const uint32_t w = builder.outside(1, true);
  const uint32_t x = builder.call({w}, 100, 2);
  builder.run({w, x}, 50, 1);
  builder.writes(w);
  return builder.trace();
}

TEST(Fingerprint, OfEqualDataIsEqualAndDependsOnEachNumber) {
  struct Given {
    StepTrace trace = step();
    PlanLimits limits = copy_within(4, 10);
    std::vector<Bytes> foreign{units(1)};
    int64_t work = 7;
  };
  const std::vector<std::function<void(Given&)>> changes{
      [](Given& g) { g.trace.ops[0].cost += Nanos(1); },
      [](Given& g) { g.trace.ops[1].workspace += Bytes(1); },
      [](Given& g) { g.trace.ops[1].variants = {{.name = "other"}}; },
      [](Given& g) { g.trace.ops[1].variants = {{.name = "other", .signature = 1}}; },
      [](Given& g) { g.trace.ops[1].variants = {{.name = "other", .cost = Nanos(1)}}; },
      [](Given& g) { g.trace.storages[0].size += Bytes(1); },
      [](Given& g) { g.limits.space += Bytes(1); },
      [](Given& g) { g.limits.tier_space += Bytes(1); },
      [](Given& g) { g.limits.out_bandwidth *= 2; },
      [](Given& g) { g.limits.in_bandwidth *= 2; },
      [](Given& g) { g.limits.out_beside_bandwidth = 1; },
      [](Given& g) { g.limits.in_beside_bandwidth = 1; },
      [](Given& g) { g.limits.latency += Nanos(1); },
      [](Given& g) { g.limits.move_bandwidth = 1; },
      [](Given& g) { g.limits.least_move += Nanos(1); },
      [](Given& g) { g.foreign.push_back(Bytes(0)); },
      [](Given& g) { g.foreign[0] += Bytes(1); },
      [](Given& g) { ++g.work; },
  };
  const auto of = [](const Given& g) {
    return fingerprint(g.trace, g.limits, g.foreign, g.work);
  };
  std::set<uint64_t> seen{of(Given())};
  EXPECT_TRUE(seen.contains(of(Given())));
  for (const auto& change : changes) {
    Given given;
    change(given);
    EXPECT_TRUE(seen.insert(of(given)).second);
  }
  Given named;
  named.trace.ops[0].call = "layer1: call";
  named.trace.storages[0].name = "weight";
  EXPECT_EQ(of(named), of(Given()));
}

TEST(Fingerprint, OfSchedulesDependsOnEachNumber) {
  Schedule schedule;
  schedule.code = {{.what = Schedule::Do::kRun, .subject = 0, .first_block = 1, .blocks = 1},
                   {.what = Schedule::Do::kFree, .subject = 1, .first_block = 2}};
  schedule.blocks = {{.storage = 0, .size = units(1), .end = 2},
                     {.storage = 1, .size = units(2), .begin = 0, .end = 2, .at = Offset(512)}};
  schedule.initial_blocks = 1;
  schedule.placed = true;
  schedule.peak = units(3);
  const std::vector<std::function<void(Schedule&)>> changes{
      [](Schedule& s) { s.code[0].what = Schedule::Do::kUpload; },
      [](Schedule& s) { s.code[0].again = true; },
      [](Schedule& s) { s.code[1].subject = 0; },
      [](Schedule& s) { s.code[1].first_block = 1; },
      [](Schedule& s) { s.code[0].blocks = 2; },
      [](Schedule& s) { s.code[0].variant = 1; },
      [](Schedule& s) { s.blocks[1].storage = 2; },
      [](Schedule& s) { s.blocks[1].size += Bytes(1); },
      [](Schedule& s) { s.blocks[1].begin = 1; },
      [](Schedule& s) { s.blocks[1].end = 1; },
      [](Schedule& s) { s.blocks[1].at = Offset(1024); },
      [](Schedule& s) { s.initial_blocks = 2; },
      [](Schedule& s) { s.foreign.push_back(units(1)); },
      [](Schedule& s) { s.placed = false; },
      [](Schedule& s) { s.residents_apart = true; },
      [](Schedule& s) { s.peak += Bytes(1); },
      [](Schedule& s) { s.peak_bound += Bytes(1); },
      [](Schedule& s) { s.moved += Bytes(1); },
      [](Schedule& s) { s.shortfall += Bytes(1); },
      [](Schedule& s) { s.time += Nanos(1); },
      [](Schedule& s) { s.recomputed += Nanos(1); },
  };
  std::set<uint64_t> seen{fingerprint(schedule)};
  for (const auto& change : changes) {
    Schedule other = schedule;
    change(other);
    EXPECT_TRUE(seen.insert(fingerprint(other)).second);
  }
  Schedule made_by = schedule;
  made_by.method = "by hand";
  made_by.ample_time = made_by.time_bound = made_by.any_order_bound = Nanos(1);
  EXPECT_EQ(fingerprint(made_by), fingerprint(schedule));
}

TEST(Fingerprint, IsPrintedWithAllItsDigits) {
  EXPECT_EQ(fingerprint_text(0xc0ffee), "0000000000c0ffee");
}

}  // namespace
}  // namespace tidemark::testing
