// Hand-written steps, call by call, and random ones.
//
// Sizes are in units of 1 MiB. Items are numbered in order of appearance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_table.h"

namespace tidemark::testing {

inline constexpr Bytes kRecordUnit{1 << 20};

inline Bytes units(int64_t n) { return kRecordUnit * n; }

// The link's bandwidth at which a unit takes `nanos`, without latency.
inline double unit_in(int64_t nanos) {
  return static_cast<double>(kRecordUnit.count()) / static_cast<double>(nanos) * 1e9;
}

inline PlanLimits evict_within(int64_t room) { return {.space = units(room)}; }
inline PlanLimits copy_within(int64_t room, int64_t nanos_per_unit, int64_t tier = 1000) {
  return {.space = units(room),
          .tier_space = units(tier),
          .out_bandwidth = unit_in(nanos_per_unit),
          .in_bandwidth = unit_in(nanos_per_unit)};
}

class TraceBuilder {
 public:
  // An item that exists before the step.
  uint32_t outside(int64_t size = 1, bool persistent = false) {
    return add({.origin = "test",
                .category = persistent ? Category::kParameter : Category::kData,
                .size = units(size),
                .at_start = true,
                .at_end = persistent});
  }
  // An upload before the next call.
  uint32_t upload(int64_t size = 1) {
    const uint32_t item =
        add({.origin = "test", .category = Category::kData, .size = units(size)});
    trace_.ops.push_back({.kind = StepTrace::Kind::kUpload, .name = "upload"});
    trace_.ops.back().outputs = {item};
    touch(item);
    return item;
  }
  // A call that makes an item; returns its number.
  uint32_t call(const std::vector<uint32_t>& inputs, int64_t cost = 100, int64_t size = 1) {
    run(inputs, cost);
    return also(size);
  }
  // One more output of the last call.
  uint32_t also(int64_t size = 1) {
    const uint32_t item = add({.origin = "test", .size = units(size)});
    last().outputs.push_back(item);
    touch(item);
    return item;
  }
  // A call without outputs.
  void run(const std::vector<uint32_t>& inputs, int64_t cost = 100, int64_t workspace = 0) {
    trace_.ops.push_back({.name = "call", .signature = 1});
    calls_.push_back(trace_.ops.size() - 1);
    last().cost = Nanos(cost);
    last().workspace = units(workspace);
    for (const uint32_t input : inputs) reads(last_call(), input);
  }
  // The call also reads the item.
  void reads(uint32_t call, uint32_t item) {
    trace_.ops[calls_[call]].inputs.push_back({item, versions_[item]});
    last_op_[item] = std::max(last_op_[item], calls_[call]);
  }
  // A call that writes an item in place.
  void update(uint32_t item, int64_t cost = 100) {
    run({item}, cost);
    writes(item);
  }
  // The last call writes one of its inputs in place.
  void writes(uint32_t item) {
    for (StepTrace::Input& input : last().inputs) {
      if (input.storage == item) input.written = true;
    }
    ++versions_[item];
    trace_.storages[item].may_evict = false;
  }
  void idle(int calls, int64_t cost = 100) {
    while (calls-- > 0) run({}, cost);
  }
  // The item stays after the step.
  void keep(uint32_t item) { trace_.storages[item].at_end = true; }
  // The program holds the item until this many calls have run.
  void hold(uint32_t item, uint32_t calls) {
    if (calls > 0) last_op_[item] = std::max(last_op_[item], calls_[calls - 1]);
  }
  StepTrace::Storage& item(uint32_t number) { return trace_.storages[number]; }
  uint32_t items() const { return static_cast<uint32_t>(trace_.storages.size()); }
  // The operator of the last call.
  StepTrace::Op& last() { return trace_.ops[calls_.back()]; }
  // Without a call this wraps to the largest number, so that one more is the first.
  uint32_t last_call() const { return static_cast<uint32_t>(calls_.size()) - 1; }

