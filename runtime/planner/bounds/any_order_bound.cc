#include "runtime/planner/bounds/any_order_bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/planner/bounds/any_order_program.h"
#include "runtime/planner/bounds/idle_gaps.h"
#include "runtime/planner/bounds/least_needs.h"
#include "runtime/planner/bounds/linear_program.h"
#include "runtime/planner/from_trace.h"

namespace tidemark::planner {
namespace {

using Before = std::vector<std::vector<OpId>>;

// When the program drops a storage makes no difference to what depends on what. A read comes
// after all uploads before it, but does not wait until they have arrived.
Before dependences(StepTrace trace) {
  for (StepTrace::Op& op : trace.ops) op.released.clear();
  Before before = predecessors(problem_from_trace(trace));
  for (size_t k = 0; k < before.size(); ++k) {
    const StepTrace::Op& op = trace.ops[k];
    if (op.kind != StepTrace::Kind::kRead) continue;
    std::erase_if(before[k], [&](OpId p) {
      const StepTrace::Op& other = trace.ops[static_cast<size_t>(p)];
      return other.kind == StepTrace::Kind::kUpload &&
             std::none_of(op.inputs.begin(), op.inputs.end(),
                          [&](const StepTrace::Input& input) {
                            return input.storage == other.outputs.front();
                          });
    });
  }
  return before;
}

// The path of dependences along which most is live, in sum, in the program's order.
std::vector<uint32_t> fullest_path(const IdleGaps& step, const Before& before) {
  constexpr uint32_t kNone = IdleGaps::kNone;
  std::vector<double> best(step.calls());
  std::vector<uint32_t> from(step.calls(), kNone);
  for (uint32_t k = 0; k < step.calls(); ++k) {
    for (const OpId p : before[k]) {
      const auto op = static_cast<uint32_t>(p);
      if (best[op] <= best[k]) continue;
      best[k] = best[op];
      from[k] = op;
    }
    best[k] += static_cast<double>(step.live(k));
  }
  std::vector<uint32_t> path;
  const auto end = std::max_element(best.begin(), best.end());
  for (auto k = static_cast<uint32_t>(end - best.begin()); k != kNone; k = from[k]) {
    if (step.trace().ops[k].kind == StepTrace::Kind::kCall) path.push_back(k);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// When each operator may run, in intervals between operators of a path.
std::vector<Span> spans_along(const std::vector<uint32_t>& path, const Before& before) {
  const auto steps = static_cast<uint32_t>(path.size());
  std::vector<Span> spans(before.size(), {0, steps});
  std::vector<uint32_t> number(before.size(), steps);
  for (uint32_t i = 0; i < steps; ++i) number[path[i]] = i;
  for (size_t k = 0; k < before.size(); ++k) {
    for (const OpId p : before[k]) {
      spans[k].earliest = std::max(spans[k].earliest, spans[static_cast<size_t>(p)].earliest);
    }
    if (number[k] < steps) spans[k].earliest = number[k] + 1;
  }
  for (size_t k = before.size(); k-- > 0;) {
    // What must run before k runs before k's number, or as early as k.
    const uint32_t latest = std::min(number[k], spans[k].latest);
    for (const OpId p : before[k]) {
      uint32_t& its = spans[static_cast<size_t>(p)].latest;
      its = std::min(its, latest);
    }
  }
  return spans;
}

// Bytes that are in use, or surely needed later, when each operator of the path starts.
std::vector<int64_t> needed_along(const IdleGaps& step, const std::vector<uint32_t>& path,
                                  const std::vector<Span>& spans) {
  std::vector<int64_t> change(path.size() + 2, 0);
  for (uint32_t s = 0; s < step.trace().storages.size(); ++s) {
    const auto& uses = step.uses(s);
    if (uses.empty()) continue;
    const bool lives_on = step.trace().storages[s].at_start;
    uint32_t from = lives_on ? 0 : spans[uses.front()].latest, to = 0;
    for (const uint32_t u : uses) to = std::max(to, spans[u].earliest);
    if (lives_on) to = static_cast<uint32_t>(path.size());
    if (from >= to) continue;
    change[from] += step.size(s);
    change[to] -= step.size(s);
  }
  std::vector<int64_t> needed(path.size());
  int64_t now = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    now += change[i];
    const StepTrace::Op& op = step.trace().ops[path[i]];
    needed[i] = now + op.workspace.count();
    for (const uint32_t s : op.outputs) needed[i] += step.size(s);
  }
  return needed;
}

// At most `most` steps of the path at which more than `budget` is needed: the fullest of each
// stretch of these.
std::vector<uint32_t> fullest(const std::vector<int64_t>& needed, int64_t budget,
                              uint32_t most) {
  std::vector<uint32_t> over;
  for (uint32_t i = 0; i < needed.size(); ++i) {
    if (needed[i] > budget) over.push_back(i);
  }
  return fullest_of_stretches(over, needed, most);
}

// Adds the last step of the path before all writes of state, if it is the last of all: what
// they write cannot be copied before.
void add_before_updates(const IdleGaps& step, const std::vector<Span>& spans,
                        std::vector<uint32_t>& chosen) {
  uint32_t first = IdleGaps::kNone;
  for (uint32_t s = 0; s < step.trace().storages.size(); ++s) {
    const bool is_written = step.is_state(s) && !step.writes(s).empty();
    if (is_written) first = std::min(first, spans[step.writes(s).back()].earliest);
  }
  if (first != IdleGaps::kNone && first > chosen.back() + 1) chosen.push_back(first - 1);
}

// Milliseconds that compute waits in any order for an upload that something reads: meanwhile
// there are only calls that need nothing of it. `waited_for`: the operator that uploads it.
double upload_wait(const IdleGaps& step, const Before& before, double bytes_per_ms,
                   uint32_t& waited_for) {
  double most = 0;
  for (uint32_t k = 0; k < step.calls(); ++k) {
    const StepTrace::Op& op = step.trace().ops[k];
    const bool is_read =
        op.kind == StepTrace::Kind::kUpload && step.uses(op.outputs.front()).size() > 1;
    if (!is_read) continue;
    double wait = step.copied_bytes(op.outputs.front()) / bytes_per_ms;
    std::vector<bool> needs(step.calls(), false);
    needs[k] = true;
    for (uint32_t u = 0; u < step.calls(); ++u) {
      for (const OpId p : before[u]) needs[u] = needs[u] || needs[static_cast<size_t>(p)];
      if (!needs[u]) wait -= step.begins(u + 1) - step.begins(u);
    }
    if (wait <= most) continue;
    most = wait;
    waited_for = k;
  }
  return most;
}

}  // namespace

Nanos any_order_bound(const StepTrace& given, const PlanLimits& limits,
                      const TimeBoundOptions& options) {
  const StepTrace trace = with_least_needs(given);
  const Nanos calls = total_cost(trace);
  if (trace.ops.empty()) return calls;
  const IdleGaps step(trace);
  const Before before = dependences(trace);
  const std::vector<uint32_t> path = fullest_path(step, before);
  const std::vector<Span> spans = spans_along(path, before);
  const std::vector<int64_t> needed = needed_along(step, path, spans);
  uint32_t upload = 0;
  const double wait = upload_wait(step, before, limits.in_bandwidth / 1e3, upload);
  double added = wait;
  for (const uint32_t most : options.looked_at) {
    std::vector<uint32_t> chosen = fullest(needed, limits.space.count(), most);
    if (chosen.empty()) break;
    add_before_updates(step, spans, chosen);
    const auto numbers_below = [&](uint32_t interval) {
      return static_cast<uint32_t>(std::lower_bound(chosen.begin(), chosen.end(), interval) -
                                   chosen.begin());
    };
    std::vector<uint32_t> looked_at;
    looked_at.reserve(chosen.size());
    for (const uint32_t i : chosen) looked_at.push_back(path[i]);
    std::vector<Span> between;
    between.reserve(spans.size());
    for (const Span& span : spans)
      between.push_back({numbers_below(span.earliest), numbers_below(span.latest)});
    const double first = between[upload].latest == 0 ? wait : 0;
    const AnyOrderProgram program(step, limits, std::move(looked_at), std::move(between),
                                  first);
    Limits effort;
    effort.seconds = LinearProgram::kUnbounded;
    effort.nodes = options.iterations;
    effort.stop = options.stop;
    added = std::max(added, first + best_bound(program.program(), effort).bound);
  }
  // Rounding errors of the sums are far below this share. Where nothing fits, or the link is of
  // next to no use, the bound may be beyond all times.
  constexpr double kMost = 1e18;
  const double nanos = std::min((step.total() + added) * 1e6 * (1 - 1e-9), kMost);
  return std::max(calls, Nanos(static_cast<int64_t>(nanos)));
}

}  // namespace tidemark::planner
