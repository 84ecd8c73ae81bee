#include "runtime/session/dry_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/image_models.h"
#include "models/optim/optimizer.h"
#include "models/resnet.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/storage_event.h"
#include "runtime/session/call_listener.h"
#include "tests/support/machine.h"

namespace tidemark {
namespace {

constexpr Bytes kBlock{64 << 10};
constexpr int64_t kElements = kBlock.count() / 4;

// x -> tanh -> tanh ... -> sum, and back: `depth` activations of one block each are kept.
Program chain(int depth) {
  return [depth] {
    const auto w =
        std::make_shared<Tensor>(upload_constant({kElements}, 1, Category::kParameter, "w"));
    require_grad(*w);
    const auto sgd = std::shared_ptr<Optimizer>(make_sgd({{"w", *w}}, {.lr = 0.1}));
    const auto step = [w, sgd, depth] {
      Tensor x = *w;
      for (int i = 0; i < depth; ++i) x = tanh(x);
      backward(sum(x));
      sgd->step();
    };
    return std::vector<std::function<void()>>{step, step};
  };
}

SessionOptions on(const std::string& device) {
  return {.device = device, .threads = 1, .host_limit = Bytes(64 << 20)};
}

// Runs the program for real; returns its peak.
Bytes run(SessionOptions options, const Program& program) {
  Session session(options);
  for (const auto& step : program()) session.step(step);
  return session.peak_reserved();
}

TEST(DryRun, UnmanagedPeakIsThatOfTheRealRun) {
  const Program program = chain(10);
  const UnmanagedNeed need = measure_unmanaged(on("cpu"), program);
  EXPECT_GE(need.live, 11 * kBlock);
  EXPECT_GE(need.peak, need.live);
  EXPECT_EQ(need.categories.total(), need.live);
  SessionOptions real = on("cpu");
  real.policy = "none";
  real.budget = need.peak;
  EXPECT_EQ(run(real, program), need.peak);
  real.budget = need.peak - kAlignment;
  EXPECT_THROW(run(real, program), OutOfMemory);
}

TEST(DryRun, MinimumIsTheLargestOperatorWithAmpleTiers) {
  const Program program = chain(10);
  const UnmanagedNeed need = measure_unmanaged(on("cpu"), program);
  const MinimumBudget minimum = find_minimum_budget(on("cpu"), program, need);
  EXPECT_EQ(minimum.budget, need.largest_operator) << need.operator_name;
  EXPECT_EQ(minimum.probes, 1);
  EXPECT_GE(need.largest_operator, 3 * kBlock);
  EXPECT_LT(minimum.budget, need.peak);
}

TEST(DryRun, MinimumTrainsForRealAndLessDoesNot) {
  const Program program = chain(10);
  for (const Bytes host : {Bytes(0), kBlock, 64 * kBlock}) {
    SessionOptions real = on("cpu");
    real.host_limit = host;
    const UnmanagedNeed need = measure_unmanaged(real, program);
    const MinimumBudget minimum = find_minimum_budget(real, program, need);
    EXPECT_LE(minimum.budget, need.peak);
    EXPECT_GE(minimum.budget, need.largest_operator);
    real.budget = minimum.budget;
    const SessionOptions found = feasible_schedule(real, program, need, minimum);
    EXPECT_LE(run(found, program), minimum.budget) << host.count();
    real.budget = minimum.budget - kAlignment;
    EXPECT_THROW(run(real, program), OutOfMemory) << host.count();
  }
}

// A program with the given step time for each policy. By other policies it does not complete.
Trial takes(const std::map<std::string, int64_t>& times) {
  return [times](const SessionOptions& options, int) -> std::optional<TrialResult> {
    const auto time = times.find(schedule_of(options).name());
    if (time == times.end()) return std::nullopt;
    return TrialResult{.step = Nanos(time->second)};
  };
}

std::string completing(const std::string& policy, const std::map<std::string, int64_t>& times) {
  const auto options = completing_schedule({.policy = policy}, takes(times));
  return options ? schedule_of(*options).name() : "nothing";
}

TEST(CompletingSchedule, IsThePolicysOwnIfThatCompletes) {
  EXPECT_EQ(completing("lru", {{"lru", 9}, {"dtr", 1}}), "lru");
}

TEST(CompletingSchedule, ElseTheQuickest) {
  EXPECT_EQ(completing("lru", {{"dtr", 3}, {"msps", 2}, {"austere", 4}}), "msps");
  EXPECT_EQ(completing("lru", {{"tide", 1}, {"dtr", 3}}), "dtr");
  EXPECT_EQ(completing("lru", {}), "nothing");
}

TEST(CompletingSchedule, TideGoesByTheQuickestWhereItHasNoPlan) {
  EXPECT_EQ(completing("tide", {{"price", 9}, {"tide", 5}}), "tide");
  EXPECT_EQ(completing("tide", {{"price", 9}, {"dtr", 6}, {"tide", 5}, {"tide over dtr", 4}}),
            "tide over dtr");
  EXPECT_EQ(completing("tide", {{"price", 9}, {"dtr", 6}, {"tide", 5}}), "tide")
      << "it does not complete over dtr";
}

TEST(CompletingSchedule, AFilterIsKeptWhileItCompletes) {
  SessionOptions options{.policy = "tide"};
  options.delta.filter = "lru";
  const auto found = completing_schedule(
      options, takes({{"price", 9}, {"dtr", 6}, {"tide over dtr", 4}, {"tide", 5}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(schedule_of(*found).name(), "tide");
  EXPECT_EQ(found->delta.filter, "lru");
}

TEST(CompletingSchedule, TideMakesWayForWhatIsClearlyQuicker) {
  EXPECT_EQ(completing("tide", {{"price", 900}, {"msps", 600}, {"tide", 800}}), "msps");
  EXPECT_EQ(completing("tide", {{"price", 900}, {"msps", 795}, {"tide", 800}}), "tide");
  EXPECT_EQ(completing("tide", {{"msps", 795}}), "msps");
}

TEST(LeastBudget, IsTheLeastOfAllLastResorts) {
  const std::map<std::string, int64_t> least{{"austere", 70}, {"price", 50}, {"dtr", 33}};
  const Trial trial = [&](const SessionOptions& options, int) -> std::optional<TrialResult> {
    const auto own = least.find(options.policy);
    const bool completes = own != least.end() && *options.budget >= kAlignment * own->second;
    return completes ? std::optional<TrialResult>(TrialResult{}) : std::nullopt;
  };
  const MinimumBudget found = least_budget({}, kAlignment * 10, kAlignment * 100, trial);
  EXPECT_EQ(found.budget, kAlignment * 33);
  EXPECT_EQ(found.policy, "dtr");
}

TEST(LeastBudget, IsTheMostIfNothingElseCompletes) {
  const Trial nothing = [](const SessionOptions&, int) { return std::nullopt; };
  EXPECT_EQ(least_budget({}, kAlignment * 10, kAlignment * 100, nothing).budget,
            kAlignment * 100);
}

// The time of the program's last step.
Nanos last_step(SessionOptions options, const Program& program) {
  Session session(options);
  Nanos last{0};
  for (const auto& step : program()) last = session.step(step).modelled;
  return last;
}

TEST(FeasibleSchedule, InANarrowBudgetTideGoesByDeltaIfThatIsQuicker) {
  const Program program = chain(60);
  SessionOptions options = on("sim:host");
  const UnmanagedNeed need = measure_unmanaged(options, program);
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  options.policy = "tide";
  options.budget = align_up(share_of(need.peak, 0.5));
  EXPECT_EQ(feasible_schedule(options, program, need, minimum).fallback_policy, "price");
  options.budget = minimum.budget;
  ASSERT_LT(minimum.budget * 8, need.peak);
  const SessionOptions narrow = feasible_schedule(options, program, need, minimum);
  EXPECT_EQ(narrow.policy, "tide");
  std::map<std::string, Nanos> by;
  for (const std::string& policy : std::vector<std::string>{"price", "delta"}) {
    options.policy = policy;
    by[policy] = last_step(options, program);
  }
  EXPECT_NE(by["price"], by["delta"]);
  EXPECT_EQ(narrow.fallback_policy, by["delta"] < by["price"] ? "delta" : "price");
}

TEST(FeasibleSchedule, TheDiskIsUsedOnlyWhereItIsWorthIt) {
  const Program program = chain(40);
  SessionOptions options = on("sim:host");
  options.host_limit = Bytes(0);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  const Bytes without = find_minimum_budget(options, program, need).budget;
  options.disk_limit = 2 * need.peak;
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  ASSERT_LT(minimum.budget, without);
  const auto disk_at = [&](Bytes budget, const std::string& policy) {
    options.budget = budget;
    options.policy = policy;
    const SessionOptions found =
        feasible_schedule_sparing_disk(options, program, need, minimum);
    EXPECT_EQ(found.policy, policy);
    EXPECT_LE(run(found, program), budget);
    return found.disk_limit;
  };
  EXPECT_EQ(disk_at(need.peak, "tide"), Bytes(0)) << "all fits";
  EXPECT_EQ(disk_at(share_of(need.peak, 0.9), "tide"), Bytes(0)) << "recomputing is cheap";
  EXPECT_EQ(disk_at(without - kAlignment, "tide"), options.disk_limit) << "it takes a disk";
  EXPECT_EQ(disk_at(share_of(need.peak, 0.9), "lru"), Bytes(0));
  EXPECT_EQ(disk_at(share_of(need.peak, 0.9), "offload-only"), options.disk_limit);
}

// Many small parameters, written in place where little fits: evicted storages that read them
// are recomputed first, again and again. Tests run the network on a profile that models
// workspaces: without AVX2, the CPU's are so large that other budgets are easily found.
Program crowded_network() {
  return [] {
    ParameterInit init(1);
    const std::shared_ptr<ImageModel> model =
        make_image_model("mobilenet_v2", {.image = 48, .classes = 7}, init);
    const std::shared_ptr<Optimizer> adam = make_adam(model->parameters(), {});
    const auto step = [model, adam] {
      const Tensor images =
          Session::current().upload(TensorMeta::contiguous(DType::kFloat32, {3, 48, 48, 3}),
                                    Category::kData, nullptr, nullptr);
      backward(sum(model->forward(images)));
      adam->step();
    };
    return std::vector<std::function<void()>>{step, step};
  };
}

// How far work may exceed its limit: by the last operator and the last plan.
constexpr int64_t kBeyond = kMaxWork / 8;

TEST(DryRun, DoesABoundedAmountOfWork) {
  const Program program = crowded_network();
  SessionOptions options = on("sim:a100-80gb");
  options.host_limit = Bytes(20 << 20);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  int64_t operators = 0, units = 0;
  set_dry_run_progress([&](int64_t more, int64_t work) {
    operators += more;
    units += work;
  });
  DryRunWork search(kMaxWork + kMaxWork / 2);
  const MinimumBudget minimum = find_minimum_budget(options, program, need, &search);
  EXPECT_GT(search.done(), kMaxWork / 4) << "there is nothing to bound";
  EXPECT_LE(search.done(), search.max() + kBeyond);
  EXPECT_EQ(minimum.is_least, !search.stopped());
  options.budget = minimum.budget + kAlignment;
  DryRunWork choice;
  const SessionOptions found = feasible_schedule(options, program, need, minimum, &choice);
  EXPECT_LE(choice.done(), kMaxWork + kBeyond);
  DryRunWork last;
  EXPECT_TRUE(predict_step(found, program, &last));
  EXPECT_LE(last.done(), kMaxWork + kBeyond);
  set_dry_run_progress({});
  EXPECT_EQ(units, search.done() + choice.done() + last.done());
  // An operator counts at least this much.
  EXPECT_LE(operators * 200, search.done() + choice.done() + last.done());
  EXPECT_LE(run(found, program), *found.budget);
}

// Runs the program's first step as often as a prediction does; returns how much was examined
// for each call.
std::vector<int64_t> examined_by_call(const SessionOptions& options, const Program& program) {
  std::vector<int64_t> by_call;
  int64_t before = 0;
  Session session(options);
  const CallListener listener(session, [&](const Recipe&) {
    const int64_t now = session.residency().effort().examined();
    by_call.push_back(now - std::exchange(before, now));
  });
  const auto steps = program();
  for (int round = 0; round < kTrialRounds; ++round) session.step(steps.front());
  return by_call;
}

// With this many storages, what takes time is examining them to make space, not the operators.
TEST(DryRun, CountsWhatIsExamined) {
  const Program program = chain(2000);
  SessionOptions options = on("sim:host");
  options.policy = "price";
  options.host_limit = Bytes(0);
  options.budget = share_of(measure_unmanaged(options, program).peak, 0.6);
  const std::vector<int64_t> by_call = examined_by_call(options, program);
  const int64_t examined = std::accumulate(by_call.begin(), by_call.end(), int64_t{0});
  DryRunWork work;
  EXPECT_TRUE(predict_step(options, program, &work));
  EXPECT_FALSE(work.stopped());
  EXPECT_GE(work.done(), examined);
  EXPECT_GE(examined, 500 * static_cast<int64_t>(by_call.size())) << "not what takes time";
}

// The work that a prediction counts, at each call of the program and at each block.
class CountedWork final : public StorageListener {
 public:
  CountedWork(const SessionOptions& options, const Program& program) {
    Session session(options);
    residency_ = &session.residency();
    residency_->storage_events().listen(*this);
    const auto steps = program();
    for (int round = 0; round < kTrialRounds; ++round) session.step(steps.front());
    residency_->storage_events().ignore(*this);
  }
  void on_event(const StorageEvent& event) noexcept override {
    const bool call = event.kind == StorageEvent::Kind::kCall;
    if (call) before_calls_.push_back(done_);
    if (call || is_block(event)) count();
  }

  // The work before each call, in order.
  const std::vector<int64_t>& before_calls() const { return before_calls_; }
  int64_t most_at_once() const { return most_at_once_; }

 private:
  void count() {
    const int64_t now = residency_->effort().examined();
    const int64_t units = 200 + now - std::exchange(examined_, now);
    done_ += units;
    most_at_once_ = std::max(most_at_once_, units);
  }

  Residency* residency_ = nullptr;
  std::vector<int64_t> before_calls_;
  int64_t examined_ = 0, done_ = 0, most_at_once_ = 0;
};

TEST(DryRun, StopsWithinACall) {
  const Program program = crowded_network();
  SessionOptions options = on("sim:a100-80gb");
  options.host_limit = Bytes(20 << 20);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  options.budget = minimum.budget;
  options.policy = minimum.policy;
  const CountedWork work(options, program);
  DryRunWork all;
  EXPECT_TRUE(predict_step(options, program, &all));
  const std::vector<int64_t>& before = work.before_calls();
  // In the call that takes the most work, once the call itself has been counted.
  size_t largest = 0;
  for (size_t call = 0; call + 1 < before.size(); ++call) {
    if (before[call + 1] - before[call] > before[largest + 1] - before[largest]) largest = call;
  }
  ASSERT_GT(before[largest + 1] - before[largest], work.most_at_once()) << "of one block";
  DryRunWork some(before[largest] + work.most_at_once() / 2);
  predict_step(options, program, &some);
  EXPECT_TRUE(some.stopped());
  EXPECT_LE(some.done() - some.max(), work.most_at_once());
  EXPECT_LT(some.done(), before[largest + 1]) << "not before the next call";
}

TEST(DryRun, SaysThatItStopped) {
  const Program program = crowded_network();
  SessionOptions options = on("sim:a100-80gb");
  options.host_limit = Bytes(20 << 20);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  DryRunWork little(kMaxWork / 32);
  const MinimumBudget minimum = find_minimum_budget(options, program, need, &little);
  EXPECT_TRUE(little.stopped());
  EXPECT_FALSE(minimum.is_least);
  options.budget = minimum.budget;
  EXPECT_LE(run(options, program), minimum.budget) << "it completes there nevertheless";
  DryRunWork none(1);
  const auto unknown = predict_step(options, program, &none);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->rounds, 0);
  EXPECT_TRUE(none.stopped());
  const auto known = predict_step(options, program);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->rounds, kTrialRounds);
}

// The proof at the first budget takes more than all of the work; with a little more memory,
// proofs are cheap.
TEST(DryRun, AProofThatTakesTooLongLeavesWorkForBudgetsThatAreProvenQuickly) {
  const Program program = chain(40);
  SessionOptions options = on("sim:host");
  options.host_limit = Bytes(0);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  const MinimumBudget least = find_minimum_budget(options, program, need);
  ASSERT_TRUE(least.is_least);
  ASSERT_LT(4 * least.budget, need.peak);
  const auto find_with_little = [&] {
    DryRunWork little(9'000'000);
    const MinimumBudget found = find_minimum_budget(options, program, need, &little);
    EXPECT_TRUE(little.stopped());
    EXPECT_FALSE(found.is_least);
    EXPECT_LE(little.done(), little.max() + little.max() / 8);
    return found;
  };
  const MinimumBudget found = find_with_little();
  EXPECT_LE(found.budget, 2 * least.budget);
  EXPECT_GT(found.categories.total(), Bytes(0));
  EXPECT_LE(found.categories.total(), found.budget);
  options.policy = found.policy;
  options.residency.learn_costs = false;
  options.budget = found.budget;
  Session session(options);
  for (const auto& step : program()) {
    for (int round = 0; round < kTrialRounds; ++round) ASSERT_NO_THROW(session.step(step));
  }
  // A run in the budget that the dry run names is not refused, nor with more. As a fallback, it
  // has all of its budget.
  for (const double more : {0.0, 0.01, 2.0}) {
    options.budget = align_up(found.budget + share_of(found.budget, more));
    EXPECT_EQ(find_with_little().budget, *options.budget) << more;
  }
  // If it is refused, it is told what suffices.
  options.budget = align_down(share_of(least.budget, 0.9));
  EXPECT_LE(find_with_little().budget, 4 * least.budget);
}

TEST(DryRun, PredictsASettledStep) {
  const Program program = chain(40);
  SessionOptions options = on("sim:host");
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.unmanaged_peak = need.peak;
  options.budget = need.peak;
  const auto whole = predict_step(options, program);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->step.recomputes + whole->step.offloads, 0);
  options.budget = share_of(need.peak, 0.5);
  const auto half = predict_step(options, program);
  ASSERT_TRUE(half);
  EXPECT_GT(half->step.recomputes + half->step.offloads, 0);
  EXPECT_GE(half->step.duration, whole->step.duration);
  options.budget = need.largest_operator - kAlignment;
  EXPECT_FALSE(predict_step(options, program));
}

TEST(DryRun, TighterTiersNeedNoLess) {
  const Program program = chain(10);
  Bytes previous{0};
  for (const Bytes host : {64 * kBlock, 2 * kBlock, Bytes(0)}) {
    SessionOptions options = on("cpu");
    options.host_limit = host;
    const UnmanagedNeed need = measure_unmanaged(options, program);
    const Bytes now = find_minimum_budget(options, program, need).budget;
    EXPECT_GE(now, previous);
    previous = now;
  }
}

// A network of many small parameters and a few large ones, trained for two steps.
Program network(const UpdateGroups& groups, int64_t image = 8, int64_t blocks_each = 2) {
  return [groups, image, blocks_each] {
    ResNetOptions options = resnet_options("resnet18");
    options.blocks.fill(blocks_each);
    options.cifar_stem = true;
    options.classes = 10;
    ParameterInit init(1);
    const auto model = std::make_shared<ResNet>(options, init);
    const auto sgd =
        std::shared_ptr<Optimizer>(make_sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9}));
    sgd->set_groups(groups);
    const auto step = [model, sgd, image] {
      const Tensor images = upload_constant({8, image, image, 3}, 1, Category::kData, "images");
      backward(sum(model->forward(images)));
      sgd->step();
    };
    return std::vector<std::function<void()>>{step, step};
  };
}

