// Hand-written steps, simulated: their time, to the nanosecond, and pictures of the schedules
// written for them.
#include "runtime/planner/releases/step_simulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/schedule/schedule_validator.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Do = Schedule::Do;
using Outcome = StepSimulator::Outcome;
using Releases = std::vector<PlannedRelease>;

PlannedRelease evict(uint32_t item, uint32_t from, uint32_t to) {
  return {item, from, to, Release::kEvict, 0};
}
PlannedRelease copy(uint32_t item, uint32_t from, uint32_t to, uint32_t back) {
  return {item, from, to, Release::kOffload, back};
}

// "time 500, again 100, short 1": the values that are not 0; space in units.
std::string text(const Outcome& outcome) {
  if (!outcome.possible) return "impossible";
  std::string text = "time " + std::to_string(outcome.time.count());
  const auto add = [&](const char* what, int64_t count) {
    if (count != 0) text += std::string(", ") + what + " " + std::to_string(count);
  };
  add("again", outcome.recomputed.count());
  add("waited", outcome.waited.count());
  add("copied", outcome.copied.count());
  EXPECT_EQ(outcome.shortfall.count() % kRecordUnit.count(), 0);
  add("short", outcome.shortfall.count() / kRecordUnit.count());
  return text;
}

// A simulator together with the step that it simulates.
struct Simulated {
  Simulated(const TraceBuilder& record, const PlanLimits& of)
      : step(record), limits(of), simulator(step.trace, step.table, limits) {}
  const TracedStep step;
  const PlanLimits limits;
  StepSimulator simulator;
};

// Sets the peak as a layout would.
Schedule with_peak(Schedule schedule) {
  schedule.peak = schedule.peak_bound = max_resident(schedule);
  schedule.shortfall = Bytes(0);
  return schedule;
}

std::string simulated(const TraceBuilder& record, const PlanLimits& limits,
                      const Releases& releases = {}) {
  return text(Simulated(record, limits).simulator.run(releases));
}

UnplacedSchedule written(const TraceBuilder& record, const PlanLimits& limits,
                         const Releases& releases = {}) {
  UnplacedSchedule schedule;
  Simulated of(record, limits);
  of.simulator.write(releases, {}, schedule);
  EXPECT_EQ(
      schedule_violations(of.step.trace, {.space = units(1000), .tier_space = units(1000)},
                          with_peak(schedule.schedule)),
      std::vector<std::string>());
  return schedule;
}

// Instructions from left to right, and the letters of their storages; then a row for each block
// that shows at which instructions it is taken. R run, A run again, ^ upload, . free, - evict,
// > copy out, ~ offload, < copy in; # scratch.
std::string picture(const Schedule& schedule) {
  const auto letter = [](uint32_t storage) {
    return storage == Schedule::kScratch ? '#' : static_cast<char>('a' + storage);
  };
  std::string kinds, storages, rows;
  for (const Schedule::Instruction& instruction : schedule.code) {
    kinds += instruction.again ? 'A' : "R^?.->~<!m"[static_cast<size_t>(instruction.what)];
    const bool names_op = is_program_op(instruction) || instruction.what == Do::kRun;
    storages += !names_op ? letter(instruction.subject)
                : instruction.blocks > 0
                    ? letter(schedule.blocks[instruction.first_block].storage)
                    : ' ';
  }
  for (const Schedule::Block& block : schedule.blocks) {
    rows += std::string(block.begin, ' ') +
            std::string(block.end - block.begin, letter(block.storage)) + "\n";
  }
  return kinds + "\n" + storages + "\n" + rows;
}

std::string drawn(const TraceBuilder& record, const PlanLimits& limits,
                  const Releases& releases = {}) {
  return "\n" + picture(written(record, limits, releases).schedule);
}

// a b c are made in turn and used in the reverse order.
TraceBuilder tower_of_rising_costs() {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({}, 200), c = record.call({}, 300);
  for (const uint32_t item : {c, b, a}) record.run({item}, 1000);
  return record;
}

//   a -> b     then a call that needs two units of workspace
TraceBuilder crowded_chain() {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.call({a}, 200);
  record.run({}, 1000, /*workspace=*/2);
  return record;
}
constexpr uint32_t kA = 0, kB = 1;  // of a crowded_chain()

//   w -> a     w is written before a is wanted again: until then a can be made from it
TEST(StepSimulator, WhatReadsAnOverwrittenItemComesBackBefore) {
  TraceBuilder record;
  const uint32_t w = record.outside(1, true), a = record.call({w}, 200);
  record.idle(2);
  record.update(w);
  record.idle(2);
  record.run({a});
  record.idle(2);
  record.run({a});
  EXPECT_EQ(simulated(record, evict_within(2), {evict(a, 0, 6)}), "time 1300, again 200");
  EXPECT_EQ(drawn(record, evict_within(2), {evict(a, 0, 6), evict(a, 6, 9)}), R"(
R-RRARRRRRRR.
bb  b       b
aaaaaaaaaaaaa
bb
    bbbbbbbbb
)");
}

