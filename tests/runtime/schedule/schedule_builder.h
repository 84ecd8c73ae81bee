// Schedules written by hand, instruction by instruction, and random ones.
//
// The builder works out what can be derived: which block an instruction ends, and the peak.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace tidemark::testing {

class ScheduleBuilder {
 public:
  using Do = Schedule::Do;
  using Places = std::vector<int64_t>;

  // The trace outlives the builder.
  explicit ScheduleBuilder(const StepTrace& trace, bool placed = true) : trace_(trace) {
    s_.placed = placed;
  }

  // A block that exists before all instructions.
  ScheduleBuilder& initial(uint32_t storage, int64_t at = 0) {
    ++s_.initial_blocks;
    take(storage, size(storage), at);
    return *this;
  }
  ScheduleBuilder& foreign(int64_t bytes, int64_t at = 0) {
    s_.foreign.emplace_back(bytes);
    return initial(static_cast<uint32_t>(trace_.storages.size() + s_.foreign.size() - 1), at);
  }
  // An operator's first run, with a place for each output, then for the workspace.
  ScheduleBuilder& run(uint32_t op, const Places& at = {}) {
    return add(op, false, trace_.ops[op].outputs, at);
  }
  // The same, with the first output in place of `input`.
  ScheduleBuilder& run_over(uint32_t op, uint32_t input, const Places& at = {}) {
    end(input, now());
    run(op, at);
    s_.code.back().overwrites = input;
    return *this;
  }
  // The same by one of the call's variants.
  ScheduleBuilder& run_variant(uint32_t op, uint32_t variant, const Places& at = {}) {
    return add(op, false, trace_.ops[op].outputs, at, variant);
  }
  // A recomputation: outputs that are not in `kept` go to scratch.
  ScheduleBuilder& again(uint32_t op, const std::vector<uint32_t>& kept,
                         const Places& at = {}) {
    std::vector<uint32_t> storages = trace_.ops[op].outputs;
    for (uint32_t& s : storages) {
      if (std::find(kept.begin(), kept.end(), s) == kept.end()) s = Schedule::kScratch;
    }
    return add(op, true, storages, at);
  }
  ScheduleBuilder& free(uint32_t s) { return simple(Do::kFree, s, true); }
  ScheduleBuilder& evict(uint32_t s) { return simple(Do::kEvict, s, true); }
  ScheduleBuilder& offload(uint32_t s) { return simple(Do::kOffload, s, true); }
  ScheduleBuilder& copy_out(uint32_t s) { return simple(Do::kCopyOut, s, false); }
  ScheduleBuilder& drop_copy(uint32_t s) { return simple(Do::kDropCopy, s, false); }
  ScheduleBuilder& copy_in(uint32_t s, int64_t at = 0) { return taking(Do::kCopyIn, s, at); }
  ScheduleBuilder& move(uint32_t s, int64_t at = 0) {
    end(s, now());
    return taking(Do::kMove, s, at);
  }
  bool resident(uint32_t s) const { return open_.contains(s); }

  Schedule build() {
    for (const auto& [storage, block] : open_) s_.blocks[block].end = now();
    s_.peak = Bytes(0);
    for (const Schedule::Block& block : s_.blocks) {
      Bytes live{0};
      for (const Schedule::Block& other : s_.blocks) {
        if (other.begin <= block.begin && block.begin < other.end) live += other.size;
      }
      s_.peak = std::max(s_.peak, s_.placed ? block.at + block.size - Offset(0) : live);
    }
    return s_;
  }

 private:
  uint32_t now() const { return static_cast<uint32_t>(s_.code.size()); }
  uint32_t blocks() const { return static_cast<uint32_t>(s_.blocks.size()); }
  Bytes size(uint32_t s) const {
    return s < trace_.storages.size() ? trace_.storages[s].size
                                      : s_.foreign[s - trace_.storages.size()];
  }
  void take(uint32_t storage, Bytes bytes, int64_t at) {
    if (storage != Schedule::kScratch) open_[storage] = s_.blocks.size();
    s_.blocks.push_back({storage, bytes, now(), now() + 1, Offset(at)});
  }
  void end(uint32_t storage, uint32_t at) {
    const auto found = open_.find(storage);
    if (found == open_.end()) return;
    s_.blocks[found->second].end = at;
    open_.erase(found);
  }
  ScheduleBuilder& simple(Do what, uint32_t storage, bool ends) {
    s_.code.push_back({.what = what, .subject = storage, .first_block = blocks()});
    if (ends) end(storage, now());
    return *this;
  }
  ScheduleBuilder& taking(Do what, uint32_t storage, int64_t at) {
    const uint32_t first = blocks();
    take(storage, size(storage), at);
    s_.code.push_back({.what = what, .subject = storage, .first_block = first, .blocks = 1});
    return *this;
  }
  ScheduleBuilder& add(uint32_t k, bool again, const std::vector<uint32_t>& storages,
                       const Places& at, uint32_t variant = 0) {
    const StepTrace::Op& op = trace_.ops[k];
    const Bytes workspace = op.implementation(variant).workspace;
    const uint32_t first = blocks();
    const auto place = [&](size_t i) { return i < at.size() ? at[i] : 0; };
    for (size_t i = 0; i < storages.size(); ++i) {
      take(storages[i], trace_.storages[op.outputs[i]].size, place(i));
    }
    if (workspace > Bytes(0)) take(Schedule::kScratch, workspace, place(storages.size()));
    s_.code.push_back({.what = static_cast<Do>(op.kind),
                       .again = again,
                       .subject = k,
                       .first_block = first,
                       .blocks = blocks() - first,
                       .variant = variant});
    return *this;
  }

