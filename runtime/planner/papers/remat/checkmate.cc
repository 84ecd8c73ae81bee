// Checkmate as a method: solves its program over all nodes, decodes the runs.
#include "runtime/planner/papers/remat/checkmate_program.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/solved_program.h"

namespace tidemark::planner::remat {

RematMethod checkmate_method() {
  RematMethod method;
  method.name = "checkmate";
  method.what = "Checkmate's program: a stage for each node";
  method.needs_solver = true;
  method.knows_riders = false;
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    const Stopwatch watch(limits);
    require_solver();
    const CheckmateProgram program(problem, budget, {});
    return solve_and_decode(
        problem, program.program(),
        [&](const std::vector<double>& values) { return program.decode(values); }, limits,
        watch);
  };
  return method;
}

}  // namespace tidemark::planner::remat