// An item that does not depend on the written one comes back when it is used.
TEST(StepSimulator, WhatReadsSomethingElseStaysAway) {
  TraceBuilder record;
  const uint32_t w = record.outside(1, true), v = record.outside(1, true);
  const uint32_t a = record.call({v}, 200), b = record.call({w});
  record.run({b});
  record.update(w);
  record.idle(2);
  record.run({a});
  EXPECT_EQ(drawn(record, evict_within(4), {evict(a, 0, 6)}), R"(
R-RR.RRRAR.
ccd d   c c
aaaaaaaaaaa
bbbbbbbbbbb
cc
  ddd
        ccc
)");
}

TEST(StepSimulator, OfNothingReleasedIsTheStepItself) {
  EXPECT_EQ(simulated(tower_of_rising_costs(), evict_within(3)), "time 3600");
  EXPECT_EQ(drawn(tower_of_rising_costs(), evict_within(3)), R"(
RRRR.R.R.
abc c b a
aaaaaaaaa
 bbbbbb
  ccc
)");
  EXPECT_EQ(simulated(TraceBuilder(), evict_within(1)), "time 0");
}

// Pinned are outputs until their call is issued, blocks while they are copied, blocks of items
// that have left, and recomputed items that the program has let go of, as long as they live.
TEST(StepSimulator, TellsWhatMustNotMove) {
  const auto pinned = [](const TraceBuilder& record, const PlanLimits& limits,
                         const Releases& releases) {
    const UnplacedSchedule schedule = written(record, limits, releases);
    std::string text;
    EXPECT_EQ(schedule.issued.size(), schedule.schedule.code.size());
    for (const auto& [block, begin, end, until] : schedule.pinned) {
      text += static_cast<char>('a' + schedule.schedule.blocks[block].storage);
      text += std::to_string(begin) + "-" + std::to_string(end);
      // how long after its first instruction
      if (until) text += " for " + std::to_string((*until - schedule.issued[begin]).count());
      text += " ";
    }
    return text;
  };
  TraceBuilder again;
  const uint32_t a = again.call({}), b = again.call({a});
  again.idle(1);
  again.run({b});
  const Releases evict{{b, 1, 3, Release::kEvict, 0}};
  EXPECT_EQ(drawn(again, evict_within(3), evict).substr(0, 20), "\nRR-.RAA.R.\nabba aba");
  EXPECT_EQ(pinned(again, evict_within(3), evict), "a6-8 ");
  TraceBuilder copied;
  copied.call({});
  copied.idle(3);
  copied.run({0});
  const Releases copy{{0, 0, 4, Release::kOffload, 2}};
  EXPECT_EQ(drawn(copied, copy_within(3, 1), copy).substr(0, 10), "\nR>RRRR.\na");
  EXPECT_EQ(pinned(copied, copy_within(3, 100), copy), "a2-3 for 100 ");
  EXPECT_EQ(pinned(copied, copy_within(3, 1000), copy), "a2-7 for 1000 a7-7 ") << "to its end";
  // The copy of the item that left ends at 350; its space becomes free when it is needed.
  TraceBuilder left;
  left.call({}, 100);
  left.run({0}, 100);
  left.idle(4, 100);
  const Releases leaving{{0, 0, 1, Release::kOffload, 0}};
  EXPECT_EQ(pinned(left, copy_within(2, 250), leaving), "a2-6 for 250 a4-8 ");
}

// c lies where b was, so that two units suffice.
TEST(StepSimulator, RunsInPlace) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100, 1);
  const uint32_t b = record.call({a}, 100, 1);
  const uint32_t c = record.call({a, b}, 100, 1);
  record.last().may_overwrite = {a, b};
  record.run({a, c});
  const UnplacedSchedule unplaced = written(record, evict_within(2));
  const Schedule& s = unplaced.schedule;
  EXPECT_EQ(s.shortfall, Bytes(0));
  EXPECT_EQ(max_resident(s), units(2));
  ASSERT_TRUE(s.code[2].in_place());
  EXPECT_EQ(s.code[2].overwrites, b) << "a is used later";
  EXPECT_EQ(taken_over(s), (std::vector<uint32_t>{Schedule::kScratch, Schedule::kScratch, 1}));
  record.last().may_overwrite.clear();
  EXPECT_EQ(simulated(record, evict_within(2)), "time 400");
}

