// Plans carried out on the simulator: the step does what was rehearsed, decision by decision,
// in the time that was expected. What it does when a step is not as planned.
#include "runtime/policy/tide/step_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/cost/link_rate.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/indexed_policy.h"
#include "tests/runtime/policy/stage.h"

namespace tidemark::testing {
namespace {

using Kind = MemoryEvents::Kind;

// As tide begins and ends steps, but for when it plans: that is for the test to say. Unplanned,
// the stalest goes.
class ByPlan final : public IndexedPolicy {
 public:
  Storage* choose(const Residency& residency) override {
    return index().best(lru_score, residency.clock(),
                        [&](const Storage& storage) { return residency.may_release(storage); });
  }
  void on_event(const StorageEvent& event) noexcept override { forecast.on_event(event); }
  void after_operator(Residency& residency, const Recipe& call) override {
    forecast.record(call, residency.costs());
  }
  void begin_step(Residency& residency) override {
    forecast.begin_step();
    script_.reset();
    begun = followed = false;
    if (!plan || forecast.program() != program) return;
    script_.emplace(*plan, forecast, residency);
    if (!script_->begin()) script_.reset();
    begun = script_.has_value();
  }
  void end_step(Residency& /*residency*/) override {
    followed = script_ && script_->end();
    script_.reset();
    forecast.end_step();
  }

  Forecast forecast;
  std::optional<MemoryPlan> plan;
  size_t program = 0;     // by the forecast's number, that the plan is for
  bool begun = false;     // the last step, with the plan
  bool followed = false;  // to its end

 private:
  std::optional<StepScript> script_;
};

DeviceProfile quick_moves() {
  DeviceProfile profile = round_prices();
  profile.memory_bandwidth = 1e15;  // what blocks take to slide is none of a rehearsal's
  return profile;
}

// Layers of a cheap and a dear activation, their gradients, and an update with optimizer state.
class Training {
 public:
  static constexpr int64_t kLayers = 6;

  // `state`: units of optimizer state for each of weight. `penalty`: units of what is made from
  // the first weight, and wanted by the last update.
  Training(int64_t arena, int64_t host, int64_t state = 1, int64_t penalty = 0)
      : penalty_(penalty),
        device_(make_sim_device(quick_moves())),
        arena_(*device_, MemoryKind::kDevice, kUnit * arena),
        host_(host > 0 ? make_host_tier(*device_, kUnit * host) : nullptr),
        costs_(device_->profile()),
        residency_(*device_, arena_, tiers(), costs_, log_, policy_, {.learn_costs = false}) {
    for (int64_t i = 0; i < kLayers; ++i) {
      weights_.push_back(data(1, Category::kParameter));
      states_.push_back(data(state, Category::kOptimizerState));
    }
  }

  // `midway` is called between forward and backward.
  StepStats step(const std::function<void()>& midway = {}) {
    residency_.begin_step();
    first_ = log_.next_tag();
    try {
      body(midway);
    } catch (...) {
      residency_.abort_step();
      throw;
    }
    return residency_.end_step(/*synchronize=*/true);
  }
  // From the last step on, which has to be like those to come.
  bool plan() {
    const auto [out, in] = link_rates(costs_);
    PlanLimits limits;
    limits.room = arena_.offsets().capacity();
    limits.tier_room = residency_.tier_room();
    limits.latency = out.latency;
    limits.out_bandwidth = out.bytes_per_second;
    limits.in_bandwidth = in.bytes_per_second;
    policy_.program = policy_.forecast.program();
    policy_.plan = make_memory_plan(policy_.forecast.last(), limits,
                                    find_strangers(residency_, policy_.forecast));
    return policy_.plan.has_value();
  }
  Handle call(const std::vector<Handle>& inputs, int64_t units, int64_t cost,
              Category category = Category::kActivation) {
    Handle out(residency_.create(kUnit * units, category, "priced"));
    execute(inputs, cost, out.get());
    return out;
  }
  Handle data(int64_t units, Category category = Category::kData) {
    Handle handle(residency_.create(kUnit * units, category, "upload"));
    residency_.upload(*handle, nullptr, nullptr);
    return handle;
  }

