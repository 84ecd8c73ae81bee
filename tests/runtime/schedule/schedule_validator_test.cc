// Schedules that the validator accepts and, for each rule, a schedule that breaks only that
// rule.
#include "runtime/schedule/schedule_validator.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/schedule/schedule_builder.h"
#include "tests/support/trace_builder.h"

namespace tidemark::testing {
namespace {

using Do = Schedule::Do;

enum : uint32_t { kW, kX, kA, kB, kLoss, kGrad };

// w stays; x is uploaded and held to the end.
//
//   0 upload -> x    1 conv w x -> a, workspace    2 relu a -> b    3 sum b -> loss
//   4 read loss      5 back a b -> grad            6 sgd w! grad
StepTrace trace() {
  StepTrace t;
  t.storages = {{.origin = "w", .size = Bytes(512), .at_start = true, .at_end = true},
                {.origin = "upload", .category = Category::kData, .size = Bytes(512)},
                {.origin = "conv", .size = Bytes(1024)},
                {.origin = "relu", .size = Bytes(1024)},
                {.origin = "sum", .size = Bytes(512)},
                {.origin = "back", .size = Bytes(1024)}};
  t.ops = {{.kind = StepTrace::Kind::kUpload, .name = "upload", .outputs = {kX}},
           {.name = "conv", .inputs = {{kW}, {kX}}, .outputs = {kA}, .workspace = Bytes(512)},
           {.name = "relu", .inputs = {{kA}}, .outputs = {kB}},
           {.name = "sum", .inputs = {{kB}}, .outputs = {kLoss}},
           {.kind = StepTrace::Kind::kRead,
            .name = "read",
            .inputs = {{kLoss}},
            .released = {kLoss}},
           {.name = "back", .inputs = {{kA}, {kB}}, .outputs = {kGrad}, .released = {kA, kB}},
           {.name = "sgd", .inputs = {{kW, 0, true}, {kGrad}}, .released = {kGrad, kX}}};
  return t;
}

PlanLimits limits() { return {.space = Bytes(4096), .tier_space = Bytes(1024)}; }

//   4096 |               .           grad grad grad grad
//   3072 |    ws   b   b   b   .  .  . ws b  b   b   b
//   2048 |    a    a   a   loss loss . a  a  a   a
//   1024 | x  x    x   x   x  ...
//    512 | w  w    w   w   w  ...
ScheduleBuilder first_half(const StepTrace& t) {
  ScheduleBuilder b(t);
  b.initial(kW, 0);
  b.run(0, {512});         // 0 upload
  b.run(1, {1024, 2048});  // 1 conv, ends 2 for its workspace
  b.run(2, {2048});        // 2 relu
  b.evict(kA);             // 3
  b.run(3, {1024});        // 4 sum, where a was
  b.offload(kB);           // 5
  b.run(4).free(kLoss);    // 6 read, 7
  return b;
}
ScheduleBuilder good_builder(const StepTrace& t) {
  ScheduleBuilder b = first_half(t);
  b.again(1, {kA}, {1024, 2048});  // 8 conv again
  b.copy_in(kB, 2048);             // 9
  b.run(5, {3072});                // 10 back
  b.free(kA).free(kB);             // 11, 12
  b.run(6).free(kGrad).free(kX);   // 13 sgd, 14, 15
  return b;
}
Schedule good(const StepTrace& t) { return good_builder(t).build(); }

std::vector<std::string> found(const StepTrace& t, const Schedule& s,
                               const PlanLimits& l = limits()) {
  return schedule_violations(t, l, s);
}

// Expects one violation with these words.
void expect_one(const std::vector<std::string>& violations, const std::string& words) {
  ASSERT_EQ(violations.size(), 1U) << words << (violations.size() > 1 ? violations[1] : "");
  EXPECT_NE(violations[0].find(words), std::string::npos) << violations[0];
}

TEST(ScheduleValidator, AcceptsAGoodOne) {
  const StepTrace t = trace();
  ASSERT_TRUE(trace_violations(t).empty()) << trace_violations(t)[0];
  const auto violations = found(t, good(t));
  EXPECT_TRUE(violations.empty()) << violations[0];
  EXPECT_EQ(good(t).peak, Bytes(4096));
}

struct Break {
  std::string words;
  std::function<void(Schedule&)> change;
};

TEST(ScheduleValidator, NamesWhatIsWrongWithBlocksAndFigures) {
  const StepTrace t = trace();
  const std::vector<Break> breaks = {
      {"more initial blocks", [](Schedule& s) { s.initial_blocks = 99; }},
      {"there is no such operator", [](Schedule& s) { s.code[0].subject = 9; }},
      {"there is no such storage", [](Schedule& s) { s.code[3].subject = 9; }},
      {"is of another kind", [](Schedule& s) { s.code[6].what = Do::kRun; }},
      {"only calls run again", [](Schedule& s) { s.code[0].again = true; }},
      {"for another storage",
       [](Schedule& s) {
         s.blocks[1].storage = kA;
         s.blocks[1].size = Bytes(512);
       }},
      {"has 512 bytes instead of 1024", [](Schedule& s) { s.blocks[2].size = Bytes(512); }},
      {"does not begin at this instruction", [](Schedule& s) { s.blocks[4].begin = 3; }},
      {"ends before it begins", [](Schedule& s) { s.blocks[4].end = 1; }},
      {"or too late", [](Schedule& s) { s.blocks[4].end = 99; }},
      {"it must begin at 0", [](Schedule& s) { s.blocks[0].begin = 1; }},
      {"taken by no instruction", [](Schedule& s) { s.blocks.push_back(s.blocks[1]); }},
      {"shares bytes with block 1", [](Schedule& s) { s.blocks[5].at = Offset(512); }},
      {"block 2 shares bytes with block 1", [](Schedule& s) { s.blocks[2].at = Offset(0); }},
      {"is not aligned", [](Schedule& s) { s.blocks[5].at = Offset(1100); }},
      {"begins below the arena", [](Schedule& s) { s.blocks[0].at = Offset(-512); }},
      {"not 4000 as stated", [](Schedule& s) { s.peak = Bytes(4000); }},
      {"below its bound", [](Schedule& s) { s.peak_bound = Bytes(5000); }},
      {"a workspace outlives its call",
       [](Schedule& s) {
         s.blocks[7].at = Offset(3072);
         s.blocks[7].end = 10;
       }},
      {"it ends block 5 of storage 4", [](Schedule& s) { s.blocks[5].end = 7; }},
      {"nothing ends block 0", [](Schedule& s) { s.blocks[0].end = 15; }},
  };
  for (const Break& each : breaks) {
    SCOPED_TRACE(each.words);
    Schedule s = good(t);
    each.change(s);
    expect_one(found(t, s), each.words);
  }
}

TEST(ScheduleValidator, NamesWhatTheLimitsDoNotAllow) {
  const StepTrace t = trace();
  PlanLimits less = limits();
  less.space = Bytes(4000);
  expect_one(found(t, good(t), less), "96 bytes above the available space");
  less = limits();
  less.tier_space = Bytes(1000);
  expect_one(found(t, good(t), less),
             "instruction 5: copies need more space than the tiers have");
  StepTrace pinned = trace();
  pinned.storages[kB].may_offload = false;
  expect_one(found(pinned, good(pinned)), "may not be offloaded");
  pinned = trace();
  pinned.storages[kA].may_evict = false;
  EXPECT_NE(found(pinned, good(pinned)).at(0).find("may not be evicted"), std::string::npos);
}

// Without places, the peak may exceed the space by the schedule's shortfall.
TEST(ScheduleValidator, AShortfallIsStated) {
  const StepTrace t = trace();
  Schedule s = good(t);
  s.placed = false;
  EXPECT_NE(s.peak, Bytes(3000));
  s.peak = Bytes(4096);  // w x a b grad at instruction 10
  PlanLimits less = limits();
  less.space = Bytes(3596);
  expect_one(found(t, s, less), "more than the stated shortfall");
  s.shortfall = Bytes(500);
  EXPECT_TRUE(found(t, s, less).empty());
}

PlanLimits ample_limits() {
  PlanLimits ample = limits();
  ample.space = Bytes(1 << 20);
  return ample;
}

struct Script {
  std::string words;
  std::function<Schedule()> make;
};

// Among the violations of each schedule is one that says so.
void expect_each(const StepTrace& t, const std::vector<Script>& scripts) {
  for (const Script& each : scripts) {
    SCOPED_TRACE(each.words);
    const auto violations = found(t, each.make(), ample_limits());
    ASSERT_FALSE(violations.empty());
    bool said = false;
    for (const std::string& v : violations) said |= v.find(each.words) != std::string::npos;
    EXPECT_TRUE(said) << violations[0];
  }
}

TEST(ScheduleValidator, NamesWhatIsWrongWithTheOrder) {
  const StepTrace t = trace();
  const std::vector<Script> scripts = {
      {"never runs",
       [&] {
         return first_half(t)
             .again(1, {kA}, {1024, 2048})
             .copy_in(kB, 2048)
             .run(5, {3072})
             .free(kA)
             .free(kB)
             .build();
       }},
      {"of the program runs twice",
       [&] {
         return first_half(t)
             .run(4)
             .again(1, {kA}, {1024, 2048})
             .copy_in(kB, 2048)
             .run(5, {3072})
             .free(kA)
             .free(kB)
             .run(6)
             .free(kGrad)
             .free(kX)
             .build();
       }},
      {"is a read, and an operator is moved past it",  // back runs before the read
       [&] {
         ScheduleBuilder b(t);
         b.initial(kW, 0).run(0, {512}).run(1, {1024, 2048}).run(2, {2048}).run(3, {3584});
         b.run(5, {4096}).run(4).free(kLoss).free(kA).free(kB).run(6).free(kGrad).free(kX);
         return b.build();
       }},
      {"runs again before it has run",
       [&] {
         ScheduleBuilder b(t);
         b.initial(kW, 0).run(0, {512}).again(1, {}, {1024, 2048}).run(1, {1024, 2048});
         b.run(2, {2048}).run(3, {3584}).run(4).free(kLoss).run(5, {4096}).free(kA).free(kB);
         return b.run(6).free(kGrad).free(kX).build();
       }},
  };
  expect_each(t, scripts);
}

// a() b() read c(): neither b nor c may pass the read.
TEST(ScheduleValidator, NothingPassesARead) {
  StepTrace t;
  t.ops = {{.name = "a"},
           {.name = "b"},
           {.kind = StepTrace::Kind::kRead, .name = "read"},
           {.name = "c"}};
  const auto broken = [&](const std::vector<uint32_t>& order) {
    ScheduleBuilder b(t);
    for (const uint32_t k : order) b.run(k);
    return found(t, b.build());
  };
  EXPECT_TRUE(broken({1, 0, 2, 3}).empty());
  const std::string read = "op 2 (read) is a read, and an operator is moved past it";
  using Lines = std::vector<std::string>;
  EXPECT_EQ(broken({0, 2, 1, 3}),
            (Lines{"instruction 1: " + read, "instruction 2: op 1 (b) is moved past a read"}));
  EXPECT_EQ(broken({0, 1, 3, 2}), (Lines{"instruction 3: " + read}));
  EXPECT_EQ(broken({0, 3, 2, 1}),
            (Lines{"instruction 2: " + read, "instruction 3: op 1 (b) is moved past a read"}));
}

// Everything is in place and nothing released: the beginning of the scripts below.
ScheduleBuilder up_to(const StepTrace& t, uint32_t ops) {
  ScheduleBuilder b(t);
  b.initial(kW, 0);
  const std::vector<ScheduleBuilder::Places> at = {{512}, {1024, 2048}, {2048}, {3072},
                                                   {},    {3584},       {}};
  for (uint32_t k = 0; k < ops; ++k) b.run(k, at[k]);
  return b;
}
Schedule rest(ScheduleBuilder b, const StepTrace& t, uint32_t from) {
  const std::vector<ScheduleBuilder::Places> at = {{512}, {1024, 2048}, {2048}, {3072},
                                                   {},    {3584},       {}};
  for (uint32_t k = from; k < t.ops.size(); ++k) b.run(k, at[k]);
  for (const uint32_t s : {kX, kA, kB, kLoss, kGrad}) {
    if (b.resident(s)) b.free(s);
  }
  return b.build();
}

TEST(ScheduleValidator, NamesWhatIsWrongWithResidence) {
  const StepTrace t = trace();
  const std::vector<Script> scripts = {
      {"reads storage 2 (conv), which is not resident",
       [&] { return rest(up_to(t, 2).offload(kA), t, 2); }},
      {"must go to scratch",
       [&] {
         return rest(up_to(t, 2).again(1, {kA}, {4608, 5632}), t, 2);
       }},
      {"storage 4 (sum) is not resident",
       [&] { return rest(up_to(t, 2).offload(kLoss), t, 2); }},
      {"is already resident",
       [&] { return rest(up_to(t, 2).copy_out(kA).copy_in(kA, 4608), t, 2); }},
      {"has no valid copy",
       [&] { return rest(up_to(t, 2).evict(kA).copy_in(kA, 1024), t, 2); }},
      {"has no copy", [&] { return rest(up_to(t, 2).drop_copy(kA), t, 2); }},
      {"may not be evicted",  // an upload
       [&] { return rest(up_to(t, 6).evict(kX), t, 6); }},
      {"freed before the program releases it",
       [&] { return rest(up_to(t, 2).free(kX), t, 2); }},
      {"freed before its last use", [&] { return rest(up_to(t, 4).free(kA), t, 4); }},
      {"is freed but is neither resident nor copied",
       [&] { return rest(up_to(t, 2).free(kB), t, 2); }},
      {"is still live at the end",
       [&] {
         ScheduleBuilder b = up_to(t, 7);
         return b.free(kA).free(kB).free(kLoss).free(kGrad).build();
       }},
      {"neither resident nor copied at the end",
       [&] {
         ScheduleBuilder b = up_to(t, 7);
         return rest(b.offload(kW).drop_copy(kW), t, 7);
       }},
      {"writes in place and must not run again",
       [&] { return rest(up_to(t, 7).again(6, {}), t, 7); }},
      {"reads version 0 of storage 0 (w), which is at version 1",
       [&] {
         return rest(up_to(t, 7).again(1, {}, {4608, 5632}), t, 7);
       }},
      {"storage 2 (conv) can no longer be restored",  // its source is gone
       [&] {
         ScheduleBuilder b = up_to(t, 3);
         b.evict(kA).offload(kX).drop_copy(kX);
         return rest(b, t, 3);
       }},
  };
  const PlanLimits ample = ample_limits();
  EXPECT_TRUE(found(t, rest(up_to(t, 2), t, 2), ample).empty());
  EXPECT_TRUE(found(t, rest(up_to(t, 2).again(1, {}, {4608, 5632}), t, 2), ample).empty());
  expect_each(t, scripts);
}

// A schedule may be left at each instruction. a is held, and conv read w before sgd wrote it.
TEST(ScheduleValidator, AWriteMustNotTakeAwayTheWayBack) {
  StepTrace t = trace();
  t.ops[5].released = {kB};
  t.ops[6].released = {kGrad};
  t.ops.push_back({.name = "tail", .released = {kX, kA}});
  ASSERT_TRUE(trace_violations(t).empty());
  const PlanLimits ample = ample_limits();
  const auto with = [&](bool copy) {
    ScheduleBuilder b = up_to(t, 6);
    if (copy) {
      b.offload(kA);
    } else {
      b.evict(kA);
    }
    b.run(6).run(7);
    if (copy) b.free(kA);
    return rest(b, t, 8);
  };
  expect_one(found(t, with(false), ample),
             "instruction 7: storage 2 (conv) can no longer be restored");
  EXPECT_TRUE(found(t, with(true), ample).empty());
}

// The value that a call made is gone once a later call has overwritten it.
TEST(ScheduleValidator, WhatHasBeenWrittenIsNotComputedAgain) {
  StepTrace t;
  t.storages = {{.origin = "f", .size = Bytes(512)}};
  t.ops = {{.name = "f", .outputs = {0}},
           {.name = "g", .inputs = {{0, 0, true}}},
           {.name = "h", .released = {0}}};
  ASSERT_TRUE(trace_violations(t).empty());
  ScheduleBuilder b(t);
  expect_one(found(t, ScheduleBuilder(b).run(0).run(1).evict(0).run(2).build()),
             "instruction 2: storage 0 (f) can no longer be restored");
  expect_one(
      found(t,
            ScheduleBuilder(b).run(0).copy_out(0).run(1).drop_copy(0).run(2).free(0).build()),
      "instruction 3: storage 0 (f) has no copy");
  expect_one(
      found(t,
            ScheduleBuilder(b).run(0).run(1).offload(0).again(0, {0}).run(2).free(0).build()),
      "instruction 3: storage 0 (f) has been written since it was produced");
  EXPECT_TRUE(found(t, b.run(0).evict(0).again(0, {0}).run(1).run(2).free(0).build()).empty());
}

//   0 f -> a    1 g a -> b, drops a    2 h b, drops b
StepTrace chain() {
  StepTrace t;
  t.storages = {{.origin = "f", .size = Bytes(512)}, {.origin = "g", .size = Bytes(512)}};
  t.ops = {
      {.name = "f", .outputs = {0}},
      {.name = "g", .inputs = {{0}}, .outputs = {1}, .may_overwrite = {0}, .released = {0}},
      {.name = "h", .inputs = {{1}}, .released = {1}}};
  return t;
}

TEST(ScheduleValidator, AnOutputMayTakeTheSpaceOfAnInputThatIsDropped) {
  const StepTrace t = chain();
  const Schedule s = ScheduleBuilder(t).run(0).run_over(1, 0).run(2).free(1).build();
  EXPECT_TRUE(found(t, s).empty()) << found(t, s)[0];
  EXPECT_EQ(s.peak, Bytes(512));
  PlanLimits one_block = limits();
  one_block.space = Bytes(512);
  EXPECT_TRUE(found(t, s, one_block).empty());
  const auto copied =
      ScheduleBuilder(t).run(0).copy_out(0).run_over(1, 0).run(2).free(1).build();
  EXPECT_TRUE(found(t, copied).empty()) << found(t, copied)[0];
}

// back may run from x, a and a workspace instead of a and b. Then b is not needed any more: it
// is evicted, as the program holds it still.
StepTrace trace_with_variant() {
  StepTrace t = trace();
  t.ops[5].variants = {{.name = "back_again", .inputs = {{kA}, {kX}}, .workspace = Bytes(512)}};
  return t;
}
ScheduleBuilder variant_builder(const StepTrace& t) {
  ScheduleBuilder b(t);
  b.initial(kW, 0);
  b.run(0, {512});                         // 0 upload
  b.run(1, {1024, 2048});                  // 1 conv
  b.run(2, {2048});                        // 2 relu
  b.run(3, {3072});                        // 3 sum
  b.evict(kB);                             // 4
  b.run(4).free(kLoss);                    // 5 read, 6
  b.run_variant(5, 1, {2048, 3072});       // 7 back, by its variant
  b.free(kA).run(6).free(kGrad).free(kX);  // 8, 9 sgd, 10, 11
  return b;
}

TEST(ScheduleValidator, ACallMayRunAsItsVariant) {
  const StepTrace t = trace_with_variant();
  ASSERT_TRUE(trace_violations(t).empty()) << trace_violations(t)[0];
  const Schedule s = variant_builder(t).build();
  const auto violations = found(t, s);
  EXPECT_TRUE(violations.empty()) << violations[0];
  const auto broken = [&](auto change) {
    Schedule other = s;
    change(other);
    return found(t, other);
  };
  expect_one(broken([](Schedule& o) { o.code[7].variant = 2; }), "there is no such variant");
  expect_one(broken([](Schedule& o) { o.code[2].variant = 1; }), "there is no such variant");
  expect_one(broken([](Schedule& o) { o.code[6].variant = 1; }), "there is no such variant");
}

TEST(ScheduleValidator, AVariantReadsWhatItSays) {
  const StepTrace t = trace_with_variant();
  ScheduleBuilder without(t);
  without.initial(kW, 0).run(0, {512}).run(1, {1024, 2048}).run(2, {2048}).run(3, {3072});
  without.run(4).free(kLoss).evict(kA).run_variant(5, 1, {1024, 3072});
  without.free(kB).run(6).free(kGrad).free(kX);
  expect_one(found(t, without.build()), "reads storage 2 (conv), which is not resident");

  // The program drops x early: it stays for the variant, and must not be freed before it.
  StepTrace early = trace_with_variant();
  early.ops[6].released = {kGrad};
  early.ops[3].released = {kX};
  ASSERT_TRUE(trace_violations(early).empty());
  EXPECT_TRUE(found(early, variant_builder(early).build()).empty());
  ScheduleBuilder freed(early);
  freed.initial(kW, 0).run(0, {512}).run(1, {1024, 2048}).run(2, {2048}).run(3, {3072});
  freed.run(4).free(kLoss).free(kX).run_variant(5, 1, {3072, 512});
  freed.free(kA).free(kB).run(6).free(kGrad);
  const auto violations = found(early, freed.build());
  ASSERT_FALSE(violations.empty());
  EXPECT_NE(violations[0].find("is freed before its last use"), std::string::npos)
      << violations[0];
}

TEST(ScheduleValidator, NoVariantRunsAgain) {
  StepTrace t = trace();
  t.ops[2].variants = {{.name = "other", .inputs = {{kA}}}};
  ScheduleBuilder b(t);
  b.initial(kW, 0).run(0, {512}).run(1, {1024, 2048}).run(2, {2048}).run(3, {3072});
  b.evict(kB).again(2, {kB}, {2048}).run(4).free(kLoss).run(5, {3072});
  b.free(kA).free(kB).run(6).free(kGrad).free(kX);
  Schedule s = b.build();
  EXPECT_TRUE(found(t, s).empty());
  s.code[5].variant = 1;
  expect_one(found(t, s), "no variant runs again");
}

TEST(ScheduleValidator, NothingElseMayBeOverwritten) {
  const auto over = [](const StepTrace& t, const ScheduleBuilder::Places& at = {}) {
    return ScheduleBuilder(t).run(0).run_over(1, 0, at).run(2).free(1).build();
  };
  StepTrace t = chain();
  expect_one(found(t, over(t, {512})),
             "instruction 1: storage 0 (f) and what overwrites it have different offsets");
  t.ops[1].may_overwrite.clear();
  expect_one(found(t, over(t)), "instruction 1: op 1 (g) may not overwrite that storage");
  t = chain();
  t.storages[1].size = Bytes(1024);
  expect_one(found(t, over(t)), "instruction 1: op 1 (g) overwrites a storage of another size");

  // The program still has it, or uses it.
  t = chain();
  std::swap(t.ops[1].released, t.ops[2].released);
  t.ops[2].released.push_back(1);
  EXPECT_EQ(found(t, over(t)).front(),
            "instruction 1: storage 0 (f) is overwritten before the program releases it");
  t.ops[2].inputs.push_back({0});
  EXPECT_EQ(found(t, over(t))[1],
            "instruction 1: storage 0 (f) is overwritten before its last use");

  // It runs once, from a block that ends there.
  t = chain();
  Schedule s = over(t);
  s.blocks[0].end = 2;
  EXPECT_FALSE(found(t, s).empty());
  s = over(t);
  s.code[3].overwrites = 0;
  expect_one(found(t, s), "instruction 3: only an operator of the program runs in place");
  ScheduleBuilder b(t);
  b.run(0).run(1, {512}).free(0).evict(1).again(0, {0}).again(1, {1}, {512}).free(0).run(2);
  s = b.free(1).build();
  EXPECT_TRUE(found(t, s).empty()) << found(t, s)[0];
  s.code[5].overwrites = 0;
  expect_one(found(t, s), "instruction 5: only an operator of the program runs in place");
}

TEST(ScheduleValidator, WhatIsKeptApartIsNotOverwritten) {
  StepTrace t;
  t.storages = {{.origin = "w", .size = Bytes(512), .at_start = true, .at_end = true},
                {.origin = "f", .size = Bytes(512)}};
  t.ops = {{.name = "f", .inputs = {{0}}, .outputs = {1}, .may_overwrite = {0}},
           {.name = "g", .inputs = {{0}, {1}}, .released = {1}}};
  ASSERT_TRUE(trace_violations(t).empty());
  Schedule s = ScheduleBuilder(t).run(0).run(1).free(1).build();
  s.residents_apart = true;
  EXPECT_TRUE(found(t, s).empty()) << found(t, s)[0];
  s.code[0].overwrites = 0;
  expect_one(found(t, s), "instruction 0: storage 0 (w) is kept apart");
}

// An intermediate that the program has let go of is recomputed for another, and freed again.
TEST(ScheduleValidator, IntermediatesComeBackAndAreFreedAgain) {
  StepTrace t = trace();
  t.ops[3].released = {kA};
  t.ops[5].inputs = {{kB}};
  t.ops[5].released = {kB};
  ASSERT_TRUE(trace_violations(t).empty());
  ScheduleBuilder b(t);
  b.initial(kW, 0).run(0, {512}).run(1, {1024, 2048}).run(2, {2048}).run(3, {3072}).run(4);
  b.free(kA).evict(kB).free(kLoss);
  b.again(1, {kA}, {1024, 2048}).again(2, {kB}, {2048}).free(kA);
  b.run(5, {1024}).free(kB).run(6).free(kGrad).free(kX);
  const auto violations = found(t, b.build());
  EXPECT_TRUE(violations.empty()) << violations[0];
}

TEST(ScheduleValidator, ResidentsMayBeApart) {
  const StepTrace t = trace();
  ScheduleBuilder b(t);
  b.run(0, {0}).run(1, {512, 1536}).run(2, {1536}).run(3, {2560}).run(4).free(kLoss);
  b.run(5, {2560}).free(kA).free(kB).run(6).free(kGrad).free(kX);
  Schedule s = b.build();
  s.residents_apart = true;
  EXPECT_TRUE(found(t, s).empty()) << found(t, s)[0];
  PlanLimits less = limits();
  less.space = Bytes(3584 + 511);
  expect_one(found(t, s, less), "with residents, is 1 bytes above the available space");
  s.code.push_back({Do::kCopyOut, false, kW});
  expect_one(found(t, s), "is kept apart");
  s = good(t);
  s.residents_apart = true;
  const auto violations = found(t, s);
  ASSERT_FALSE(violations.empty());
  EXPECT_NE(violations[0].find("is kept apart but has a block"), std::string::npos);
}

TEST(ScheduleValidator, ForeignStoragesMayBeMovedAndFreed) {
  const StepTrace t = trace();
  ScheduleBuilder b(t);
  b.initial(kW, 0).foreign(512, 4608).run(0, {512});
  const uint32_t foreign = kGrad + 1;
  ScheduleBuilder moved = b;
  moved.move(foreign, 5120);
  const PlanLimits ample = ample_limits();
  EXPECT_TRUE(found(t, rest(moved, t, 1), ample).empty());
  ScheduleBuilder freed = b;
  freed.free(foreign);
  EXPECT_TRUE(found(t, rest(freed, t, 1), ample).empty());
  expect_one(found(t, rest(freed.free(foreign), t, 1), ample),
             "is freed but is neither resident nor copied");
  expect_one(found(t, rest(b.copy_out(foreign), t, 1), ample), "may only be moved or freed");
}

// An initial storage without an initial block begins on a tier.
TEST(ScheduleValidator, AStepMayBeginWithStoragesAway) {
  const StepTrace t = trace();
  ScheduleBuilder b(t);
  b.run(0, {512}).copy_in(kW, 0);
  ScheduleBuilder once = b;
  const std::vector<ScheduleBuilder::Places> at = {{},     {1024, 2048}, {2048},
                                                   {3072}, {},           {3584}};
  for (uint32_t k = 1; k < 6; ++k) once.run(k, at[k]);
  once.run(6);
  PlanLimits ample = limits();
  ample.space = Bytes(1 << 20);
  const auto violations = found(t, rest(once, t, 7), ample);
  EXPECT_TRUE(violations.empty()) << violations[0];
  ample.tier_space = Bytes(511);
  expect_one(found(t, rest(once, t, 7), ample), "begin on the tiers need more");
}

// --- storages carried over the step's end ---

// s0 comes from an earlier step and ends in this one; s1 = f(s0) is made in it and stays.
StepTrace carrying() {
  TraceBuilder b;
  const uint32_t in = b.outside();
  b.keep(b.call({in}));
  return b.trace();
}

TEST(ScheduleValidator, WhatIsCarriedBeginsAndEndsWhereTheScheduleSays) {
  const StepTrace t = carrying();
  const PlanLimits ample{.space = units(2), .tier_space = units(1)};
  const int64_t above = units(1).count();
  const auto both = [&](ScheduleBuilder b) { return found(t, b.build(), ample); };
  ScheduleBuilder resident(t);
  EXPECT_TRUE(both(resident.initial(0).run(0, {above}).free(0)).empty());
  EXPECT_TRUE(both(resident.move(1)).empty()) << "it need not end where it was made";
  ScheduleBuilder away(t);
  EXPECT_TRUE(both(away.copy_in(0).run(0, {above}).free(0).offload(1)).empty());
}

TEST(ScheduleValidator, WhatIsCarriedInGoesAndWhatIsCarriedOutStays) {
  const StepTrace t = carrying();
  const PlanLimits ample{.space = units(2), .tier_space = units(2)};
  const int64_t above = units(1).count();
  ScheduleBuilder stays(t), freed(t), evicted(t), copied(t);
  stays.initial(0).run(0, {above});
  expect_one(found(t, stays.build(), ample), "storage 0 (test) is still live at the end");
  copied.initial(0).run(0, {above}).offload(0);
  expect_one(found(t, copied.build(), ample), "storage 0 (test) is still live at the end");
  freed.initial(0).run(0, {above}).free(0).free(1);
  EXPECT_FALSE(found(t, freed.build(), ample).empty());
  evicted.initial(0).run(0, {above}).evict(1).free(0);
  EXPECT_FALSE(found(t, evicted.build(), ample).empty()) << "its source is gone";
}

TEST(ScheduleValidator, AcceptsRandomReleases) {
  std::mt19937 random(1);
  int64_t released = 0, again = 0;
  for (int i = 0; i < 300; ++i) {
    const StepTrace t = random_trace(random);
    const Schedule s = RandomSchedule(t, random).run();
    PlanLimits ample{.space = s.peak, .tier_space = Bytes(int64_t{1} << 40)};
    const auto violations = schedule_violations(t, ample, s);
    ASSERT_TRUE(violations.empty()) << "trace " << i << ": " << violations[0];
    released += releases(s) ? 1 : 0;
    for (const auto& it : s.code) again += it.again ? 1 : 0;
  }
  EXPECT_GT(released, 200);
  EXPECT_GT(again, 100);
}

}  // namespace
}  // namespace tidemark::testing
