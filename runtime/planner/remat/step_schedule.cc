#include "runtime/planner/remat/step_schedule.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/releases/kept_sources.h"
#include "runtime/planner/releases/schedule_writer.h"
#include "runtime/planner/remat/step_runs.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/step_table.h"

namespace tidemark::planner::remat {
namespace {

using Do = tidemark::Schedule::Do;
constexpr uint32_t kScratch = tidemark::Schedule::kScratch;
constexpr int64_t kLayoutWork = 50;  // steps of search for a block

// Writes the code. The step's operators are in the order of their first runs.
class Decoder {
 public:
  Decoder(const StepTrace& step, const StepProblem& problem, const StepRuns& runs)
      : step_(step),
        problem_(problem),
        runs_(runs),
        facts_(step, runs),
        writer_(step),
        storages_(step.storages.size()),
        owner_(step.storages.size(), kNoNode) {}

  UnplacedSchedule write(const std::vector<Bytes>& foreign) {
    begin(foreign);
    for (now_ = 0; now_ < runs_.list.size(); ++now_) {
      const StepRuns::Item& item = runs_.list[now_];
      if (item.kind == StepRuns::Kind::kFree) {
        for (const uint32_t s : problem_.value[item.node]) {
          if (owner_[s] == item.node) drop(s);
        }
      } else if (item.kind == StepRuns::Kind::kAgain) {
        run_again(item);
      } else {
        run_first(item);
      }
    }
    for (uint32_t s = 0; s < storages_.size(); ++s) {
      if (storages_[s].resident && !step_.storages[s].at_end) free(s);
    }
    for (uint32_t s = 0; s < storages_.size(); ++s) {
      if (storages_[s].resident) writer_.end(writer_.block_of(s));
    }
    for (uint32_t k = 0; k < foreign.size(); ++k) writer_.end(foreign_block_ + k);
    UnplacedSchedule result = writer_.finish();
    result.schedule.foreign = foreign;
    result.schedule.time = time_;
    result.schedule.recomputed = recomputed_;
    return result;
  }

 private:
  struct State {
    bool resident = false;
    bool let_go = false;  // the operator after which the program drops it has run
    bool waits = false;   // freed in the problem, but the program holds it still
    // To come, by all runs; and by first runs, with what the call of a variant would read.
    uint32_t uses = 0, first_uses = 0;
    // Whether the program, or a call that it has issued, holds it.
    bool is_held() const { return !let_go || first_uses > 0; }
    bool is_needed() const { return is_held() || uses > 0; }
  };

  void begin(const std::vector<Bytes>& foreign) {
    for (uint32_t s = 0; s < storages_.size(); ++s) {
      if (!step_.storages[s].at_start) continue;
      writer_.begin_with(s);
      storages_[s].resident = true;
    }
    foreign_block_ = writer_.block_count();
    for (uint32_t k = 0; k < foreign.size(); ++k) {
      writer_.take_foreign(static_cast<uint32_t>(storages_.size()) + k, foreign[k]);
      writer_.pin(foreign_block_ + k);
    }
    writer_.end_of_beginning();
    for (const StepRuns::Item& item : runs_.list) {
      if (item.kind == StepRuns::Kind::kFree) continue;
      for (const StepTrace::Input& input : run_of(item).inputs) {
        ++storages_[input.storage].uses;
        if (item.kind == StepRuns::Kind::kFirst) ++storages_[input.storage].first_uses;
      }
      if (item.variant == 0) continue;
      for (const StepTrace::Input& input : step_.ops[item.op].inputs)
        ++storages_[input.storage].first_uses;
    }
  }

  StepTrace::Implementation run_of(const StepRuns::Item& item) const {
    return step_.ops[item.op].implementation(item.variant);
  }

