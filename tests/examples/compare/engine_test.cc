#include "examples/compare/engine.h"

#include <gmock/gmock.h>

#include <bit>
#include <future>
#include <map>
#include <mutex>

#include "examples/common/bert_flags.h"
#include "examples/common/bert_job.h"
#include "examples/compare/history.h"
#include "runtime/core/errors.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

using ::testing::HasSubstr;
using testing::lanes;
using testing::small;
using testing::wait_applied;
using testing::wait_steps;

// Losses by step of each lane, as bits.
class Losses {
 public:
  std::function<void(int, const LaneStep&)> listener() {
    return [this](int lane, const LaneStep& step) {
      const std::scoped_lock lock(mutex_);
      by_step[step.step][lane] = std::bit_cast<uint32_t>(step.loss.value());
      names[lane].push_back(step.name);
    };
  }
  std::map<int64_t, std::map<int, uint32_t>> by_step;
  std::map<int, std::vector<std::string>> names;

 private:
  std::mutex mutex_;
};

// What the same training gives, undisturbed.
std::vector<uint32_t> undisturbed(int64_t steps) {
  std::vector<uint32_t> bits;
  ComparisonOptions options = small("cpu", {"none"}, steps);
  options.on_step = [&](int, const LaneStep& step) {
    bits.push_back(std::bit_cast<uint32_t>(step.loss.value()));
  };
  Comparison comparison(options);
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  return bits;
}

Command switch_to(int lane, const std::string& text) {
  return {.what = Command::kSwitch, .lane = lane, .spec = parse_lane(text), .budget = {}};
}
Command set_budget(int lane, const std::string& text) {
  return {.what = Command::kBudget, .lane = lane, .spec = {}, .budget = parse_budget(text)};
}
Command plain(Command::What what, int lane = 0) {
  return {.what = what, .lane = lane, .spec = {}, .budget = {}};
}

TEST(LaneSpec, IsAPolicyAFilterAndABudget) {
  const LaneSpec spec = parse_lane("delta:lru@40%");
  EXPECT_EQ(spec.policy, "delta");
  EXPECT_EQ(spec.filter, "lru");
  EXPECT_EQ(spec.name(), "delta:lru");
  EXPECT_EQ(spec.budget->resolve(Bytes(102400)), Bytes(40960));
  EXPECT_FALSE(parse_lane("none").managed());
}

TEST(LaneSpec, MistakesAreExplained) {
  for (const char* text :
       {"", "nothing", "delta:best", "dtr:lru", "tide@", "tide@0%", "tide@-1"}) {
    EXPECT_THROW(parse_lane(text), UsageError) << text;
  }
}

TEST(Engine, AllLanesGiveTheSameLossesAndParameters) {
  Comparison comparison(small("cpu", {"none", "tide@40%", "delta:lru@40%", "dtr@60%"}, 4));
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_EQ(now->losses_compared, 4 * 3);
  EXPECT_EQ(now->losses_mismatched, 0);
  ASSERT_EQ(now->lanes.size(), 4U);
  for (const auto& lane : now->lanes) {
    EXPECT_EQ(lane->status, LaneStatus::kFinished);
    EXPECT_EQ(lane->steps_done, 4);
    EXPECT_EQ(lane->checksum, now->lanes[0]->checksum);
    EXPECT_LE(lane->peak_reserved, lane->budget);
  }
  EXPECT_TRUE(now->lanes[0]->checksum.has_value());
  EXPECT_EQ(now->lanes[0]->last.evictions, 0);
  EXPECT_GT(now->lanes[2]->total.evictions + now->lanes[2]->total.offloads, 0);
  EXPECT_DOUBLE_EQ(now->overhead(*now->lanes[0]).value().median, 0);
  EXPECT_EQ(now->overhead_text(*now->lanes[0], true), "reference");
  EXPECT_EQ(now->overhead_text(*now->lanes[1], true), "measuring");  // of 4 steps
}