// The smallest budget holds on this machine: workspaces depend on the instruction set and the
// number of threads (tests/machines/).
TEST(DryRun, ANetworkTrainsForRealAtTheMinimumAndNotBelow) {
  const Program program = network({}, /*image=*/24, /*blocks_each=*/1);
  SessionOptions options = on("cpu");
  options.threads = testing::test_threads();
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.unmanaged_peak = need.peak;
  options.host_limit = 2 * need.peak;
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  EXPECT_EQ(minimum.budget, need.largest_operator) << need.operator_name;
  for (const char* policy : {"tide", "delta"}) {
    SCOPED_TRACE(policy);
    options.policy = policy;
    options.budget = minimum.budget;
    EXPECT_EQ(run(options, program), minimum.budget);
    options.budget = minimum.budget - kAlignment;
    EXPECT_THROW(run(options, program), OutOfMemory);
  }
}

// The session does what was tried, as neither learns costs. If the trial used learnt costs and
// the run did not, each of these budgets would be too small in a later step.
TEST(FeasibleSchedule, TheSmallestBudgetForTiersThatAreNearlyFullHoldsInLaterStepsToo) {
  const Program program = [] {
    ResNetOptions options = resnet_options("resnet18");
    options.cifar_stem = true;
    options.classes = 10;
    ParameterInit init(1);
    const auto model = std::make_shared<ResNet>(options, init);
    const auto adam = std::shared_ptr<Optimizer>(make_adam(model->parameters(), {}));
    const auto step = [model, adam] {
      const Tensor images = upload_constant({16, 16, 16, 3}, 1, Category::kData, "images");
      backward(sum(model->forward(images)));
      adam->step();
    };
    return std::vector<std::function<void()>>{step, step};
  };
  SessionOptions options = on("sim:host");
  options.policy = "delta";
  options.host_limit = Bytes(0);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  for (const double share : {0.42, 0.48, 0.57, 0.62}) {
    SCOPED_TRACE(share);
    options.disk_limit = share_of(need.peak, share);
    const MinimumBudget minimum = find_minimum_budget(options, program, need);
    ASSERT_LT(minimum.budget, need.peak);
    options.budget = minimum.budget;
    Session session(simulated(feasible_schedule(options, program, need, minimum)));
    const auto step = program().front();
    for (int i = 0; i < 12; ++i) ASSERT_NO_THROW(session.step(step)) << i;
  }
}