// A shortfall counts once while it does not grow, however long it lasts.
TEST(StepSimulator, SumsWhatLacks) {
  EXPECT_EQ(simulated(tower_of_rising_costs(), evict_within(2)), "time 3600, short 1");
  EXPECT_EQ(simulated(tower_of_rising_costs(), evict_within(1)), "time 3600, short 2");
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.run({}, 100, /*workspace=*/2);
  record.run({}, 100, /*workspace=*/2);
  record.run({a}, 100);
  EXPECT_EQ(simulated(record, evict_within(3)), "time 400");
  EXPECT_EQ(simulated(record, evict_within(2)), "time 400, short 2");
  EXPECT_EQ(drawn(record, evict_within(2)), R"(
RRRR.
a## a
aaaaa
 #
  #
)");
}

TEST(StepSimulator, CostsTimeAndMuchForWhatLacksAndLittleForCopies) {
  const TraceBuilder record = tower_of_rising_costs();
  Simulated short_of(record, copy_within(2, 500));
  StepSimulator& simulator = short_of.simulator;
  // The shortfall takes a thousand to go out and come back, and occurs at two of six calls.
  EXPECT_NEAR(simulator.run({}).cost, 3600 + 1000 + 2000 / 6., 1e-6);
  simulator.set_shortfall_price(16);
  EXPECT_NEAR(simulator.run({}).cost, 3600 + 16'000 + 32'000 / 6., 1e-6);
  Simulated fits(record, copy_within(2, 100));
  const Outcome copied = fits.simulator.run({copy(0, 0, 5, 4)});
  EXPECT_EQ(text(copied), "time 3700, waited 100, copied 200");
  EXPECT_NEAR(copied.cost, 3700 + 2, 1e-6);
}

// c needs b and b needs a, which have ended by then; each ends again as soon as it has been
// read.
TEST(StepSimulator, ComputesAgainWhatItNeeds) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({a}, 200), c = record.call({b}, 400);
  record.idle(1, 1000);
  record.run({c}, 1000);
  EXPECT_EQ(simulated(record, evict_within(2), {evict(c, 2, 4)}), "time 3400, again 700");
  EXPECT_EQ(drawn(record, evict_within(2), {evict(c, 2, 4)}), R"(
RR.R-.RAA.A.R.
abaccb abacb c
aaa
 bbbbb
   cc
       aaa
        bbbb
          cccc
)");
}

// b's source is evicted too; once recomputed, it stays available.
TEST(StepSimulator, ComputesAgainWhatWasEvictedItself) {
  TraceBuilder record = crowded_chain();
  record.run({kB}, 1000);
  record.run({kA}, 1000);
  EXPECT_EQ(simulated(record, evict_within(2), {evict(kA, 1, 4), evict(kB, 1, 3)}),
            "time 3600, again 300");
  // Both are used at the same call: each is computed once, b's chain first.
  TraceBuilder both = crowded_chain();
  both.run({kB, kA}, 1000);
  EXPECT_EQ(simulated(both, evict_within(2), {evict(kA, 1, 3), evict(kB, 1, 3)}),
            "time 2600, again 300");
}

TEST(StepSimulator, EvictsTwiceInAStep) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.run({}, 1000, /*workspace=*/1);
  record.run({a}, 1000);
  record.run({}, 1000, /*workspace=*/1);
  record.run({a}, 1000);
  EXPECT_EQ(simulated(record, evict_within(1), {evict(a, 0, 2), evict(a, 2, 4)}),
            "time 4300, again 200");
  EXPECT_EQ(simulated(record, evict_within(1), {evict(a, 0, 2)}),
            "time 4200, again 100, short 1");
  // The order of the releases does not matter.
  EXPECT_EQ(simulated(record, evict_within(1), {evict(a, 2, 4), evict(a, 0, 2)}),
            "time 4300, again 200");
}

// All outputs of a call are written; those that are available already go to scratch.
TEST(StepSimulator, WritesSiblingsToScratch) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.also(2);
  record.idle(1);
  record.run({a}, 100);
  record.run({b}, 100);
  EXPECT_EQ(simulated(record, evict_within(5), {evict(a, 0, 2)}), "time 500, again 100");
  EXPECT_EQ(simulated(record, evict_within(4), {evict(a, 0, 2)}),
            "time 500, again 100, short 1");
  EXPECT_EQ(drawn(record, evict_within(5), {evict(a, 0, 2)}), R"(
R-RAR.R.
aa a a b
aa
bbbbbbbb
   aaa
   #
)");
}