TEST(Engine, ASwitchABudgetAndAnAddedLaneKeepTheBits) {
  constexpr int64_t kSteps = 10;
  Losses losses;
  ComparisonOptions options = small("cpu", {"none", "delta@50%"}, kSteps);
  options.on_step = losses.listener();
  options.paused = true;
  Comparison comparison(options);
  // Each command is there before the step after which it is to be carried out.
  const auto go_to = [&](int64_t step) {
    comparison.submit(plain(Command::kResume));
    wait_steps(comparison, step);
    return comparison.submit(plain(Command::kPause));
  };
  go_to(2);
  wait_applied(comparison, comparison.submit(switch_to(2, "tide")));
  go_to(4);
  wait_applied(comparison, comparison.submit(set_budget(2, "40%")));
  wait_applied(
      comparison,
      comparison.submit({.what = Command::kAdd, .spec = parse_lane("dtr@60%"), .budget = {}}));
  go_to(6);
  wait_applied(comparison, comparison.submit(switch_to(1, "lru@70%")));
  comparison.submit(plain(Command::kResume));
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });

  const std::vector<uint32_t> expected = undisturbed(kSteps);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  for (const auto& [step, by_lane] : losses.by_step) {
    for (const auto& [lane, bits] : by_lane) {
      EXPECT_EQ(bits, expected[static_cast<size_t>(step)])
          << "lane " << lane << ", step " << step;
    }
  }
  EXPECT_EQ(now->losses_mismatched, 0);
  EXPECT_GT(now->losses_compared, kSteps);
  ASSERT_EQ(now->lanes.size(), 3U);
  for (const auto& lane : now->lanes) {
    EXPECT_EQ(lane->steps_done, kSteps);
    EXPECT_EQ(lane->checksum, now->lanes[0]->checksum);
  }
  EXPECT_EQ(now->lanes[0]->spec.name(), "lru");
  EXPECT_EQ(now->lanes[1]->spec.name(), "tide");
  EXPECT_EQ(now->lanes[1]->budget, share_of(now->unmanaged_peak, 0.4));
  // The added lane began where the others were, and the switched one changed once.
  EXPECT_LT(losses.names[3].size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(losses.names[2].front(), "delta");
  EXPECT_EQ(losses.names[2].back(), "tide");
}

// Dropout draws from the random stream, which has to go on where it was.
TEST(Engine, ASwitchKeepsTheRandomStream) {
  BertFlags flags;
  flags.batch = 2;
  flags.length = 16;
  flags.vocabulary_size = 400;
  flags.dropout = 0.5;
  flags.threads = 2;
  flags.steps = 6;
  complete(flags);
  ComparisonOptions options;
  options.flags = static_cast<const RunFlags&>(flags);
  options.open = [flags](bool with_data) { return open_bert_job(flags, with_data); };
  options.lanes = lanes({"none", "delta@60%"});
  options.paused = true;
  Comparison comparison(options);
  comparison.submit(plain(Command::kResume));
  wait_steps(comparison, 2);
  comparison.submit(switch_to(2, "tide@50%"));
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_EQ(now->lanes[1]->spec.name(), "tide");
  EXPECT_EQ(now->losses_compared, 6);
  EXPECT_EQ(now->losses_mismatched, 0);
  EXPECT_EQ(now->lanes[1]->checksum, now->lanes[0]->checksum);
}

TEST(Engine, ABudgetBelowTheMinimumIsRefusedAndTheOldOneStays) {
  Comparison comparison(small("cpu", {"none", "tide@50%"}, 3));
  const auto before = comparison.snapshot();
  const Bytes too_small = before->minimum - Bytes(1);
  try {
    comparison.submit({.what = Command::kBudget,
                       .lane = 2,
                       .spec = {},
                       .budget = Budget{.bytes = too_small}});
    FAIL() << "it was taken";
  } catch (const InfeasibleBudget& error) {
    EXPECT_EQ(error.minimum(), before->minimum);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(before->minimum.count())));
  }
  // A lane that never releases needs all of it.
  EXPECT_THROW(comparison.submit(set_budget(1, "90%")), InfeasibleBudget);
  EXPECT_THROW(comparison.submit(set_budget(0, "1%")), InfeasibleBudget);
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_EQ(now->lanes[1]->budget, share_of(now->unmanaged_peak, 0.5));
  EXPECT_EQ(now->lanes[1]->steps_done, 3);
}

