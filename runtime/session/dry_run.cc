#include "runtime/session/dry_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/executor/step_planner.h"
#include "runtime/policy/registry.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

// Far above what any program takes; the simulator only counts.
constexpr Bytes kUnlimited{int64_t{1} << 50};
constexpr size_t kFewEvents = 64;

Bytes working_set(const Recipe& call) {
  Bytes sum = align_up(call.workspace);
  for (const Recipe::Input& input : call.inputs) sum += input.storage->size();
  for (const Recipe::Output& output : call.outputs) sum += align_up(output.bytes);
  return sum;
}

constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max();

// Tide makes way for another policy if its step takes more than this many times as long.
constexpr double kClearly = 1.02;
// A policy is not ranked if its step takes more than this many times as long as the quickest.
constexpr int64_t kFarLonger = 4;

// Limits on the effort of each plan of tide's in a trial, which makes two: an absolute one, and
// one by which both take at most a fifth of the work. A program's only trial has more, unless
// the program is so long that layouts take most of the work. Without a tier, a search takes up
// to half as much again, for recomputation in any order.
constexpr int64_t kTrialPlanEffort = 1'000'000;
constexpr int64_t kOnlyTrialPlanEffort = 4'000'000;
constexpr int64_t kMaxOperatorsForMore = 8'000;
constexpr int64_t kWorkPerOnlyPlanEffort = 60;
constexpr int64_t kWorkPerPlanEffort = 150;

// Units of work for issuing a call of the program and for handing out a block.
constexpr int64_t kCallWork = 200;
constexpr int64_t kBlockWork = 200;

// One of many simulations that are compared may take this share (1/n) of the work, or
// kPlainTurns times what its steps take without recomputation. A simulation that recomputes
// endlessly, as happens just above an impossible budget, is stopped so that others have their
// turn.
constexpr int64_t kTurns = 16;
constexpr int64_t kPlainTurns = 4;
constexpr int64_t kStepsOfAProgram = 3;

constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};

// Below this share (1/n) of the peak a plan seldom fits, so tide's fallback policy matters.
constexpr int64_t kNarrow = 8;

// A budget in which the program does not complete in later steps is raised by this share. A
// budget that is not the least is sought to within this share.
constexpr double kRaise = 0.02;

// The next policy is first tried with this share (1/n) less than the smallest budget so far.
constexpr int64_t kWorthLooking = 64;

// The smallest budget is found to within this share (1/n) of the largest.
constexpr int64_t kPrecision = 4096;

thread_local DryRunProgress current_progress;

// Limits at which a simulation is stopped.
struct TrialLimits {
  int64_t recomputations = kAnyNumber;  // in all steps together
  Nanos step = kNever;                  // one step's time, as far as it is issued
  int64_t work = kAnyNumber;            // besides the overall limit
  bool only_first = false;              // only the program's first step
};

// Counts the work of a session from here on, and stops the session where a limit is passed,
// even within a call of the program: bringing back its inputs may take many calls.
class WorkMeter final : public StorageListener {
 public:
  WorkMeter(Residency& residency, const TrialLimits& limits, DryRunWork& work)
      : residency_(residency),
        limits_(limits),
        work_(work),
        examined_(residency.effort().examined()) {
    residency.storage_events().listen(*this);
  }
  ~WorkMeter() override { residency_.storage_events().ignore(*this); }

  void begin_step() {
    began_ = residency_.view().clock();
    recomputed_ = 0;
  }
  void on_event(const StorageEvent& event) noexcept override {
    if (is_block(event)) count(kBlockWork, 0);
    if (event.kind == StorageEvent::Kind::kCall) count(kCallWork, 1);
  }

 private:
  void count(int64_t own, int64_t calls) {
    const int64_t examined = residency_.effort().examined();
    const int64_t units = own + examined - std::exchange(examined_, examined);
    const int64_t recomputes = residency_.stats().recomputes;
    const int64_t operators = calls + recomputes - std::exchange(recomputed_, recomputes);
    done_ += units;
    work_.add(units);
    if (current_progress) current_progress(operators, units);
    if (work_.is_spent() || done_ > limits_.work) {
      work_.stop();
      residency_.effort().stop();
    }
    const bool too_long = residency_.view().clock() - began_ > limits_.step;
    if (recomputes > limits_.recomputations || too_long) residency_.effort().stop();
  }

