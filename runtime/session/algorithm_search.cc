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
  std::optional<ChosenAlgorithms> best;
  double least = 0;
  auto left = static_cast<int64_t>(tables.size());
  for (const AlgorithmTable& table : tables) {
    DryRunWork part(work.left() / left--);
    ChosenAlgorithms at = with_algorithms(options, table, program);
    SessionOptions tried = at.options;
    tried.plan = false;
    const bool fits = options.policy != "none" || *options.budget >= at.need.peak;
    const auto step = fits ? predict_step(tried, program, &part) : std::nullopt;
    work.add(part);
    if (!step || step->rounds == 0) continue;
    const auto time = static_cast<double>(step->step.duration.count());
    if (best && kClearlyQuicker * time >= least) continue;
    least = time;
    best = std::move(at);
  }
  return best;
}

}  // namespace tidemark