TEST(Engine, TheMinimumItselfTrains) {
  Comparison probe(small("cpu", {"tide"}, 1));
  const Bytes minimum = probe.snapshot()->minimum;
  ComparisonOptions options = small("cpu", {"none", "tide"}, 3);
  options.lanes[1].budget = Budget{.bytes = minimum};
  Comparison comparison(options);
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_EQ(now->lanes[1]->status, LaneStatus::kFinished) << now->lanes[1]->error;
  EXPECT_LE(now->lanes[1]->peak_reserved, minimum);
  EXPECT_EQ(now->losses_mismatched, 0);
}

TEST(Engine, ABudgetForAllLeavesUnmanagedLanesAlone) {
  ComparisonOptions options = small("sim:host", {"none", "tide@50%", "dtr@60%"}, 0);
  options.paused = true;
  Comparison comparison(options);
  const auto now = wait_applied(comparison, comparison.submit(set_budget(0, "70%")));
  EXPECT_EQ(now->lanes[0]->budget, now->unmanaged_peak);
  EXPECT_EQ(now->lanes[1]->budget, share_of(now->unmanaged_peak, 0.7));
  EXPECT_EQ(now->lanes[2]->budget, share_of(now->unmanaged_peak, 0.7));
  EXPECT_EQ(now->budget, share_of(now->unmanaged_peak, 0.7));
}

TEST(Engine, LanesOnTheSimulatorRunFreely) {
  Comparison comparison(small("sim:a100-80gb", {"none", "tide@40%", "delta:greedy@40%"}, 12));
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_TRUE(now->simulated);
  EXPECT_EQ(now->losses_compared, 0);
  ASSERT_TRUE(now->reference.has_value());
  for (const auto& lane : now->lanes) EXPECT_EQ(lane->steps_done, 12) << lane->error;
  EXPECT_NEAR(now->overhead(*now->lanes[0]).value().median, 0, 1e-9);
  EXPECT_GT(now->overhead(*now->lanes[2]).value().median, 0);
}

TEST(Engine, LanesComeAndGoOnTheSimulator) {
  Comparison comparison(small("sim:a100-80gb", {"tide@40%"}, 0));
  wait_steps(comparison, 2);
  const uint64_t add =
      comparison.submit({.what = Command::kAdd, .spec = parse_lane("dtr@40%"), .budget = {}});
  wait_applied(comparison, add);
  wait_steps(comparison, 3);
  auto now = wait_applied(comparison, comparison.submit(plain(Command::kRemove, 1)));
  ASSERT_EQ(now->lanes.size(), 1U);
  EXPECT_EQ(now->lanes[0]->id, 2);
  EXPECT_THROW(comparison.submit(plain(Command::kRemove, 2)), UsageError);  // the last
  EXPECT_THROW(comparison.submit(plain(Command::kRemove, 1)), UsageError);  // not there
  EXPECT_THROW(comparison.submit(switch_to(9, "lru")), UsageError);
  now = wait_applied(
      comparison,
      comparison.submit({.what = Command::kAdd, .spec = parse_lane("lru@50%"), .budget = {}}));
  EXPECT_EQ(now->lanes.back()->id, 3);
  comparison.stop();
  EXPECT_THROW(comparison.submit(plain(Command::kPause)), UsageError);
}

TEST(Engine, NumbersOfSnapshotsGrow) {
  ComparisonOptions options = small("sim:host", {"tide@50%"}, 0);
  options.paused = true;
  Comparison comparison(options);
  const auto before = comparison.snapshot();
  comparison.submit(plain(Command::kResume));
  const auto after = comparison.wait_newer(before->number, std::chrono::seconds(60));
  EXPECT_GT(after->number, before->number);
  EXPECT_TRUE(before->paused);  // what was published stays as it is
}

