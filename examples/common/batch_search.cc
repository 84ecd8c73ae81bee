#include "examples/common/batch_search.h"

#include <algorithm>
#include <map>

namespace tidemark {
namespace {

// A batch that fails in the real run is followed by one smaller by this share (1/n).
constexpr int64_t kStepsDown = 32;

// The largest number in [good, most] for which `fits` holds. `fits` must hold up to some
// number, and is known to hold for `good`.
template <class Fits>
int64_t largest_that(int64_t good, int64_t most, const Fits& fits) {
  int64_t bad = std::min(std::max<int64_t>(1, 2 * good), most + (good == most));
  while (bad <= most && fits(bad)) {
    good = bad;
    bad = std::max(bad + 1, std::min(2 * bad, most));
  }
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

BatchAnswer find_largest_batch(const BatchSearchOptions& options, const BatchOracle& oracle) {
  using Kind = BatchTrial::Kind;
  BatchAnswer answer;
  std::map<int64_t, BatchNeed> needs;
  const auto note = [&](BatchTrial trial) {
    answer.trials.push_back(std::move(trial));
    if (oracle.on_trial) oracle.on_trial(answer.trials.back());
    return answer.trials.back().fits;
  };

  answer.without = largest_that(0, options.largest, [&](int64_t batch) {
    BatchTrial trial{.kind = Kind::kUnmanaged, .batch = batch};
    trial.need.unmanaged = oracle.unmanaged_peak(batch);
    trial.fits = trial.need.unmanaged <= oracle.budget(batch);
    return note(std::move(trial));
  });
  const auto dry = [&](int64_t batch) {
    BatchTrial trial{.kind = Kind::kDryRun, .batch = batch};
    trial.need = oracle.need(batch);
    trial.fits = trial.need.minimum <= oracle.budget(batch);
    if (trial.fits && options.least_speed > 0 && answer.without > 0) {
      trial.need.speed = oracle.speed(batch, answer.without);
      trial.fits = trial.need.speed >= options.least_speed;
    }
    needs[batch] = trial.need;
    return note(std::move(trial));
  };
  int64_t batch = answer.without;
  if (options.managed) batch = largest_that(answer.without, options.largest, dry);
  if (batch == 0) answer.least = (needs.contains(1) ? needs[1] : oracle.need(1)).minimum;

  for (; batch > 0; batch -= std::max<int64_t>(1, batch / kStepsDown)) {
    BatchTrial trial{.kind = Kind::kProof, .batch = batch};
    trial.proof = oracle.prove(batch);
    trial.fits = trial.proof.done;
    if (!note(trial)) continue;
    answer.batch = batch;
    answer.proof = trial.proof;
    answer.need = needs.contains(batch) ? needs[batch] : oracle.need(batch);
    break;
  }
  return answer;
}

}  // namespace tidemark
