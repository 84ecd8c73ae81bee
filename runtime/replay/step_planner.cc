#include "runtime/replay/step_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/replay/memory_trace.h"
#include "runtime/replay/replay.h"
#include "runtime/residency/step_recorder.h"

namespace tidemark {
namespace {

constexpr size_t kMostPlans = 16;

// So often a plan may fail by itself, the program having done what it should.
constexpr int kMostMemoryFailures = 1;

// Steps by a plan, by the fastest of which it is judged: the first may have to bring what lives
// on to its places.
constexpr int kStepsOnTrial = 4;

std::string moving(const PlannedMemory& plan) {
  if (plan.moves.empty()) return "";
  return " and moving " + format_bytes(plan.moved) + " of blocks";
}

class StepPlanner final : public StepInterceptor {
 public:
  StepPlanner(Session& session, PlanOptions options)
      : session_(session),
        options_(std::move(options)),
        memory_(session.residency(), recorder_.numbering()) {}

  void begin_step() override {
    judge_last_step();
    take_plan();
    mode_ =
        plans_.empty() || std::exchange(record_next_, false) ? Mode::kRecord : Mode::kChoose;
    recorder_.begin_step();
    if (!releasing_.empty() && residency().settled()) memory_.begin_step();
  }

  void call(const IntrusivePtr<Recipe>& call) override {
    choose(*call);
    if (mode_ == Mode::kReplay) {
      replay_->call(call);
      return;
    }
    if (mode_ == Mode::kRecord) recorder_.call(*call, session_.costs());
    residency().execute(call);
  }

  void upload(Storage& storage, const void* from,
              std::shared_ptr<const void> keep_alive) override {
    choose(storage);
    if (mode_ == Mode::kReplay) {
      replay_->upload(storage, from, std::move(keep_alive));
      return;
    }
    if (mode_ == Mode::kRecord) recorder_.upload(storage);
    residency().upload(storage, from, std::move(keep_alive));
  }

  void before_read(Storage& storage) override {
    if (mode_ == Mode::kChoose) mode_ = Mode::kRecord;
    if (mode_ == Mode::kReplay) replay_->read(storage);
    if (mode_ == Mode::kRecord) recorder_.read(storage);
  }

  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kUnused) {
      if (mode_ == Mode::kRecord) recorder_.unused(*event.storage);
      if (mode_ == Mode::kReplay) replay_->unused(*event.storage);
    } else if (event.kind == StorageEvent::Kind::kGone) {
      recorder_.gone(*event.storage);
      if (mode_ == Mode::kReplay) replay_->gone(*event.storage);
    }
  }

  void end_step() override {
    if (mode_ == Mode::kReplay) {
      replay_->end_step();
      planned_ = replay_->mismatch().empty();
      if (planned_) {
        ++counts_.planned_steps;
      } else {
        ++counts_.mismatches;
        record_next_ = true;
        say("not as planned, so the policy took over: " + replay_->mismatch());
        const bool own_fault = replay_->memory_failed();
        if (own_fault && ++trials_[current_].failures > kMostMemoryFailures) {
          drop_current("what its releases depend on is not as it was");
        }
      }
      replay_.reset();
    } else if (mode_ == Mode::kRecord) {
      if (memory_.recording()) residency().bring_back_survivors();
      recorded(recorder_.end_step());
    }
    memory_.stop();
    mode_ = Mode::kIdle;
  }

  void abort_step() override {
    if (replay_) replay_->abandon();
    replay_.reset();
    memory_.stop();
    previous_.reset();
    mode_ = Mode::kIdle;
    planned_ = timed_ = false;
  }

  bool planned() const override { return planned_; }
  const PlanCounts& counts() const { return counts_; }
  const PlannedStep* current() const { return current_; }

 private:
  enum class Mode : uint8_t { kIdle, kChoose, kRecord, kReplay };
  // Of a plan that releases.
  struct Trial {
    Nanos policy{0};  // that the recorded step took
    int failures = 0;
    int steps = 0;
    Nanos least{std::numeric_limits<int64_t>::max()};  // of those steps
  };

  Residency& residency() { return session_.residency(); }
  void say(const std::string& what) const {
    if (options_.report) {
      options_.report(what);
    } else {
      log().info("plan: {}", what);
    }
  }

  // With the step's first call or upload.
  template <class First>
  void choose(const First& first) {
    if (mode_ != Mode::kChoose) return;
    mode_ = Mode::kRecord;
    for (const auto& plan : plans_) {
      if (!Replay::begins_with(*plan, first) || !Replay::applies(*plan, residency())) continue;
      memory_.stop();
      current_ = plan.get();
      replay_ = std::make_unique<Replay>(*plan, residency());
      mode_ = Mode::kReplay;
      return;
    }
  }

  void recorded(StepTrace graph) {
    for (const auto& plan : plans_) {
      if (same_program(plan->graph, graph)) return;
    }
    const bool repeated = previous_ && same_program(*previous_, graph);
    const uint64_t signature = signature_of(graph);
    if (repeated && !planning_.valid() && !refused_.contains(signature)) {
      plan(signature, graph);
    }
    previous_ = std::move(graph);
  }

  void plan(uint64_t signature, const StepTrace& graph) {
    if (const std::string reason = why_not_plannable(graph); !reason.empty()) {
      say("steps stay dynamic: " + reason);
      refused_.insert(signature);
      return;
    }
    if (!releasing_.contains(signature)) {
      planning_ = std::async(std::launch::async, plan_captured_step, graph, options_.planner);
    } else if (memory_.recording()) {
      MemoryTrace trace = memory_.end_step(graph.storages.size(), there_);
      timed_ = true;
      planning_ = std::async(std::launch::async, plan_releasing_step, graph, std::move(trace),
                             capacity(), link_rates(session_.costs()), options_.planner.limits);
    } else {
      return;
    }
    planning_for_ = signature;
    if (!options_.background) planning_.wait();
  }

