#include "runtime/planner/remat/remat_repair.h"

#include <algorithm>

namespace tidemark::planner::remat {
namespace {

// Edits tried for one step of repair. They cost little more than the evaluation in full of the
// sequence that they start from.
constexpr int kCandidates = 8;
constexpr int kMaxSteps = 200;       // of one repair
constexpr int kMaxConflicts = 8;     // resolved in one edit
constexpr int kMaxFutile = 4;        // steps without progress before a repair gives up
constexpr double kWorstFirst = 0.7;  // share of steps at the run most over budget
constexpr double kSwitchRun = 0.15, kSwitchUser = 0.2;  // shares of the edits
constexpr double kLeastTime = 1e-5;  // of the base time: an edit's price is at least this

}  // namespace

Repair::Repair(const Options& options, Moves& moves, Random& random)
    : options_(options), moves_(moves), random_(random), start_(options), now_(options) {}

void Repair::start_from(const Draft& draft) {
  ++calls_;
  if (!start_.is_anchor(draft.sequence)) start_.anchor(draft.sequence);
  moves_.use(&start_);
}
void Repair::work_on(const Draft& draft) {
  ++calls_;
  if (!now_.is_anchor(draft.sequence)) now_.anchor(draft.sequence);
  moves_.use(&now_);
}

bool Repair::settle(Draft& draft, EditEvaluator& evaluator) {
  draft.evaluation = evaluator.evaluate(draft.sequence);
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
    draft.evaluation = evaluator.evaluate(draft.sequence);
  }
  if (draft.evaluation.conflict != Conflict::kNone) return false;
  if (draft.evaluation.has_idle) evaluator.drop_idle(draft.sequence);
  draft.evaluation.has_idle = false;
  return true;
}

// The run most over budget, or any other over budget.
int32_t Repair::overfull_run(const Draft& draft) {
  const bool wants_worst = random_.chance(kWorstFirst);
  int32_t chosen = -1;
  int64_t most = 0;
  size_t count = 0;
  for (int32_t k = 0; k < static_cast<int32_t>(draft.sequence.size()); ++k) {
    const int64_t over = now_.run(k).over;
    if (over == 0) continue;
    if (wants_worst ? over > most : random_.below(++count) == 0) {
      most = over;
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

// An edit at the run at `at` as trial_. False if there is none, or a conflict remains.
bool Repair::attempt(const Draft& draft, int32_t at) {
  trial_.sequence = draft.sequence;
  return edit(trial_.sequence, at, candidates_, next_use_) && settle(trial_, now_);
}

bool Repair::step(Draft& draft) {
  work_on(draft);
  const int32_t at = overfull_run(draft);
  find_candidates(draft.sequence, at);
  const double least = kLeastTime * options_.problem().base_time;
  double best_score = 0;
  for (int k = 0; k < kCandidates; ++k) {
    if (!attempt(draft, at)) continue;
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
  work_on(draft);
  find_candidates(draft.sequence, at);
  bool is_better = false;
  for (int k = 0; k < kCandidates; ++k) {
    if (!attempt(draft, at)) continue;
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
    moves_.attach_left_riders(trial_.sequence);
    if (!settle(trial_, now_) || !trial_.evaluation.feasible()) continue;
    if (trial_.evaluation.time <= draft.evaluation.time) std::swap(draft, trial_);
  }
}

}  // namespace tidemark::planner::remat
