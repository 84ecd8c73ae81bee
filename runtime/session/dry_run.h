// Finds how much memory a program needs by running it on a simulated device, without data. This
// takes milliseconds to some seconds.
//
// The program is built in a session on the simulator with the profile of the real device. The
// CPU's profile is "host"; a GPU's profile is measured on that GPU, which must be present. The
// real device's kernels are prepared, to learn their workspaces, but not run. Layout depends
// only on the order of calls, so the real run reaches the same figures to the byte. Workspaces
// depend on the processor's instruction set and on the number of threads: the figures hold only
// for the machine on which they were found.
//
// Threads: the calling thread, whose current session is the same afterwards.
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

// Builds a program in the current session and returns its steps, each to be run as one
// Session::step. Every kind of step must occur: two training steps, a smaller last batch,
// evaluation.
using Program = std::function<std::vector<std::function<void()>>()>;

// Limits and counts the work of simulations. Work is counted rather than timed, so that results
// are the same on every machine. A unit takes a processor about 10 ns (measured: 3 to 15). Each
// storage, block or call examined for a decision (Effort::examined()) costs 1 unit; each
// operator issued and each block allocated costs 200; each call simulated by the search for
// tide's schedule costs 12. kMaxWork takes one core about 1.5 s; programs of very many
// operators get more (UnmanagedNeed::work_limit()). Each function below may do as much,
// find_minimum_budget() half as much again; measure_unmanaged() is not limited. The start of a
// program (smallest budget, schedule, prediction) therefore takes about 5 s at worst, or 1 s
// for every 400 operators.
//
// When the work is spent, simulation stops, stopped() becomes true, and the best result so far
// is returned. A search for tide's schedule may exceed the limit by its remaining effort.
inline constexpr int64_t kMaxWork = 140'000'000;
inline constexpr int64_t kWorkPerOperator = 80'000;
class DryRunWork {
 public:
  explicit DryRunWork(int64_t max = kMaxWork) : max_(max) {}

  int64_t max() const { return max_; }
  int64_t done() const { return done_; }
  bool is_spent() const { return done_ >= max_; }
  // True if a simulation was stopped or skipped because the work was spent. The results are
  // correct, but more work might have found better ones.
  bool stopped() const { return stopped_; }

  int64_t left() const { return std::max<int64_t>(0, max_ - done_); }

  void add(int64_t units) { done_ += units; }
  // Adds the work that another DryRunWork has counted.
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

// Simulations on this thread call `report` with the operators and the units of work
// (DryRunWork) done since the last call. `report` may not throw; an empty function turns
// reports off. Returns the previous function.
using DryRunProgress = std::function<void(int64_t operators, int64_t units)>;
DryRunProgress set_dry_run_progress(DryRunProgress report);

// The memory that a program needs when nothing is ever released.
struct UnmanagedNeed {
  Bytes peak{0};  // highest end offset in the arena: a budget at which it runs untouched
  Bytes live{0};  // most bytes live at once
  CategoryBytes categories;   // live bytes at that moment, by category
  Bytes largest_operator{0};  // largest working set of an operator: a lower bound on the budget
  std::string operator_name;  // the operator with that working set
  int64_t operators = 0;      // largest number in one step
  Nanos first_step{0};        // modelled duration of the program's first step