  Residency& residency_;
  const TrialLimits limits_;
  DryRunWork& work_;
  int64_t examined_;
  int64_t recomputed_ = 0;  // recomputations in this step so far
  int64_t done_ = 0;
  Nanos began_{0};
};

// Runs each step `rounds` times, as what the tiers hold changes from step to step. None if
// memory runs out, a limit is passed or the work is spent. `last` is kept up to date with the
// last completed round of the program's first step.
std::optional<TrialResult> run(const SessionOptions& options, const Program& program,
                               int rounds, const TrialLimits& limits, DryRunWork& work,
                               StepPrediction* last = nullptr) {
  if (work.is_spent()) {
    work.stop();
    return std::nullopt;
  }
  try {
    Session session(options);
    WorkMeter meter(session.residency(), limits, work);
    std::optional<Nanos> first;
    for (const std::function<void()>& step : program()) {
      Nanos sum{0};
      for (int round = 0; round < rounds; ++round) {
        meter.begin_step();
        const StepStats& stats = session.step(step);
        if (round >= rounds / 2) sum += stats.modelled;
        if (!last || first) continue;
        last->step = stats;
        if (session.host()) last->host_peak = session.host()->peak();
        if (session.disk()) last->disk_peak = session.disk()->peak();
        last->rounds = round + 1;
      }
      if (!first) first = Nanos(sum.count() / (rounds - rounds / 2));
      if (limits.only_first) break;
    }
    return TrialResult{first.value_or(Nanos(0)), session.peak_live()};
  } catch (const OutOfMemory&) {
    return std::nullopt;
  } catch (const Effort::Stopped&) {
    return std::nullopt;
  }
}

// What the program's steps take without recomputation.
int64_t plain_work(const UnmanagedNeed& need, int64_t rounds) {
  return need.operators * kStepsOfAProgram * rounds * (kCallWork + 2 * kBlockWork);
}

int64_t turn(const DryRunWork& work, const UnmanagedNeed& need, int rounds) {
  return std::max(work.max() / kTurns, kPlainTurns * plain_work(need, rounds));
}

// Whether all policies can be ranked with half of the work, even if they double the steps'.
bool can_rank(const DryRunWork& work, const UnmanagedNeed& need) {
  const auto count = static_cast<int64_t>(policies().size());
  return 2 * count * plain_work(need, kRankingRounds) <= work.max() / 2;
}

Bytes raised(Bytes budget) {
  return budget + std::max(kAlignment, align_up(share_of(budget, kRaise)));
}

// Whether the program completes in `budget` in later steps too, within `limit` units of work.
// If it does, that is the budget found.
using Proof = std::function<bool(Bytes budget, int64_t limit, DryRunWork& work)>;

// Searches for a smaller budget than the one found, above `unproven`, whose proof took too much
// work. Each proof may take half of the work that is left, apart from what is `kept`. The next
// budget is a quarter of the way up, by ratio: mostly, a little more memory makes a proof
// cheap.
void lower(Bytes unproven, const MinimumBudget& found, const UnmanagedNeed& need, int64_t kept,
           DryRunWork& work, const Proof& proves) {
  // Every proof takes at least this much.
  const int64_t least = need.operators * kTrialRounds * kCallWork;
  const auto limit = [&] { return (work.left() - kept) / 2; };
  while (raised(unproven) < found.budget && limit() >= least) {
    const double ratio =
        static_cast<double>(found.budget.count()) / static_cast<double>(unproven.count());
    const double more = std::sqrt(std::sqrt(ratio)) - 1;
    const Bytes tried = unproven + std::max(kAlignment, share_of(unproven, more));
    if (!proves(tried, limit(), work)) unproven = tried;
  }
}

