// Steps of storages with letters: the number of each, and when it is needed next.
#include "runtime/policy/forecast.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tidemark {
namespace {

class Call final : public Recipe {
 public:
  const char* name() const override { return "call"; }
  Event launch(Device&, const Addresses&, uint64_t) override { return {}; }
};

DeviceProfile profile() {
  DeviceProfile profile;
  profile.memory_bandwidth = 1e9;
  profile.offload_bandwidth = profile.reload_bandwidth = 1e9;
  return profile;
}

// Storages by letter; capitals are parameters.
class Steps {
 public:
  // Reads `in`, makes `out` and takes `cost`; a letter in `written` is an input written in
  // place.
  void call(const std::string& in, const std::string& out, int64_t cost = 10,
            const std::string& written = "") {
    const auto call = make_intrusive<Call>();
    for (const char letter : in) {
      call->inputs.push_back({at(letter), 0, written.find(letter) != std::string::npos});
    }
    for (const char letter : out) call->outputs.push_back({at(letter).get(), kAlignment});
    call->cost_key = costs.key(static_cast<uint64_t>(cost), {0, Bytes(cost), false});
    forecast.record(*call, costs.time(call->cost_key));
  }
  const IntrusivePtr<Storage>& at(char letter) {
    IntrusivePtr<Storage>& storage = storages_[letter];
    if (!storage) {
      const bool parameter = letter >= 'A' && letter <= 'Z';
      ++ids_;
      storage = make_intrusive<Storage>(
          nullptr, ids_, ids_, kAlignment,
          parameter ? Category::kParameter : Category::kActivation, "test");
    }
    return storage;
  }
  // Reports it as the residency manager would.
  void drop(char letter) {
    forecast.ended(*at(letter));
    storages_.erase(letter);
  }
  // 0: W a > b   1: b > c   2: c > d   3: d b > e   4: W e >
  void step(const std::string& dropped = "abcde") {
    forecast.begin_step();
    call("Wa", "b", 10);
    call("b", "c", 20);
    call("c", "d", 30);
    call("db", "e", 40);
    call("We", "", 50);
    for (const char letter : dropped) drop(letter);
    forecast.end_step();
  }
  Nanos next(char letter) { return forecast.until_next_use(*at(letter)); }
  uint32_t number(char letter) { return forecast.item_of(*at(letter)); }

  CostModel costs{profile()};
  Forecast forecast;

