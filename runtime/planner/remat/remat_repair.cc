#include "runtime/planner/remat/remat_repair.h"

#include <algorithm>

namespace tidemark::planner::remat {
namespace {

constexpr int kCandidates = 4;       // edits tried for one step of repair
constexpr int kMaxSteps = 200;       // of one repair
constexpr int kMaxConflicts = 8;     // resolved in one edit
constexpr int kMaxFutile = 4;        // steps without progress before a repair gives up
constexpr double kWorstFirst = 0.7;  // share of steps at the run most over budget
constexpr double kSwitchRun = 0.15, kSwitchUser = 0.2;  // shares of the edits
constexpr double kLeastTime = 1e-5;  // of the base time: an edit's price is at least this

}  // namespace

Repair::Repair(const Options& options, Moves& moves, Random& random)
    : options_(options), moves_(moves), random_(random), evaluator_(options) {}

Evaluation Repair::evaluate(const Sequence& sequence) {
  ++evaluations_;
  return evaluator_.evaluate(sequence);
}

bool Repair::settle(Draft& draft) {
  draft.evaluation = evaluate(draft.sequence);
  for (int k = 0; k < kMaxConflicts && draft.evaluation.conflict == Conflict::kOverwritten;
       ++k) {
    const NodeId value = draft.evaluation.value;
    const int32_t at = draft.evaluation.at;
    moves_.look_at(draft.sequence, at + 1);
    // Either the run does without overwriting, or the value is computed again.
    const bool done = random_.chance(0.5) ? moves_.switch_option(draft.sequence, at)
                                          : moves_.compute_before(
                                                draft.sequence, moves_.next_use(value), value);
    if (!done) return false;
    draft.evaluation = evaluate(draft.sequence);
  }
  if (draft.evaluation.conflict != Conflict::kNone) return false;
  if (draft.evaluation.has_idle) {
    const int32_t at = draft.evaluation.at;
    if (at >= 0) {
      int32_t idle = 0;
      for (int32_t k = 0; k < at; ++k) idle += evaluator_.is_idle(k) ? 1 : 0;
      draft.evaluation.at -= idle;
    }
    evaluator_.drop_idle(draft.sequence);
    draft.evaluation.has_idle = false;
  }
  return true;
}

// The run most over budget, or any other over budget.
int32_t Repair::overfull_run(const Draft& draft) {
  if (random_.chance(kWorstFirst)) return draft.evaluation.at;
  evaluate(draft.sequence);
  int32_t chosen = draft.evaluation.at;
  size_t count = 0;
  for (int32_t k = 0; k < static_cast<int32_t>(draft.sequence.size()); ++k) {
    if (evaluator_.choice(k).need > evaluator_.slack(k) && random_.below(++count) == 0) {
      chosen = k;
    }
  }
  return chosen;
}

// The values that are live across the run at `at`, not used by it, and used later.
void Repair::find_candidates(const Sequence& sequence, int32_t at) {
  moves_.look_at(sequence, at);
  candidates_.clear();
  next_use_.clear();
  for (const NodeId u : moves_.live()) {
    if (moves_.next_use(u) <= at || options_.bytes(u) == 0) continue;
    candidates_.push_back(u);
    next_use_.push_back(moves_.next_use(u));
  }
}

bool Repair::edit(Sequence& sequence, int32_t at, const std::vector<NodeId>& candidates,
                  const std::vector<int32_t>& next_use) {
  const bool has_options = options_.of_node(options_.node(sequence[at])).size() > 1;
  if (candidates.empty() || (has_options && random_.chance(kSwitchRun))) {
    return has_options && moves_.switch_option(sequence, at);
  }
  const size_t k = random_.below(candidates.size());
  const int32_t user = next_use[k];
  const bool user_has_options = options_.of_node(options_.node(sequence[user])).size() > 1;
  if (user_has_options && random_.chance(kSwitchUser)) {
    return moves_.switch_option(sequence, user, candidates[k]);
  }
  return moves_.compute_before(sequence, user, candidates[k]);
}

bool Repair::step(Draft& draft) {
  const int32_t at = overfull_run(draft);
  find_candidates(draft.sequence, at);
  const double least = kLeastTime * options_.problem().base_time;
  double best_score = 0;
  for (int k = 0; k < kCandidates; ++k) {
    trial_.sequence = draft.sequence;
    if (!edit(trial_.sequence, at, candidates_, next_use_) || !settle(trial_)) continue;
    const auto removed =
        static_cast<double>(draft.evaluation.overflow - trial_.evaluation.overflow);
    if (removed <= 0) continue;
    const double added = std::max(trial_.evaluation.time - draft.evaluation.time, least);
    const double score = removed / added * (0.7 + 0.6 * random_.unit());
    if (score <= best_score) continue;
    best_score = score;
    std::swap(best_, trial_);
  }
  if (best_score <= 0) return false;
  std::swap(draft, best_);
  return true;
}

bool Repair::run(Draft& draft, double limit) {
  int futile = 0;
  for (int k = 0; k < kMaxSteps && draft.evaluation.overflow > 0; ++k) {
    if (draft.evaluation.time > limit || futile > kMaxFutile) return false;
    futile = step(draft) ? 0 : futile + 1;
  }
  return draft.evaluation.feasible() && draft.evaluation.time <= limit;
}

bool Repair::relieve(Draft& draft, int32_t at) {
  find_candidates(draft.sequence, at);
  bool is_better = false;
  for (int k = 0; k < kCandidates; ++k) {
    trial_.sequence = draft.sequence;
    if (!edit(trial_.sequence, at, candidates_, next_use_) || !settle(trial_)) continue;
    if (!trial_.evaluation.feasible()) continue;
    const double least = is_better ? best_.evaluation.time : draft.evaluation.time;
    if (trial_.evaluation.time >= least) continue;
    is_better = true;
    std::swap(best_, trial_);
  }
  if (is_better) std::swap(draft, best_);
  return is_better;
}

void Repair::prune(Draft& draft, int attempts) {
  for (int k = 0; k < attempts && draft.sequence.size() > 1; ++k) {
    trial_.sequence = draft.sequence;
    moves_.remove(trial_.sequence, static_cast<int32_t>(random_.below(trial_.sequence.size())));
    if (!settle(trial_) || !trial_.evaluation.feasible()) continue;
    if (trial_.evaluation.time <= draft.evaluation.time) std::swap(draft, trial_);
  }
}

}  // namespace tidemark::planner::remat