  // "evict 3, copy 4, drop 4, back 4, ...": what the last step decided, items by number.
  std::vector<std::string> done() const {
    std::vector<std::string> list;
    for_step([&](const EventRecord& event) {
      const char* what = event.kind == EventKind::kEvict       ? "evict "
                         : event.kind == EventKind::kCopyOut   ? "copy "
                         : event.kind == EventKind::kDropClean ? "drop "
                         : event.kind == EventKind::kOffload   ? "offload "
                         : event.kind == EventKind::kPrefetch  ? "back "
                                                               : nullptr;
      if (!what) return;
      EXPECT_EQ(event.reason,
                event.kind == EventKind::kPrefetch ? Reason::kNone : Reason::kPlan);
      list.push_back(what + std::to_string(items_.at(event.storage)));
    });
    return list;
  }
  // The same, as planned. In these steps what is copied is not written before it is so again.
  std::vector<std::string> planned() const {
    std::vector<std::string> list;
    std::set<uint32_t> copied;
    for (const auto& [kind, item] : policy_.plan->memory.events) {
      // What has not been written since has its copy still, which a record does not tell.
      if (kind == Kind::kCopyOut && !copied.insert(item).second) continue;
      if (kind == Kind::kBlock || kind == Kind::kEndOfCall) continue;
      const char* what = kind == Kind::kEvict     ? "evict "
                         : kind == Kind::kCopyOut ? "copy "
                         : kind == Kind::kOffload ? "drop "
                                                  : "back ";
      list.push_back(what + std::to_string(item));
    }
    return list;
  }
  Nanos recomputed() const {
    Nanos sum{0};
    for_step([&](const EventRecord& event) {
      if (event.kind == EventKind::kRecompute) sum += event.expected;
    });
    return sum;
  }
  // Before a write.
  size_t brought_back() const {
    size_t count = 0;
    for_step([&](const EventRecord& event) { count += event.reason == Reason::kOverwritten; });
    return count;
  }
  size_t moves() const {
    size_t count = 0;
    for_step([&](const EventRecord& event) { count += event.kind == EventKind::kCompact; });
    return count;
  }
  const MemoryPlan& memory_plan() const { return *policy_.plan; }
  const ByPlan& policy() const { return policy_; }
  void forget_places() { policy_.plan->offsets.clear(); }
  Residency& residency() { return residency_; }
  Bytes budget() const { return arena_.offsets().capacity(); }

 private:
  std::vector<Tier*> tiers() {
    return host_ ? std::vector<Tier*>{host_.get()} : std::vector<Tier*>{};
  }
  void body(const std::function<void()>& midway) {
    std::vector<Handle> x{data(4)}, h, penalty;
    if (penalty_ > 0) penalty = {call({weights_[0]}, penalty_, 50)};
    for (const Handle& weight : weights_) {
      h.push_back(call({x.back(), weight}, 4, 2000));
      x.push_back(call({h.back()}, 4, 60));
    }
    if (midway) midway();
    residency_.set_phase(Phase::kBackward);
    Handle gradient = call({x.back()}, 4, 100);
    std::vector<Handle> gradients(weights_.size());
    for (size_t i = weights_.size(); i-- > 0;) {
      const Handle inner = call({gradient, x[i + 1], h[i]}, 4, 120);
      gradients[i] = call({inner, x[i]}, 1, 2000, Category::kGradient);
      gradient = call({inner, weights_[i]}, 4, 2000);
      x[i + 1] = {};
      h[i] = {};
    }
    residency_.set_phase(Phase::kUpdate);
    for (size_t i = 0; i < weights_.size(); ++i) {
      execute({weights_[i], gradients[i], states_[i]}, 100, nullptr);
      execute({states_[i], gradients[i]}, 100, nullptr);
    }
    if (penalty_ > 0) execute({states_[0], penalty[0]}, 100, nullptr);
  }
  // Without an output it writes inputs[0] in place.
  void execute(const std::vector<Handle>& inputs, int64_t cost, Storage* out) {
    auto call = make_intrusive<PricedCall>(cost);
    for (const Handle& input : inputs) {
      call->inputs.push_back({input.ptr(), input->version(), !out && call->inputs.empty()});
    }
    if (out) call->outputs.push_back({out, out->bytes()});
    call->cost_key =
        costs_.key(static_cast<uint64_t>(cost), {static_cast<double>(cost), Bytes(0), true});
    residency_.execute(call);
    for (const Handle& input : inputs) number(*input);
    if (out) number(*out);
  }
  void number(const Storage& storage) {
    const uint32_t item = policy_.forecast.item_of(storage);
    if (item != StepTable::kNone) items_[storage.id()] = item;
  }
  template <class Visit>
  void for_step(const Visit& visit) const {
    log_.for_each([&](const EventRecord& event) {
      if (event.tag >= first_) visit(event);
    });
  }

