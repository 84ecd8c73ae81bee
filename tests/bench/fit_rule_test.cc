#include "bench/fit_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "bench/training_run.h"

namespace tidemark {
namespace {

constexpr Category kAny = Category::kActivation;

Bytes units(int64_t n) { return kAlignment * n; }

// A trace from words: +n allocates n units (+nw a workspace), -k frees block k.
MemoryTrace trace_of(const std::vector<std::string>& words) {
  MemoryTrace trace;
  for (const std::string& word : words) {
    const int64_t n = std::stoll(word.substr(1));
    if (word[0] == '-') {
      trace.events.push_back({.kind = TraceEvent::kFree, .block = n});
    } else {
      trace.events.push_back({TraceEvent::kAllocate,
                              word.back() == 'w' ? Category::kWorkspace : kAny, trace.blocks++,
                              units(n)});
    }
  }
  return trace;
}

const FitRule& rule(const std::string& name) {
  return *std::find_if(fit_rules().begin(), fit_rules().end(),
                       [&](const FitRule& rule) { return rule.name == name; });
}

// AAAAbCCd  ->  two holes of 4 and 2, and a tail of 3
struct Holes {
  OffsetAllocator range{units(11)};
  Holes() {
    const Block a = range.allocate(units(4))->block;
    range.allocate(units(1));
    const Block c = range.allocate(units(2))->block;
    range.allocate(units(1));
    range.free(a, {});
    range.free(c, {});
  }
  int64_t place(const FitRule& rule, int64_t size, Category category = kAny) {
    Placement placement(rule);
    const auto at = placement.choose(range, units(size), category);
    return at ? at->value() / kAlignment.count() : -1;
  }
};

TEST(FitRule, PlacesWhereItSays) {
  Holes h;
  EXPECT_EQ(h.place(rule("best_fit"), 2), 5);
  EXPECT_EQ(h.place(rule("best_fit"), 3), 8);
  EXPECT_EQ(h.place(rule("best_fit_tail_last"), 3), 0);
  EXPECT_EQ(h.place(rule("first_fit"), 2), 0);
  EXPECT_EQ(h.place(rule("first_fit_workspace_top"), 2, Category::kWorkspace), 2);
  EXPECT_EQ(h.place(rule("first_fit_workspace_top"), 2), 0);
  EXPECT_EQ(h.place(rule("best_fit"), 5), -1);
}

TEST(FitRule, NextFitGoesOnWhereItWas) {
  Holes h;
  Placement next(rule("next_fit"));
  const auto place = [&](int64_t n) {
    return h.range.allocate_at(*next.choose(h.range, units(n), kAny), units(n))->block.offset;
  };
  EXPECT_EQ(place(1), Offset(0));
  EXPECT_EQ(place(1), Offset(0) + units(1));
  EXPECT_EQ(place(2), Offset(0) + units(2));
  EXPECT_EQ(place(1), Offset(0) + units(5));
  EXPECT_EQ(place(2), Offset(0) + units(8));  // only the tail is left for it
  EXPECT_EQ(place(1), Offset(0) + units(6));  // wraps round, before the tail
}

TEST(FitRule, SizeClassesRoundUp) {
  const Placement classes({.name = "x", .size_classes = 4});
  EXPECT_EQ(classes.rounded(Bytes(1)), units(1));
  EXPECT_EQ(classes.rounded(units(5)), units(5));
  EXPECT_EQ(classes.rounded(units(9)), units(10));
  EXPECT_EQ(classes.rounded(units(64)), units(64));
  EXPECT_EQ(classes.rounded(units(65)), units(80));
  EXPECT_EQ(Placement(rule("best_fit")).rounded(Bytes(513)), units(2));
}

// What the arena does, said by the rules here, places every block alike.
TEST(FitRule, BestFitWithTheTailLastIsTheArena) {
  const FitRule same{.name = "x", .workspace_from_top = true};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    MemoryTrace trace;
    std::vector<int64_t> live;
    for (int i = 0; i < 600; ++i) {
      if (random() % 100 < 45 && !live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        trace.events.push_back({.kind = TraceEvent::kFree, .block = live.back()});
        live.pop_back();
      } else {
        live.push_back(trace.blocks);
        trace.events.push_back({TraceEvent::kAllocate,
                                random() % 4 == 0 ? Category::kWorkspace : kAny, trace.blocks++,
                                Bytes(static_cast<int64_t>(random() % 20000))});
      }
    }
    const auto peak = replay(trace, rule("arena"), kEndless);
    EXPECT_EQ(replay(trace, same, kEndless), peak);
    EXPECT_GE(*peak, trace.max_live());
    EXPECT_EQ(smallest_capacity(trace, rule("arena")), peak);
    EXPECT_TRUE(replay(trace, rule("arena"), *peak));
    EXPECT_FALSE(replay(trace, rule("arena"), *peak - kAlignment));
    EXPECT_GE(offline_by_size(trace), trace.max_live());
  }
}

//   ...bcc..   a is gone and d comes: below b, or, where the tail fits it better, in the tail
TEST(FitRule, SmallestCapacityOfARuleThatDependsOnIt) {
  const MemoryTrace trace = trace_of({"+3", "+1", "+2", "-0", "+1", "-1", "+4"});
  EXPECT_EQ(trace.max_live(), units(7));
  EXPECT_EQ(replay(trace, rule("best_fit_tail_last"), units(9)), std::nullopt);
  EXPECT_EQ(smallest_capacity(trace, rule("best_fit_tail_last")), units(10));
  // 7 and 8 are luck: 9 is not enough.
  EXPECT_EQ(replay(trace, rule("best_fit"), units(7)), units(7));
  EXPECT_TRUE(replay(trace, rule("best_fit"), units(8)));
  EXPECT_EQ(replay(trace, rule("best_fit"), units(9)), std::nullopt);
  EXPECT_EQ(smallest_capacity(trace, rule("best_fit")), units(10));
}

TEST(FitRule, KnowingTheFutureLeavesNoHoleHere) {
  //   +2 +1 -0 +3: online 3 cannot use the hole of 2
  const MemoryTrace trace = trace_of({"+2", "+1", "-0", "+3"});
  EXPECT_EQ(replay(trace, rule("first_fit"), kEndless), units(6));
  EXPECT_EQ(offline_by_size(trace), units(4));
}

// A session with the arena's rule said by FitArena runs as with the arena.
TEST(FitRule, TrainsAsTheArenaDoes) {
  const TrainingRun run{.model = "resnet18",
                        .device = "sim:a100-80gb",
                        .batch = 16,
                        .image = 8,
                        .channels = 1,
                        .classes = 10,
                        .room = 0.2};
  const auto by = [&](const FitRule& rule) {
    return train(run, [&](Device& device, Bytes capacity) {
      return std::make_unique<FitArena>(device, capacity, rule);
    });
  };
  const TrainingResult expected = by(rule("arena"));
  const TrainingResult actual = by({.name = "x", .workspace_from_top = true});
  EXPECT_GT(expected.moved, Bytes(0));
  EXPECT_EQ(actual.moved, expected.moved);
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    EXPECT_EQ(actual.steps[i].duration, expected.steps[i].duration);
    EXPECT_EQ(actual.steps[i].offload_bytes, expected.steps[i].offload_bytes);
  }
}

}  // namespace
}  // namespace tidemark