  // The limits of work for this program: of each function below, and of find_minimum_budget().
  int64_t work_limit() const { return std::max(kMaxWork, operators * kWorkPerOperator); }
  int64_t search_work_limit() const { return work_limit() + work_limit() / 2; }
};
UnmanagedNeed measure_unmanaged(const SessionOptions& options, const Program& program);

// The smallest budget at which one of kLastResorts completes with the tiers of `options`. A
// step may recompute at most kMaxRecomputations times its number of operators; without this
// limit, a step with small tiers would be almost all recomputation just above the feasible
// minimum. The result is at most the unmanaged peak, which suffices for sessions that know it
// (SessionOptions::unmanaged_peak). It is exact with ample tiers, else within 1/4096 of the
// peak. If the work is spent first, or too much of it on one budget, it is the smallest budget
// known to suffice (see is_least); the budget in `options`, if set and smaller, is tried too.
//
// `work`, here and below: the limit, to which the work done is added. Null: the program's.
inline constexpr int64_t kMaxRecomputations = 16;
struct MinimumBudget {
  Bytes budget{0};
  CategoryBytes categories{};  // live bytes at the peak, by category
  int probes = 0;              // sessions tried
  std::string policy{};        // completes at `budget` if costs are not learnt
  // False: the work was spent before smaller budgets were ruled out.
  bool is_least = true;
};
MinimumBudget find_minimum_budget(const SessionOptions& options, const Program& program,
                                  const UnmanagedNeed& need, DryRunWork* work = nullptr);

// A disk limit that lets the program complete within the budget of `options` under any policy,
// for use where it may not complete with the tiers in `options`. None: these tiers are ample,
// or no tier helps.
std::optional<Bytes> sufficient_disk(const SessionOptions& options, const Program& program,
                                     const UnmanagedNeed& need);

// The options with which the real run completes at its budget. REQUIRES: the budget is at least
// the minimum.
//
// With ample tiers every policy completes, and `options` is returned unchanged, except that in
// a narrow budget tide falls back to delta where that is quicker. With limited tiers,
// completing depends on where a policy has put each storage. Policies are therefore simulated
// here, and the real run uses the same costs (completing_schedule()). If nothing completes at
// the budget, which is rare above the minimum, the minimum budget is used instead.
SessionOptions feasible_schedule(SessionOptions options, const Program& program,
                                 const UnmanagedNeed& need, const MinimumBudget& minimum,
                                 DryRunWork* work = nullptr);

// Measures a program, finds its smallest budget and chooses a schedule, for a run in `share` of
// its unmanaged peak (0.5: half of the peak):
//
//   Session session(with_budget(0.5, program, {.device = "cpu"}));
//
// Without a tier in `options`, every released storage is recomputed. Throws InfeasibleBudget,
// which names the smallest budget and any tier that would help. Throws UsageError if the share
// is not above 0.
SessionOptions with_budget(double share, const Program& program, SessionOptions options);

// As feasible_schedule(), for a disk tier that `options` has only by default: the tier is kept
// only where it is worth its use. Without the tier, released storages are recomputed.
// Recomputing is preferred if, in simulations of a few steps, a step takes at most
// kWorthTheDisk times as long as with the tier. This spares the disk, and real disks are often
// slower than the profile's. No policy other than tide is replaced to drop the tier.
inline constexpr double kWorthTheDisk = 1.1;
SessionOptions feasible_schedule_sparing_disk(const SessionOptions& options,
                                              const Program& program, const UnmanagedNeed& need,
                                              const MinimumBudget& minimum,
                                              DryRunWork* work = nullptr);

// The duration and memory of the program's first step once it has settled, with the device's
// profile: the last of kTrialRounds rounds, or of fewer if the work is spent. None: the step
// runs out of memory.
struct StepPrediction {
  StepStats step{};
  Bytes host_peak{0};
  Bytes disk_peak{0};
  int rounds = 0;  // 0: the work was spent before a round ended
};
std::optional<StepPrediction> predict_step(SessionOptions options, const Program& program,
                                           DryRunWork* work = nullptr);

// --- by trial, for any kind of program ---

struct TrialResult {
  Nanos step{0};         // duration of one step: mean over the later half of the rounds
  CategoryBytes live{};  // live bytes at the peak, by category
};
// Runs a program for `rounds` rounds in a session of its own. None: it does not complete.
using Trial =
    std::function<std::optional<TrialResult>(const SessionOptions& options, int rounds)>;
inline constexpr int kRankingRounds = 2;  // enough to rank policies
inline constexpr int kTrialRounds = 8;    // enough for policies that learn to settle, as a rule

// The policies tried in the search for the smallest budget. With ample tiers, the last one
// completes wherever any policy can. With limited tiers, no policy completes wherever another
// does; the first completes most often.
inline constexpr std::array<std::string_view, 4> kLastResorts{"price", "msps", "dtr",
                                                              "austere"};

// `options` with a policy by which the program completes: its own policy if that completes,
// else the quickest other policy except tide. Tide is given the quickest policy as its
// fallback, and is replaced where another policy is quicker still. None: no policy completes.
std::optional<SessionOptions> completing_schedule(const SessionOptions& options,
                                                  const Trial& trial);

// The smallest budget in [least, most] at which one of kLastResorts completes, found by
// bisection to within 1/4096 of `most`.
MinimumBudget least_budget(SessionOptions options, Bytes least, Bytes most, const Trial& trial);

// The policies by which a session releases memory.
struct ReleaseSchedule {
  std::string policy;
  // Tide's fallback policy, if not the default.
  std::string fallback_policy{};

  std::string name() const;  // "dtr"; "tide"; "tide over dtr"
};
ReleaseSchedule schedule_of(const SessionOptions& options);

// Options for the simulated twin of a session: the same except for the device.
SessionOptions simulated(SessionOptions options);

}  // namespace tidemark
