// Storages and operators of steps, byte by byte, for tests that name each operator.
// trace_builder.h is for those that do not.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/schedule/step_trace.h"

namespace tidemark::testing {

// Returns its number. `persistent`: exists before and after the step.
inline uint32_t add_storage(StepTrace& trace, int64_t size, bool persistent = false) {
  StepTrace::Storage made;
  made.size = Bytes(size);
  made.at_start = made.at_end = persistent;
  trace.storages.push_back(made);
  return static_cast<uint32_t>(trace.storages.size() - 1);
}

// An operator that takes 2 ms.
inline void add_op(StepTrace& trace, StepTrace::Kind kind, const char* name,
                   std::vector<StepTrace::Input> inputs, std::vector<uint32_t> outputs) {
  StepTrace::Op made;
  made.kind = kind;
  made.name = name;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.cost = Nanos(2'000'000);
  trace.ops.push_back(std::move(made));
}

}  // namespace tidemark::testing
