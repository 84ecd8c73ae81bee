// Any bytes as a step graph; what is read is planned, and written again. A DataError is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/core/errors.h"
#include "runtime/graph/json.h"
#include "runtime/planner/from_graph.h"
#include "runtime/planner/planner.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tidemark;
  try {
    const StepGraph graph =
        graph_from_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (!(graph_from_json(to_json(graph), "again") == graph)) std::abort();
    const planner::Problem problem = planner::problem_from_graph(graph);
    planner::plan_step(problem, {.limits = {.seconds = 1, .nodes = 1000}});
  } catch (const DataError&) {
  } catch (const UsageError&) {  // sums that are too large
  }
  return 0;
}