TEST(Engine, ThereIsAMostOfLanes) {
  ComparisonOptions options = small("sim:host", {"tide"}, 1);
  options.lanes = std::vector<LaneSpec>(kMaxLanes + 1, parse_lane("tide"));
  EXPECT_THROW(Comparison{options}, UsageError);
  options.lanes.clear();
  EXPECT_THROW(Comparison{options}, UsageError);
  options.lanes = lanes({"tide@1%"});
  EXPECT_THROW(Comparison{options}, InfeasibleBudget);
}

// A job whose losses depend on the policy, which must never be.
class FaultyTraining final : public Training {
 public:
  explicit FaultyTraining(std::unique_ptr<Training> training)
      : training_(std::move(training)) {}
  void prepare(int64_t step) override { training_->prepare(step); }
  StepOutcome step() override {
    StepOutcome outcome = training_->step();
    if (Session::current().options().policy == "dtr") *outcome.loss += 1e-4F;
    return outcome;
  }
  std::optional<std::string> checksum() const override { return training_->checksum(); }
  CarriedParts carried() override { return training_->carried(); }

 private:
  std::unique_ptr<Training> training_;
};

class FaultyJob final : public Job {
 public:
  explicit FaultyJob(std::unique_ptr<Job> job) : job_(std::move(job)) {}
  int64_t batch() const override { return job_->batch(); }
  int64_t steps() const override { return job_->steps(); }
  std::string announcement() const override { return job_->announcement(); }
  Program dry_run() const override { return job_->dry_run(); }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<FaultyTraining>(job_->start());
  }

 private:
  std::unique_ptr<Job> job_;
};

TEST(Engine, AMismatchOfLossesIsShown) {
  ComparisonOptions options = small("cpu", {"none", "dtr@60%"}, 2);
  options.open = [open = options.open](bool with_data) {
    return std::make_unique<FaultyJob>(open(with_data));
  };
  Comparison comparison(options);
  const auto now = comparison.wait_until([](const Snapshot& s) { return s.finished; });
  EXPECT_EQ(now->losses_compared, 2);
  EXPECT_EQ(now->losses_mismatched, 2);
  ASSERT_EQ(now->mismatches.size(), 2U);
  EXPECT_EQ(now->mismatches[0].step, 0);
  EXPECT_EQ(now->mismatches[0].lane, "lane 2 (dtr)");
  EXPECT_EQ(now->mismatches[0].other, "lane 1 (none)");
  EXPECT_THAT(now->notices.front().text, HasSubstr("LOSSES DIFFER"));
}

// Steps 0, 1, 2, ... that took so long, in ms.
std::vector<TimedStep> timed(const std::vector<int64_t>& times) {
  std::vector<TimedStep> steps;
  for (const int64_t ms : times) {
    steps.push_back({static_cast<int64_t>(steps.size()), Nanos(ms * 1'000'000)});
  }
  return steps;
}

TEST(Overhead, NoiseIsCalledNoise) {
  // One lane as fast as the other, but for chance: a ratio of single steps would be -32 %.
  const auto reference = timed({147, 101, 99, 103, 100, 98, 102, 100, 101, 99});
  const auto lane = timed({100, 99, 102, 100, 101, 103, 98, 101, 99, 102});
  const auto overhead = measured_overhead(lane, reference);
  ASSERT_TRUE(overhead);
  EXPECT_EQ(overhead->steps, 10);
  EXPECT_NEAR(overhead->median, 0, 0.02);
  EXPECT_TRUE(overhead->within_noise());
  EXPECT_EQ(describe(overhead, false), "within noise");
}

