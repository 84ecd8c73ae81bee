#include "runtime/planner/releases/release_planner.h"

#include <algorithm>
#include <utility>

#include "runtime/planner/releases/kept_sources.h"
#include "runtime/planner/releases/next_use_draft.h"
#include "runtime/planner/releases/release_search.h"
#include "runtime/planner/releases/step_simulator.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/simulate.h"
#include "runtime/schedule/step_table.h"

namespace tidemark::planner {
namespace {

// A schedule without places may have a shortfall, which the policy releases at run time: of
// this share of the space in total; or of this share at any one time, if the link takes at most
// kMaxShortfallTime of the step to carry the total out and in again.
constexpr double kMaxShortfall = 0.1;
constexpr double kMaxShortfallTime = 0.05;

// Passes of a layout: with full effort; and the least, from an effort of kQuick on.
constexpr int64_t kPasses = 500;
constexpr int64_t kFewPasses = 50;
constexpr int64_t kCallsPerNode = 15;  // a node takes at most this many simulated calls

// Shares of the space that are left free, so that blocks find places with little moving. They
// are tried in turn until moves, and waits for them, take at most kCheap of the step.
constexpr double kSlacks[] = {0.01, 0.04, 0.08};
constexpr double kCheap = 0.004;

// Drafts by next use: their prices of copies, the price of a missing byte when drafts are
// compared, and how many times as long the other draft has to take.
constexpr double kPricesOfCopies[] = {0.01, 0.1, 0.3, 1};
constexpr double kPriceOfDrafts = 16;
constexpr double kFarLonger = 4;

class ReleasePlanner {
 public:
  ReleasePlanner(const StepTrace& trace, const PlanLimits& limits,
                 const std::vector<Bytes>& foreign, int64_t effort,
                 const std::atomic<bool>* stop)
      : trace_(with_kept_sources(trace)),
        step_(trace_),
        limits_(limits),
        foreign_(foreign),
        effort_(effort),
        stop_(stop) {}

  std::optional<ReleaseSchedule> run() {
    Bytes room = limits_.space;
    for (const Bytes size : foreign_) room -= size;
    if (room <= Bytes(0)) return std::nullopt;
    std::optional<ReleaseSchedule> best;
    std::vector<PlannedRelease> draft;  // for the next search
    for (const double slack : kSlacks) {
      Found found = search_within(room - share_of(room, slack), std::move(draft));
      draft = found.releases;
      const Schedule& unplaced = found.unplaced.schedule;
      if (stopped()) return std::nullopt;
      if (!found.possible || unplaced.shortfall > Bytes(0)) break;
      if (best && unplaced.time >= best->schedule.time) break;
      auto placed = lay_out(found.unplaced);
      if (!placed) continue;
      const Nanos price = placed->time - unplaced.time;
      const bool cheap = static_cast<double>(price.count()) <=
                         kCheap * static_cast<double>(step_.duration.count());
      if (!best || placed->time < best->schedule.time) {
        best = ReleaseSchedule{std::move(*placed), std::move(found.releases)};
      }
      if (cheap) break;
    }
    if (best) return best;
    Found found = search_within(room, std::move(draft));
    Schedule& unplaced = found.unplaced.schedule;
    if (stopped() || !found.possible || is_too_short(unplaced, room)) return std::nullopt;
    if (unplaced.shortfall == Bytes(0)) {
      if (auto placed = lay_out(found.unplaced)) {
        return ReleaseSchedule{std::move(*placed), std::move(found.releases)};
      }
    }
    return ReleaseSchedule{std::move(unplaced), std::move(found.releases)};
  }

  int64_t work() const { return work_; }

 private:
  struct Found {
    UnplacedSchedule unplaced;
    std::vector<PlannedRelease> releases;
    bool possible = true;
  };

  bool stopped() const { return stop_ && stop_->load(std::memory_order_relaxed); }
  bool is_too_short(const Schedule& schedule, Bytes room) const {
    const Bytes most = share_of(room, kMaxShortfall);
    if (schedule.shortfall <= most) return false;
    const Nanos time =
        limits_.out_time(schedule.shortfall) + limits_.in_time(schedule.shortfall);
    return schedule.peak > limits_.space + most ||
           static_cast<double>(time.count()) >
               kMaxShortfallTime * static_cast<double>(schedule.time.count());
  }

