// The default policy as a whole, on the stage with round prices and with a small training
// program: schedules are found, tried, followed and left.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <string_view>
#include <thread>

#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/runtime/policy/stage.h"

namespace tidemark::testing {
namespace {

constexpr int kSettled = 12;  // steps after which every plan has been tried
constexpr int64_t kLayers = 10;
constexpr size_t kSearches = 2;
// Steps of one plan differ slightly, depending on what the previous step left away.
constexpr double kRounding = 1.02;

// Layers of a cheap and an expensive activation, their gradients, and an update with optimizer
// state: h_i = f(x_i, w_i) takes 2000, x_{i+1} = g(h_i) takes 60, and backward twice that.
class TideTraining {
 public:
  // `replaces`: each step makes new optimizer states from those of the previous step.
  TideTraining(int64_t arena, int64_t host, const std::string& policy = "tide",
               const ResidencyOptions& residency = {}, bool replaces = false)
      : stage_(policy, arena, host, {}, residency), replaces_(replaces) {
    for (int64_t i = 0; i < kLayers; ++i) {
      weights_.push_back(stage_.data(1, Category::kParameter));
      states_.push_back(stage_.data(1, Category::kOptimizerState));
    }
  }

  // Returns the step's time. `extra`: one more call in the middle. `batch`: units uploaded.
  Nanos step(bool extra = false, int64_t batch = 4) {
    const StepStats& stats = stage_.session().step([&] {
      std::vector<Handle> x{stage_.data(batch)}, h;
      for (const Handle& weight : weights_) {
        h.push_back(stage_.call({x.back(), weight}, 4, 1996 + batch));
        x.push_back(stage_.call({h.back()}, 4, 60));
      }
      if (extra) stage_.call({x.back()}, 1, 100);
      stage_.residency().set_phase(Phase::kBackward);
      Handle gradient = stage_.call({x.back()}, 4, 100);
      std::vector<Handle> gradients(weights_.size());
      for (size_t i = weights_.size(); i-- > 0;) {
        const Handle inner = stage_.call({gradient, x[i + 1], h[i]}, 4, 120);
        gradients[i] = stage_.call({inner, x[i]}, 1, 2000, Category::kGradient);
        gradient = stage_.call({inner, weights_[i]}, 4, 2000);
        x[i + 1] = {};
        h[i] = {};
      }
      stage_.residency().set_phase(Phase::kUpdate);
      for (size_t i = 0; i < weights_.size(); ++i) {
        stage_.update({weights_[i], gradients[i], states_[i]}, 100);
        if (replaces_) {
          states_[i] =
              stage_.call({states_[i], gradients[i]}, 1, 100, Category::kOptimizerState);
        } else {
          stage_.update({states_[i], gradients[i]}, 100);
        }
      }
    });
    return stats.duration;
  }
  int64_t count(EventKind kind, Reason reason) {
    const auto events = stage_.step_events();
    return std::count_if(events.begin(), events.end(), [&](const EventRecord& event) {
      return event.kind == kind && event.reason == reason;
    });
  }
  // Time spent moving blocks in the last step.
  Nanos moving() {
    Nanos time{0};
    for (const EventRecord& event : stage_.step_events()) {
      if (event.kind == EventKind::kCompact) time += event.end - event.start;
    }
    return time;
  }
  int64_t planned() {
    return count(EventKind::kCopyOut, Reason::kPlan) + count(EventKind::kEvict, Reason::kPlan);
  }
  Stage& stage() { return stage_; }

 private:
  Stage stage_;
  const bool replaces_;
  std::vector<Handle> weights_, states_;
};

int64_t unmanaged_peak(bool replaces = false) {
  TideTraining training(1000, 0, "none", {}, replaces);
  training.step();
  return training.stage().session().peak_reserved().count() / kUnit.count();
}

// Nothing says that the program fits; the first steps show it, and nothing is tried.
TEST(Tide, ReleasesNothingWhereEverythingFits) {
  TideTraining training(unmanaged_peak(), 1000);
  for (int i = 0; i < kSettled; ++i) training.step();
  EXPECT_EQ(training.stage().count(EventKind::kEvict), 0);
  EXPECT_EQ(training.stage().count(EventKind::kOffload), 0);
  EXPECT_EQ(training.stage().count(EventKind::kCopyOut), 0);
}

// A host tier's memory is taken before it is needed, as that takes long.
TEST(Tide, SaysHowMuchAPlanKeepsOnTiersBeforeItIsFollowed) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  Session& session = training.stage().session();
  std::optional<Bytes> said;
  PlanOptions options = session.default_plan_options();
  options.before_use = [&](Bytes bytes, const std::atomic<bool>&) {
    said = std::max(said.value_or(Bytes(0)), bytes);
  };
  session.plan_steps(std::move(options));
  for (int i = 0; i < kSettled; ++i) training.step();
  ASSERT_GT(training.count(EventKind::kCopyOut, Reason::kPlan), 0);
  ASSERT_TRUE(said);
  EXPECT_GT(*said, Bytes(0));
}

TEST(Tide, SaysThatItBeginsToPlan) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  int announced = 0, planned = 0;
  training.stage().session().planner()->on_planning([&] { ++announced; });
  for (int i = 0; i < kSettled; ++i) {
    const int before = announced;
    training.step();
    const Nanos time = training.stage().session().last_step().planning_time;
    EXPECT_EQ(time > Nanos(0), announced > before) << "step " << i;
    planned += announced > before ? 1 : 0;
  }
  EXPECT_EQ(planned, 3);  // for the order, then two searches
}

