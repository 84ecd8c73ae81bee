#include "runtime/planner/schedule_from_plan.h"

#include "runtime/core/errors.h"

namespace tidemark::planner {
namespace {

class PlanConverter {
 public:
  PlanConverter(const StepTrace& trace, const Problem& problem, const Plan& plan)
      : trace_(trace),
        plan_(plan),
        place_(trace.storages.size()),
        workspace_(trace.ops.size()),
        overwrites_(trace.ops.size(), Schedule::kScratch),
        ends_(plan.order.size()),
        block_(trace.storages.size(), kNoBlock) {
    TIDEMARK_CHECK(problem.op_count() == trace.ops.size(), "a plan of this trace");
    for (const InPlace& pair : plan.in_place) {
      overwrites_[static_cast<size_t>(pair.op)] = static_cast<uint32_t>(pair.input);
    }
  }

  Schedule run() {
    for (const Placement& p : plan_.placements) {
      if (p.storage == kNone) {
        workspace_[static_cast<size_t>(p.workspace_of)] = &p;
      } else if (!apart(static_cast<uint32_t>(p.storage))) {
        place_[static_cast<size_t>(p.storage)] = &p;
      }
    }
    for (uint32_t storage = 0; storage < place_.size(); ++storage) begin(storage);
    schedule_.initial_blocks = static_cast<uint32_t>(schedule_.blocks.size());
    for (size_t t = 0; t < plan_.order.size(); ++t) {
      run_op(static_cast<uint32_t>(plan_.order[t]));
      for (const uint32_t storage : ends_[t]) {
        if (block_[storage] != kNoBlock) free(storage);
      }
    }
    for (const uint32_t block : block_) {
      if (block != kNoBlock) schedule_.blocks[block].end = now();
    }
    schedule_.placed = schedule_.residents_apart = true;
    schedule_.peak = plan_.peak;
    schedule_.peak_bound = plan_.bound;
    schedule_.time = total_cost(trace_);
    schedule_.method = plan_.method;
    return std::move(schedule_);
  }

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  bool apart(uint32_t storage) const {
    return trace_.storages[storage].at_start && trace_.storages[storage].at_end;
  }
  uint32_t now() const { return static_cast<uint32_t>(schedule_.code.size()); }

  // Notes when the storage ends. A storage that is live from the start gets its block.
  void begin(uint32_t storage) {
    const Placement* place = place_[storage];
    if (!place || place->begin >= place->end) return;  // nobody uses it
    if (!trace_.storages[storage].at_end) {
      ends_[static_cast<size_t>(place->end - 1)].push_back(storage);
    }
    if (trace_.storages[storage].at_start) take(storage, *place);
  }

  void take(uint32_t storage, const Placement& p) {
    if (storage != Schedule::kScratch) {
      block_[storage] = static_cast<uint32_t>(schedule_.blocks.size());
    }
    schedule_.blocks.push_back(
        {.storage = storage, .size = p.size, .begin = now(), .end = now() + 1, .at = p.offset});
  }

  void run_op(uint32_t k) {
    const StepTrace::Op& op = trace_.ops[k];
    Schedule::Instruction run{.what = op.kind == StepTrace::Kind::kCall     ? Do::kRun
                                      : op.kind == StepTrace::Kind::kUpload ? Do::kUpload
                                                                            : Do::kRead,
                              .subject = k};
    run.overwrites = overwrites_[k];
    if (run.in_place()) end(run.overwrites);
    run.first_block = static_cast<uint32_t>(schedule_.blocks.size());
    for (const uint32_t output : op.outputs) take(output, *place_[output]);
    if (workspace_[k]) take(Schedule::kScratch, *workspace_[k]);
    run.blocks = static_cast<uint32_t>(schedule_.blocks.size()) - run.first_block;
    schedule_.code.push_back(run);
  }

  void free(uint32_t storage) {
    schedule_.code.push_back({.what = Do::kFree,
                              .subject = storage,
                              .first_block = static_cast<uint32_t>(schedule_.blocks.size())});
    end(storage);
  }
  void end(uint32_t storage) {
    schedule_.blocks[block_[storage]].end = now();
    block_[storage] = kNoBlock;
  }

  using Do = Schedule::Do;
  const StepTrace& trace_;
  const Plan& plan_;
  std::vector<const Placement*> place_, workspace_;  // by storage; by operator, if it has one
  std::vector<uint32_t> overwrites_;                 // by operator
  std::vector<std::vector<uint32_t>> ends_;          // by position: storages that end with it
  std::vector<uint32_t> block_;                      // by storage: its current block
  Schedule schedule_;
};

}  // namespace

Schedule schedule_from_plan(const StepTrace& trace, const Problem& problem, const Plan& plan) {
  return PlanConverter(trace, problem, plan).run();
}

}  // namespace tidemark::planner