  bool wants(const StepRuns::Item& item, uint32_t storage) const {
    return std::any_of(item.nodes.begin(), item.nodes.end(), [&](NodeId i) {
      const auto& value = problem_.value[i];
      return std::find(value.begin(), value.end(), storage) != value.end();
    });
  }
  void own(const StepRuns::Item& item) {
    for (const NodeId i : item.nodes) {
      for (const uint32_t s : problem_.value[i]) owner_[s] = i;
    }
  }
  void take(uint32_t storage) {
    writer_.take(storage, step_.storages[storage].size);
    storages_[storage].resident = true;
  }
  void add(Do what, uint32_t subject, bool again = false) {
    writer_.add(what, subject, time_, again);
  }

  void run_first(const StepRuns::Item& item) {
    const StepTrace::Op& op = step_.ops[item.op];
    add(op.kind == StepTrace::Kind::kCall     ? Do::kRun
        : op.kind == StepTrace::Kind::kUpload ? Do::kUpload
                                              : Do::kRead,
        item.op);
    const StepTrace::Implementation run = run_of(item);
    writer_.choose(item.variant);
    count_uses(run, true);
    if (item.variant != 0) {
      for (const StepTrace::Input& input : op.inputs) --storages_[input.storage].first_uses;
    }
    const uint32_t overwritten = overwritten_by(item);
    if (overwritten != kScratch) {
      writer_.overwrite(overwritten);
      storages_[overwritten].resident = false;
    }
    for (const uint32_t s : op.outputs) take(s);
    if (run.workspace > Bytes(0)) writer_.take(kScratch, run.workspace);
    time_ += run.cost;
    for (const uint32_t s : op.released) storages_[s].let_go = true;
    own(item);
    for (const uint32_t s : op.outputs) {
      if (op.kind == StepTrace::Kind::kCall && !step_.storages[s].at_end && !wants(item, s)) {
        drop(s);
      }
    }
    if (item.overwrites != overwritten) drop(item.overwrites);
    for (const uint32_t s : op.released) settle(s);
    settle_inputs(run);
    if (item.variant != 0) settle_inputs(op.implementation(0));
  }

  // The input whose space the first output takes; kScratch: none.
  uint32_t overwritten_by(const StepRuns::Item& item) const {
    if (item.overwrites == kScratch) return kScratch;
    const State& state = storages_[item.overwrites];
    const bool is_last =
        state.first_uses == 0 && dies_in_place(step_, item.op, item.overwrites);
    return is_last && state.resident ? item.overwrites : kScratch;
  }

  void run_again(const StepRuns::Item& item) {
    const StepTrace::Op& op = step_.ops[item.op];
    const StepTrace::Implementation run = run_of(item);
    count_uses(run, false);
    const auto is_missing = [&](uint32_t s) {
      return wants(item, s) && storages_[s].is_needed() && !storages_[s].resident;
    };
    if (std::any_of(op.outputs.begin(), op.outputs.end(), is_missing)) {
      add(Do::kRun, item.op, true);
      std::vector<uint32_t> unwanted;
      for (const uint32_t s : op.outputs) {
        const bool comes_back = is_missing(s) || storages_[s].is_held();
        if (storages_[s].resident || !comes_back) {
          writer_.take(kScratch, step_.storages[s].size);
          continue;
        }
        if (!wants(item, s)) unwanted.push_back(s);
        take(s);
        if (storages_[s].let_go) writer_.pin(writer_.block_of(s));
      }
      if (op.workspace > Bytes(0)) writer_.take(kScratch, op.workspace);
      time_ += op.cost;
      recomputed_ += op.cost;
      for (const uint32_t s : unwanted) drop(s);
    }
    own(item);
    settle_inputs(run);
  }

  void count_uses(const StepTrace::Implementation& run, bool first) {
    for (const StepTrace::Input& input : run.inputs) {
      --storages_[input.storage].uses;
      if (first) --storages_[input.storage].first_uses;
    }
  }

  // Its value is freed.
  void drop(uint32_t s) {
    State& state = storages_[s];
    if (!state.resident || state.waits) return;
    if (!state.is_held()) {
      free(s);
    } else if (facts_.may_evict(s, now_)) {
      add(Do::kEvict, s);
      writer_.end(writer_.block_of(s));
      state.resident = false;
    } else {
      state.waits = true;
    }
  }