int64_t trial_plan_effort(const DryRunWork& work) {
  return std::clamp<int64_t>(work.max() / kWorkPerPlanEffort, 1, kTrialPlanEffort);
}
int64_t trial_plan_effort(const DryRunWork& work, const UnmanagedNeed& need) {
  const bool is_only = !can_rank(work, need) && need.operators <= kMaxOperatorsForMore;
  if (!is_only) return trial_plan_effort(work);
  return std::clamp<int64_t>(work.max() / kWorkPerOnlyPlanEffort, 1, kOnlyTrialPlanEffort);
}

// Space for everything, twice: the disk rounds copies up, and storages that only recipes read
// need space too.
bool tiers_are_ample(const SessionOptions& options, const UnmanagedNeed& need) {
  return options.host_limit + options.disk_limit >= 2 * need.peak;
}

bool is_plain_tide(const SessionOptions& options) {
  return options.policy == "tide" && options.delta.filter.empty();
}

// Whether a dry run may choose this policy in place of another.
bool may_replace(const PolicyInfo& policy) {
  return policy.name != "tide" && !policy.reference;
}

// Like completing_schedule(). Half of the work is left for trying the best-ranked policies, and
// a quarter for the quickest policy without plans, in case all else takes too much. Of a
// program that is too long to rank policies, tide over its usual fallback policy is tried
// first.
std::optional<SessionOptions> completing_within(const SessionOptions& options,
                                                const Program& program,
                                                const UnmanagedNeed& need,
                                                const TrialLimits& limits, DryRunWork& all) {
  if (is_plain_tide(options) && !can_rank(all, need)) {
    DryRunWork alone(all.left() / 4 * 3);
    const bool completes =
        run(simulated(options), program, kTrialRounds, limits, alone).has_value();
    all.add(alone);
    if (completes) return options;
  }
  DryRunWork work(all.left() / 4 * 3), last(all.left() - work.max());
  std::optional<SessionOptions> quickest;
  Nanos least = kNever;
  const Trial trial = [&](const SessionOptions& tried,
                          int rounds) -> std::optional<TrialResult> {
    const bool ranks = rounds <= kRankingRounds;
    if (ranks && 2 * work.done() >= work.max()) {
      work.stop();
      return std::nullopt;
    }
    TrialLimits its = limits;
    if (ranks) its.work = turn(work, need, rounds);
    if (tried.policy == options.policy) its.recomputations = kAnyNumber;
    // A policy that takes far longer than another is out of the running.
    if (ranks && least != kNever) {
      its.step = std::min(its.step, Nanos(least.count() * kFarLonger));
    }
    const auto result = run(simulated(tried), program, rounds, its, work);
    if (ranks && result && result->step < least) {
      least = result->step;
      quickest = tried;
    }
    return result;
  };
  std::optional<SessionOptions> found = completing_schedule(options, trial);
  all.add(work);
  if (found || !work.stopped() || !quickest) return found;
  if (run(simulated(*quickest), program, kTrialRounds, limits, last)) found = quickest;
  all.add(last);
  return found;
}

std::string quicker_fallback(SessionOptions options, const Trial& trial) {
  const auto step_by = [&](const std::string& policy) {
    options.policy = policy;
    const std::optional<TrialResult> result = trial(options, kTrialRounds);
    return result ? result->step : kNever;
  };
  const std::string usual = options.fallback_policy, other = "delta";
  return step_by(other) < step_by(usual) ? other : usual;
}

}  // namespace

DryRunProgress set_dry_run_progress(DryRunProgress report) {
  return std::exchange(current_progress, std::move(report));
}

SessionOptions simulated(SessionOptions options) {
  if (options.device == "cpu") options.device = "sim:host";
  if (options.device.starts_with("cuda")) options.device = "sim:" + options.device;
  options.event_capacity = kFewEvents;
  if (options.plan == true) options.plan.reset();  // other policies are tried without schedules
  return options;
}