TEST(DryRun, GroupsOfUpdatesNeedNoLargerBudget) {
  constexpr Bytes kAmple = Bytes(1) * (int64_t{1} << 40);
  for (const Bytes host : {kAmple, Bytes(64 << 20), Bytes(0)}) {
    SCOPED_TRACE(host.count());
    SessionOptions options = on("sim:host");
    options.host_limit = host;
    Bytes peak[2], minimum[2];
    int64_t operators[2];
    for (const bool grouped : {false, true}) {
      const Program program =
          network(grouped ? UpdateGroups() : UpdateGroups{.most_of_parameter = Bytes(0)});
      const UnmanagedNeed need = measure_unmanaged(options, program);
      peak[grouped] = need.peak;
      operators[grouped] = need.operators;
      minimum[grouped] = find_minimum_budget(options, program, need).budget;
    }
    EXPECT_EQ(peak[true], peak[false]);
    // With a limited tier the budget is found by trial, and raised by fiftieths where a trial
    // fails.
    const Bytes by_trial = host == kAmple ? Bytes(0) : Bytes(minimum[false].count() / 20);
    EXPECT_LE(minimum[true], minimum[false] + by_trial);
    EXPECT_LT(operators[true], operators[false] - 30);
  }
}

TEST(DryRun, AShareOfWhatTheProgramTakesIsABudgetThatItRunsIn) {
  const Program program = chain(10);
  const Bytes peak = measure_unmanaged(on("cpu"), program).peak;
  const SessionOptions half = with_budget(0.5, program, on("cpu"));
  EXPECT_EQ(half.budget, align_down(share_of(peak, 0.5)));
  EXPECT_EQ(half.unmanaged_peak, peak);
  EXPECT_LE(run(half, program), *half.budget);
  EXPECT_EQ(run(with_budget(1, program, on("cpu")), program), peak);
  EXPECT_EQ(with_budget(3, program, on("cpu")).budget, peak) << "more is of no use";
  EXPECT_THROW(with_budget(0, program, on("cpu")), UsageError);
  try {
    with_budget(0.01, program, on("cpu"));
    FAIL() << "no operator fits into that";
  } catch (const InfeasibleBudget& error) {
    SessionOptions least = on("cpu");
    least.unmanaged_peak = peak;
    least.budget = error.minimum();
    EXPECT_LE(run(least, program), error.minimum());
  }
}

