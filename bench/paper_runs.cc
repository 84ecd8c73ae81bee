#include "bench/paper_runs.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"

namespace tidemark {
namespace {

constexpr int64_t kFewestSteps = 5;
constexpr double kSettled = 1e-3;  // the last three steps differ by less
constexpr size_t kManyEvents = 1 << 18;
// A step that recomputes each operator this often is stopped, whatever its clock says.
constexpr int64_t kMaxRepeats = 100;

SessionOptions base_options() {
  SessionOptions options;
  options.device = kPaperDevice;
  options.threads = 1;
  options.seed = 1;
  options.event_capacity = 1024;
  return options;
}

double median_of_last_three(const std::vector<double>& ms) {
  std::vector<double> last(ms.end() - std::min<std::ptrdiff_t>(3, std::ssize(ms)), ms.end());
  std::sort(last.begin(), last.end());
  return last[last.size() / 2];
}

// Whether the last steps took equally long. Tide keeps trying plans for longer than other
// policies do, so it never counts as settled.
bool settled(const std::vector<double>& ms, const PaperPolicy& policy) {
  if (policy.name == "tide" || std::ssize(ms) < kFewestSteps) return false;
  const auto [least, most] = std::minmax_element(ms.end() - 3, ms.end());
  return *most - *least <= kSettled * *least;
}

}  // namespace

PaperNeed measure_need(const PaperModel& model, bool with_minimum) {
  const Program program = program_of(model);
  SessionOptions options = base_options();
  PaperNeed need;
  need.unmanaged = measure_unmanaged(options, program);
  options.host_limit = 2 * need.unmanaged.peak;
  if (with_minimum) need.minimum = find_minimum_budget(options, program, need.unmanaged).budget;
  // The session of measure_unmanaged(), for more steps.
  need.ms = run_paper(model, need,
                      {.policy = {"none"},
                       .budget = align_up(Bytes(need.unmanaged.peak.count())),
                       .steps = kFewestSteps,
                       .give_up = 1e9})
                .ms;
  return need;
}

Bytes minimum_without_tiers(const PaperModel& model, const PaperNeed& need) {
  return find_minimum_budget(base_options(), program_of(model), need.unmanaged).budget;
}

PaperPolicy parse_policy(const std::string& text) {
  PaperPolicy policy{text};
  const auto cut = [&](char mark) {
    const size_t at = policy.name.find(mark);
    if (at == std::string::npos) return std::string();
    std::string rest = policy.name.substr(at + 1);
    policy.name.resize(at);
    return rest;
  };
  policy.repairs = cut('/');
  policy.filter = cut(':');
  return policy;
}

PaperResult run_paper(const PaperModel& model, const PaperNeed& need, const PaperRun& run) {
  SessionOptions options = base_options();
  options.policy = run.policy.name;
  options.delta.filter = run.policy.filter;
  options.delta.repairs = run.policy.repairs;
  options.delta.early_start = run.early_start;
  options.delta.prefetch = run.prefetch;
  options.residency.compact = run.compact;
  options.budget = run.budget;
  if (run.soft) {
    options.budget = 2 * need.unmanaged.peak;
    options.delta.early_start =
        static_cast<double>(run.budget.count()) / static_cast<double>(options.budget->count());
  } else {
    options.unmanaged_peak = need.unmanaged.peak;
  }
  options.host_limit = run.policy.name == "none" ? Bytes(0) : run.host_limit;
  options.residency.overlap = run.overlap;
  if (run.keep_events) options.event_capacity = kManyEvents;

  PaperResult result;
  std::vector<double> ms;
  try {
    Session session(options);
    const std::unique_ptr<PaperNetwork> network = make_network(model);
    const double most_ms = need.ms > 0 ? run.give_up * need.ms : 1e18;
    Nanos began{0};
    const CallListener listener(session, [&](const Recipe&) {
      const Residency& residency = session.residency();
      const int64_t repeats = residency.stats().recomputes;
      const bool late = to_seconds(residency.view().clock() - began) * 1e3 > most_ms;
      const bool often = repeats > kMaxRepeats * need.unmanaged.operators;
      if (late || often) session.residency().effort().stop();
    });
    for (int64_t step = 0; step < run.steps; ++step) {
      began = session.residency().view().clock();
      result.last = session.step([&] { network->step(); });
      ms.push_back(to_seconds(result.last.duration) * 1e3);
      result.steps = step + 1;
      if (ms.back() > most_ms) throw Effort::Stopped();
      if (settled(ms, run.policy)) break;
    }
    result.ms = median_of_last_three(ms);
    result.peak = session.peak_reserved();
    result.peak_live = session.peak_live().total();
    if (session.host() != nullptr) result.host_peak = session.host()->peak();
    if (run.keep_events) {
      session.events().for_each([&](const EventRecord& event) {
        if (event.kind == EventKind::kStepBegin) result.events.clear();
        result.events.push_back(event);
      });
    }
  } catch (const Effort::Stopped&) {
    result.gave_up = true;
  } catch (const OutOfMemory& error) {
    result.failure = error.what();
    result.failure = result.failure.substr(0, result.failure.find('\n'));
  }
  return result;
}

}  // namespace tidemark
