// Planning methods by name: ours, published ones, and baselines.
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
#include "runtime/planner/roam/roam.h"

namespace tidemark::planner {

struct MethodOptions : PlannerOptions {
  roam::Parameters roam;  // for methods that take them
};

// A function may throw UsageError if the system lacks something the method needs, such as a
// solver; the message says what to install. It throws Error if a solver has no answer within
// the deadline and the method has no other.
struct Method {
  std::string name;  // on command lines: lower case, digits, hyphens
  std::string what;  // description, one line
  // An order and offsets. The plan's bound holds for every plan of the problem.
  std::function<Plan(const Problem&, const MethodOptions&)> plan;
  // Only the order or the layout; empty if a method has no such half of its own.
  std::function<Order(const Problem&, const OrderOptions&)> order;
  std::function<Layout(const std::vector<Buffer>&, const LayoutOptions&)> layout;
  // One of baselines(), a heuristic in program order, a rule with best fit, or a method without
  // an ingredient.
  bool baseline = false;
  bool needs_solver = false;     // of integer programs; see solver/solver.h
  bool searches = false;         // by ourselves, in steps that Limits::nodes counts
  bool may_be_in_place = false;  // `plan` uses the problem's pairs
  bool takes_roam_parameters = false;
  std::string restriction;  // of its plans, that baselines do not have; a sentence, or empty
};

// The default planner first.
const std::vector<Method>& methods();

// Null if no method has that name.
const Method* find_method(const std::string& name);

}  // namespace tidemark::planner
