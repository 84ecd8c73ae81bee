#include "runtime/session/algorithm_search.h"

#include <memory>
#include <utility>

namespace tidemark {

AlgorithmOffers find_offers(const SessionOptions& options, const Program& program) {
  AlgorithmOffers offers;
  measure_unmanaged(options, [&] {
    Session::current().collect_offers(&offers);
    return program();
  });
  return offers;
}

ChosenAlgorithms with_algorithms(SessionOptions options, AlgorithmTable table,
                                 const Program& program) {
  options.algorithms = std::make_shared<const AlgorithmTable>(std::move(table));
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.unmanaged_peak = need.peak;
  return {std::move(options), need};
}

std::optional<ChosenAlgorithms> quickest_algorithms(const SessionOptions& options,
                                                    const std::vector<AlgorithmTable>& tables,
                                                    const Program& program, DryRunWork& work) {
  // The time of a settled step; none: it does not complete.
  const auto time_of = [&](const SessionOptions& tried, int64_t most) -> std::optional<double> {
    DryRunWork part(most);
    const auto step = predict_step(tried, program, &part);
    work.add(part);
    if (!step || step->rounds == 0) return std::nullopt;
    return static_cast<double>(step->step.duration.count());
  };
  // A third of the work ranks the tables, and a third each is for the best and the first.
  const int64_t third = work.left() / 3;
  std::optional<ChosenAlgorithms> first, best;
  double least = 0;
  for (const AlgorithmTable& table : tables) {
    ChosenAlgorithms at = with_algorithms(options, table, program);
    // Without a budget, such a session gets what it needs.
    const bool too_large = options.budget && *options.budget < at.need.peak;
    if (options.policy == "none" && too_large) continue;
    SessionOptions unplanned = at.options;
    unplanned.plan = false;
    const auto time = time_of(unplanned, third / static_cast<int64_t>(tables.size()));
    if (!time) continue;
    if (!first) first = at;
    if (best && kClearlyQuicker * *time >= least) continue;
    least = *time;
    best = std::move(at);
  }
  if (!best || *best->options.algorithms == *first->options.algorithms) return best;
  const auto usual = time_of(first->options, third), other = time_of(best->options, third);
  const bool is_quicker = !usual || (other && kClearlyQuicker * *other < *usual);
  return is_quicker ? best : first;
}

}  // namespace tidemark