UnmanagedNeed measure_unmanaged(const SessionOptions& real, const Program& program) {
  SessionOptions options = simulated(real);
  options.policy = "none";
  options.budget = kUnlimited;
  options.unmanaged_peak.reset();
  options.host_limit = options.disk_limit = Bytes(0);

  UnmanagedNeed need;
  Session session(options);
  const CallListener listener(session, [&need](const Recipe& call) {
    const Bytes bytes = working_set(call);
    if (bytes <= need.largest_operator) return;
    need.largest_operator = bytes;
    need.operator_name = call.name();
  });
  bool first = true;
  for (const std::function<void()>& step : program()) {
    const StepStats& stats = session.step(step);
    need.operators = std::max(need.operators, stats.operators);
    if (first) need.first_step = stats.duration;
    first = false;
  }
  need.peak = session.peak_reserved();
  need.categories = session.peak_live();
  need.live = need.categories.total();
  return need;
}

MinimumBudget find_minimum_budget(const SessionOptions& real, const Program& program,
                                  const UnmanagedNeed& need, DryRunWork* given) {
  DryRunWork own(need.search_work_limit());
  DryRunWork& work = given ? *given : own;
  SessionOptions options = simulated(real);
  options.unmanaged_peak.reset();
  // feasible_schedule() turns learning off for the session, and the minimum has to hold there.
  if (!tiers_are_ample(options, need)) options.residency.learn_costs = false;
  const int64_t most = kMaxRecomputations * need.operators;
  // Each policy gets half of the work that those before it have left.
  DryRunWork search(work.left() / 2), its(search.left() / 2);
  std::string policy;
  MinimumBudget found = least_budget(
      options, need.largest_operator, need.peak, [&](const SessionOptions& tried, int rounds) {
        if (std::exchange(policy, tried.policy) != tried.policy) {
          search.add(its);
          its = DryRunWork(search.left() / 2);
        }
        return run(tried, program, rounds,
                   {.recomputations = most, .work = turn(work, need, rounds)}, its);
      });
  search.add(its);
  work.add(search);
  // Nearly full tiers may turn out to be too small only after some steps.
  options.policy = found.policy;
  const auto try_at = [&](Bytes budget, int64_t limit, DryRunWork& proof) {
    options.budget = budget;
    return run(options, program, kTrialRounds, {.recomputations = most, .work = limit}, proof);
  };
  int64_t for_wanted = work.left() / 2;
  DryRunWork proofs(work.left() - for_wanted);
  const auto is_proven = [&] {
    return tiers_are_ample(options, need) || found.budget >= need.peak ||
           try_at(found.budget, proofs.left() / 3 * 2, proofs);
  };
  bool proven = is_proven();
  while (!proven && !proofs.stopped()) {
    found.budget = std::min(need.peak, raised(found.budget));
    ++found.probes;
    proven = is_proven();
  }
  work.add(proofs);
  Bytes unproven = found.budget;
  // Where nothing is released there is nothing to prove.
  if (!proven) found.budget = need.peak;
  if (found.budget == need.peak) found.categories = need.categories;
  const Proof proves = [&](Bytes budget, int64_t limit, DryRunWork& proof) {
    ++found.probes;
    const std::optional<TrialResult> result = try_at(budget, limit, proof);
    if (result) found = {budget, result->live, found.probes, options.policy};
    return result.has_value();
  };
  const auto lacks_wanted = [&] {
    return work.stopped() && real.budget && *real.budget >= need.largest_operator &&
           *real.budget < found.budget;
  };
  std::string tried;
  if (!proven) {
    DryRunWork rest(work.left());
    if (lacks_wanted() && *real.budget > unproven) {
      tried = found.policy;
      proven = proves(*real.budget, rest.left() / 2, rest);
      if (!proven) unproven = *real.budget;
    }
    for_wanted = lacks_wanted() ? rest.left() / 3 : 0;
    // Less than what is wanted would be of no use: feasible_schedule() may fall back to it.
    if (!proven) lower(unproven, found, need, for_wanted, rest, proves);
    work.add(rest);
  }
  if (lacks_wanted()) {
    DryRunWork others(for_wanted);
    std::vector<std::string> in_turn{found.policy};
    in_turn.insert(in_turn.end(), kLastResorts.begin(), kLastResorts.end());
    for (const std::string& name : in_turn) {
      if (name == tried) continue;
      options.policy = name;
      if (proves(*real.budget, others.left() / 3 * 2, others)) break;
    }
    work.add(others);
  }
  found.is_least = !work.stopped();
  return found;
}

