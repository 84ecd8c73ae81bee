// Ours. A step that repeats is planned as a whole from the record of the last one
// (memory_plan.h): what to copy out and when, what to evict, when copies come back, and where
// each block lies. A script (step_script.h) carries that out; nothing is decided on the way.
//
// Unplanned (the first steps, one that differs from the last, or where no plan fits), another
// policy decides: by price (price_policy.h), or the one that it is told.
//
// Each program (forecast.h) has its plan.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/policy/forecast.h"
#include "runtime/policy/registry.h"
#include "runtime/policy/tide/memory_plan.h"
#include "runtime/policy/tide/step_script.h"

namespace tidemark {

class TidePolicy final : public ReleasePolicy {
 public:
  // How many plans are tried, one after the other, beside going without: the first copies tell
  // what the link can do, so the second is not as the first.
  static constexpr size_t kPlans = 2;
  TidePolicy(const PolicySettings& settings, size_t plans);

  void add(Storage& storage) override { unplanned_->add(storage); }
  void remove(Storage& storage) override { unplanned_->remove(storage); }
  void touch(Storage& storage) override { unplanned_->touch(storage); }
  Storage* choose(const Residency& residency) override { return unplanned_->choose(residency); }
  bool knows_prices() const override { return unplanned_->knows_prices(); }
  std::optional<Nanos> price(const Residency& residency, Storage& storage) override {
    return unplanned_->price(residency, storage);
  }
  bool may_offload(const Storage& storage) const override {
    return unplanned_->may_offload(storage);
  }
  Action decide(const Residency& residency, Storage& storage) override {
    return unplanned_->decide(residency, storage);
  }
  bool recompute_offloaded(const Residency& residency, Storage& storage) override {
    return unplanned_->recompute_offloaded(residency, storage);
  }
  bool may_release_now(const Residency& residency) const override {
    return unplanned_->may_release_now(residency);
  }
  void on_event(const StorageEvent& event) noexcept override;
  void after_operator(Residency& residency, const Recipe& call) override;
  void begin_step(Residency& residency) override;
  void end_step(Residency& residency) override;
  bool settled() const override {
    return known_to_fit_ || programs_[forecast_.program()].trial.over;
  }

  // Plans take the host some seconds, so programs that come and go get few: so many at once,
  // and one more, which is made quickly, after so many steps.
  static constexpr int kMostPlans = 4;
  static constexpr int kStepsPerPlan = 100;

 private:
  // What is tried: 0 is going without a plan, i is the i-th plan.
  struct Trial {
    size_t next = 0;                 // what is tried in this step
    bool begun = false;              // it has been for a step: this one begins where it ended
    Nanos least{0};                  // of the steps tried so far
    std::optional<MemoryPlan> best;  // by which that one went
    int warm_up = 0;                 // steps in which costs are still being learnt
    bool over = false;
    int failed = 0;  // steps in a row, since then, in which the plan could not be followed
  };
  // What has been worked out for steps of one kind, by the forecast's number of it.
  struct Program {
    Trial trial;
    std::optional<MemoryPlan> plan;
  };

  Program& program() { return programs_[forecast_.program()]; }
  // Follows a step until its first block, an upload's as a rule, has told which program it is:
  // that one's plan takes over.
  class Starter final : public MemoryScript {
   public:
    Starter(TidePolicy& policy, Residency& residency)
        : policy_(policy), residency_(residency) {}
    Place place(const Storage& storage) override { return policy_.start(residency_, storage); }
    bool recompute_offloaded(const Storage& /*storage*/) override { return false; }
    bool after_operator(const Recipe& call) override {
      policy_.after_operator(residency_, call);
      return false;
    }
    void abandoned() override {}

   private:
    TidePolicy& policy_;
    Residency& residency_;
  };
  MemoryScript::Place start(Residency& residency, const Storage& first);
  std::optional<size_t> program_that_begins_with(const Storage& first) const;
  enum class Went : uint8_t { kUnplanned, kAsPlanned, kAstray };
  void learn(Residency& residency, bool repeated, Went went);
  void plan(Residency& residency, std::vector<PlannedRelease> draft);

  const size_t plans_;
  const int64_t most_effort_;  // for a plan
  const bool known_to_fit_;
  Forecast forecast_;
  const std::unique_ptr<ReleasePolicy> unplanned_;
  std::array<Program, Forecast::kMostPrograms> programs_;
  // Of the step under way.
  std::optional<Starter> starter_;
  std::optional<StepScript> script_;
  int plans_made_ = 0;
  int plans_left_ = kMostPlans;  // that may be made now
  int steps_until_more_ = kStepsPerPlan;
};

}  // namespace tidemark