// Copies leave ahead of need and come back ahead of use. The copied blocks are dropped when
// space is needed.
TEST(Tide, FollowsItsPlan) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  for (int i = 0; i < kSettled; ++i) training.step();
  EXPECT_GT(training.count(EventKind::kCopyOut, Reason::kPlan), 0);
  std::map<uint32_t, EventKind> last;
  int64_t clean = 0, ahead = 0, in_time = 0;
  for (const EventRecord& event : training.stage().step_events()) {
    if (event.kind == EventKind::kDropClean) {
      ++clean;
      if (event.category == static_cast<uint8_t>(Category::kActivation)) {
        EXPECT_EQ(last[event.storage], EventKind::kCopyOut);
      }
    }
    ahead += event.kind == EventKind::kPrefetch;
    in_time += event.kind == EventKind::kReload;
    if (event.storage) last[event.storage] = event.kind;
  }
  EXPECT_GT(clean, 0);
  EXPECT_GT(ahead, in_time) << "most come back ahead of use";
}

TEST(Tide, EvictsByPlanWithoutATier) {
  TideTraining training(unmanaged_peak() * 5 / 10, 0);
  for (int i = 0; i < kSettled; ++i) training.step();
  EXPECT_GT(training.count(EventKind::kEvict, Reason::kPlan), 0);
  EXPECT_GT(training.stage().stats().recomputes, 0);
  EXPECT_EQ(training.stage().count(EventKind::kOffload), 0);
  EXPECT_EQ(training.stage().count(EventKind::kCopyOut), 0);
}

// Three steps run without a plan and two by each plan. From then on the best is used, which may
// be no plan.
TEST(Tide, TriesItsPlansAndKeepsTheBest) {
  for (const int64_t tenths : {4, 6, 8}) {
    TideTraining training(unmanaged_peak() * tenths / 10, 1000);
    std::vector<Nanos> took;
    std::vector<int64_t> planned;
    for (int i = 0; i < kSettled; ++i) {
      took.push_back(training.step());
      planned.push_back(training.planned());
    }
    // One step to see the program, two with learnt prices.
    EXPECT_EQ(planned[0] + planned[1] + planned[2], 0);
    Nanos best = took[4];
    for (size_t plan = 0; plan < kSearches; ++plan) {
      EXPECT_GT(planned[3 + 2 * plan], 0);
      // A plan's first step may begin with what later ones begin without, and then bring back.
      EXPECT_LE(planned[3 + 2 * plan], planned[4 + 2 * plan]);
      best = std::min(best, took[4 + 2 * plan]);
    }
    // Under the policy, the times of steps vary.
    if (planned.back() == 0) {
      EXPECT_LT(took[2], best) << tenths << " tenths";
      continue;
    }
    EXPECT_LE(best.count(), took[2].count() * kRounding) << tenths << " tenths";
    for (size_t step = 4 + 2 * kSearches; step < took.size(); ++step) {
      EXPECT_LE(took[step].count(), best.count() * kRounding) << tenths << " tenths, " << step;
    }
  }
}

TEST(Tide, IsNeverWorseThanWithoutAPlan) {
  for (const int64_t host : {0, 1000}) {
    for (const int64_t tenths : {4, 5, 6, 7, 8, 9}) {
      const int64_t arena = unmanaged_peak() * tenths / 10;
      TideTraining training(arena, host);
      Nanos unplanned{0}, settled{0};
      try {
        for (int i = 0; i < kSettled; ++i) {
          settled = training.step();
          if (i == 2) unplanned = settled;
        }
      } catch (const OutOfMemory&) {
        EXPECT_EQ(host, 0) << tenths;
        continue;
      }
      EXPECT_LE(settled.count(), unplanned.count() * kRounding)
          << tenths << " tenths, host " << host;
    }
  }
}

