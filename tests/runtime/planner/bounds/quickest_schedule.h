// The quickest schedule of a tiny step with a tier, by trying all that may be of use.
//
// Depth first over instructions. To keep them few:
// - what leaves does so when its bytes are needed: each set that suffices without a part too
//   many, in each order;
// - a copy out may come earlier: at once after what it copies was written, or after another
//   copy out;
// - what came back is used before it leaves again.
// Nothing quicker is known that these leave out, as copies start as early as they can. Blocks
// lie anywhere.
//
// Threads: belongs to one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "tests/runtime/planner/bounds/tiny_step.h"

namespace tidemark::testing::tiny {

class QuickestSchedule {
 public:
  // What a schedule takes, no less than its runs, or its copies one way. `so_far`: what its
  // beginning does, before the runs that are left; null: not known.
  struct Price {
    std::function<Nanos(const Schedule&)> whole, so_far;
  };
  struct Found {
    Schedule schedule;
    Nanos time{std::numeric_limits<int64_t>::max()};
  };

  // REQUIRES: `limits` outlive this object; storages exist before the step and after it, or
  // neither.
  QuickestSchedule(TinyStep step, const PlanLimits& limits, Price price)
      : step_(std::move(step)), limits_(limits), price_(std::move(price)) {}

  // The step ends with the same storages resident as it begins with. None: nothing fits.
  std::optional<Found> find() {
    for (Set here = step_.at_start;; here = (here - 1) & step_.at_start) {
      if (step_.bytes(here) <= limits_.space.count()) begin_with(here);
      if (here == 0) break;
    }
    return best_;
  }
  // Whether the search ended by itself.
  bool is_complete() const { return left_ >= 0; }

 private:
  using Do = Schedule::Do;
  static constexpr int64_t kMost = 100'000;  // states; hardly any search looks at more
  struct State {
    Set done = 0, here = 0, copied = 0;
    Set fresh = 0;                      // came back, and nothing has used it since
    Set to_copy = ~Set{0};              // may be copied out now
    int64_t runs = 0, out = 0, in = 0;  // nanoseconds
    std::vector<uint32_t> block;        // by storage, of what is here
    Schedule schedule;
  };

  void begin_with(Set here) {
    State state;
    state.here = first_ = here;
    state.copied = step_.at_start & ~here;
    state.block.resize(step_.storages);
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (has(here, s)) take(state, s, Bytes(step_.size(s)));
      if (has(state.copied, s) && !may_offload(s)) return;
    }
    state.schedule.initial_blocks = static_cast<uint32_t>(state.schedule.blocks.size());
    go(state);
  }