std::optional<Bytes> sufficient_disk(const SessionOptions& options, const Program& program,
                                     const UnmanagedNeed& need) {
  if (tiers_are_ample(options, need)) return std::nullopt;
  SessionOptions ample = options;
  ample.disk_limit = 2 * need.peak;
  if (find_minimum_budget(ample, program, need).budget > *options.budget) return std::nullopt;
  return ample.disk_limit;
}

SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum,
                                 DryRunWork* given) {
  if (options.policy == "none" || *options.budget >= need.peak) return options;
  DryRunWork own(need.work_limit());
  DryRunWork& work = given ? *given : own;
  if (tiers_are_ample(options, need)) {
    const Trial trial = [&](const SessionOptions& tried, int rounds) {
      return run(simulated(tried), program, rounds, {}, work);
    };
    const bool narrow = *options.budget * kNarrow < need.peak;
    if (narrow && is_plain_tide(options))
      options.fallback_policy = quicker_fallback(options, trial);
    return options;
  }
  options.residency.learn_costs = false;
  options.delta.plan_effort = trial_plan_effort(work, need);
  const TrialLimits limits{.recomputations = kMaxRecomputations * need.operators};
  if (const auto found = completing_within(options, program, need, limits, work)) return *found;
  options.policy = minimum.policy;
  options.budget = minimum.budget;
  return options;
}

SessionOptions feasible_schedule_sparing_disk(const SessionOptions& options,
                                              const Program& program, const UnmanagedNeed& need,
                                              const MinimumBudget& minimum, DryRunWork* given) {
  SessionOptions bare = options;
  bare.disk_limit = Bytes(0);
  const bool fits = options.policy == "none" || *options.budget >= need.peak;
  if (fits || tiers_are_ample(bare, need)) {
    return feasible_schedule(bare, program, need, minimum, given);
  }
  DryRunWork own(need.work_limit());
  DryRunWork& all = given ? *given : own;
  bare.residency.learn_costs = false;
  bare.delta.plan_effort = trial_plan_effort(all, need);
  DryRunWork work(all.left() / 2);
  // Tide's plans are left out: they take the host far longer than such a step, and help with
  // and without a disk.
  const bool is_tide = options.policy == "tide";
  const auto unplanned = [&](SessionOptions tried, std::string_view policy,
                             const TrialLimits& limits) {
    tried.policy = policy;
    return run(simulated(std::move(tried)), program, kRankingRounds, limits, work);
  };
  const std::string its_own = is_tide ? options.fallback_policy : options.policy;
  TrialLimits limits{.recomputations = kMaxRecomputations * need.operators,
                     .work = turn(work, need, kRankingRounds)};
  if (const auto with_disk = unplanned(options, its_own, limits)) {
    limits.step = Nanos(
        static_cast<int64_t>(kWorthTheDisk * static_cast<double>(with_disk->step.count())));
  }
  const auto is_quick = [&](std::string_view policy) {
    const auto without_disk = unplanned(bare, policy, limits);
    return without_disk && without_disk->step <= limits.step;
  };
  const auto policies_tried = policies();
  const bool is_worth_it =
      is_tide ? std::none_of(policies_tried.begin(), policies_tried.end(),
                             [&](const PolicyInfo& policy) {
                               return may_replace(policy) && is_quick(policy.name);
                             })
              : !is_quick(its_own);
  std::optional<SessionOptions> sparing;
  if (!is_worth_it) {
    limits.work = kAnyNumber;
    DryRunWork choice(all.max() - work.done());
    sparing = completing_within(bare, program, need, limits, choice);
    work.add(choice);
  }
  all.add(work);
  if (sparing && (is_tide || sparing->policy == options.policy)) return *sparing;
  DryRunWork rest(all.left());
  SessionOptions with_disk = feasible_schedule(options, program, need, minimum, &rest);
  all.add(rest);
  return with_disk;
}

std::optional<StepPrediction> predict_step(SessionOptions options, const Program& program,
                                           DryRunWork* given) {
  DryRunWork own;
  DryRunWork& work = given ? *given : own;
  options.delta.plan_effort = trial_plan_effort(work);
  StepPrediction prediction;
  const bool completes =
      run(simulated(options), program, kTrialRounds, {.only_first = true}, work, &prediction)
          .has_value();
  if (!completes && !work.stopped()) return std::nullopt;
  return prediction;
}