  // Frees what has waited for this; from now on, nothing tells where a storage that the program
  // has dropped should move.
  void settle(uint32_t s) {
    State& state = storages_[s];
    if (!state.resident || !state.let_go) return;
    const bool is_source = owner_[s] == kNoNode;
    if ((state.waits || is_source) && !state.is_needed()) {
      free(s);
    } else {
      writer_.pin(writer_.block_of(s));
    }
  }
  void settle_inputs(const StepTrace::Implementation& run) {
    for (const StepTrace::Input& input : run.inputs) {
      const State& state = storages_[input.storage];
      const bool is_source = owner_[input.storage] == kNoNode;
      if (state.resident && !state.is_needed() && (state.waits || is_source)) {
        free(input.storage);
      }
    }
  }
  void free(uint32_t s) {
    add(Do::kFree, s);
    writer_.end(writer_.block_of(s));
    storages_[s].resident = storages_[s].waits = false;
  }

  const StepTrace& step_;
  const StepProblem& problem_;
  const StepRuns& runs_;
  const EvictionFacts facts_;
  ScheduleWriter writer_;
  std::vector<State> storages_;
  std::vector<NodeId> owner_;  // by storage: the node whose value holds it; kNoNode: a source
  size_t now_ = 0;             // position in runs_
  uint32_t foreign_block_ = 0;
  Nanos time_{0}, recomputed_{0};
};

// The first operator that does not come after one that it depends on, in words; empty: none.
// When the program drops a storage does not matter here.
std::string broken_order(StepTrace trace, const std::vector<uint32_t>& order) {
  for (StepTrace::Op& op : trace.ops) op.released.clear();
  std::vector<uint32_t> position(trace.ops.size());
  for (uint32_t t = 0; t < order.size(); ++t) position[order[t]] = t;
  const auto before = predecessors(problem_from_trace(trace));
  for (const uint32_t k : order) {
    for (const OpId p : before[k]) {
      if (position[static_cast<size_t>(p)] < position[k]) continue;
      return "operator " + std::to_string(k) + " (" + std::string(trace.ops[k].label()) +
             ") runs before operator " + std::to_string(p) + " (" +
             std::string(trace.ops[static_cast<size_t>(p)].label()) +
             "), which must come first";
    }
  }
  return {};
}

}  // namespace

StepSchedule schedule_from_runs(const StepTrace& trace, const StepProblem& problem,
                                const std::vector<Event>& runs, const PlanLimits& limits,
                                const std::vector<Bytes>& foreign) {
  StepSchedule result;
  const std::vector<uint32_t> order = order_of_first_runs(trace, problem, runs);
  if (order.size() < trace.ops.size()) {
    result.why_not = "a call of the program never runs";
    return result;
  }
  result.why_not = broken_order(as_first_run(trace, problem, runs), order);
  if (!result.why_not.empty()) return result;
  const StepTrace step = with_kept_sources(reordered(trace, order));
  const StepRuns list = runs_of_step(step, order, problem, runs);
  UnplacedSchedule unplaced = Decoder(step, problem, list).write(foreign);
  result.load = max_resident(unplaced.schedule);
  unplaced.schedule.peak_bound = result.load;
  prefer_initial_places(unplaced, step, limits.space);
  const auto work = kLayoutWork * static_cast<int64_t>(unplaced.schedule.blocks.size());
  PlanLimits least = limits;
  least.space = std::min(limits.space, result.load);
  result.schedule = place_blocks(unplaced, least, work);
  if (!result.schedule) result.schedule = place_blocks(unplaced, limits, work);
  if (result.schedule) {
    rename_operators(*result.schedule, order);
  } else {
    result.why_not = "no layout within " + format_bytes(limits.space) + " was found; at most " +
                     format_bytes(result.load) + " are in use at once";
  }
  return result;
}

}  // namespace tidemark::planner::remat