// A step takes the memory of its schedule to the byte. Where nothing is copied it also takes
// the schedule's time plus its moves, to the nanosecond: a simulation counts bytes, so it waits
// for some copies of blocks that lie elsewhere, and it waits at the end for what the next step
// begins without.
TEST(Tide, TakesWhatItsScheduleSays) {
  int releasing = 0, placed = 0;
  for (const int64_t host : {0, 1000}) {
    for (const int64_t percent : {95, 85, 75, 65, 55, 45, 35}) {
      if (host == 0 && percent < 70) continue;  // what cannot be recomputed has to stay
      SCOPED_TRACE(std::to_string(percent) + " %, host " + std::to_string(host));
      TideTraining training(unmanaged_peak() * percent / 100, host);
      for (int i = 0; i < kSettled + 2; ++i) training.step();
      const StepStats& stats = training.stage().session().last_step();
      const BoundSchedule* bound = training.stage().session().planner()->current();
      EXPECT_EQ(stats.planned, bound != nullptr);
      if (!bound) continue;  // the policy is quicker
      const Schedule& schedule = bound->schedule;
      EXPECT_EQ(training.count(EventKind::kEvict, Reason::kNoSpace), 0);
      EXPECT_EQ(stats.last_resorts, 0);
      if (schedule.residents_apart) continue;
      ++releasing;
      placed += schedule.placed;
      if (schedule.placed) {
        EXPECT_EQ(stats.peak_reserved, schedule.peak);
      }
      const double ratio = static_cast<double>((stats.duration - training.moving()).count()) /
                           static_cast<double>(schedule.time.count());
      EXPECT_LE(ratio, 1.001);
      EXPECT_GE(ratio, stats.offloads + stats.reloads > 0 ? 0.93 : 1 - 1e-12);
      EXPECT_EQ(stats.recompute_time, schedule.recomputed);
      EXPECT_TRUE(schedule_violations(
                      bound->trace, {.space = stats.peak_reserved, .tier_space = kUnit * host},
                      schedule)
                      .empty());
    }
  }
  EXPECT_GE(releasing, 7);
  EXPECT_GE(placed, 6);
}

// Storages made in a step are moved to where the next step begins with them. These moves
// are not part of the schedule, and matter here, where moving a byte takes a nanosecond.
TEST(Tide, PlansStepsThatReplaceTheirStates) {
  for (const int64_t percent : {85, 65, 45}) {
    SCOPED_TRACE(std::to_string(percent) + " %");
    TideTraining training(unmanaged_peak(true) * percent / 100, 1000, "tide", {}, true);
    Session& session = training.stage().session();
    session.plan_steps({.search = true,
                        .background = false,
                        .max_slowdown = 2,
                        .report = [](std::string_view) {}});
    for (int i = 0; i < kSettled + 2; ++i) training.step();
    const StepStats& stats = session.last_step();
    const BoundSchedule* bound = session.planner()->current();
    ASSERT_TRUE(stats.planned && bound);
    EXPECT_EQ(session.planner()->counts().mismatches, 0);
    EXPECT_EQ(training.count(EventKind::kEvict, Reason::kNoSpace), 0);
    EXPECT_GT(stats.evictions + stats.offloads, 0);
    EXPECT_EQ(stats.peak_reserved, bound->schedule.peak);
    EXPECT_EQ(stats.recompute_time, bound->schedule.recomputed);
    EXPECT_EQ(schedule_violations(bound->trace,
                                  {.space = stats.peak_reserved, .tier_space = kUnit * 1000},
                                  bound->schedule),
              std::vector<std::string>());
  }
}

// A copy in was measured that took long, as one does while the other direction is busy. Plans
// reckon with it; what no plan can beat does not.
TEST(Tide, BoundsGoByTheFastestCopy) {
  const auto ample_time = [](bool slow_copy) {
    TideTraining training(unmanaged_peak() * 6 / 10, 1000);
    Session& session = training.stage().session();
    constexpr Bytes kCopy{1 << 20};
    const auto measure = [&](int64_t nanos_per_byte) {
      session.costs().measured_copy(StreamId::kReload, kCopy, Nanos(0),
                                    Nanos(nanos_per_byte * kCopy.count()));
      session.costs().end_step(true);
    };
    measure(1);
    if (slow_copy) measure(100);
    EXPECT_GE(session.costs().reload_time(kCopy), Nanos((slow_copy ? 100 : 1) * kCopy.count()));
    session.plan_steps({.order = false,
                        .search = true,
                        .time_bound = true,
                        .background = false,
                        .max_slowdown = 1000,
                        .report = [](std::string_view) {}});
    for (int i = 0; i < kSettled; ++i) training.step();
    session.planner()->compute_bounds();
    const BoundSchedule* bound = session.planner()->current();
    EXPECT_TRUE(bound && bound->schedule.time_bound > Nanos(0));
    EXPECT_TRUE(bound && bound->schedule.time_bound <= bound->schedule.time);
    return bound ? bound->schedule.ample_time : Nanos(0);
  };
  EXPECT_GT(ample_time(false), Nanos(0));
  EXPECT_EQ(ample_time(true), ample_time(false));
}