TEST(Overhead, WhatIsLongerEveryTimeIsNot) {
  // The machine gets twice as slow in the middle; the lane takes a tenth longer throughout.
  const auto reference = timed({100, 100, 100, 100, 200, 200, 200, 200});
  const auto lane = timed({110, 110, 110, 110, 220, 220, 220, 220});
  const auto overhead = measured_overhead(lane, reference);
  ASSERT_TRUE(overhead);
  EXPECT_NEAR(overhead->median, 0.1, 1e-9);
  EXPECT_FALSE(overhead->within_noise());
  EXPECT_EQ(describe(overhead, false), "+10.0 %");
  EXPECT_EQ(describe(overhead, true), "+10.0 % (+10 to +10)");
}

TEST(Overhead, TheSpreadIsTheSignTests) {
  std::vector<int64_t> times;
  for (int64_t ms = 101; ms <= 125; ++ms) times.push_back(ms);
  const auto overhead =
      measured_overhead(timed(times), timed(std::vector<int64_t>(times.size(), 100)));
  ASSERT_TRUE(overhead);
  EXPECT_NEAR(overhead->median, 0.13, 1e-9);
  EXPECT_NEAR(overhead->low, 0.08, 1e-9);  // the 8th and the 18th of 25, as in its tables
  EXPECT_NEAR(overhead->high, 0.18, 1e-9);
}

TEST(Overhead, FewStepsSayNothingYet) {
  EXPECT_FALSE(measured_overhead({}, timed({100})));
  const auto few = measured_overhead(timed({130, 131, 132}), timed({100, 100, 100}));
  EXPECT_EQ(describe(few, true), "measuring");
  EXPECT_FALSE(few->within_noise());
  // The simulator's times are no samples.
  EXPECT_EQ(describe(simulated_overhead(timed({150}), Nanos(100'000'000)), true), "+50.0 %");
  // Steps with other numbers are other steps.
  std::vector<TimedStep> later = timed({100});
  later[0].step = 7;
  EXPECT_FALSE(measured_overhead(later, timed({100})));
}

TEST(History, IsBoundedHoweverManyLanesComeAndGo) {
  History history;
  constexpr int kLanes = 12, kSteps = 21'000;
  for (int lane = 1; lane <= kLanes; ++lane) {
    for (int i = 0; i < kSteps; ++i) history.add(lane, {});
  }
  size_t kept = 0;
  for (const auto& [lane, steps] : history.lanes()) {
    EXPECT_LE(steps.steps.size(), History::kStepsKept);
    kept += steps.steps.size();
  }
  EXPECT_EQ(kept, History::kStepsKeptOfAll);
  EXPECT_EQ(history.lanes().at(1).left_out, kSteps - static_cast<int>(History::kStepsKept));
  EXPECT_FALSE(history.lanes().contains(kLanes));
}

