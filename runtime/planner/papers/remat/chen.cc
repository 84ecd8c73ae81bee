// Chen et al. (2016), "Training Deep Nets with Sublinear Memory Cost": the forward pass is cut
// into segments; a checkpoint at each cut stays, the rest is dropped, and a segment runs again
// when the backward pass reaches it.
//
// Cuts are allowed behind a forward value that alone is read later in the forward pass (the
// choice that Checkmate's paper calls AP); if fewer than two exist, behind any value.
// - chen: every floor(sqrt(n))-th of n places (section 3).
// - chen-budget: algorithm 3. Values add up until they exceed b, then the next place is a cut.
//   Its search over b is exhaustive here: the schedule that takes least time within the budget.
// Values that may not be computed again stay too. A node takes its first possible variant, one
// in place only if all are; a rider that such variants read shares the fate of its node. A
// required rider that nothing reads later runs once.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/remat/two_pass.h"

namespace tidemark::planner::remat {
namespace {

// How many sizes of segments algorithm 3 tries.
constexpr int kMostSizes = 400;

class Segments {
 public:
  explicit Segments(const Problem& problem)
      : problem_(problem), passes_(read_two_pass(problem, {.select_operators = false})) {
    for (int i = 0, last = -1; i < passes_.forward; ++i) {
      const bool is_alone = last <= i && passes_.last_reader[i] > i;
      if (is_alone) places_.push_back(i);
      last = std::max(last, passes_.last_reader[i]);
    }
    if (places_.size() < 2) {
      places_.resize(static_cast<size_t>(passes_.forward));
      std::iota(places_.begin(), places_.end(), 0);
    }
    find_riders();
  }

  // Positions of the checkpoints, ascending.
  std::vector<int> square_root() const {
    const auto step = std::max<size_t>(
        1, static_cast<size_t>(std::sqrt(static_cast<double>(places_.size()))));
    std::vector<int> cuts;
    for (size_t k = step - 1; k < places_.size(); k += step) cuts.push_back(places_[k]);
    return cuts;
  }
  std::vector<int> by_size(int64_t most) const {
    std::vector<int> cuts;
    int64_t sum = 0;
    for (int i = 0; i < passes_.forward; ++i) {
      sum += passes_.steps[i].bytes;
      if (sum <= most || !std::binary_search(places_.begin(), places_.end(), i)) continue;
      cuts.push_back(i);
      sum = 0;
    }
    return cuts;
  }
  int64_t forward_bytes() const {
    int64_t sum = 0;
    for (int i = 0; i < passes_.forward; ++i) sum += passes_.steps[i].bytes;
    return sum;
  }

  DecodedRuns schedule(const std::vector<int>& cuts) const {
    Plan plan{passes_, cuts, rider_, {}, {}};
    return decode_runs(problem_, plan.runs());
  }

 private:
  struct Plan {
    const TwoPass& passes;
    const std::vector<int>& cuts;
    const std::vector<int>& rider;
    std::vector<char> live;  // by position; of riders unused
    std::vector<PlannedRun> made;

    // Stage 0: for the first time.
    void run(int i, const Stage& stage) {
      const bool is_first = &stage == passes.stages.data();
      const auto ways = is_first ? &Step::first : &Step::again;
      made.push_back({passes.steps[i].node, (passes.steps[i].*ways)[0].variant});
      const int by_product = rider[static_cast<size_t>(i)];
      if (by_product < 0 || (!is_first && !stage.may_need(by_product))) return;
      const Step& step = passes.steps[by_product];
      made.push_back({step.node, (step.*ways)[0].variant});
    }

    std::vector<PlannedRun> runs() {
      for (int i = 0; i < passes.forward; ++i) {
        const Step& step = passes.steps[i];
        if (step.rides_on < 0) run(i, passes.stages[0]);
        const bool is_cut = std::binary_search(cuts.begin(), cuts.end(), i);
        live.push_back(is_cut || !step.may_run_again ? 1 : 0);
      }
      // The segment behind the last cut is in memory when the backward pass begins.
      const int last = cuts.empty() ? -1 : cuts.back();
      for (int i = last + 1; i < passes.forward; ++i) live[static_cast<size_t>(i)] = 1;
      for (size_t t = 1; t < passes.stages.size(); ++t) {
        const Stage& stage = passes.stages[t];
        for (int k = stage.first; k < stage.end; ++k) {
          const Step& step = passes.steps[k];
          for (const int u : step.first[0].forward) compute(stage, u);
          made.push_back({step.node, step.first[0].variant});
        }
      }
      return made;
    }

