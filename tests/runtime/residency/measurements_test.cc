// Which operators are timed where timing costs time.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

constexpr int kOperators = 20;
constexpr int kEach = 16;

class MeasurementsTest : public ::testing::Test {
 protected:
  explicit MeasurementsTest(SessionOptions options = session_options({.arena = 1024}))
      : session_(std::move(options),
                 std::make_unique<CostlyTiming>(make_cpu_device({.threads = 1}))) {}

  // Runs a step of kOperators operators of different signatures. Returns which were timed.
  std::vector<bool> step(const std::function<void(const Handle&)>& also = {}) {
    const uint64_t before = session_.events().next_tag();
    session_.step([&] {
      Handle x = toy_upload(session_, kUnitWords, 1);
      for (int i = 0; i < kOperators; ++i) {
        x = toy_call(session_, {x}, {{kUnitWords + i}}, 2).front();
        if (i == kOperators / 2 && also) also(x);
      }
      toy_hash(session_, x);
    });
    session_.device().synchronize_all();
    session_.step([] {});  // takes over the last timings
    std::vector<bool> timed;
    session_.events().for_each([&](const EventRecord& event) {
      if (event.tag >= before && event.kind == EventKind::kOperator) {
        timed.push_back(event.end > Nanos(0));
      }
    });
    EXPECT_EQ(timed.size(), static_cast<size_t>(kOperators));
    return timed;
  }
  int64_t timed_of(const std::vector<bool>& timed) {
    return std::count(timed.begin(), timed.end(), true);
  }

  Session session_;
};

TEST_F(MeasurementsTest, OperatorsWithKnownCostsAreSampledInTurn) {
  for (int i = 0; i < kEach; ++i) EXPECT_EQ(timed_of(step()), kOperators) << i;
  std::vector<int> times(kOperators);
  for (int i = 0; i < 2 * kEach; ++i) {
    const std::vector<bool> timed = step();
    EXPECT_GE(timed_of(timed), kOperators / kEach) << i;
    EXPECT_LE(timed_of(timed), kOperators / kEach + 1) << i;
    for (size_t k = 0; k < timed.size(); ++k) times[k] += timed[k];
  }
  EXPECT_EQ(times, std::vector<int>(kOperators, 2));
}

TEST_F(MeasurementsTest, AllOperatorsAreTimedWhileMemoryIsShort) {
  for (int i = 0; i < kEach; ++i) step();
  const int64_t sampled = timed_of(step());
  const auto evict = [&](const Handle& x) {
    x->offload_pinned = true;
    ASSERT_TRUE(session_.residency().transfers().release(*x, Reason::kNoSpace));
    x->offload_pinned = false;
  };
  const int64_t after = timed_of(step(evict));
  EXPECT_GE(after, kOperators / 2 - 1);
  EXPECT_LT(after, kOperators / 2 + sampled + 1);
  session_.step([&] {
    const Handle x = toy_upload(session_, kUnitWords, 1);
    evict(toy_call(session_, {x}, {{kUnitWords}}, 2).front());
  });
  EXPECT_EQ(timed_of(step()), kOperators) << "the step before was short of memory";
}

TEST_F(MeasurementsTest, UnderAScheduleTheyAreSampledThen) {
  for (int i = 0; i < kEach; ++i) step();
  const int64_t sampled = timed_of(step());
  session_.residency().measurements().set_planned(true);
  const auto evict = [&](const Handle& x) {
    x->offload_pinned = true;
    ASSERT_TRUE(session_.residency().transfers().release(*x, Reason::kPlan));
    x->offload_pinned = false;
  };
  EXPECT_LE(timed_of(step(evict)), sampled + 1);
}

struct AllTimed : MeasurementsTest {
  static SessionOptions options() {
    SessionOptions options = session_options({.arena = 1024});
    options.residency.time_all = true;
    return options;
  }
  AllTimed() : MeasurementsTest(options()) {}
};

TEST_F(AllTimed, OnRequest) {
  for (int i = 0; i < kEach + 4; ++i) EXPECT_EQ(timed_of(step()), kOperators) << i;
}

// Costs that are not learnt, because other work keeps the processors busy, stay unknown.
TEST_F(MeasurementsTest, UntilCostsAreKnownAllAreTimed) {
  session_.residency().measurements().set_learning(false);
  for (int i = 0; i < kEach + 4; ++i) EXPECT_EQ(timed_of(step()), kOperators) << i;
}

}  // namespace
}  // namespace tidemark::testing
