// Ways to plan a step, by name: ours, those of others' papers, the baselines.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/plan.h"
#include "runtime/planner/planner.h"

namespace tidemark::planner {

// Each function may throw UsageError if the system lacks what the method needs, a solver for
// instance; the message says what to install.
struct Method {
  std::string name;  // as on a command line: lower case, digits and hyphens
  std::string what;  // in a line
  // An order and offsets. The plan's bound holds for every plan of the problem.
  std::function<Plan(const Problem&, const PlannerOptions&)> plan;
  // The two halves alone; empty where a method has no such half of its own.
  std::function<Order(const Problem&, const OrderOptions&)> order;
  std::function<Layout(const std::vector<Buffer>&, const LayoutOptions&)> layout;
  bool baseline = false;      // one of baselines(), or a method without one of its ingredients
  bool needs_solver = false;  // of integer programs; see solver/solver.h
};

// The default planner first.
const std::vector<Method>& methods();

// Null if there is none of that name.
const Method* find_method(const std::string& name);

}  // namespace tidemark::planner