  // Its time is known only now.
  void judge_last_step() {
    const Nanos took = session_.last_step().modelled;
    if (std::exchange(timed_, false)) policy_time_ = took;
    if (!std::exchange(planned_, false) || !current_->memory) return;
    Trial& trial = trials_[current_];
    trial.least = std::min(trial.least, took);
    if (++trial.steps != kStepsOnTrial) return;
    const auto share =
        static_cast<double>(trial.least.count()) / static_cast<double>(trial.policy.count());
    if (share <= options_.bearable) return;
    drop_current("by the plan they take " + std::to_string(std::lround(100 * (share - 1))) +
                 " % longer than under the policy");
  }

  void take_plan() {
    if (!planning_.valid() ||
        planning_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return;
    }
    try {
      take(std::make_unique<PlannedStep>(planning_.get()));
    } catch (const std::exception& error) {
      say("steps stay dynamic: " + std::string(error.what()));
      refused_.insert(planning_for_);
    }
    there_.clear();
  }

  void take(std::unique_ptr<PlannedStep> plan) {
    const std::string operators = std::to_string(plan->graph.ops.size()) + " operators in ";
    if (plan->memory) {
      plan->there = std::move(there_);
      trials_[plan.get()].policy = policy_time_;
      say("from now on by a plan: " + operators + format_bytes(plan->peak) +
          ", releasing as the policy did" + moving(*plan->memory));
    } else {
      const Bytes need = residency().bytes_in_use() + plan->peak;
      if (need > capacity()) {
        say("the plan takes " + format_bytes(need) + ", the budget is " +
            format_bytes(capacity()) +
            ": a step will be planned with what the policy releases, once that has settled");
        releasing_.insert(planning_for_);
        return;
      }
      say("from now on by a plan: " + operators + format_bytes(need) + ", in program order " +
          format_bytes(program_order_peak(plan->graph)) + " at least");
    }
    if (plans_.size() == kMostPlans) {
      trials_.erase(plans_.back().get());
      plans_.pop_back();
    }
    plans_.insert(plans_.begin(), std::move(plan));
    current_ = plans_.front().get();
    ++counts_.plans;
  }

  void drop_current(const std::string& why) {
    trials_.erase(current_);
    say("steps like it stay dynamic: " + why);
    refused_.insert(signature_of(current_->graph));
    std::erase_if(plans_, [&](const auto& plan) { return plan.get() == current_; });
    current_ = nullptr;
  }

  Bytes capacity() const { return session_.arena().offsets().capacity(); }

  Session& session_;
  const PlanOptions options_;
  Mode mode_ = Mode::kIdle;
  StepRecorder recorder_;
  std::optional<StepTrace> previous_;  // recorded
  std::future<PlannedStep> planning_;
  uint64_t planning_for_ = 0;
  std::unordered_set<uint64_t> refused_;
  std::unordered_set<uint64_t> releasing_;           // have to release to fit
  MemoryRecorder memory_;                            // of steps that may be planned so
  std::vector<IntrusivePtr<Storage>> there_;         // of the one that is being planned
  std::vector<std::unique_ptr<PlannedStep>> plans_;  // the latest first
  const PlannedStep* current_ = nullptr;
  std::unique_ptr<Replay> replay_;
  std::unordered_map<const PlannedStep*, Trial> trials_;
  Nanos policy_time_{0};  // of the last step whose memory was recorded
  bool timed_ = false;    // it is the last step
  bool record_next_ = false;
  bool planned_ = false;
  PlanCounts counts_;
};

// Records one step, which runs as it would.
class Recording final : public StepInterceptor {
 public:
  Recording(Session& session, StepTrace& graph) : session_(session), graph_(graph) {}
  void begin_step() override { recorder_.begin_step(); }
  void call(const IntrusivePtr<Recipe>& call) override {
    recorder_.call(*call, session_.costs());
    session_.residency().execute(call);
  }
  void upload(Storage& storage, const void* from,
              std::shared_ptr<const void> keep_alive) override {
    recorder_.upload(storage);
    session_.residency().upload(storage, from, std::move(keep_alive));
  }
  void before_read(Storage& storage) override { recorder_.read(storage); }
  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kUnused) recorder_.unused(*event.storage);
    if (event.kind == StorageEvent::Kind::kGone) recorder_.gone(*event.storage);
  }
  void end_step() override { graph_ = recorder_.end_step(); }
  void abort_step() override {}
  bool planned() const override { return false; }

 private:
  Session& session_;
  StepTrace& graph_;
  StepRecorder recorder_;
};

const StepPlanner& planner_of(const Session& session) {
  const auto* planner = dynamic_cast<const StepPlanner*>(session.interceptor());
  if (!planner) throw UsageError("plan_steps() was not called for this session");
  return *planner;
}

}  // namespace

void plan_steps(Session& session, PlanOptions options) {
  session.set_interceptor(std::make_unique<StepPlanner>(session, std::move(options)));
}

const PlanCounts& plan_counts(const Session& session) { return planner_of(session).counts(); }

const PlannedStep* current_plan(const Session& session) {
  return planner_of(session).current();
}

StepTrace record_step(Session& session, const std::function<void()>& step) {
  StepTrace graph;
  session.set_interceptor(std::make_unique<Recording>(session, graph));
  try {
    session.step(step);
  } catch (...) {
    session.set_interceptor(nullptr);
    throw;
  }
  session.set_interceptor(nullptr);
  return graph;
}

}  // namespace tidemark