TEST(DryRun, NamesTheTierWithWhichABudgetWouldDo) {
  const Program program = network({});
  const UnmanagedNeed need = measure_unmanaged(on("cpu"), program);
  const MinimumBudget bare = find_minimum_budget(on("cpu"), program, need);
  SessionOptions options = on("cpu");
  options.disk_limit = 2 * need.peak;
  const MinimumBudget with_disk = find_minimum_budget(options, program, need);
  ASSERT_LT(with_disk.budget, bare.budget);
  options.budget = with_disk.budget;
  EXPECT_EQ(sufficient_disk(options, program, need), std::nullopt) << "it has one";
  options.disk_limit = Bytes(0);
  EXPECT_EQ(sufficient_disk(options, program, need), 2 * need.peak);
  *options.budget -= kAlignment;
  EXPECT_EQ(sufficient_disk(options, program, need), std::nullopt) << "no tier helps";
  const double share = (static_cast<double>(with_disk.budget.count()) + 1024) /
                       static_cast<double>(need.peak.count());
  try {
    with_budget(share, program, on("cpu"));
    FAIL() << "it needs a tier";
  } catch (const InfeasibleBudget& error) {
    EXPECT_NE(std::string(error.what()).find("a disk tier of "), std::string::npos)
        << error.what();
  }
}

TEST(DryRun, LeavesTheCurrentSessionAlone) {
  Session session({.device = "sim:a100-80gb"});
  measure_unmanaged(on("cpu"), chain(2));
  EXPECT_EQ(&Session::current(), &session);
}

TEST(DryRun, ErrorsOfTheProgramComeThrough) {
  const Program broken = []() -> std::vector<std::function<void()>> {
    return {[] { throw UsageError("no such thing"); }};
  };
  EXPECT_THROW(measure_unmanaged(on("cpu"), broken), UsageError);
}

}  // namespace
}  // namespace tidemark
