// MONeT as a method: reads two passes, solves its program, decodes the runs.
#include "runtime/planner/papers/remat/monet_program.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/solved_program.h"

namespace tidemark::planner::remat {
namespace {

RematResult plan_monet(const Problem& problem, int64_t budget, const Limits& limits,
                       const TwoPassOptions& reading) {
  const Stopwatch watch(limits);
  require_solver();
  const TwoPass passes = read_two_pass(problem, reading);
  const MonetProgram program(passes, budget, {});
  return solve_and_decode(
      problem, program.program(),
      [&](const std::vector<double>& values) { return program.decode(values); }, limits, watch);
}

RematMethod method_of(const char* name, const char* what, const TwoPassOptions& reading) {
  RematMethod method;
  method.name = name;
  method.what = what;
  method.needs_solver = true;
  method.plan = [reading](const Problem& problem, int64_t budget, const Limits& limits) {
    return plan_monet(problem, budget, limits, reading);
  };
  return method;
}

}  // namespace

RematMethod monet_method() {
  return method_of("monet", "MONeT's program: checkpoints and implementations", {});
}

RematMethod monet_noop_method() {
  return method_of("monet-noop", "MONeT's program without selection of implementations",
                   {.select_operators = false});
}

// The paper has no updates: parameters' gradients stay. Where a problem lists updates last, the
// other two keep the gradients until then.
RematMethod monet_eager_method() {
  return method_of("monet-eager",
                   "MONeT's program with updates as soon as their gradients are there",
                   {.order = FirstOrder::kEager});
}

}  // namespace tidemark::planner::remat
