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
  std::optional<OrderedReleases> search(const std::vector<uint32_t>& order, int64_t effort) {
    auto found = order.empty() ? plan_releases(trace_, limits_, foreign_, effort, work_, stop_)
                               : plan_releases(reordered(trace_, order), limits_, foreign_,
                                               effort, work_, stop_);
    if (!found) return std::nullopt;
    if (!order.empty()) rename_operators(found->schedule, order);
    return OrderedReleases{std::move(found->schedule), order};
  }

  // The quickest order is worth a long search, and so is the program's unless it is clearly
  // slower.
  ReleaseProbes probe(const std::vector<std::vector<uint32_t>>& orders, int64_t effort) {
    auto in_program_order = search({}, effort / kProbes);
    std::optional<OrderedReleases> best;
    for (const std::vector<uint32_t>& order : orders) {
      best = least(std::move(best), search(order, effort / kProbes));
    }
    ReleaseProbes probes;
    if (stopped()) return probes;
    const auto quicker_by = [&](double share) {
      return best && (!in_program_order ||
                      time_of(*best) + of_step(share) < time_of(*in_program_order));
    };
    if (quicker_by(kByChance)) probes.worth_searching.push_back(best->order);
    if (!quicker_by(kClearly)) probes.worth_searching.emplace_back();
    probes.best = least(std::move(in_program_order), std::move(best));
    return probes;
  }

  std::optional<OrderedReleases> search_in(const std::vector<std::vector<uint32_t>>& orders,
                                           int64_t effort) {
    std::optional<OrderedReleases> best;
    for (const std::vector<uint32_t>& order : orders) {
      best = least(std::move(best), search(order, effort));
    }
    if (stopped()) return std::nullopt;
    return best;
  }

 private:
  Nanos time_of(const OrderedReleases& found) const {
    return time_of_releases(found.schedule, limits_);
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

Nanos time_of_releases(const Schedule& schedule, const PlanLimits& limits) {
  Nanos time = schedule.time;
  if (schedule.shortfall > Bytes(0))
    time += limits.out_time(schedule.shortfall) + limits.in_time(schedule.shortfall);
  return time;
}

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

ReleaseProbes probe_releases(const StepTrace& trace, const PlanLimits& limits,
                             const std::vector<Bytes>& foreign,
                             const std::vector<std::vector<uint32_t>>& orders, int64_t effort,
                             int64_t* work, const std::atomic<bool>* stop) {
  return OrderTrials(trace, limits, foreign, work, stop).probe(orders, effort);
}

std::optional<OrderedReleases> plan_releases_in_order(
    const StepTrace& trace, const PlanLimits& limits, const std::vector<Bytes>& foreign,
    const std::vector<std::vector<uint32_t>>& orders, int64_t effort, int64_t* work,
    const std::atomic<bool>* stop) {
  return OrderTrials(trace, limits, foreign, work, stop).search_in(orders, effort);
}

}  // namespace tidemark::planner