// a was recomputed for c and may go. It is not evicted to compute b, its sibling: a would then
// be written to scratch, and be gone.
TEST(StepSimulator, KeepsSiblingsThatAreThere) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.also(2);
  const uint32_t c = record.call({a}, 100);
  record.idle(1);
  record.run({c}, 100);
  record.idle(1);
  record.run({b}, 100);
  record.run({a}, 100);
  const Releases releases{evict(b, 0, 5), evict(a, 1, 6), evict(c, 1, 3)};
  EXPECT_EQ(simulated(record, evict_within(4), releases), "time 900, again 200");
  EXPECT_EQ(simulated(record, evict_within(3), releases), "time 1000, again 300, short 1");
}

// a is copied while the idle call runs, goes when b needs the space, and is back in time.
//   time  0   100   1100   2100   3100   4100   5100   5200
//          a    idle   b      (b)    idle   idle   (a)
//            >500                         <500
TraceBuilder to_and_fro() {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.idle(1, 1000);
  const uint32_t b = record.call({}, 1000);
  record.run({b}, 1000);
  record.idle(2, 1000);
  record.run({a}, 100);
  return record;
}

TEST(StepSimulator, HidesCopiesBehindCompute) {
  EXPECT_EQ(simulated(to_and_fro(), copy_within(1, 500), {copy(0, 0, 6, 4)}),
            "time 5200, copied 1000");
  EXPECT_EQ(drawn(to_and_fro(), copy_within(1, 500), {copy(0, 0, 6, 4)}), R"(
R>R~RR.R<RR.
aa ab b a  a
aaaa
    bbb
        aaaa
)");
}

TEST(StepSimulator, WaitsForCopies) {
  // a is out after 3100 - 1100, and back after 9100 - 7100.
  EXPECT_EQ(simulated(to_and_fro(), copy_within(1, 3000), {copy(0, 0, 6, 4)}),
            "time 9200, waited 4000, copied 6000");
  PlanLimits limits = copy_within(1, 500);
  limits.latency = Nanos(2500);
  EXPECT_EQ(simulated(to_and_fro(), limits, {copy(0, 0, 6, 4)}),
            "time 9200, waited 4000, copied 6000");
}

TEST(StepSimulator, ReloadsLateEarlyAndTooEarly) {
  const auto back_at = [](uint32_t call) {
    return simulated(to_and_fro(), copy_within(1, 500), {copy(0, 0, 6, call)});
  };
  EXPECT_EQ(back_at(5), "time 5700, waited 500, copied 1000");
  EXPECT_EQ(back_at(3), "time 5200, copied 1000") << "not while b is there: after the next";
  EXPECT_EQ(back_at(2), "time 5200, copied 1000");
  EXPECT_EQ(back_at(1), "time 5200, copied 1000") << "it has not gone yet: it goes for b";
}

// An item that is back before its use goes again if nothing else helps, as its copy is still
// there, and comes back once more when there is space. This is b, which is used last, not a.
TEST(StepSimulator, WhatIsBackTooEarlyMayGoAgain) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({}, 100);
  record.run({}, 1000, /*workspace=*/2);
  record.idle(1, 1000);
  record.run({}, 1000, /*workspace=*/1);
  record.idle(1, 1000);
  record.run({a}, 100);
  record.run({b}, 100);
  const Releases releases{copy(a, 0, 6, 2), copy(b, 1, 7, 2)};
  EXPECT_EQ(simulated(record, copy_within(2, 10), releases), "time 4410, waited 10, copied 50");
  Simulated of(record, copy_within(2, 10));
  of.simulator.set_sends_back(false);
  EXPECT_EQ(text(of.simulator.run(releases)), "time 4410, waited 10, copied 40, short 1");
  EXPECT_EQ(drawn(record, copy_within(2, 10), releases), R"(
R>R>~~R<<R~R<RR.R.
aabbab#ab b#b  a b
aaaaa
  bbbb
      #
       aaaaaaaaa
        bbb
           #
            bbbbbb
)");
}

// b has been copied and is needed last, so it leaves as a comes back, not only when a call
// needs its space.
TEST(StepSimulator, WhatComesBackTakesThePlaceOfWhatIsNeededLater) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.idle(1, 1000);
  record.run({}, 1000, /*workspace=*/2);
  const uint32_t b = record.call({}, 100, /*size=*/2);
  record.idle(3, 1000);
  record.run({a}, 100);
  record.idle(2, 1000);
  record.run({b}, 100);
  const Releases releases{copy(a, 0, 7, 5), copy(b, 3, 10, 7)};
  EXPECT_EQ(simulated(record, copy_within(2, 100), releases), "time 7400, copied 600");
}