// What a plan costs is known with the plan; bounds are computed when asked for.
TEST(Tide, NoStepWaitsForBounds) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  Session& session = training.stage().session();
  session.plan_steps({.order = false,
                      .search = true,
                      .time_bound = true,
                      .background = false,
                      .max_slowdown = 1000,
                      .report = [](std::string_view) {}});
  size_t waits = 0;
  session.planner()->on_planning([&] { ++waits; });
  for (int i = 0; i < kSettled + 2; ++i) training.step();
  EXPECT_TRUE(session.settled());
  EXPECT_EQ(waits, kSearches);
  const BoundSchedule* plan = session.planner()->current();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->schedule.time_bound, Nanos(0));
  const Nanos ample = plan->schedule.ample_time;
  EXPECT_GT(ample, Nanos(0));
  EXPECT_GT(plan->schedule.time, ample);

  session.planner()->compute_bounds();
  EXPECT_EQ(session.planner()->current(), plan);
  EXPECT_GT(plan->schedule.time_bound, Nanos(0));
  EXPECT_EQ(plan->schedule.ample_time, ample);
  session.planner()->compute_bounds();
  EXPECT_EQ(waits, kSearches + 1);
}

// Steps follow the first schedule while the second is being made. These steps are no trial; the
// second schedule has one of its own.
TEST(Tide, TriesEachScheduleThatComesFromTheBackground) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  Session& session = training.stage().session();
  size_t found = 0, judged_early = 0;
  session.plan_steps({.background = true, .report = [&](std::string_view line) {
                        found +=
                            line.find("releases found by a search") != std::string_view::npos;
                        judged_early +=
                            found == 1 && line.find("longer than") != std::string_view::npos;
                      }});
  for (int i = 0; i < 1'000'000 && found < kSearches; ++i) {
    training.step();
    EXPECT_TRUE(found < kSearches || !session.settled()) << "it has not been tried";
  }
  EXPECT_EQ(found, kSearches);
  EXPECT_EQ(judged_early, 0U);
  for (int i = 0; i < 2; ++i) training.step();
  EXPECT_TRUE(session.settled());
}

// There is one planning thread. A program whose searches are over while another's goes on has
// its bounds computed later.
TEST(Tide, BoundsWaitForTheSearchOfAnotherProgram) {
  std::promise<void> promise;
  std::atomic<bool> holds{false};
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  Session& session = training.stage().session();
  size_t found = 0;
  session.plan_steps(
      {.order = false,
       .time_bound = true,
       .background = true,
       .max_slowdown = 1000,
       .thread =
           [&, go_on = promise.get_future().share()](std::function<void()> work) {
             return std::thread([go_on, work, held = holds.load()] {
               if (held) go_on.wait();
               work();
             });
           },
       .report =
           [&](std::string_view line) {
             found += line.find("found by a search") != std::string_view::npos;
           }});
  for (int i = 0; i < 1'000'000 && found < kSearches; ++i) training.step();
  EXPECT_EQ(found, kSearches);
  holds = true;
  for (int i = 0; i < 2; ++i) training.step(false, /*batch=*/3);
  EXPECT_TRUE(session.planner()->planning());
  for (int i = 0; i < 4; ++i) training.step();  // ends the second schedule's trial
  const auto bound = [&] {
    const BoundSchedule* current = session.planner()->current();
    return current ? current->schedule.time_bound : Nanos(0);
  };
  EXPECT_EQ(bound(), Nanos(0));
  promise.set_value();
  for (int i = 0; i < 1'000'000 && bound() == Nanos(0); ++i) training.step();
  EXPECT_GT(bound(), Nanos(0));
}