  const int64_t penalty_;
  std::unique_ptr<Device> device_;
  Arena arena_;
  std::unique_ptr<Tier> host_;
  CostModel costs_;
  EventLog log_;
  ByPlan policy_;
  Residency residency_;
  std::vector<Handle> weights_, states_;
  std::map<uint32_t, uint32_t> items_;  // by storage
  uint64_t first_ = 0;                  // event of the last step
};

int64_t unmanaged_peak() {
  Training training(1000, 0);
  return training.step().peak_live.count() / kUnit.count();
}

// Two steps to see what it does, and two by plan: the second begins as those that follow it.
bool settle(Training& training) {
  training.step();
  training.step();
  if (!training.plan()) return false;
  training.step();
  training.step();
  return true;
}

// The last step did what the plan says, within the budget, in no more time than was expected.
void check_followed(const Training& training, const StepStats& stats) {
  const MemoryPlan& plan = training.memory_plan();
  EXPECT_TRUE(training.policy().followed);
  EXPECT_EQ(training.done(), training.planned());
  EXPECT_EQ(training.recomputed(), plan.expected.recomputed);
  EXPECT_TRUE(!plan.placed() || training.moves() == plan.moves.size()) << training.moves();
  EXPECT_LE(stats.peak_reserved, training.budget());
  const double ratio = static_cast<double>(stats.duration.count()) /
                       static_cast<double>(plan.expected.time.count());
  if (plan.expected.copied == Nanos(0)) {
    EXPECT_EQ(ratio, 1);
  } else {
    // A rehearsal counts bytes, and so waits for some copies that lie elsewhere.
    EXPECT_LE(ratio, 1.001);
    EXPECT_GE(ratio, 0.95);
  }
}

TEST(StepScript, DoesWhatWasRehearsed) {
  int evicting = 0, copying = 0, moving = 0;
  for (const int64_t host : {0, 1000}) {
    for (const int64_t percent : {110, 90, 80, 70, 65, 60, 55, 50, 45, 40, 35}) {
      if (host == 0 && percent < 70) continue;  // what cannot be computed has to stay
      SCOPED_TRACE(std::to_string(percent) + " %, host " + std::to_string(host));
      Training training(unmanaged_peak() * percent / 100, host);
      ASSERT_TRUE(settle(training));
      for (int i = 0; i < 2; ++i) {
        check_followed(training, training.step());
      }
      const MemoryPlan& plan = training.memory_plan();
      EXPECT_TRUE(plan.placed());
      evicting += plan.expected.recomputed > Nanos(0);
      copying += plan.expected.copied > Nanos(0);
      moving += !plan.moves.empty();
      EXPECT_EQ(plan.releases.empty(), percent > 100);
    }
  }
  EXPECT_GE(evicting, 7);
  EXPECT_GE(copying, 8);
  EXPECT_GE(moving, 2);
}

// It is away while others take the room, and back before what it is made from is written.
TEST(StepScript, BringsBackWhatIsMadeFromWhatIsOverwritten) {
  for (const int64_t percent : {95, 85, 75}) {
    SCOPED_TRACE(std::to_string(percent) + " %");
    Training training(unmanaged_peak() * percent / 100, 0, 1, /*penalty=*/3);
    ASSERT_TRUE(settle(training));
    check_followed(training, training.step());
    EXPECT_EQ(training.brought_back(), 1U);
  }
}

std::vector<std::string> without_copies(std::vector<std::string> list) {
  std::erase_if(list, [](const std::string& what) { return what.starts_with("copy"); });
  return list;
}

// Where what lives on takes more than all the room, some of it is away between steps.
TEST(StepScript, BeginsWithoutWhatIsAway) {
  constexpr int64_t kState = 4, kLivesOn = (1 + kState) * Training::kLayers;
  for (const int64_t arena : {kLivesOn - 1, kLivesOn - 2, kLivesOn - 3}) {
    SCOPED_TRACE(std::to_string(arena) + " units");
    Training training(arena, 1000, kState);
    ASSERT_TRUE(settle(training));
    const MemoryPlan& plan = training.memory_plan();
    EXPECT_TRUE(plan.placed());
    EXPECT_EQ(plan.expected.lacking, Bytes(0));
    EXPECT_LT(plan.memory.there, 2U * Training::kLayers);
    for (int i = 0; i < 2; ++i) {
      const StepStats stats = training.step();
      EXPECT_TRUE(training.policy().followed);
      // What was away has its copy until it is written, which a record does not tell.
      EXPECT_EQ(without_copies(training.done()), without_copies(training.planned()));
      EXPECT_LE(stats.peak_reserved, training.budget());
      EXPECT_LE(stats.duration, plan.expected.time);
    }
  }
}

// Where no block has a place they are slid together as room is needed.
TEST(StepScript, SlidesBlocksThatHaveNoPlaces) {
  for (const int64_t percent : {80, 60, 40}) {
    SCOPED_TRACE(std::to_string(percent) + " %");
    Training training(unmanaged_peak() * percent / 100, 1000);
    ASSERT_TRUE(settle(training));
    training.forget_places();
    training.step();
    check_followed(training, training.step());
  }
}

// A call more in the middle, be its output as large as the next call's: what follows is not by
// plan. Steps like the planned one are again.
TEST(StepScript, IsNotFollowedWhereAStepDiffers) {
  for (const int64_t units : {1, 4}) {
    Training training(unmanaged_peak() * 6 / 10, 1000);
    ASSERT_TRUE(settle(training));
    const StepStats stats = training.step([&] {
      EXPECT_NE(training.residency().script(), nullptr);
      training.call({}, units, 77);
      EXPECT_EQ(training.residency().script(), nullptr);
    });
    EXPECT_TRUE(training.policy().begun);
    EXPECT_FALSE(training.policy().followed);
    EXPECT_LE(stats.peak_reserved, training.budget());
    ASSERT_TRUE(settle(training));
    check_followed(training, training.step());
  }
}

TEST(StepScript, IsNotFollowedWhereAStepEndsEarly) {
  Training training(unmanaged_peak() * 6 / 10, 1000);
  ASSERT_TRUE(settle(training));
  training.residency().begin_step();
  training.data(4);
  training.residency().end_step(/*synchronize=*/true);
  EXPECT_FALSE(training.policy().followed);
}

// After a step that throws, what it had not come to bears no number: the next step goes without
// the plan, and those after it by it, as ever.
TEST(StepScript, IsFollowedAgainAfterAStepThatThrows) {
  for (const bool at_once : {true, false}) {
    Training training(unmanaged_peak() * 6 / 10, 1000);
    ASSERT_TRUE(settle(training));
    EXPECT_THROW(training.step([&] {
      if (!at_once) training.call({}, 1, 77);
      throw UsageError("given up");
    }),
                 UsageError);
    training.step();
    EXPECT_FALSE(training.policy().begun);
    training.step();
    check_followed(training, training.step());
  }
}

// It has a place, to which it is moved, and stays there.
TEST(StepScript, MovesStrangersOutOfTheWay) {
  Training training(unmanaged_peak() * 6 / 10 + 6, 1000);
  training.step();
  const Handle stranger = training.data(3), other = training.data(3);
  ASSERT_TRUE(settle(training));
  const MemoryPlan& plan = training.memory_plan();
  ASSERT_TRUE(plan.placed());
  ASSERT_EQ(plan.strangers.size(), 2U);
  check_followed(training, training.step());
  std::vector<Offset> at, planned;
  for (const Handle& each : {stranger, other}) {
    ASSERT_TRUE(each->resident());
    at.push_back(*training.residency().offset_of(*each));
  }
  for (const Block& block : plan.strangers) planned.push_back(block.offset);
  std::sort(at.begin(), at.end());
  std::sort(planned.begin(), planned.end());
  EXPECT_EQ(at, planned);
}

// One of which the plan knows nothing, or that it counts on: it is not begun.
TEST(StepScript, IsNotBegunWithOtherStrangers) {
  Training training(unmanaged_peak() * 7 / 10, 1000);
  ASSERT_TRUE(settle(training));
  Handle stranger = training.data(3);
  const StepStats stats = training.step();
  EXPECT_FALSE(training.policy().begun);
  EXPECT_LE(stats.peak_reserved, training.budget());
  EXPECT_NE(stranger->residence(), Residence::kLost);
  ASSERT_TRUE(training.plan());
  training.step();
  EXPECT_TRUE(training.policy().followed);
  stranger = {};
  training.step();
  EXPECT_TRUE(training.policy().followed) << "its place is empty";
}

}  // namespace
}  // namespace tidemark::testing
