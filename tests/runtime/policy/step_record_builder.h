// Steps written by hand, call by call, as a policy would have seen them; and random ones.
//
// Sizes are in units of 1 MiB; items bear numbers in the order in which they come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/policy/step_record.h"
#include "runtime/policy/tide/release_plan.h"

namespace tidemark::testing {

inline constexpr Bytes kRecordUnit{1 << 20};

inline Bytes units(int64_t n) { return kRecordUnit * n; }

// Of the link: one unit takes `nanos`, without latency.
inline double unit_in(int64_t nanos) {
  return static_cast<double>(kRecordUnit.count()) / static_cast<double>(nanos) * 1e9;
}

inline PlanLimits evict_within(int64_t room) { return {.room = units(room)}; }
inline PlanLimits copy_within(int64_t room, int64_t nanos_per_unit, int64_t tier = 1000) {
  return {.room = units(room),
          .tier_room = units(tier),
          .out_bandwidth = unit_in(nanos_per_unit),
          .in_bandwidth = unit_in(nanos_per_unit)};
}

class RecordBuilder {
 public:
  // There before the step.
  uint32_t outside(int64_t size = 1, bool persistent = false) {
    return add({.bytes = units(size), .persistent = persistent});
  }
  // Before the next call.
  uint32_t upload(int64_t size = 1) {
    return add({.bytes = units(size),
                .uploaded = true,
                .begin = last_call() + 1,
                .end = last_call() + 1});
  }
  // Makes an item; returns its number.
  uint32_t call(const std::vector<uint32_t>& inputs, int64_t cost = 100, int64_t size = 1) {
    run(inputs, cost);
    return also(size);
  }
  // One more output of the last call.
  uint32_t also(int64_t size = 1) {
    const uint32_t item =
        add({.bytes = units(size), .producer = last_call(), .begin = last_call()});
    step_.calls.back().outputs.push_back(item);
    use(item);
    return item;
  }
  // A call that makes nothing.
  void run(const std::vector<uint32_t>& inputs, int64_t cost = 100, int64_t workspace = 0) {
    step_.calls.push_back({1, step_.duration, Nanos(cost), units(workspace), inputs, {}, {}});
    step_.duration += Nanos(cost);
    for (const uint32_t input : inputs) use(input);
  }
  // One that writes an item in place.
  void update(uint32_t item, int64_t cost = 100) {
    run({item}, cost);
    writes(item);
  }
  // The last call does that to one of its inputs.
  void writes(uint32_t item) {
    step_.calls.back().written = {item};
    step_.items[item].may_evict = false;
  }
  void idle(int calls, int64_t cost = 100) {
    while (calls-- > 0) run({}, cost);
  }
  StepRecord::Item& item(uint32_t number) { return step_.items[number]; }
  StepRecord::Call& last() { return step_.calls.back(); }
  const StepRecord& step() const { return step_; }
  // Wraps to the largest number while there is none, so that one more is the first.
  uint32_t last_call() const { return static_cast<uint32_t>(step_.calls.size()) - 1; }

 private:
  uint32_t add(StepRecord::Item item) {
    item.may_evict = item.may_offload = true;
    step_.items.push_back(std::move(item));
    return static_cast<uint32_t>(step_.items.size()) - 1;
  }
  void use(uint32_t number) {
    StepRecord::Item& item = step_.items[number];
    if (item.uses.empty() && !item.uploaded) item.begin = last_call();
    item.uses.push_back(last_call());
    item.end = last_call() + 1;
  }
  StepRecord step_;
};

// Of 5 to 44 calls that read what is there: parameters, some wanted late only, inputs from
// outside, some uploaded, and what other calls have made; some of it may not be evicted, some
// not copied, and some is held for longer than it is used.
inline StepRecord random_record(std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  RecordBuilder record;
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
  StepRecord step = record.step();
  for (auto& item : step.items) {
    if (item.uses.empty()) {  // as `step.calls` does not say
      item.uses = {item.begin};
      item.end = item.begin + 1;
    }
    if (pick(6) == 0 && !item.persistent) {  // held for longer than it is used
      item.end += pick(static_cast<uint32_t>(step.calls.size()) - item.end + 1);
    }
  }
  return step;
}

}  // namespace tidemark::testing
