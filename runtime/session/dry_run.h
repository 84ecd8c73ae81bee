// How much memory a program needs, found on a simulated device before it runs for real: in
// milliseconds to some seconds, without data.
//
// The same program is built in a session on the simulator with the profile of the real device
// (the CPU's is "host"; a GPU's is its own, which needs that GPU), whose kernels are prepared
// for their workspaces but not run. Layout depends on the order of calls alone, so what is
// found is what the real run reaches, to the byte. Workspaces depend on the processor's
// instruction set and on the number of threads: the figures hold for the machine that they were
// found on.
//
// Threads: the calling thread; its current session is the same afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/memory/arena.h"
#include "runtime/session/session.h"

namespace tidemark {

// Builds a program in the current session and gives its steps, each to be run as one
// Session::step: enough of them that every kind occurs (two training steps, a smaller last
// batch, evaluation).
using Program = std::function<std::vector<std::function<void()>>()>;

// How much simulating there may be, and has been. It is counted, so that what is found is the
// same on every machine, in units that take a processor about 10 ns each (measured: 3 to 15):
// a storage, a block or a call that was looked at to decide something is one
// (Effort::examined()), an operator that was issued and a block that was handed out are two
// hundred, a call that a search for tide's schedule simulates is twelve. kMaxWork takes one
// core about a second and a half. Each of the functions below may do as much,
// find_minimum_budget() half as much again; measure_unmanaged() simulates its steps as they
// are. So what a program does at its start, the smallest budget, a schedule and a prediction,
// takes about five seconds at worst.
//
// Once all is spent, simulating stops, and the best found by then is taken: `stopped` then. A
// plan of tide's may go beyond by what is left to it.
inline constexpr int64_t kMaxWork = 140'000'000;
inline constexpr int64_t kMaxSearchWork = kMaxWork + kMaxWork / 2;  // find_minimum_budget()
class DryRunWork {
 public:
  explicit DryRunWork(int64_t max = kMaxWork) : max_(max) {}

  int64_t max() const { return max_; }
  int64_t done() const { return done_; }
  bool is_spent() const { return done_ >= max_; }
  // Was a simulation ended, or left out, for want of work? What was found is right then, but
  // more of it might have found something better.
  bool stopped() const { return stopped_; }

  int64_t left() const { return std::max<int64_t>(0, max_ - done_); }

  void add(int64_t units) { done_ += units; }
  // What was done on its behalf.
  void add(const DryRunWork& part) {
    done_ += part.done_;
    stopped_ = stopped_ || part.stopped_;
  }
  void stop() { stopped_ = true; }

 private:
  int64_t max_;
  int64_t done_ = 0;
  bool stopped_ = false;
};

// Called, by simulations on this thread, with how many operators and units of work (DryRunWork)
// they have done since the last call. It may not throw. Gives the one before; empty: none.
using DryRunProgress = std::function<void(int64_t operators, int64_t units)>;
DryRunProgress set_dry_run_progress(DryRunProgress report);

// What a program takes when nothing is ever released.
struct UnmanagedNeed {
  Bytes peak{0};  // highest end offset in the arena: a budget at which it runs untouched
  Bytes live{0};  // the most that was live at once
  CategoryBytes categories;   // what that consisted of
  Bytes largest_operator{0};  // largest working set of one operator: no budget can be smaller
  std::string operator_name;  // whose it is
  int64_t operators = 0;      // most in one step
  Nanos first_step{0};        // modelled duration of the program's first step
};
UnmanagedNeed measure_unmanaged(const SessionOptions& options, const Program& program);

// The smallest budget at which one of kLastResorts completes with the tiers of `options`,
// running no more than kMaxRecomputations times the operators of a step again (just above what
// cannot be done at all, with tiers that are too small, a step would be all recomputation). At
// most the unmanaged peak, which holds for sessions that are told of it
// (SessionOptions::unmanaged_peak). Exact with ample tiers, else to within 1/4096 of the
// peak; if the work is spent before, the smallest by then that is known to do (is_least), where
// the budget of `options`, if it has one and that is less, is tried too.
//
// `work`, here and below: what may be done, added to. Null: kMaxWork; for the
// smallest budget kMaxSearchWork.
inline constexpr int64_t kMaxRecomputations = 16;
struct MinimumBudget {
  Bytes budget{0};
  CategoryBytes categories{};  // what was live at the peak
  int probes = 0;              // sessions tried
  std::string policy{};        // that completes there, if costs are not learnt
  // False: the work was spent before a smaller one was ruled out.
  bool is_least = true;
};
MinimumBudget find_minimum_budget(const SessionOptions& options, const Program& program,
                                  const UnmanagedNeed& need, DryRunWork* work = nullptr);

// A limit of the disk tier with which the program completes in the budget of `options`, where
// it may not with the tiers that these have: one that is enough for any policy. None: the tiers
// are ample, or no tier helps.
std::optional<Bytes> sufficient_disk(const SessionOptions& options, const Program& program,
                                     const UnmanagedNeed& need);

// The options with which the real run completes at its budget, which is at least the minimum.
//
// With ample tiers any policy does, and they come back as they are; but that tide, in a narrow
// budget, goes by delta where it has no plan if that is quicker. Where tiers are limited,
// what a policy has put where decides whether it gets on; so it is tried here, and the real run
// keeps to the costs that were tried (completing_schedule()). If the budget is one of the rare
// ones above the minimum at which nothing completes, it is done within the minimum.
SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum,
                                 DryRunWork* work = nullptr);

