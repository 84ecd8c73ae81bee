// Any bytes as a step graph; what is read is planned, and written again. A DataError is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/core/errors.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/planner.h"
#include "runtime/schedule/trace_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tidemark;
  try {
    const StepTrace graph =
        trace_from_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (!(trace_from_json(to_json(graph), "again") == graph)) std::abort();
    const planner::Problem problem = planner::problem_from_trace(graph);
    planner::plan_step(problem, {.limits = {.seconds = 1, .nodes = 1000}});
  } catch (const DataError&) {
  } catch (const UsageError&) {  // sums that are too large
  }
  return 0;
}
