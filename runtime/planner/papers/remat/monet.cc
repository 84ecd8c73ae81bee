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

}  // namespace

RematMethod monet_method() {
  RematMethod method;
  method.name = "monet";
  method.what = "MONeT's program: checkpoints and implementations";
  method.needs_solver = true;
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    return plan_monet(problem, budget, limits, {});
  };
  return method;
}

RematMethod monet_noop_method() {
  RematMethod method;
  method.name = "monet-noop";
  method.what = "MONeT's program without selection of implementations";
  method.needs_solver = true;
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    return plan_monet(problem, budget, limits, {.select_operators = false});
  };
  return method;
}

// The paper has no updates: parameters' gradients stay. Where a problem lists updates last, the
// other two keep the gradients until then.
RematMethod monet_eager_method() {
  RematMethod method;
  method.name = "monet-eager";
  method.what = "MONeT's program with updates as soon as their gradients are there";
  method.needs_solver = true;
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    return plan_monet(problem, budget, limits, {.order = FirstOrder::kEager});
  };
  return method;
}

}  // namespace tidemark::planner::remat
