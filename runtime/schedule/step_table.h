// A trace as searches look things up in it: calls by number, uploads and reads left out, and of
// each storage when it is there and which calls use it.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/schedule/step_trace.h"

namespace tidemark {

class StepTable {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Call {
    uint32_t op = 0;  // its number in the trace
    uint64_t signature = 0;
    Nanos begin{0};  // sum of the costs of the calls before it
    Nanos cost{0};
    Bytes workspace{0};
  };
  // Bears the storage's number in the trace.
  struct Item {
    Bytes bytes{0};          // as it occupies the arena
    bool may_evict = false;  // can be computed again: not written in place, for one
    bool may_offload = false;
    bool persistent = false;    // lives on from step to step, by its category
    bool at_end = false;        // it is there after the step
    bool uploaded = false;      // during the step
    uint32_t producer = kNone;  // the call that makes it; none: it came from outside
    uint32_t begin = 0;         // the call that makes it, uploads it before, or uses it first
    uint32_t end = 0;           // it is gone once this many calls have run; at most, all
    std::vector<uint32_t> uses{};  // calls, in order, the producer among them
    bool existed_before() const { return producer == kNone && !uploaded; }  // before the step
    // An earlier step has made it, and it goes in this one; or it is made in this step, and
    // stays for a later one.
    bool carried() const { return existed_before() != at_end; }
    // May be away over the step's end and come back in the next step.
    bool lives_through() const { return persistent && existed_before() && at_end; }
  };

  StepTable() = default;
  // REQUIRES: trace_violations() finds nothing.
  explicit StepTable(const StepTrace& trace);

  std::vector<Call> calls;
  std::vector<Item> items;
  Nanos duration{0};  // of all calls

  // Of a call, items.
  std::span<const uint32_t> inputs(uint32_t call) const { return operands(call, 0); }
  std::span<const uint32_t> outputs(uint32_t call) const { return operands(call, 1); }
  // Those of the inputs that it writes in place.
  std::span<const uint32_t> written(uint32_t call) const { return operands(call, 2); }

 private:
  std::span<const uint32_t> operands(uint32_t call, size_t list) const {
    const uint32_t* from = &ends_[3 * size_t{call} + list];
    return {operands_.data() + from[0], operands_.data() + from[1]};
  }

  // Of all calls: inputs, outputs, what is written; and where each list begins.
  std::vector<uint32_t> operands_;
  std::vector<uint32_t> ends_{0};
};

}  // namespace tidemark