// a was due after call 4, found no space, and was fetched when call 5 needed it. It is no
// longer due, and its next release takes place.
TEST(StepSimulator, WhatCameAsItWasNeededIsNoLongerDue) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.keep(a);
  record.run({}, 1000, /*workspace=*/3);
  record.run({}, 100, /*workspace=*/1);
  const uint32_t b = record.call({}, 100, /*size=*/3);
  record.run({b}, 100);
  record.run({a}, 100);
  for (int i = 0; i < 3; ++i) {
    record.run({}, 100, /*workspace=*/3);
    record.run({}, 100, /*workspace=*/2);
  }
  const Releases releases{copy(a, 0, 5, 4), copy(a, 5, 12, 12)};
  EXPECT_EQ(simulated(record, copy_within(3, 10), releases), "time 2120, waited 20, copied 20");
}

// An item whose space nobody needs stays, and is not copied back.
TEST(StepSimulator, WhatIsCopiedGoesOnlyWhereRoomIsShort) {
  EXPECT_EQ(simulated(to_and_fro(), copy_within(2, 500), {copy(0, 0, 6, 4)}),
            "time 5200, copied 500");
}

// Out: a until 1100, then b until 2100. Back: a until 3400, b until 4400.
TEST(StepSimulator, CopiesQueueOnTheLink) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({}, 100);
  record.idle(1, 300);
  const uint32_t c = record.call({}, 100, 2);
  record.run({c}, 100);
  record.idle(1, 100);
  record.run({a, b}, 100);
  EXPECT_EQ(simulated(record, copy_within(2, 1000), {copy(a, 0, 6, 5), copy(b, 1, 6, 5)}),
            "time 4500, waited 3600, copied 4000");
}

// A copy has to be out before it can come back.
TEST(StepSimulator, ACopyComesBackOnceItIsOut) {
  TraceBuilder record;
  const uint32_t x = record.outside();
  record.run({x}, 100);
  record.run({}, 100, /*workspace=*/1);
  record.run({x}, 100);
  // Out by 1100, then the workspace, then back by 2200.
  EXPECT_EQ(simulated(record, copy_within(1, 1000), {copy(x, 0, 2, 1)}),
            "time 2300, waited 2000, copied 2000");
}

TEST(StepSimulator, WaitsForUploads) {
  TraceBuilder record;
  const uint32_t x = record.upload(2);
  record.run({x}, 100);
  EXPECT_EQ(simulated(record, copy_within(2, 500)), "time 1100, waited 1000");
  EXPECT_EQ(drawn(record, copy_within(2, 500)), R"(
^R.
a a
aaa
)");
  TraceBuilder later;
  later.idle(1, 600);
  const uint32_t y = later.upload(2);
  later.idle(1, 600);
  later.run({y}, 100);
  EXPECT_EQ(simulated(later, copy_within(2, 500)), "time 1700, waited 400");
  TraceBuilder two;
  const uint32_t v = two.upload(), w = two.upload();
  two.run({v}, 100);
  two.run({w}, 100);
  EXPECT_EQ(simulated(two, copy_within(2, 500)), "time 1100, waited 900");
}

// a ends at 200, its copy at 2100.
TEST(StepSimulator, WhatEndsKeepsItsRoomUntilItsCopyIsDone) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.run({a}, 100);
  record.call({}, 100);
  const Releases releases{copy(a, 0, 1, 0)};
  EXPECT_EQ(simulated(record, copy_within(1, 2000), releases),
            "time 2200, waited 1900, copied 2000");
  EXPECT_EQ(simulated(record, copy_within(2, 2000), releases), "time 300, copied 2000");
  EXPECT_EQ(drawn(record, copy_within(2, 2000), releases), R"(
R>R.R.
aa abb
aaaaaa
    bb
)");
}

// The item is recomputed while the block that it left is still being copied: it has two blocks.
TEST(StepSimulator, WhatIsStillBeingCopiedMayBeComputedAgain) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({a}, 100);
  record.idle(1);
  record.run({b}, 100);
  record.idle(1);
  record.run({}, 10'000);
  record.run({}, 100, /*workspace=*/3);
  EXPECT_EQ(drawn(record, copy_within(3, 2000), {copy(a, 0, 1, 0), evict(b, 1, 3)}), R"(
R>R-.RAA.R.RRR
aabba aba b  #
aaaaaaaaaaaaa
  bb
      aaa
       bbbb
             #
)");
}

// a is recomputed to recompute b. If a workspace of 3 needs a's space, a goes first.
TEST(StepSimulator, WhatIsThereAgainOnTheWayStaysWhileThereIsRoom) {
  const auto step_with = [](int64_t workspace) {
    TraceBuilder record;
    const uint32_t a = record.call({}, 100), b = record.call({a}, 200);
    const uint32_t c = record.call({}, 1000, 2);
    record.run({c}, 1000);
    record.run({b}, 1000);
    record.run({}, 1000, workspace);
    record.run({a}, 1000);
    return record;
  };
  const Releases releases{evict(0, 1, 6), evict(1, 1, 4)};
  EXPECT_EQ(simulated(step_with(2), evict_within(3), releases), "time 5600, again 300");
  EXPECT_EQ(simulated(step_with(3), evict_within(3), releases), "time 5700, again 400");
  EXPECT_EQ(drawn(step_with(3), evict_within(3), releases), R"(
RR--RR.AAR.-RAR.
ababc cab ba#a a
aaa
 bbb
    ccc
       aaaaa
        bbb
            #
             aaa
)");
}