  // Items that do not live on are let go of after their last use.
  StepTrace trace() const {
    StepTrace trace = trace_;
    for (uint32_t item = 0; item < trace.storages.size(); ++item) {
      if (!trace.storages[item].at_end && !trace.ops.empty()) {
        trace.ops[last_op_[item]].released.push_back(item);
      }
    }
    const std::vector<std::string> wrong = trace_violations(trace, 1);
    TIDEMARK_CHECK(wrong.empty(), "a step that can be");
    return trace;
  }
  // Valid until the next call of step().
  const StepTable& step() const {
    table_ = StepTable(trace());
    return table_;
  }

 private:
  uint32_t add(const StepTrace::Storage& storage) {
    trace_.storages.push_back(storage);
    last_op_.push_back(0);
    versions_.push_back(0);
    return items() - 1;
  }
  void touch(uint32_t item) { last_op_[item] = trace_.ops.size() - 1; }

  StepTrace trace_;
  std::vector<size_t> calls_;       // operators of the calls
  std::vector<size_t> last_op_;     // by item: the last that uses or holds it
  std::vector<uint32_t> versions_;  // by item
  mutable StepTable table_;
};

// 5 to 44 calls that read what exists: parameters, some used late only, inputs from outside,
// some uploaded, and results of other calls. Some items may not be evicted, some not copied,
// and some are held longer than they are used, or over the step's end. Half of the calls may
// run in place.
inline StepTrace random_trace(std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  TraceBuilder record;
  std::vector<uint32_t> live, late;
  for (uint32_t i = pick(4); i > 0; --i) {
    (pick(2) == 0 ? late : live).push_back(record.outside(1 + pick(4), true));
  }
  for (uint32_t i = pick(2); i > 0; --i) live.push_back(record.outside(1 + pick(4)));
  const uint32_t calls = 5 + pick(40);
  for (uint32_t k = 0; k < calls; ++k) {
    std::vector<uint32_t> inputs;
    if (k == calls / 2) inputs = late, live.insert(live.end(), late.begin(), late.end());
    if (pick(12) == 0) live.push_back(record.upload(1 + pick(3)));
    for (uint32_t i = pick(3); i > 0 && !live.empty(); --i) {
      const uint32_t input = live[pick(static_cast<uint32_t>(live.size()))];
      if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
        inputs.push_back(input);
      }
    }
    const int64_t cost = pick(4) == 0 ? 1000 + pick(2000) : 1 + pick(60);
    if (pick(4) == 0) {
      record.run(inputs, cost, pick(3));
      if (pick(3) == 0 && !inputs.empty()) record.writes(inputs.front());
      continue;
    }
    live.push_back(record.call(inputs, cost, 1 + pick(4)));
    if (pick(8) == 0) record.item(live.back()).may_evict = false;
    if (pick(8) == 0) record.item(live.back()).may_offload = false;
    if (pick(8) == 0) live.push_back(record.also(1 + pick(2)));
  }
  for (uint32_t item = 0; item < record.items(); ++item) {
    const StepTable::Item known = record.step().items[item];
    if (known.uses.empty() && known.begin < calls) record.reads(known.begin, item);
    if (pick(6) == 0 && !known.persistent) {  // held for longer than it is used
      record.hold(item, known.end + pick(calls - known.end + 1));
    }
    if (pick(12) == 0) record.keep(item);
  }
  StepTrace trace = record.trace();
  for (size_t k = 0; k < trace.ops.size(); k += 2) {
    StepTrace::Op& op = trace.ops[k];
    for (const StepTrace::Input& input : op.inputs) {
      if (!op.outputs.empty() && !input.written) op.may_overwrite.push_back(input.storage);
    }
  }
  return trace;
}

// A step at a fixed address, so that a simulator may refer to it.
struct TracedStep {
  explicit TracedStep(StepTrace of) : trace(std::move(of)), table(trace) {}
  explicit TracedStep(const TraceBuilder& builder) : TracedStep(builder.trace()) {}
  TracedStep(const TracedStep&) = delete;
  TracedStep& operator=(const TracedStep&) = delete;

  const StepTrace trace;
  const StepTable table;
};

}  // namespace tidemark::testing
