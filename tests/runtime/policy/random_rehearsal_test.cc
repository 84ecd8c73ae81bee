// Random steps, rehearsed: their events are gone through without the rehearsal's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/policy/tide/step_rehearsal.h"
#include "tests/runtime/policy/trace_builder.h"

namespace tidemark::testing {
namespace {

using Kind = MemoryEvents::Kind;
using Outcome = StepRehearsal::Outcome;
using Releases = std::vector<PlannedRelease>;

Releases random_releases(const StepTable& step, std::mt19937& random) {
  Releases releases;
  const auto add = [&](uint32_t i, uint32_t from, uint32_t to) {
    const StepTable::Item& item = step.items[i];
    const bool wraps = to <= from;
    const bool may_evict = item.may_evict && item.producer != StepTable::kNone && !wraps;
    if (random() % 3 == 0 || (!may_evict && !item.may_offload)) return;
    if (may_evict && (!item.may_offload || random() % 2 == 0)) {
      releases.push_back({i, from, to, Action::kEvict, 0});
      return;
    }
    const uint32_t first = wraps ? 0 : from;
    if (to == first) return;
    const auto back = first + static_cast<uint32_t>(random() % (to - first));
    releases.push_back({i, from, to, Action::kOffload, back});
  };
  for (uint32_t i = 0; i < step.items.size(); ++i) {
    const std::vector<uint32_t>& uses = step.items[i].uses;
    for (size_t u = 0; u + 1 < uses.size(); ++u) {
      if (uses[u + 1] > uses[u] + 1) add(i, uses[u], uses[u + 1]);
    }
    if (step.items[i].persistent) add(i, uses.back(), uses.front());
  }
  return releases;
}

// Counts what was seen, so that a test can tell that it was not empty.
struct Seen {
  int64_t fitting = 0, impossible = 0, stopped = 0, away = 0, again = 0;
  std::map<Kind, int64_t> events;
};

int64_t most_live(const MemoryEvents& memory) {
  std::vector<int64_t> change(memory.events.size() + 2);
  for (size_t b = 0; b < memory.blocks.size(); ++b) {
    const MemoryEvents::Block& block = memory.blocks[b];
    change[b < memory.there ? 0 : block.begin + 1] += block.size.count();
    change[block.end + 1] -= block.size.count();
  }
  int64_t live = 0, most = 0;
  for (const int64_t each : change) most = std::max(most, live += each);
  return most;
}

// From the events alone: what is there when, and who has which block.
void check_events(const StepTable& step, const MemoryEvents& memory, Seen& seen) {
  struct Item {
    std::optional<size_t> block;  // the last that it took
    bool copied = false;
  };
  std::vector<Item> items(step.items.size());
  std::vector<uint32_t> written(step.items.size());  // the last call that did
  const auto resident = [&](uint32_t item, size_t event) {
    const auto& block = items[item].block;
    return block &&
           (memory.blocks[*block].end > event || (*block < memory.there && event == 0));
  };
  size_t next = 0;
  for (; next < memory.there; ++next) {
    const uint32_t item = memory.blocks[next].item;
    ASSERT_TRUE(step.items[item].was_there());
    ASSERT_FALSE(items[item].block);
    items[item].block = next;
  }
  // What lives on and is not there is on the tier.
  for (size_t item = 0; item < items.size(); ++item) {
    items[item].copied = step.items[item].was_there() && !items[item].block;
    seen.away += items[item].copied;
  }
  uint32_t calls = 0;
  for (size_t e = 0; e < memory.events.size(); ++e) {
    const auto [kind, item] = memory.events[e];
    SCOPED_TRACE("event " + std::to_string(e));
    ++seen.events[kind];
    if (kind == Kind::kBlock || kind == Kind::kPrefetch) {
      ASSERT_LT(next, memory.blocks.size());
      const MemoryEvents::Block& block = memory.blocks[next];
      EXPECT_EQ(block.item, item);
      EXPECT_EQ(block.begin, e);
      EXPECT_GT(block.end, e);
      if (item != MemoryEvents::kScratch) {
        EXPECT_EQ(block.size, step.items[item].bytes);
        const uint32_t producer = step.items[item].producer;
        if (producer < calls && !items[item].copied) {
          ++seen.again;
          for (const uint32_t input : step.inputs(producer)) {
            EXPECT_LE(written[input], producer) << "it is made from what has been overwritten";
          }
        }
        // A block that it has left may still be copied from; one that it has not may not be.
        EXPECT_TRUE(!resident(item, e) || items[item].copied) << "it has one";
        EXPECT_TRUE(kind == Kind::kBlock || items[item].copied);
        items[item].block = next;
      } else {
        EXPECT_EQ(kind, Kind::kBlock);
      }
      ++next;
      continue;
    }
    if (kind == Kind::kEndOfCall) {
      for (const uint32_t done : step.written(calls)) written[done] = calls;
      ++calls;
      continue;
    }
    ASSERT_LT(item, items.size());
    const StepTable::Item& it = step.items[item];
    ASSERT_TRUE(resident(item, e)) << item;
    if (kind == Kind::kCopyOut) {
      EXPECT_TRUE(it.may_offload);
      items[item].copied = true;
      continue;
    }
    EXPECT_EQ(memory.blocks[*items[item].block].end, e + 1) << "its room is free at once";
    if (kind == Kind::kOffload) {
      EXPECT_TRUE(items[item].copied);
    } else {
      EXPECT_TRUE(it.may_evict && it.producer != StepTable::kNone);
    }
  }
  EXPECT_EQ(next, memory.blocks.size());
  EXPECT_EQ(calls, step.calls.size());
  for (const MemoryEvents::Block& block : memory.blocks) {
    EXPECT_LE(block.begin, block.end);
    EXPECT_LE(block.end, memory.events.size());
  }
}

void check_step(const StepTable& step, const PlanLimits& limits, const Releases& releases,
                Seen& seen, std::mt19937& random) {
  StepRehearsal rehearsal(step, limits);
  MemoryEvents memory;
  const Outcome outcome = rehearsal.run(releases, &memory);
  seen.impossible += !outcome.possible;
  const std::string first =
      outcome.possible ? std::to_string(outcome.cost) + std::to_string(outcome.calls) : "";
  // Whatever was rehearsed in between, and whether anybody writes it down.
  rehearsal.run(random_releases(step, random));
  const Outcome again = rehearsal.run(releases);
  EXPECT_EQ(again.possible, outcome.possible);
  EXPECT_EQ(again.cost, outcome.cost);
  if (!outcome.possible) return;
  EXPECT_EQ(std::tuple(again.time, again.recomputed, again.waited, again.copied, again.lacking),
            std::tuple(outcome.time, outcome.recomputed, outcome.waited, outcome.copied,
                       outcome.lacking));
  EXPECT_EQ(outcome.time, step.duration + outcome.recomputed + outcome.waited);
  check_events(step, memory, seen);
  const int64_t over = most_live(memory) - limits.room.count();
  EXPECT_LE(over, outcome.lacking.count());
  EXPECT_EQ(over > 0, outcome.lacking > Bytes(0));
  seen.fitting += outcome.lacking == Bytes(0) && !releases.empty();
  // What costs no more than enough is gone through to its end.
  EXPECT_EQ(rehearsal.run(releases, nullptr, outcome.cost).calls, outcome.calls);
  const Outcome stopped = rehearsal.run(releases, nullptr, outcome.cost * 0.9);
  EXPECT_GT(stopped.cost, outcome.cost * 0.9);
  EXPECT_LE(stopped.cost, outcome.cost * (1 + 1e-12));
  seen.stopped += stopped.calls < outcome.calls;
}

TEST(RandomRehearsal, IsWhatItsEventsSay) {
  Seen seen;
  for (uint32_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTable step = random_step(random);
    PlanLimits limits = copy_within(4 + static_cast<int64_t>(random() % 60),
                                    1 + static_cast<int64_t>(random() % 3000));
    limits.latency = Nanos(random() % 100);
    check_step(step, limits, random_releases(step, random), seen, random);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.fitting, 500);
  EXPECT_GT(seen.impossible, 100);
  EXPECT_GT(seen.stopped, 1000);
  EXPECT_GT(seen.away, 200);
  EXPECT_GT(seen.again, 1000);
  for (const Kind kind : {Kind::kBlock, Kind::kPrefetch, Kind::kEvict, Kind::kCopyOut,
                          Kind::kOffload, Kind::kEndOfCall}) {
    EXPECT_GT(seen.events[kind], 500) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace tidemark::testing