// a comes back before its time, as b is recomputed from it. Its copy is still on the tier, so a
// goes again where call 5 needs the space, and comes back once more.
TEST(StepSimulator, WhatIsThereAgainTooEarlyMayGoAgain) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100), b = record.call({a}, 100);
  for (int i = 0; i < 2; ++i) record.run({}, 1000, /*workspace=*/3);
  record.run({b}, 100);
  record.run({}, 100, /*workspace=*/3);
  record.run({a}, 100);
  const Releases releases{copy(a, 1, 6, 5), evict(b, 1, 4)};
  EXPECT_EQ(simulated(record, copy_within(3, 10), releases),
            "time 2630, again 100, waited 30, copied 30");
  EXPECT_EQ(drawn(record, copy_within(3, 10), releases), R"(
RR>-~RR<AR.~R<R.
ababa##ab ba#a a
aaaaa
 bbb
     #
      #
       aaaaa
        bbb
            #
             aaa
)");
}

// An input of a call is not released for the call's outputs, even if it is evictable.
TEST(StepSimulator, WhatIsWantedStays) {
  TraceBuilder record = crowded_chain();
  record.call({kB, kA}, 1000);
  EXPECT_EQ(simulated(record, evict_within(2), {evict(kA, 1, 3), evict(kB, 1, 3)}),
            "time 2600, again 300, short 1");
}