// A call is added. The rest of the step goes by price alone, and so does the next step, as
// storages that live on have other numbers.
TEST(Tide, FallsBackWhereAStepDiffers) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  for (int i = 0; i < kSettled; ++i) training.step();
  ASSERT_GT(training.planned(), 0);
  training.step(/*extra=*/true);
  int64_t after = -1;  // planned releases since the call that differs
  for (const EventRecord& event : training.stage().step_events()) {
    if (event.kind == EventKind::kOperator && event.bytes == kUnit && after < 0) after = 0;
    after += after >= 0 && event.reason == Reason::kPlan;
  }
  EXPECT_EQ(after, 0);
  training.step();
  EXPECT_EQ(training.planned(), 0);
  training.step();
  EXPECT_GT(training.planned(), 0);
}

// Two programs alternate, as with batches of two sizes. Each has its plan; the first upload
// tells which one it is.
TEST(Tide, KeepsAPlanForEachProgram) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  for (int i = 0; i < 4 * kSettled; ++i) training.step(false, i % 2 == 0 ? 4 : 3);
  for (int i = 0; i < 4; ++i) {
    training.step(false, i % 2 == 0 ? 4 : 3);
    EXPECT_GT(training.planned(), 0) << i;
    EXPECT_EQ(training.count(EventKind::kEvict, Reason::kNoSpace), 0) << i;
  }
}

// A step that throws leaves the plan intact for later steps.
TEST(Tide, KeepsItsPlanOverAStepThatThrows) {
  TideTraining training(unmanaged_peak() * 6 / 10, 1000);
  for (int i = 0; i < kSettled; ++i) training.step();
  ASSERT_GT(training.planned(), 0);
  const Nanos before = training.step();
  EXPECT_THROW(training.stage().session().step([&] {
    training.stage().call({}, 1, 5);
    throw UsageError("given up");
  }),
               UsageError);
  training.step();  // not as planned: storages that live on get new numbers
  training.step();  // not as planned: they are brought to their places
  const Nanos after = training.step();
  EXPECT_GT(training.planned(), 0);
  EXPECT_LE(after.count(), before.count() * kRounding);
}

// Without a tier, storages that cannot be recomputed are no choice: no run that frees them is
// tried.
TEST(Tide, WithoutATierOffersOnlyWhatCanBeComputed) {
  Stage stage("tide", 4, 0);
  const Handle batch = stage.data();
  const Handle a = stage.call({}, 1, 1000), b = stage.call({}, 1, 2000);
  const Handle more = stage.data();
  stage.call({}, 1, 100);
  EXPECT_EQ(stage.released({batch, a, b, more}), "b");
  stage.call({}, 2, 100);
  EXPECT_EQ(stage.released({batch, a, b, more}), "bc");
  EXPECT_EQ(stage.stats().last_resorts, 0);
}

TEST(Tide, OffloadsGradientsButEvictsThemWhereThereIsNoTier) {
  for (const int64_t host : {0, 64}) {
    Stage stage("tide", 2, host);
    const Handle gradient = stage.call({}, 1, 1, Category::kGradient);
    ASSERT_TRUE(stage.release(gradient));
    EXPECT_EQ(stage.released({gradient}), "a");
    EXPECT_EQ(gradient->residence(), host ? Residence::kOffloaded : Residence::kEvicted);
    Stage full("tide", 1, host);
    const Handle other = full.call({}, 1, 1, Category::kGradient);
    full.call({}, 1);
    EXPECT_EQ(full.released({other}), "a");
    EXPECT_EQ(full.stats().last_resorts, 0);
  }
}

// a is small, expensive and the stalest, b the largest, c the cheapest.
TEST(Tide, UnplannedGoesByTheFilterThatIsGiven) {
  const auto first_released = [](const std::string& filter) {
    Stage stage("tide", 8, 0, {.filter = filter});
    const Handle a = stage.call({}, 2, 900), b = stage.call({}, 4, 800),
                 c = stage.call({}, 2, 1);
    stage.call({}, 2, 1);
    return stage.released({a, b, c});
  };
  EXPECT_EQ(first_released("lru"), "a");
  EXPECT_EQ(first_released("greedy"), "b");
  EXPECT_EQ(first_released(""), "c");
  EXPECT_THROW(first_released("oldest"), UsageError);
}

// In the first step the release with the shorter wait is taken. 4 units take 359 each way.
TEST(Tide, UnplannedTakesTheCheaper) {
  Stage stage("tide", 64, 64);
  const Handle cheap = stage.call({}, 4, 300), dear = stage.call({}, 4, 5000);
  ASSERT_TRUE(stage.release(cheap) && stage.release(dear));
  EXPECT_EQ(cheap->residence(), Residence::kEvicted);
  EXPECT_EQ(dear->residence(), Residence::kOffloaded);
}

}  // namespace
}  // namespace tidemark::testing
