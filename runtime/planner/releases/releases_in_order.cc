#include "runtime/planner/releases/releases_in_order.h"

#include <algorithm>
#include <utility>

#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"

namespace tidemark::planner {
namespace {

// The share (1/n) of the effort for a probe of each order.
constexpr int64_t kProbes = 8;
// Another order is probed only if it lowers the peak by this share of the excess over the
// space.
constexpr double kLower = 0.005;
// Shares of the step's time in ample space. Probes that differ by less than the first may
// differ by chance; by more than the second, they differ for certain.
constexpr double kByChance = 0.002;
constexpr double kClearly = 0.05;

class OrderTrials {
 public:
  OrderTrials(const StepTrace& trace, const PlanLimits& limits,
              const std::vector<Bytes>& foreign, int64_t* work, const std::atomic<bool>* stop)
      : trace_(trace), limits_(limits), foreign_(foreign), work_(work), stop_(stop) {}

  // An empty `order` stands for program order.
  std::optional<OrderedReleases> search(const std::vector<uint32_t>& order,
                                        std::vector<PlannedRelease> draft, int64_t effort) {
    auto found = order.empty() ? plan_releases(trace_, limits_, foreign_, std::move(draft),
                                               effort, work_, stop_)
                               : plan_releases(reordered(trace_, order), limits_, foreign_,
                                               std::move(draft), effort, work_, stop_);
    if (!found) return std::nullopt;
    if (!order.empty()) rename_operators(found->schedule, order);
    return OrderedReleases{std::move(found->schedule), order, std::move(found->releases)};
  }

  // Probes each order, then searches anew in the quickest one, and in program order too unless
  // that is clearly slower.
  std::optional<OrderedReleases> run(const std::vector<std::vector<uint32_t>>& orders,
                                     int64_t effort) {
    auto in_program_order = search({}, {}, effort / kProbes);
    std::optional<OrderedReleases> best;
    for (const std::vector<uint32_t>& order : orders) {
      auto found = search(order, {}, effort / kProbes);
      if (found && (!best || time_of(*found) < time_of(*best))) best = std::move(found);
    }
    const auto quicker_by = [&](double share) {
      return best && (!in_program_order ||
                      time_of(*best) + of_step(share) < time_of(*in_program_order));
    };
    if (stopped()) return std::nullopt;
    if (!quicker_by(kByChance)) {
      return least(search({}, {}, effort), std::move(in_program_order));
    }
    auto searched = search(best->order, {}, effort);
    if (!quicker_by(kClearly)) searched = least(search({}, {}, effort), std::move(searched));
    best = least(std::move(searched), std::move(best));
    if (stopped()) return std::nullopt;
    return best;
  }

 private:
  // A shortfall counts as copied out and in again.
  Nanos time_of(const OrderedReleases& found) const {
    const Schedule& schedule = found.schedule;
    Nanos time = time_with_moves(schedule, limits_);
    if (schedule.shortfall > Bytes(0)) {
      time += limits_.out_time(schedule.shortfall) + limits_.in_time(schedule.shortfall);
    }
    return time;
  }
  // Prefers the first if they are equal.
  std::optional<OrderedReleases> least(std::optional<OrderedReleases> a,
                                       std::optional<OrderedReleases> b) const {
    return a && (!b || time_of(*a) <= time_of(*b)) ? std::move(a) : std::move(b);
  }
  Nanos of_step(double share) const {
    return Nanos(static_cast<int64_t>(share * static_cast<double>(total_cost(trace_).count())));
  }
  bool stopped() const { return stop_ && stop_->load(std::memory_order_relaxed); }

  const StepTrace& trace_;
  const PlanLimits& limits_;
  const std::vector<Bytes>& foreign_;
  int64_t* const work_;
  const std::atomic<bool>* const stop_;
};

}  // namespace

std::vector<std::vector<uint32_t>> orders_to_try(const StepTrace& trace,
                                                 const PlanLimits& limits,
                                                 const std::vector<Bytes>& foreign,
                                                 const std::vector<uint32_t>& planned) {
  Bytes room = limits.space;
  for (const Bytes size : foreign) room -= size;
  const Bytes peak = program_order_peak(trace);
  const Bytes low = peak - std::max(share_of(peak - room, kLower), Bytes(1));
  std::vector<std::vector<uint32_t>> orders;
  for (const std::vector<uint32_t>& order : {planned, updates_first(trace)}) {
    const bool known = std::find(orders.begin(), orders.end(), order) != orders.end();
    if (order.empty() || known || program_order_peak(reordered(trace, order)) > low) continue;
    orders.push_back(order);
  }
  return orders;
}

std::optional<OrderedReleases> plan_releases_in_order(
    const StepTrace& trace, const PlanLimits& limits, const std::vector<Bytes>& foreign,
    const std::vector<std::vector<uint32_t>>& orders,
    const std::optional<OrderedReleases>& draft, int64_t effort, int64_t* work,
    const std::atomic<bool>* stop) {
  OrderTrials trials(trace, limits, foreign, work, stop);
  if (draft) return trials.search(draft->order, draft->releases, effort);
  return orders.empty() ? trials.search({}, {}, effort) : trials.run(orders, effort);
}

}  // namespace tidemark::planner
