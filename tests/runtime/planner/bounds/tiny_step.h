// A tiny step as sets of operators and storages, for searches through everything that can be
// done with it: the rules of schedule_validator.h, in a form of their own.
//
// Threads: values, no state.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::testing::tiny {

using Set = uint32_t;  // of operators or of storages, by number
constexpr Set just(uint32_t i) { return Set{1} << i; }
constexpr bool has(Set set, uint32_t i) { return (set & just(i)) != 0; }

struct TinyStep {
  // `any_order` off: operators run in the trace's order. `runs`: which variant of each operator
  // runs first; none: the calls themselves. REQUIRES: the trace outlives this object and has
  // fewer than 32 operators, and storages.
  TinyStep(const StepTrace& of, bool any_order, std::vector<uint32_t> runs = {})
      : trace(of),
        ops(static_cast<uint32_t>(of.ops.size())),
        storages(static_cast<uint32_t>(of.storages.size())),
        variant(std::move(runs)),
        before(ops, 0),
        users(storages, 0),
        writers(storages, 0),
        droppers(storages, 0),
        maker(storages, ops) {
    variant.resize(ops);
    for (uint32_t k = 0; k < ops; ++k) {
      for (uint32_t j = 0; j < k; ++j) {
        if (!any_order || is_read(j) || is_read(k)) before[k] |= just(j);
      }
      add(k);
    }
    for (uint32_t s = 0; s < storages; ++s) {
      if (trace.storages[s].at_start) at_start |= just(s);
      if (trace.storages[s].at_end) at_end |= just(s);
    }
  }

  Set all_ops() const { return just(ops) - 1; }
  int64_t size(uint32_t s) const { return trace.storages[s].size.count(); }
  int64_t bytes(Set set) const {
    int64_t sum = 0;
    for (uint32_t s = 0; s < storages; ++s) sum += has(set, s) ? size(s) : 0;
    return sum;
  }
  int64_t first_runs(Set set) const {  // nanoseconds
    int64_t sum = 0;
    for (uint32_t k = 0; k < ops; ++k) sum += has(set, k) ? run_of(0, k).cost.count() : 0;
    return sum;
  }
  bool is_call(uint32_t k) const { return trace.ops[k].kind == StepTrace::Kind::kCall; }
  bool is_read(uint32_t k) const { return trace.ops[k].kind == StepTrace::Kind::kRead; }

  // Once the operators `done` have run: whether what made it may run again for it.
  bool may_come_again(Set done, uint32_t s) const {
    return maker[s] < ops && is_call(maker[s]) && trace.storages[s].may_evict &&
           (done & writers[s]) == 0;
  }
  // Whether it is needed no more, but to run something again.
  bool is_free(Set done, uint32_t s) const {
    return (done & droppers[s]) != 0 && (users[s] & ~done) == 0;
  }
  // What a run of the operator is: its first one, or a later one.
  StepTrace::Implementation run_of(Set done, uint32_t k) const {
    return trace.ops[k].implementation(has(done, k) ? 0 : variant[k]);
  }
  Set inputs(Set done, uint32_t k) const {
    Set set = 0;
    for (const StepTrace::Input& input : run_of(done, k).inputs) set |= just(input.storage);
    return set;
  }
  // Whether its inputs are as it read them, and it may run again.
  bool may_run_again(Set done, uint32_t k) const {
    const auto& read = trace.ops[k].inputs;
    return is_call(k) && std::all_of(read.begin(), read.end(), [&](const auto& input) {
             const auto version = std::popcount(done & writers[input.storage]);
             return !input.written && static_cast<uint32_t>(version) == input.version;
           });
  }
  // Whether it may run with these storages resident.
  bool may_run(Set done, Set here, uint32_t k) const {
    if ((inputs(done, k) & ~here) != 0) return false;
    return has(done, k) ? may_run_again(done, k) : (before[k] & ~done) == 0;
  }
  // Whether all that is needed, or that the program holds, is there or can be had from what is.
  bool is_obtainable(Set done, Set there) const {
    Set wanted = 0, last = 0;
    for (uint32_t s = 0; s < storages; ++s) {
      const bool is_made = has(at_start, s) || (maker[s] < ops && has(done, maker[s]));
      if (is_made && !is_free(done, s)) wanted |= just(s);
    }
    while ((wanted & ~there) != 0 && there != last) {
      last = there;
      for (uint32_t s = 0; s < storages; ++s) {
        if (has(there, s) || !may_come_again(done, s) || !has(done, maker[s])) continue;
        const bool may_run = may_run_again(done, maker[s]);
        if (may_run && (inputs(done, maker[s]) & ~there) == 0) there |= just(s);
      }
    }
    return (wanted & ~there) == 0;
  }
  // Bytes that it takes beside what is resident; an output that is there goes to scratch.
  int64_t taken_by(Set done, uint32_t k) const {
    int64_t sum = run_of(done, k).workspace.count();
    for (const uint32_t s : trace.ops[k].outputs) sum += size(s);
    return sum;
  }
  // The most that an operator needs at once by itself, in place where it may be.
  int64_t largest_run() const {
    int64_t most = 0;
    for (uint32_t k = 0; k < ops; ++k) {
      int64_t bytes_used = bytes(inputs(0, k)) + taken_by(0, k);
      if (!run_of(0, k).may_overwrite.empty()) bytes_used -= size(trace.ops[k].outputs.front());
      most = std::max(most, bytes_used);
    }
    return most;
  }
  // What is resident after it. A run again brings all that it may.
  Set here_after(Set done, Set here, uint32_t k) const {
    for (const uint32_t s : trace.ops[k].outputs) {
      if (!has(done, k) || may_come_again(done, s)) here |= just(s);
    }
    return here;
  }
  // Inputs over which its first run may put its first output.
  Set may_overwrite(Set done, uint32_t k) const {
    Set set = 0;
    for (const uint32_t s : run_of(0, k).may_overwrite) {
      const bool fits = size(s) == size(trace.ops[k].outputs.front());
      if (fits && is_free(done | just(k), s)) set |= just(s);
    }
    return has(done, k) ? 0 : set;
  }

  const StepTrace& trace;
  const uint32_t ops, storages;
  std::vector<uint32_t> variant;              // by operator
  std::vector<Set> before;                    // by operator: those that come before it
  std::vector<Set> users, writers, droppers;  // by storage: operators
  std::vector<uint32_t> maker;                // by storage; `ops`: none
  Set at_start = 0, at_end = 0;

 private:
  void add(uint32_t k) {
    const StepTrace::Op& op = trace.ops[k];
    const auto& inputs = run_of(0, k).inputs;
    for (const StepTrace::Input& input : inputs) {
      const uint32_t s = input.storage;
      if (maker[s] < ops) before[k] |= just(maker[s]);
      before[k] |= input.written ? users[s] : writers[s];
    }
    for (const StepTrace::Input& input : inputs) {
      users[input.storage] |= just(k);
      if (input.written) writers[input.storage] |= just(k);
    }
    for (const uint32_t s : op.outputs) {
      users[s] |= just(k);
      maker[s] = k;
    }
    for (const uint32_t s : op.released) droppers[s] |= just(k);
  }
};

}  // namespace tidemark::testing::tiny