// Measures, finds the least and chooses a schedule, for a program that is to run in `share` of
// the memory that it takes unmanaged (0.5: half of it):
//
//   Session session(with_budget(0.5, program, {.device = "cpu"}));
//
// Without a tier in `options`, everything that is released is recomputed. Throws
// InfeasibleBudget, with the least that would do, and with the tier that would help, if one
// would; and UsageError if the share is not above 0.
SessionOptions with_budget(double share, const Program& program, SessionOptions options);

// The same where the disk tier of `options` is there by default: it stays only where it is
// worth it. Without it what goes is computed again, and that is preferred as long as a step
// takes at most kWorthTheDisk times as long as with it, in simulations of a few steps: the disk
// is spared, and a real disk is slower than the profile's as often as not. A policy other than
// tide is not replaced for that.
inline constexpr double kWorthTheDisk = 1.1;
SessionOptions feasible_schedule_sparing_disk(const SessionOptions& options,
                                              const Program& program, const UnmanagedNeed& need,
                                              const MinimumBudget& minimum,
                                              DryRunWork* work = nullptr);

// What the program's first step takes once it has settled, with the device's profile: the last
// of kTrialRounds, or of as many as the work was enough for. None: memory runs out.
struct StepPrediction {
  StepStats step{};
  Bytes host_peak{0};
  Bytes disk_peak{0};
  int rounds = 0;  // 0: nothing is known
};
std::optional<StepPrediction> predict_step(SessionOptions options, const Program& program,
                                           DryRunWork* work = nullptr);

// --- by trial, of any kind of program ---

struct TrialResult {
  Nanos step{0};         // how long one took in the end: on average of the later half
  CategoryBytes live{};  // what was live at the peak
};
// Runs a program so often in a session of its own. None: it does not complete.
using Trial =
    std::function<std::optional<TrialResult>(const SessionOptions& options, int rounds)>;
inline constexpr int kRankingRounds = 2;  // tell policies apart
inline constexpr int kTrialRounds = 8;    // by then those that learn have settled, as a rule

// By which of them the smallest budget is looked for. With ample tiers the last completes
// wherever anything can. Else none completes wherever another does, the first most often.
inline constexpr std::array<std::string_view, 4> kLastResorts{"price", "msps", "dtr",
                                                              "austere"};

// With a policy by which the program completes: its own, or if it does not complete by that the
// quickest of the others but tide. Tide goes by the quickest where it has no plan, and makes
// way for another that is quicker still. None: nothing completes.
std::optional<SessionOptions> completing_schedule(const SessionOptions& options,
                                                  const Trial& trial);

// The least budget from `least` to `most` at which one of kLastResorts completes, as far as
// bisection finds it, to within 1/4096 of `most`.
MinimumBudget least_budget(SessionOptions options, Bytes least, Bytes most, const Trial& trial);

// What a session goes by.
struct ReleaseSchedule {
  std::string policy;
  // By which tide goes where it has no plan, if not its own way.
  std::string fallback_policy{};

  std::string name() const;  // "dtr"; "tide"; "tide over dtr"
};
ReleaseSchedule schedule_of(const SessionOptions& options);

// The simulated twin of a session: the same but for its device.
SessionOptions simulated(SessionOptions options);

}  // namespace tidemark