  const StepTrace& trace_;
  Schedule s_;
  std::map<uint32_t, size_t> open_;  // by storage: its block
};
static_assert(static_cast<int>(Schedule::Do::kRead) ==
              static_cast<int>(StepTrace::Kind::kRead));

// A random valid schedule in program order, without places. Storages that the next operator
// does not need are evicted, offloaded, copied or moved here and there, and come back when an
// operator needs them.
class RandomSchedule {
 public:
  RandomSchedule(const StepTrace& trace, std::mt19937& random)
      : trace_(trace), random_(random), builder_(trace, false), state_(trace.storages.size()) {
    std::vector<bool> written(trace.storages.size());
    for (const StepTrace::Op& op : trace.ops) {
      for (const StepTrace::Input& input : op.inputs) {
        if (input.written) written[input.storage] = true;
      }
    }
    for (uint32_t s = 0; s < state_.size(); ++s) {
      const StepTrace::Storage& storage = trace.storages[s];
      state_[s].source = storage.at_start && storage.at_end && !written[s];
    }
    for (uint32_t k = 0; k < trace.ops.size(); ++k) {
      const StepTrace::Op& op = trace.ops[k];
      const bool pure = op.kind == StepTrace::Kind::kCall &&
                        std::all_of(op.inputs.begin(), op.inputs.end(), [&](const auto& input) {
                          return !input.written && state_[input.storage].source;
                        });
      for (const uint32_t output : op.outputs) {
        state_[output].producer = k;
        state_[output].source = state_[output].again =
            pure && trace.storages[output].may_evict && !written[output];
      }
    }
  }

  Schedule run() {
    for (uint32_t s = 0; s < state_.size(); ++s) {
      if (!trace_.storages[s].at_start) continue;
      state_[s].held = true;
      if (trace_.storages[s].may_offload && pick(4) == 0) {
        state_[s].copied = true;
      } else {
        builder_.initial(s);
      }
    }
    for (uint32_t k = 0; k < trace_.ops.size(); ++k) {
      const StepTrace::Op& op = trace_.ops[k];
      for (const StepTrace::Input& input : op.inputs) bring(input.storage);
      const uint32_t dying = dying_input(op);
      if (dying != Schedule::kScratch && pick(2) == 0) {
        builder_.run_over(k, dying);
        state_[dying].copied = false;
      } else {
        builder_.run(k);
      }
      for (const StepTrace::Input& input : op.inputs) {
        if (input.written) state_[input.storage].copied = false;
      }
      for (const uint32_t output : op.outputs) state_[output].held = true;
      for (const uint32_t s : op.released) state_[s].held = false;
      sweep();
      for (uint32_t s = 0; s < state_.size(); ++s) disturb(s);
    }
    return builder_.build();
  }

 private:
  struct State {
    bool source = false;  // others may be recomputed from it
    bool again = false;   // it can be recomputed
    bool held = false, copied = false;
    uint32_t producer = 0;
  };

  uint32_t dying_input(const StepTrace::Op& op) const {
    for (const uint32_t s : op.may_overwrite) {
      const bool dies =
          std::find(op.released.begin(), op.released.end(), s) != op.released.end();
      if (dies && trace_.storages[s].size == trace_.storages[op.outputs.front()].size) return s;
    }
    return Schedule::kScratch;
  }
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  void bring(uint32_t s) {
    if (builder_.resident(s)) return;
    if (state_[s].copied) {
      builder_.copy_in(s);
      return;
    }
    const uint32_t producer = state_[s].producer;
    for (const StepTrace::Input& input : trace_.ops[producer].inputs) bring(input.storage);
    builder_.again(producer, {s});
  }
  // Frees storages that nobody holds.
  void sweep() {
    for (uint32_t s = 0; s < state_.size(); ++s) {
      if (state_[s].held || (!builder_.resident(s) && !state_[s].copied)) continue;
      builder_.free(s);
      state_[s].copied = false;
    }
  }
  void disturb(uint32_t s) {
    if (!builder_.resident(s)) return;
    State& state = state_[s];
    const bool may_offload = trace_.storages[s].may_offload;
    switch (pick(12)) {
      case 0:
        if (!state.again || trace_.storages[s].at_end) return;
        builder_.evict(s);
        state.copied = false;
        break;
      case 1:
        if (!may_offload) return;
        builder_.offload(s);
        state.copied = true;
        break;
      case 2:
        if (!may_offload) return;
        builder_.copy_out(s);
        state.copied = true;
        break;
      case 3: builder_.move(s); break;
      default: break;
    }
  }

  const StepTrace& trace_;
  std::mt19937& random_;
  ScheduleBuilder builder_;
  std::vector<State> state_;
};

}  // namespace tidemark::testing