    // Runs the segment of value i again, up to the last value of it that stages still read.
    void compute(const Stage& stage, int i) {
      if (passes.steps[i].rides_on >= 0) i = passes.steps[i].rides_on;
      if (live[static_cast<size_t>(i)] != 0) return;
      const auto next = std::lower_bound(cuts.begin(), cuts.end(), i);
      const int begin = next == cuts.begin() ? 0 : *(next - 1) + 1;
      const int end = next == cuts.end() ? passes.forward : *next;
      for (int j = begin; j < end; ++j) {
        const Step& step = passes.steps[j];
        if (live[static_cast<size_t>(j)] != 0 || !stage.may_need(j)) continue;
        if (step.rides_on >= 0) continue;  // runs with its node
        for (const int u : step.again[0].forward) compute(stage, u);
        if (live[static_cast<size_t>(j)] != 0) continue;  // by an input's segment
        run(j, stage);
        live[static_cast<size_t>(j)] = 1;
      }
    }
  };

  static bool goes_with(const Way& rider, const Way& parent) {
    return std::find(rider.with.begin(), rider.with.end(), parent.variant) != rider.with.end();
  }

  // Of each forward node, the rider that must run or that a later node reads.
  void find_riders() {
    rider_.assign(static_cast<size_t>(passes_.forward), -1);
    for (int i = 0; i < passes_.forward; ++i) {
      const Step& step = passes_.steps[i];
      const bool is_needed_later = passes_.stages[1].may_need(i);
      const bool is_read = is_needed_later || passes_.last_reader[i] >= 0;
      if (step.rides_on < 0 || (!is_read && !step.must_run)) continue;
      int& rider = rider_[static_cast<size_t>(step.rides_on)];
      const Step& parent = passes_.steps[step.rides_on];
      bool can_run = rider < 0 && goes_with(step.first[0], parent.first[0]);
      if (is_needed_later) {
        can_run &= parent.may_run_again == step.may_run_again &&
                   (!step.may_run_again || goes_with(step.again[0], parent.again[0]));
      }
      if (!can_run) {
        throw UsageError("[chen] nodes[" + std::to_string(step.node) +
                         "]: cannot run each time that the node it rides on runs");
      }
      rider = i;
    }
  }

  const Problem& problem_;
  TwoPass passes_;
  std::vector<int> places_, rider_;
};

// Checkpoints know nothing of some rules: values that every variant overwrites, for instance.
[[noreturn]] void refuse(const std::string& fault) {
  throw UsageError("[chen] segments that run again break a rule of the problem: " + fault);
}

}  // namespace

RematMethod chen_method() {
  RematMethod method;
  method.name = "chen";
  method.what = "Chen's checkpoints, sqrt(n) segments; takes no budget";
  method.plan = [](const Problem& problem, int64_t, const Limits& limits) {
    const Stopwatch watch(limits);
    const Segments segments(problem);
    RematResult result;
    DecodedRuns decoded = segments.schedule(segments.square_root());
    if (!decoded.fault.empty()) refuse(decoded.fault);
    result.schedule = std::move(decoded.schedule);
    result.seconds = watch.seconds();
    return result;
  };
  return method;
}

RematMethod chen_budget_method() {
  RematMethod method;
  method.name = "chen-budget";
  method.what = "Chen's checkpoints, segments by size";
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    const Stopwatch watch(limits);
    const Segments segments(problem);
    const int64_t all = segments.forward_bytes();
    RematResult result;
    std::vector<int> tried{-1};
    std::string fault;
    bool is_any_valid = false;
    for (int k = 0; k <= kMostSizes && !watch.expired(); ++k) {
      const std::vector<int> cuts =
          segments.by_size(static_cast<int64_t>(static_cast<double>(all) * k / kMostSizes));
      if (cuts == tried) continue;
      tried = cuts;
      auto [schedule, broken] = segments.schedule(cuts);
      if (!broken.empty()) {
        fault = std::move(broken);
        continue;
      }
      is_any_valid = true;
      if (schedule.peak > budget) continue;
      if (!result.found() || schedule.time < result.schedule.time) {
        result.schedule = std::move(schedule);
      }
    }
    if (!is_any_valid && !fault.empty()) refuse(fault);
    if (!result.found()) result.note = "no size of segments fits";
    result.undecided = !result.found() && watch.expired();
    result.seconds = watch.seconds();
    return result;
  };
  return method;
}

}  // namespace tidemark::planner::remat