TEST(StepSeries, KeepsAllOfATrainingInFewPoints) {
  StepSeries series;
  constexpr int64_t kSteps = 10'000;
  for (int64_t step = 0; step < kSteps; ++step) {
    series.add(step, static_cast<double>(step), step == 9'999 ? std::optional(1.0) : 2.0);
    ASSERT_LE(series.points().size(), StepSeries::kMaxPoints);
  }
  EXPECT_GE(series.points().size(), StepSeries::kMaxPoints / 2);
  int64_t next = 0;
  for (const StepSeries::Point& point : series.points()) {
    EXPECT_EQ(point.first, next);
    EXPECT_NEAR(point.ms,
                static_cast<double>(point.first) + static_cast<double>(point.steps - 1) / 2,
                1e-6);
    next += point.steps;
  }
  EXPECT_EQ(next, kSteps);
  EXPECT_DOUBLE_EQ(series.points().front().loss.value(), 2);
  EXPECT_LT(series.points().back().loss.value(), 2);
}

TEST(Engine, ColoursStayWithTheirLanes) {
  ComparisonOptions options = small("sim:host", {"none", "tide@50%", "dtr@60%"}, 0);
  options.paused = true;
  Comparison comparison(options);
  const auto colours = [&] {
    std::map<int, int> by_lane;
    const auto now = comparison.snapshot();
    for (size_t i = 0; i < now->lanes.size(); ++i) {
      by_lane[now->lanes[i]->id] = now->standings[i].colour;
    }
    return by_lane;
  };
  using Colours = std::map<int, int>;
  EXPECT_EQ(colours(), (Colours{{1, 0}, {2, 1}, {3, 2}}));
  comparison.submit(plain(Command::kRemove, 1));
  EXPECT_EQ(colours(), (Colours{{2, 1}, {3, 2}}));
  comparison.submit({.what = Command::kAdd, .spec = parse_lane("lru@50%"), .budget = {}});
  comparison.submit({.what = Command::kAdd, .spec = parse_lane("lru@60%"), .budget = {}});
  EXPECT_EQ(colours(), (Colours{{2, 1}, {3, 2}, {4, 0}, {5, 3}}));
}

TEST(Engine, AChangeIsPendingUntilItIsDone) {
  ComparisonOptions options = small("cpu", {"tide@50%"}, 0);
  options.paused = true;
  auto go = testing::hold(options, /*starts=*/1);
  Comparison comparison(options);
  const auto let_go = std::move(go);  // also if the test ends early, before the comparison does
  comparison.wait_until(testing::has_started);
  const uint64_t number = comparison.submit(set_budget(1, "60%"));
  auto now = comparison.wait_until(
      [](const Snapshot& s) { return s.standings[0].phase == Phase::kPreparing; });
  const Bytes wanted = share_of(now->unmanaged_peak, 0.6);
  EXPECT_LT(now->applied, number);
  ASSERT_TRUE(now->standings[0].pending);
  EXPECT_EQ(now->standings[0].pending_budget, wanted);
  EXPECT_EQ(now->lanes[0]->budget, share_of(now->unmanaged_peak, 0.5));
  let_go->set_value();
  now = wait_applied(comparison, number);
  EXPECT_FALSE(now->standings[0].pending);
  EXPECT_EQ(now->standings[0].phase, Phase::kWaiting);
  EXPECT_EQ(now->lanes[0]->budget, wanted);
}

TEST(Lane, SaysWhenItMayPlan) {
  const ComparisonOptions options = small("sim:a100-80gb", {"tide"}, 0);
  const std::unique_ptr<Job> job = options.open(/*with_data=*/false);
  Ground ground;
  ground.options = session_options(options.flags);
  ground.need = measure_unmanaged(ground.options, job->dry_run());
  ground.options.host_limit = 2 * ground.need.peak;
  ground.minimum = find_minimum_budget(ground.options, job->dry_run(), ground.need);
  ground.budget = share_of(ground.need.peak, 0.5);
  const auto planned = [&](const std::string& text) {
    Lane lane(1, *job, ground);
    lane.open(parse_lane(text), std::nullopt);
    std::vector<bool> steps(20);
    for (size_t i = 0; i < steps.size(); ++i) lane.step([&] { steps[i] = true; });
    return steps;
  };
  const std::vector<bool> tide = planned("tide");
  EXPECT_FALSE(tide.front()) << "a step has to come twice";
  EXPECT_NE(std::find(tide.begin(), tide.end(), true), tide.end());
  EXPECT_FALSE(tide.back());
  EXPECT_EQ(planned("dtr"), std::vector<bool>(20));
}

TEST(LossBook, EqualBitsAreEqualAlsoIfTheyAreNoNumber) {
  LossBook book;
  book.enter(0, "a", std::nanf(""));
  book.enter(0, "b", std::nanf(""));
  book.enter(1, "a", 0.0F);
  book.enter(1, "b", -0.0F);
  EXPECT_EQ(book.compared(), 2);
  EXPECT_EQ(book.mismatched(), 1);
}

TEST(LossBook, DoesNotGrowWithoutBound) {
  LossBook book;
  for (int64_t step = 0; step < 5000; ++step) {
    book.enter(step, "a", 1);
    book.enter(step, "b", 2);
  }
  EXPECT_EQ(book.mismatched(), 5000);
  EXPECT_LE(book.mismatches().size(), 16U);
}

}  // namespace
}  // namespace tidemark::compare