  // Tries everything from here on.
  void go(const State& now) {
    if (left_ < 0 || --left_ < 0 || cannot_be_quicker(now)) return;
    if (!step_.is_obtainable(now.done, now.here | now.copied)) return;
    const bool is_over = now.done == step_.all_ops();
    if (is_over) finish(now);
    for (uint32_t k = 0; k < step_.ops; ++k) {
      if (!step_.may_run(now.done, now.here, k)) continue;
      const Set brings = step_.here_after(now.done, now.here, k) & ~now.here;
      if (has(now.done, k) && (brings & (is_over ? step_.at_end : ~Set{0})) == 0) continue;
      run_with(now, k, Schedule::kScratch);
      for (uint32_t s = 0; s < step_.storages; ++s) {
        if (has(step_.may_overwrite(now.done, k), s)) run_with(now, k, s);
      }
    }
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (has(now.here, s)) {
        if (!has(now.to_copy & ~now.copied, s) || !may_offload(s)) continue;
        State state = now;
        copy_out(state, s);
        state.schedule.code.push_back({.what = Do::kCopyOut, .subject = s});
        go(state);
      } else if (has(now.copied & (is_over ? first_ : ~Set{0}), s)) {
        with_room(now, step_.size(s), 0, [&](const State& state) { copy_in(state, s); });
      }
    }
    if (!is_over) return;
    for (uint32_t s = 0; s < step_.storages; ++s) {
      const bool is_left = has(now.here & step_.at_end & ~now.fresh & ~first_, s);
      if (is_left && may_offload(s))
        leave(now, s, Do::kOffload, [&](const State& state) { go(state); });
    }
  }

  bool cannot_be_quicker(const State& now) const {
    if (!best_) return false;
    const int64_t rest = step_.first_runs(step_.all_ops() & ~now.done),
                  best = best_->time.count();
    if (std::max({now.runs + rest, now.out, now.in}) >= best) return true;
    return price_.so_far && price_.so_far(now.schedule).count() + rest >= best;
  }

  bool may_offload(uint32_t s) const { return step_.trace.storages[s].may_offload; }

  void run_with(const State& now, uint32_t k, uint32_t over) {
    const int64_t in_place = over == Schedule::kScratch ? 0 : step_.size(over);
    with_room(now, step_.taken_by(now.done, k) - in_place, step_.inputs(now.done, k),
              [&](const State& state) { run(state, k, over); });
  }

  void run(State state, uint32_t k, uint32_t over) {
    const StepTrace::Op& op = step_.trace.ops[k];
    const StepTrace::Implementation runs = step_.run_of(state.done, k);
    const Set inputs = step_.inputs(state.done, k);
    const bool again = has(state.done, k);
    const Set brings = step_.here_after(state.done, state.here, k) & ~state.here;
    Do what = op.kind == StepTrace::Kind::kRead ? Do::kRead : Do::kRun;
    if (op.kind == StepTrace::Kind::kUpload) {
      what = Do::kUpload;
      state.in += limits_.in_time(Bytes(step_.taken_by(state.done, k))).count();
    }
    if (over != Schedule::kScratch) {
      end(state, over, 0);
      state.copied &= ~just(over);
    }
    const auto first = static_cast<uint32_t>(state.schedule.blocks.size());
    for (const uint32_t s : op.outputs) {
      take(state, has(brings, s) ? s : Schedule::kScratch, Bytes(step_.size(s)));
    }
    if (runs.workspace > Bytes(0)) take(state, Schedule::kScratch, runs.workspace);
    const auto blocks = static_cast<uint32_t>(state.schedule.blocks.size()) - first;
    state.schedule.code.push_back(
        {what, again, k, first, blocks, over, again ? 0 : step_.variant[k]});
    state.here |= brings;
    state.done |= just(k);
    state.runs += runs.cost.count();
    state.fresh = (state.fresh | (again ? brings : 0)) & ~inputs;
    state.to_copy = brings;
    for (const StepTrace::Input& input : runs.inputs) {
      if (!input.written) continue;
      state.to_copy |= just(input.storage);
      state.copied &= ~just(input.storage);
    }
    go(state);
  }

  void copy_in(State state, uint32_t s) {
    const auto block = static_cast<uint32_t>(state.schedule.blocks.size());
    take(state, s, Bytes(step_.size(s)));
    state.schedule.code.push_back(
        {.what = Do::kCopyIn, .subject = s, .first_block = block, .blocks = 1});
    state.here |= just(s);
    state.fresh |= just(s);
    state.to_copy = 0;
    state.in += limits_.in_time(Bytes(step_.size(s))).count();
    go(state);
  }

  void copy_out(State& state, uint32_t s) const {
    state.copied |= just(s);
    state.to_copy = ~Set{0};
    state.out += limits_.out_time(Bytes(step_.size(s))).count();
  }

  // `then`, from each state in which so many more bytes fit.
  template <class Then>
  void with_room(const State& now, int64_t bytes, Set keeps, const Then& then) {
    const int64_t over = step_.bytes(now.here) + bytes - limits_.space.count();
    if (over <= 0) return then(now);
    const Set may_leave = now.here & ~keeps & ~now.fresh;
    for (Set leaves = may_leave; leaves != 0; leaves = (leaves - 1) & may_leave) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (uint32_t s = 0; s < step_.storages; ++s) {
        if (has(leaves, s)) least = std::min(least, step_.size(s));
      }
      const int64_t freed = step_.bytes(leaves);
      if (freed >= over && freed - least < over) leave_all(now, leaves, then);
    }
  }
  template <class Then>
  void leave_all(const State& now, Set leaves, const Then& then) {
    if (leaves == 0) return then(now);
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (!has(leaves, s)) continue;
      const auto by = [&](Do how) {
        leave(now, s, how,
              [&](const State& state) { leave_all(state, leaves & ~just(s), then); });
      };
      const bool copied = has(now.copied, s), is_free = step_.is_free(now.done, s);
      if (may_offload(s) && !copied) by(Do::kOffload);
      if ((leaves & (just(s) - 1)) != 0) continue;  // the order of the others is of no matter
      if (may_offload(s) && copied) by(Do::kOffload);
      if (is_free) by(Do::kFree);
      if (!is_free && !copied && step_.may_come_again(now.done, s)) by(Do::kEvict);
    }
  }
  template <class Then>
  void leave(State state, uint32_t s, Do how, const Then& then) {
    if (how != Do::kOffload) {
      state.copied &= ~just(s);
    } else if (!has(state.copied, s)) {
      copy_out(state, s);
    }
    end(state, s, 1);
    state.schedule.code.push_back({.what = how, .subject = s});
    if (step_.is_obtainable(state.done, state.here | state.copied)) then(state);
  }

  // A block, from the next instruction on; a storage's, or scratch.
  static void take(State& state, uint32_t s, Bytes size) {
    const auto at = static_cast<uint32_t>(state.schedule.code.size());
    const bool is_scratch = s == Schedule::kScratch;
    if (!is_scratch) state.block[s] = static_cast<uint32_t>(state.schedule.blocks.size());
    state.schedule.blocks.push_back({s, size, at, is_scratch ? at + 1 : 0});
  }
  // Ends the storage's block with the next instruction (0) or once that is done (1).
  static void end(State& state, uint32_t s, uint32_t after) {
    const auto at = static_cast<uint32_t>(state.schedule.code.size());
    state.schedule.blocks[state.block[s]].end = at + after;
    state.here &= ~just(s);
  }

  void finish(State state) {
    if ((state.fresh & ~step_.at_end) != 0) return;
    if ((state.here & step_.at_end) != first_) return;
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (has(step_.at_end, s) || !has(state.here | state.copied, s)) continue;
      if (has(state.here, s)) end(state, s, 1);
      state.schedule.code.push_back({.what = Do::kFree, .subject = s});
    }
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (has(state.here, s)) end(state, s, 0);
    }
    const Nanos time = price_.whole(state.schedule);
    if (best_ && time >= best_->time) return;
    best_ = Found{std::move(state.schedule), time};
    best_->schedule.peak = best_->schedule.peak_bound = max_resident(best_->schedule);
  }

  const TinyStep step_;
  const PlanLimits& limits_;
  const Price price_;
  Set first_ = 0;  // storages that are here at the step's start
  int64_t left_ = kMost;
  std::optional<Found> best_;
};

}  // namespace tidemark::testing::tiny
