#include "runtime/planner/baselines/baselines.h"

#include <utility>

#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/streams.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/order/order.h"

namespace tidemark::planner {
namespace {

// The method, which says its name and how long it took.
template <class Method>
std::function<Plan(const Problem&)> timed(const char* name, Method method) {
  return [=](const Problem& problem) {
    const Stopwatch watch(0);
    Plan plan = method(problem);
    plan.method = name;
    plan.seconds = watch.seconds();
    return plan;
  };
}

Baseline note(const char* name, bool in_place, bool sharing) {
  Baseline baseline;
  baseline.name = name;
  baseline.in_place = in_place;
  baseline.quick = true;
  baseline.plan = timed(name, [=](const Problem& problem) {
    MemoryNoteOptions options;
    options.in_place = in_place;
    options.sharing = sharing;
    return memory_note(problem, options);
  });
  return baseline;
}

Baseline laid_out(const char* name, bool reorders, bool quick, const Place& place) {
  Baseline baseline;
  baseline.name = name;
  baseline.reorders = reorders;
  baseline.quick = quick;
  baseline.plan = timed(name, [=](const Problem& problem) {
    return assemble(problem, reorders ? lescea(problem) : program_order(problem), false, place);
  });
  return baseline;
}

Baseline only_compared(Baseline baseline) {
  baseline.only_compared = true;
  return baseline;
}

Baseline apart(const char* name, StreamSharing sharing) {
  Baseline baseline;
  baseline.name = name;
  baseline.in_place = true;
  baseline.freedom = Freedom::kOperators;
  baseline.plan = timed(name, [=](const Problem& problem) {
    StreamOptions options;
    options.freedom = Freedom::kOperators;
    options.sharing = sharing;
    return stream_safe(problem, options);
  });
  return baseline;
}

Baseline pytorch() {
  Baseline baseline;
  baseline.name = "PyTorch";
  baseline.quick = true;
  baseline.only_compared = true;  // it reserves whole segments
  baseline.plan =
      timed("PyTorch", [](const Problem& problem) { return pytorch_plan(problem); });
  return baseline;
}

}  // namespace

const std::vector<Baseline>& baselines() {
  static const auto* const all = new std::vector<Baseline>{
      note("no sharing", false, false),
      note("in place", true, false),
      note("sharing", false, true),
      note("in place and sharing", true, true),
      laid_out("program order, best fit", false, true, best_fit_online),
      laid_out("program order, greedy by size", false, false, first_fit<FitOrder::kSize>),
      laid_out("program order, LLFB", false, false, lowest_longest),
      laid_out("LESCEA, best fit", true, true, best_fit_online),
      laid_out("LESCEA, greedy by size", true, false, first_fit<FitOrder::kSize>),
      only_compared(laid_out("LESCEA, LLFB", true, false, lowest_longest)),
      apart("any streams, paths", StreamSharing::kPaths),
      apart("any streams, ancestors", StreamSharing::kAncestors),
      apart("any streams, greedy by size", StreamSharing::kOffsets),
      pytorch(),
  };
  return *all;
}

}  // namespace tidemark::planner