// Among evictable items, the one that frees the most for longest goes first.
TEST(StepSimulator, DropsWhatFreesMostForLongest) {
  const auto drop = [](int64_t size_a, int64_t size_b) {
    TraceBuilder record;
    const uint32_t a = record.call({}, 100, size_a), b = record.call({}, 100, size_b);
    record.idle(1, 10'000);
    record.run({}, 100, /*workspace=*/3);
    record.run({a}, 100);
    record.run({b}, 100);
    const UnplacedSchedule schedule = written(record, copy_within(2 + size_a + size_b, 1),
                                              {copy(a, 0, 4, 3), copy(b, 1, 5, 4)});
    std::string dropped;
    for (const Schedule::Instruction& instruction : schedule.schedule.code) {
      if (instruction.what == Do::kOffload)
        dropped += static_cast<char>('a' + instruction.subject);
    }
    return dropped;
  };
  EXPECT_EQ(drop(1, 1), "b") << "is wanted later";
  EXPECT_EQ(drop(3, 1), "a") << "is larger";
}

// s is unused over the step's end. It is copied at the beginning, so that it can be away before
// the end.
TEST(StepSimulator, CopiesWhatSleepsOverTheEndAtTheBeginning) {
  const auto step_with = [](int64_t first) {
    TraceBuilder record;
    const uint32_t s = record.outside(1, /*persistent=*/true);
    const uint32_t a = record.call({}, first), b = record.call({}, 1000);
    record.run({a}, 1000);
    record.run({b}, 1000);
    record.idle(1, 1000);
    record.run({s}, 1000);
    return record;
  };
  const Releases releases{copy(0, 5, 5, 3)};
  EXPECT_EQ(simulated(step_with(1000), copy_within(2, 500), releases),
            "time 6000, copied 1000");
  EXPECT_EQ(drawn(step_with(1000), copy_within(2, 500), releases), R"(
>R~RR.R<.RR
abac b ac  
aaa
 bbbbb
   cccccc
       aaaa
)");
  EXPECT_EQ(simulated(step_with(100), copy_within(2, 500), releases),
            "time 5500, waited 400, copied 1000");
}

// s has to be away soon after the step's beginning. Copied out after its last use, it is away
// already.
TEST(StepSimulator, CopiesWhatSleepsOverTheEndAfterItsLastUse) {
  const auto step_with = [](int64_t last) {
    TraceBuilder record;
    const uint32_t s = record.outside(1, /*persistent=*/true);
    const uint32_t a = record.call({}, 100, 2);
    record.run({}, 100, /*workspace=*/1);
    record.run({a}, 1000);
    record.run({s}, 1000);
    record.writes(s);
    record.idle(1, last);
    return record;
  };
  const PlanLimits limits = copy_within(3, 500);
  Releases releases{copy(0, 3, 3, 1)};
  EXPECT_EQ(simulated(step_with(1000), limits, releases), "time 3600, waited 400, copied 1000");
  releases.front().leaves_before_end = true;
  EXPECT_EQ(simulated(step_with(1000), limits, releases), "time 3200, copied 1000");
  EXPECT_EQ(drawn(step_with(1000), limits, releases), R"(
RR<R.R>R
b#a b a 
bbbbb
 #
  aaaaaa
)");
  // The step ends when the copy is out.
  EXPECT_EQ(simulated(step_with(100), limits, releases), "time 2700, waited 400, copied 1000");
}

// If a call needs so much that not everything that lives on can stay beside it, s goes before
// the step's end. The step then begins without s and, if s was written, ends when s is out.
TEST(StepSimulator, BeginsWithoutWhatSleepsOverTheEndInLittleRoom) {
  TraceBuilder record;
  const uint32_t s = record.outside(1, /*persistent=*/true);
  const uint32_t t = record.outside(1, /*persistent=*/true);
  const uint32_t a = record.call({t}, 1000), b = record.call({a}, 1000);
  record.run({b}, 1000);
  record.idle(2, 1000);
  record.run({s}, 1000);
  const Releases releases{copy(s, 5, 5, 3)};
  const PlanLimits limits = copy_within(3, 500);
  EXPECT_EQ(simulated(record, limits, releases), "time 6000, copied 500");
  EXPECT_EQ(drawn(record, limits, releases), R"(
RR.R.R<RR
cdc d a  
bbbbbbbbb
ccc
 dddd
      aaa
)");
  record.writes(s);
  EXPECT_EQ(simulated(record, limits, releases), "time 6500, waited 500, copied 1000");
  // Without the release, s is resident.
  EXPECT_EQ(simulated(record, limits), "time 6000, short 1");
}

// c comes from an earlier step and ends in this one. Like an item unused over the step's end,
// it is copied at the beginning and is away until it is read; then it ends for good.
TEST(StepSimulator, CopiesWhatIsCarriedInBeforeItsFirstUse) {
  TraceBuilder record;
  const uint32_t c = record.outside();
  const uint32_t a = record.call({}, 1000), b = record.call({}, 1000);
  record.run({a}, 1000);
  record.run({b}, 1000);
  record.idle(1, 1000);
  record.run({c}, 1000);
  const Releases releases{copy(c, 5, 5, 3)};
  EXPECT_EQ(simulated(record, copy_within(2, 500), releases), "time 6000, copied 1000");
  EXPECT_EQ(drawn(record, copy_within(2, 500), releases), R"(
>R~RR.R<.RR.
abac b ac  a
aaa
 bbbbb
   cccccc
       aaaaa
)");
}

// If not everything can stay between steps, c is away at the beginning, and is not copied out
// again.
TEST(StepSimulator, BeginsWithoutWhatIsCarriedInInLittleRoom) {
  TraceBuilder record;
  const uint32_t c = record.outside(), t = record.outside(1, /*persistent=*/true);
  const uint32_t a = record.call({t}, 1000), b = record.call({a}, 1000);
  record.run({b}, 1000);
  record.idle(2, 1000);
  record.update(c, 1000);
  const Releases releases{copy(c, 5, 5, 3)};
  EXPECT_EQ(simulated(record, copy_within(3, 500), releases), "time 6000, copied 500");
  EXPECT_EQ(drawn(record, copy_within(3, 500), releases), R"(
RR.R.R<RR.
cdc d a  a
bbbbbbbbbb
ccc
 dddd
      aaaa
)");
  EXPECT_EQ(simulated(record, copy_within(3, 500)), "time 6000, short 1");
}

// m is made in this step and stays; after its last use it need not be resident.
TEST(StepSimulator, EndsWithoutWhatIsCarriedOutWhereRoomIsShort) {
  TraceBuilder record;
  const uint32_t m = record.call({}, 1000);
  record.run({m}, 1000);
  record.run({}, 1000, /*workspace=*/2);
  record.keep(m);
  const Releases releases{copy(m, 1, 3, 3)};
  EXPECT_EQ(simulated(record, copy_within(2, 500)), "time 3000, short 1");
  EXPECT_EQ(simulated(record, copy_within(2, 500), releases),
            "time 3500, waited 500, copied 500");
  EXPECT_EQ(drawn(record, copy_within(2, 500), releases), R"(
RR>~R
a aa#
aaaa
    #
)");
  EXPECT_EQ(simulated(record, copy_within(3, 500), releases), "time 3000, copied 500");
  EXPECT_EQ(drawn(record, copy_within(3, 500), releases), R"(
RR>R
a a#
aaaa
   #
)");
}

// The same if more is live at the end than at the beginning: p is read once, m stays.
TEST(StepSimulator, BeginsWithoutWhatHasNoRoomAtTheEnd) {
  TraceBuilder record;
  const uint32_t p = record.outside(1, /*persistent=*/true);
  record.idle(1, 1000);
  record.keep(record.call({p}, 1000, 2));
  record.run({}, 1000, /*workspace=*/2);
  EXPECT_EQ(simulated(record, copy_within(4, 500)), "time 3000, short 1");
  EXPECT_EQ(simulated(record, copy_within(4, 500), {copy(p, 1, 1, 0)}),
            "time 3500, waited 500, copied 500");
}

// s stays after the step, although it is no parameter. Recomputing from it for a value that the
// program reads at the very end does not end s.
TEST(StepSimulator, KeepsWhatIsCarriedOutToTheLastRead) {
  TraceBuilder record;
  const uint32_t s = record.call({}), a = record.call({s});
  record.keep(s);
  StepTrace trace = record.trace();
  trace.ops.back().released.clear();
  trace.ops.push_back({.kind = StepTrace::Kind::kRead,
                       .name = "read",
                       .inputs = {{a, 0, false}},
                       .released = {a}});
  const TracedStep step(trace);
  UnplacedSchedule schedule;
  StepSimulator(step.trace, step.table, evict_within(2)).write({evict(a, 1, 2)}, {}, schedule);
  EXPECT_EQ(schedule_violations(step.trace, evict_within(2), with_peak(schedule.schedule)),
            std::vector<std::string>());
}

// c is read once, and kept until the end for a recipe: after its copy it never comes back.
TEST(StepSimulator, SendsAwayWhatOnlyRecipesWant) {
  TraceBuilder record;
  const uint32_t c = record.outside();
  record.run({c}, 1000);
  record.run({}, 1000, /*workspace=*/2);
  record.hold(c, 2);
  const Releases releases{copy(c, 0, 2, 2)};
  EXPECT_EQ(simulated(record, copy_within(2, 500)), "time 2000, short 1");
  EXPECT_EQ(simulated(record, copy_within(2, 500), releases),
            "time 2500, waited 500, copied 500");
  EXPECT_EQ(drawn(record, copy_within(2, 500), releases), R"(
R>~R.
 aa#a
aaa
   #
)");
}

// The copy remains valid for the next time, unless the item has been written.
TEST(StepSimulator, CopiesOnceWhatIsNotWritten) {
  const PlanLimits limits = copy_within(1, 500);
  for (const bool written : {false, true}) {
    TraceBuilder record;
    const uint32_t a = record.call({}, 100);
    record.idle(1, 1000);
    record.run({}, 100, /*workspace=*/1);
    record.run({a}, 1000);
    if (written) record.writes(a);
    record.run({}, 100, /*workspace=*/1);
    record.run({a}, 100);
    // 500 more until the second copy is out.
    const std::string time =
        written ? "time 3900, waited 1500, copied 2000" : "time 3400, waited 1000, copied 1500";
    EXPECT_EQ(simulated(record, limits, {copy(a, 0, 3, 2), copy(a, 3, 5, 4)}), time);
    if (written) continue;
    EXPECT_EQ(simulated(record, limits, {copy(a, 0, 3, 2), evict(a, 3, 5)}), time);
    record.item(a).may_evict = false;  // as if another step wrote it
    EXPECT_EQ(simulated(record, limits, {copy(a, 0, 3, 2), copy(a, 3, 5, 4)}), time);
  }
}

// A write in place waits for copies that read the item.
TEST(StepSimulator, WritesWhatHasBeenCopied) {
  TraceBuilder record;
  const uint32_t a = record.call({}, 100);
  record.idle(1, 100);
  record.update(a, 100);
  EXPECT_EQ(simulated(record, copy_within(4, 500), {copy(a, 0, 2, 1)}),
            "time 700, waited 400, copied 500");
}

TEST(StepSimulator, SaysWhatIsImpossible) {
  const auto evicted = [](bool source_stays, bool may_evict) {
    TraceBuilder record;
    const uint32_t x = record.outside(1, source_stays);
    const uint32_t a = record.call({x}, 100), b = record.call({a}, 100);
    record.item(a).may_evict = may_evict;
    record.idle(1);
    record.run({b}, 100);
    return Simulated(record, evict_within(3)).simulator.run({evict(b, 1, 3)});
  };
  EXPECT_EQ(text(evicted(true, true)), "time 600, again 200");
  for (const Outcome& outcome : {evicted(false, true), evicted(true, false)}) {
    EXPECT_FALSE(outcome.possible);
    EXPECT_TRUE(std::isinf(outcome.cost));
  }
}

}  // namespace
}  // namespace tidemark::planner::testing
