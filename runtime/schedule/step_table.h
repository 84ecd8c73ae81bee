// A trace indexed for searches: calls by number, without uploads and reads; each storage's
// lifetime and the calls that use it.
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
    uint32_t op = 0;  // number in the trace
    uint64_t signature = 0;
    Nanos begin{0};  // sum of the costs of the calls before it
    Nanos cost{0};
    Bytes workspace{0};
    // The input whose space its first output may take, because the program drops it after this
    // call; kNone if there is none.
    uint32_t overwrites = kNone;
  };
  // An item has its storage's number in the trace.
  struct Item {
    Bytes bytes{0};          // rounded up as in the arena
    bool may_evict = false;  // can be recomputed: not, e.g., if written in place
    bool may_offload = false;
    bool persistent = false;    // survives steps, by its category
    bool at_end = false;        // exists after the step
    bool uploaded = false;      // during the step
    uint32_t producer = kNone;  // the call that makes it; none: made outside
    uint32_t begin = 0;         // the call that makes it, follows its upload, or uses it first
    uint32_t end = 0;           // freed once this many calls have run; at most, all
    std::vector<uint32_t> uses{};  // calls in order, including the producer
    bool existed_before() const { return producer == kNone && !uploaded; }  // before the step
    // Made by an earlier step and freed in this one, or made in this step and kept for a later
    // one.
    bool carried() const { return existed_before() != at_end; }
    // May be away at the step's end and come back in the next step.
    bool lives_through() const { return persistent && existed_before() && at_end; }
  };

  StepTable() = default;
  // REQUIRES: trace_violations() finds nothing.
  explicit StepTable(const StepTrace& trace);

  std::vector<Call> calls;
  std::vector<Item> items;
  Nanos duration{0};  // total cost of all calls

  // Items of a call.
  std::span<const uint32_t> inputs(uint32_t call) const { return operands(call, 0); }
  std::span<const uint32_t> outputs(uint32_t call) const { return operands(call, 1); }
  // Inputs that the call writes in place.
  std::span<const uint32_t> written(uint32_t call) const { return operands(call, 2); }

 private:
  std::span<const uint32_t> operands(uint32_t call, size_t list) const {
    const uint32_t* from = &ends_[3 * size_t{call} + list];
    return {operands_.data() + from[0], operands_.data() + from[1]};
  }

  // Inputs, outputs and in-place writes of all calls, and where each list begins.
  std::vector<uint32_t> operands_;
  std::vector<uint32_t> ends_{0};
};

// Whether the program drops `input`, one of the operator's `may_overwrite`, after the operator,
// and it is as large as the first output: in the trace's order that may take its space.
bool dies_in_place(const StepTrace& trace, uint32_t op, uint32_t input);

}  // namespace tidemark