  // The drafts to begin with: one made for the moment of the peak and, if that takes far
  // longer, one by next use too. It does in steps whose weights do not fit, as its copies have
  // to span that moment. Neither is better in general: a search ends worse where few changes
  // improve the draft.
  std::vector<std::vector<PlannedRelease>> first_drafts(const PlanLimits& within) {
    std::vector<std::vector<PlannedRelease>> drafts{draft_releases(step_, within).releases};
    if (limits_.tier_space == Bytes(0)) return drafts;
    StepSimulator simulator(trace_, step_, within);
    simulator.set_shortfall_price(kPriceOfDrafts);
    const auto cost_of = [&](const std::vector<PlannedRelease>& draft) {
      const auto outcome = simulator.run(draft);
      work_ += outcome.calls;
      return outcome.cost;
    };
    double least = cost_of(drafts.front()) / kFarLonger;
    for (const double price : kPricesOfCopies) {
      if (stopped()) break;
      std::vector<PlannedRelease> draft = draft_by_next_use(step_, within, price);
      const double cost = cost_of(draft);
      if (cost >= least) continue;
      least = cost;
      drafts.resize(2);
      drafts.back() = std::move(draft);
    }
    return drafts;
  }

  // Searches without deciding where blocks lie.
  Found search_within(Bytes room, std::vector<PlannedRelease> draft) {
    PlanLimits within = limits_;
    within.space = room;
    const bool begins_anew = draft.empty();
    std::vector<std::vector<PlannedRelease>> drafts;
    if (begins_anew) {
      drafts = first_drafts(within);
    } else {
      drafts.push_back(std::move(draft));
    }
    const int64_t effort =
        begins_anew ? effort_ / static_cast<int64_t>(drafts.size()) : effort_ / 2;
    const int64_t tries = kTries * std::max<int64_t>(effort_ / kThorough, 1);
    SearchResult searched;
    for (const std::vector<PlannedRelease>& begin : drafts) {
      SearchResult found = search_releases(trace_, step_, within, begin, effort, stop_, tries);
      work_ += found.calls;
      const bool is_first = &begin == &drafts.front();
      if (is_first || found.expected.cost < searched.expected.cost) searched = std::move(found);
    }
    Found found;
    found.releases = std::move(searched.releases);
    found.possible = StepSimulator(trace_, step_, within)
                         .write(found.releases, foreign_, found.unplaced)
                         .possible;
    Schedule& schedule = found.unplaced.schedule;
    schedule.method = "releases found by a search";
    schedule.peak = schedule.peak_bound = max_resident(schedule);
    if (found.possible) prefer_initial_places(found.unplaced, trace_, limits_.space);
    return found;
  }

  std::optional<Schedule> lay_out(const UnplacedSchedule& unplaced) {
    const int64_t few = std::clamp<int64_t>(kFewPasses * effort_ / kQuick, 1, kFewPasses);
    const int64_t nodes = std::max(few, kPasses * effort_ / kThorough) *
                          static_cast<int64_t>(unplaced.schedule.blocks.size());
    work_ += nodes * kCallsPerNode;
    auto placed = place_blocks(unplaced, limits_, nodes);
    if (placed) {
      placed->time =
          simulate(trace_, limits_, *placed).time + time_between_steps(*placed, limits_);
    }
    return placed;
  }

  const StepTrace trace_;
  const StepTable step_;
  const PlanLimits& limits_;
  const std::vector<Bytes>& foreign_;
  const int64_t effort_;
  const std::atomic<bool>* stop_;
  int64_t work_ = 0;
};

}  // namespace

std::optional<ReleaseSchedule> plan_releases(const StepTrace& trace, const PlanLimits& limits,
                                             const std::vector<Bytes>& foreign, int64_t effort,
                                             int64_t* work, const std::atomic<bool>* stop) {
  ReleasePlanner planner(trace, limits, foreign, effort, stop);
  auto found = planner.run();
  if (work) *work += planner.work();
  return found;
}

}  // namespace tidemark::planner