 private:
  uint32_t ids_ = 0;
  std::map<char, IntrusivePtr<Storage>> storages_;
};

TEST(Forecast, TellsTheNextUseFromTheLastStep) {
  Steps steps;
  steps.step();
  steps.forecast.begin_step();
  ASSERT_TRUE(steps.forecast.known());
  EXPECT_EQ(steps.next('W'), Nanos(0)) << "not used yet in this step: still its old number";
  steps.call("Wa", "b", 10);
  EXPECT_EQ(steps.forecast.next_call(*steps.at('b')), 1U);
  EXPECT_EQ(steps.next('b'), Nanos(0));
  EXPECT_EQ(steps.next('a'), Forecast::kNever);
  EXPECT_EQ(steps.forecast.next_call(*steps.at('a')), 5U);
  EXPECT_EQ(steps.next('W'), Nanos(20 + 30 + 40));
  steps.call("b", "c", 20);
  EXPECT_EQ(steps.forecast.next_call(*steps.at('b')), 3U);
  EXPECT_EQ(steps.next('b'), Nanos(30));
  steps.call("c", "d", 30);
  steps.call("db", "e", 40);
  EXPECT_EQ(steps.next('b'), Forecast::kNever);
  steps.call("We", "", 50);
  ASSERT_TRUE(steps.forecast.known());
  EXPECT_EQ(steps.next('W'), Nanos(0)) << "the next step begins with it";
  EXPECT_EQ(steps.next('e'), Forecast::kNever);
}

// A storage that lives on is needed in the next step: W 20 ns after this one ends.
TEST(Forecast, CountsOverTheStepsEnd) {
  Steps steps;
  for (int i = 0; i < 2; ++i) {
    steps.forecast.begin_step();
    steps.call("", "a", 20);
    steps.call("aW", "b", 30);
    if (i == 1) break;
    steps.call("b", "c", 40);
    for (const char letter : {'a', 'b', 'c'}) steps.drop(letter);
    steps.forecast.end_step();
  }
  ASSERT_TRUE(steps.forecast.known());
  EXPECT_EQ(steps.next('W'), Nanos(40 + 20));
}

TEST(Forecast, EqualStepsNumberAlike) {
  Steps steps;
  std::map<char, uint32_t> numbers;
  for (int i = 0; i < 3; ++i) {
    steps.forecast.begin_step();
    steps.call("Wa", "b");
    steps.call("bV", "cd");
    steps.call("Wd", "");
    for (const char letter : {'W', 'a', 'b', 'V', 'c', 'd'}) {
      if (i == 1) numbers[letter] = steps.number(letter);
      if (i == 2) {
        EXPECT_EQ(steps.number(letter), numbers[letter]) << letter;
        EXPECT_EQ(steps.forecast.storage_of(numbers[letter]), steps.at(letter).get());
      }
    }
    EXPECT_EQ(steps.forecast.known(), i > 0);
    for (const char letter : {'a', 'b', 'c', 'd'}) steps.drop(letter);
    steps.forecast.end_step();
  }
  const std::map<char, uint32_t> by_first_use{{'W', 0}, {'a', 1}, {'b', 2},
                                              {'V', 3}, {'c', 4}, {'d', 5}};
  EXPECT_EQ(numbers, by_first_use);
}

TEST(Forecast, ADifferentCallEndsItForTheStep) {
  const auto known = [](auto second) {
    Steps steps;
    steps.step();
    steps.forecast.begin_step();
    steps.call("Wa", "b", 10);
    EXPECT_TRUE(steps.forecast.known());
    second(steps);
    const bool still = steps.forecast.known();
    steps.call("c", "d", 30);
    EXPECT_EQ(steps.forecast.known(), still) << "not found again";
    return still;
  };
  EXPECT_TRUE(known([](Steps& steps) { steps.call("b", "c", 20); }));
  EXPECT_FALSE(known([](Steps& steps) { steps.call("b", "c", 21); })) << "another operator";
  EXPECT_FALSE(known([](Steps& steps) { steps.call("a", "c", 20); })) << "another input";
  EXPECT_FALSE(known([](Steps& steps) { steps.call("bW", "c", 20); })) << "one more";
  EXPECT_FALSE(known([](Steps& steps) { steps.call("b", "", 20); })) << "no output";
}

TEST(Forecast, ALongerStepIsUnknownFromItsEndOn) {
  Steps steps;
  steps.step();
  steps.forecast.begin_step();
  steps.call("Wa", "b", 10);
  steps.call("b", "c", 20);
  steps.call("c", "d", 30);
  steps.call("db", "e", 40);
  steps.call("We", "", 50);
  EXPECT_TRUE(steps.forecast.known());
  steps.call("e", "f", 60);
  EXPECT_FALSE(steps.forecast.known());
}

TEST(Forecast, RecordsWhatAPlanNeeds) {
  Steps steps;
  steps.at('W')->evict_pinned = true;
  steps.at('c')->offload_pinned = true;
  steps.forecast.begin_step();
  steps.call("Wa", "b", 10);
  steps.call("b", "c", 20);
  steps.drop('a');
  steps.call("c", "", 30);
  steps.drop('b');
  steps.call("Wc", "", 40, "W");
  steps.forecast.end_step();
  const StepTable& last = steps.forecast.last();
  ASSERT_EQ(last.calls.size(), 4U);
  EXPECT_EQ(last.duration, Nanos(100));
  EXPECT_EQ(last.calls[2].begin, Nanos(30));
  EXPECT_EQ(last.calls[2].cost, Nanos(30));
  ASSERT_EQ(last.items.size(), 4U);
  const StepTable::Item &w = last.items[0], &a = last.items[1], &b = last.items[2],
                        &c = last.items[3];
  EXPECT_TRUE(w.persistent && !a.persistent && !b.persistent);
  EXPECT_EQ(w.producer, StepTable::kNone);
  EXPECT_EQ(b.producer, 0U);
  EXPECT_EQ(w.uses, (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(c.uses, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_TRUE(!w.may_evict && b.may_evict && c.may_evict);
  EXPECT_TRUE(w.may_offload && b.may_offload && !c.may_offload);
  EXPECT_EQ(a.end, 2U) << "its user went after call 1";
  EXPECT_EQ(b.end, 3U);
  EXPECT_EQ(c.end, 4U) << "still there";
}

// A storage written in place cannot be recomputed.
TEST(Forecast, WhatIsWrittenIsNotEvictable) {
  Steps steps;
  steps.forecast.begin_step();
  steps.call("", "a");
  steps.call("", "b");
  steps.call("ab", "", 10, "a");
  steps.forecast.end_step();
  EXPECT_FALSE(steps.forecast.last().items[0].may_evict);
  EXPECT_TRUE(steps.forecast.last().items[1].may_evict);
}

// A recomputation may bring a storage back for a moment, long after its last user went.
TEST(Forecast, AStorageEndsOnce) {
  Steps steps;
  steps.forecast.begin_step();
  steps.call("", "a");
  steps.call("a", "b");
  steps.forecast.ended(*steps.at('a'));
  steps.call("b", "c");
  steps.forecast.ended(*steps.at('a'));
  steps.forecast.end_step();
  EXPECT_EQ(steps.forecast.last().items[0].end, 2U);
}

TEST(Forecast, WhatIsGoneIsNoLongerFound) {
  Steps steps;
  steps.forecast.begin_step();
  steps.call("", "a");
  EXPECT_EQ(steps.forecast.storage_of(0), steps.at('a').get());
  steps.drop('a');
  EXPECT_EQ(steps.forecast.storage_of(0), nullptr);
  EXPECT_EQ(steps.forecast.storage_of(7), nullptr);
}

// A parameter whose number has changed since the last step leaves no entry behind.
TEST(Forecast, AStorageBearsOneNumber) {
  Steps steps;
  steps.forecast.begin_step();
  steps.call("", "a");
  steps.call("a", "b");
  steps.call("W", "");
  steps.forecast.end_step();
  steps.forecast.begin_step();
  steps.call("W", "");
  EXPECT_EQ(steps.forecast.storage_of(0), steps.at('W').get());
  EXPECT_EQ(steps.forecast.storage_of(2), nullptr);
}

// Uploads, reads and evaluation also happen between steps.
TEST(Forecast, CallsOutsideAStepAreIgnored) {
  Steps steps;
  steps.call("W", "x");
  steps.step();
  steps.call("W", "y");
  steps.call("y", "z");
  EXPECT_FALSE(steps.forecast.known());
  EXPECT_EQ(steps.forecast.last().calls.size(), 5U);
  steps.step();
  EXPECT_EQ(steps.forecast.last().calls.size(), 5U);
}

// A step that is aborted half-way leaves the forecast as it was.
TEST(Forecast, AStepThatIsGivenUpIsForgotten) {
  Steps steps;
  steps.step();
  steps.forecast.begin_step();
  steps.call("b", "c");
  steps.forecast.begin_step();
  EXPECT_TRUE(steps.forecast.known());
  steps.call("Wa", "b", 10);
  EXPECT_TRUE(steps.forecast.known());
  EXPECT_EQ(steps.forecast.calls(), 1U);
}

// Prices are learnt between steps. A forecast stays in the prices of the step that it comes
// from.
TEST(Forecast, IsInOneStepsPrices) {
  Steps steps;
  steps.step();
  for (const int64_t cost : {10, 20, 30, 40, 50}) {
    const CostKey key = steps.costs.key(static_cast<uint64_t>(cost), {0, Bytes(cost), false});
    steps.costs.measured_op(key, Nanos(cost * 1000));
  }
  steps.costs.end_step(/*use=*/true);
  steps.forecast.begin_step();
  steps.call("Wa", "b", 10);
  EXPECT_EQ(steps.forecast.time(), Nanos(10'000));
  EXPECT_EQ(steps.next('W'), Nanos(20 + 30 + 40));
}

// Steps with the smaller last batch of an epoch are forecast from their own kind.
TEST(Forecast, TellsProgramsApartByTheirFirstCall) {
  Steps steps;
  const auto small = [&] {
    steps.forecast.begin_step();
    steps.call("Wa", "b", 5);
    steps.call("Wb", "", 7);
    const bool known = steps.forecast.known();
    for (const char letter : std::string("ab")) steps.drop(letter);
    steps.forecast.end_step();
    return known;
  };
  steps.step();
  const size_t large = steps.forecast.program();
  EXPECT_FALSE(small());
  EXPECT_NE(steps.forecast.program(), large);
  for (int i = 0; i < 2; ++i) {
    steps.forecast.begin_step();
    steps.call("Wa", "b", 10);
    EXPECT_EQ(steps.forecast.program(), large);
    ASSERT_TRUE(steps.forecast.known());
    EXPECT_EQ(steps.next('b'), Nanos(0));
    EXPECT_EQ(steps.next('W'), Nanos(90));
    steps.call("b", "c", 20);
    steps.call("c", "d", 30);
    steps.call("db", "e", 40);
    steps.call("We", "", 50);
    for (const char letter : std::string("abcde")) steps.drop(letter);
    steps.forecast.end_step();
    EXPECT_EQ(steps.forecast.program(), large);
    EXPECT_TRUE(small());
  }
}

// One program more than are kept: the one not seen for longest is forgotten.
TEST(Forecast, ForgetsTheProgramNotSeenForLongest) {
  Steps steps;
  const auto step = [&](int64_t cost) {
    steps.forecast.begin_step();
    steps.call("Wa", "b", cost);
    steps.call("Wb", "", 7);
    const bool known = steps.forecast.known();
    for (const char letter : std::string("ab")) steps.drop(letter);
    steps.forecast.end_step();
    EXPECT_LT(steps.forecast.program(), Forecast::kMaxPrograms);
    return known;
  };
  const auto most = static_cast<int64_t>(Forecast::kMaxPrograms);
  for (int64_t cost = 1; cost <= most + 1; ++cost) EXPECT_FALSE(step(cost));
  for (int64_t cost = 2; cost <= most + 1; ++cost) EXPECT_TRUE(step(cost)) << cost;
  EXPECT_FALSE(step(1));
}

}  // namespace
}  // namespace tidemark