std::optional<SessionOptions> completing_schedule(const SessionOptions& options,
                                                  const Trial& trial) {
  const bool is_tide = options.policy == "tide";
  if (!is_tide && trial(options, kTrialRounds)) return options;
  struct Ranked {
    const PolicyInfo* policy;
    Nanos step;
  };
  std::vector<Ranked> others;
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == options.policy || !may_replace(policy)) continue;
    SessionOptions other = options;
    other.policy = policy.name;
    if (const auto result = trial(other, kRankingRounds)) {
      others.push_back({&policy, result->step});
    }
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Ranked& a, const Ranked& b) { return a.step < b.step; });
  std::optional<SessionOptions> tide;
  Nanos by_tide = kNever;
  for (const Ranked& other : others) {
    const bool by_price = other.policy->name == SessionOptions().fallback_policy;
    const bool possible = other.policy->evicts && (by_price || options.delta.filter.empty());
    if (!is_tide || !possible) continue;
    SessionOptions over = options;
    over.fallback_policy = other.policy->name;
    const auto result = trial(over, kTrialRounds);
    if (!result) continue;
    tide = over;
    by_tide = result->step;
    break;
  }
  for (const Ranked& other : others) {
    if (static_cast<double>(by_tide.count()) <=
        kClearly * static_cast<double>(other.step.count()))
      break;
    SessionOptions another = options;
    another.policy = other.policy->name;
    if (trial(another, kTrialRounds)) return another;
  }
  return tide;
}

MinimumBudget least_budget(SessionOptions options, Bytes least, Bytes most,
                           const Trial& trial) {
  // Budgets are counted in units of kAlignment.
  const int64_t unit = kAlignment.count();
  const int64_t lowest = least.count() / unit;
  MinimumBudget found{most, {}, 0, std::string(kLastResorts.back())};
  const auto completes = [&](int64_t budget) {
    ++found.probes;
    options.budget = Bytes(budget * unit);
    const std::optional<TrialResult> result = trial(options, 1);
    if (!result) return false;
    found = {*options.budget, result->live, found.probes, options.policy};
    return true;
  };
  options.policy = kLastResorts.back();
  if (lowest >= most.count() / unit || completes(lowest)) return found;
  for (const std::string_view policy : kLastResorts) {
    options.policy = policy;
    int64_t low = lowest, high = found.budget.count() / unit;
    if (policy != kLastResorts.front()) {
      const int64_t less = std::max(low, high - 1 - high / kWorthLooking);
      if (less >= high || !completes(less)) continue;
      high = less;
    }
    while ((high - low) * kPrecision > most.count() / unit) {
      const int64_t middle = low + (high - low) / 2;
      if (completes(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
  }
  return found;
}

SessionOptions with_budget(double share, const Program& program, SessionOptions options) {
  if (!(share > 0)) {
    throw UsageError("[with_budget] a share must be positive, not " + std::to_string(share));
  }
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.unmanaged_peak = need.peak;
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  options.budget = align_down(share_of(need.peak, std::min(share, 1.0)));
  if (*options.budget < minimum.budget) {
    std::string remedy;
    if (const auto disk = sufficient_disk(options, program, need)) {
      remedy = "; a disk tier of " + std::to_string(disk->count()) + " bytes (" +
               format_bytes(*disk) + ", SessionOptions::disk_limit) makes this budget enough";
    }
    throw InfeasibleBudget(*options.budget, minimum.budget, minimum.is_least, remedy);
  }
  return feasible_schedule(options, program, need, minimum);
}

std::string ReleaseSchedule::name() const {
  return fallback_policy.empty() ? policy : policy + " over " + fallback_policy;
}

ReleaseSchedule schedule_of(const SessionOptions& options) {
  const bool its_own =
      options.policy != "tide" || options.fallback_policy == SessionOptions().fallback_policy;
  return {options.policy, its_own ? "" : options.fallback_policy};
}

}  // namespace tidemark
