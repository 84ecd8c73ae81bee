#include "runtime/planner/papers/remat/remat_methods.h"

#include <algorithm>

#include "runtime/planner/papers/remat/integer_bound.h"
#include "runtime/planner/remat/remat_planner.h"

namespace tidemark::planner::remat {

RematMethod search_method() {
  RematMethod method;
  method.name = "default";
  method.what = "Tidemark's search, in any order";
  method.searches = true;
  method.plan = [](const Problem& problem, int64_t budget, const Limits& limits) {
    RematOptions options;
    options.limits = limits;
    options.integer = integer_bound();
    const RematPlan plan = plan_remat(problem, budget, options);
    RematResult result;
    result.schedule = plan.schedule;
    result.bound = plan.bound;
    result.seconds = plan.seconds;
    if (!plan.feasible) result.note = "no schedule fits";
    result.undecided = plan.feasible && !plan.found();
    if (result.undecided) result.note = "no schedule was found";
    return result;
  };
  return method;
}

const std::vector<RematMethod>& remat_methods() {
#define TIDEMARK_CALL_METHOD(function) function(),
  static const auto* const all =
      new std::vector<RematMethod>{TIDEMARK_REMAT_METHODS(TIDEMARK_CALL_METHOD)};
#undef TIDEMARK_CALL_METHOD
  return *all;
}

const RematMethod* find_remat_method(const std::string& name) {
  const std::vector<RematMethod>& all = remat_methods();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const RematMethod& m) { return m.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace tidemark::planner::remat
