#include "runtime/planner/remat/remat_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/planner/remat/remat_ruin.h"
#include "runtime/planner/remat/remat_start.h"

namespace tidemark::planner::remat {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Two times that differ by less, relative to the base time, are the same.
constexpr double kSame = 1e-9;
constexpr double kMet = 2e-6;  // a bound is met by less above it, as bounds are rounded down
constexpr double kHot = 2e-3, kCold = 1e-5;  // temperatures, relative to the base time
constexpr int kTrials = 6;                   // cycles of cooling from a start each, at most
constexpr double kTrialShare = 0.5;          // of the limits, for them
constexpr int kCycles = 2;                   // from the best schedule
constexpr int kMaxFutile = 1000;             // rounds before a return to the best of the cycle
constexpr int kPrunes = 2;                   // removals tried after each repair
constexpr double kRelieve = 0.2;             // share of rounds that relieve a slow run
constexpr double kStartShare = 0.5;  // of the time, for greedy starts once one is feasible

class Annealing {
 public:
  Annealing(const Options& options, const SearchOptions& search)
      : options_(options),
        search_(search),
        limits_(search.limits),
        watch_(search.limits),
        random_(search.limits.seed),
        moves_(options, random_),
        repair_(options, moves_, random_),
        ruin_(options, moves_, random_),
        base_(options.problem().base_time) {
    for (OptionId o = 0; o < options.size(); ++o) {
      has_choices_ |=
          options.choices(o, false).size() > 1 || options.choices(o, true).size() > 1;
    }
    for (NodeId i = 0; i < options.problem().size(); ++i) {
      has_options_ |= options.of_node(i).size() > 1;
    }
  }

  SearchResult run() {
    start();
    if (best_.sequence.empty()) recover();
    sort_starts();
    if (!best_.sequence.empty()) anneal();
    SearchResult result;
    result.sequence = best_.sequence;
    result.time = best_.evaluation.time;
    if (result.found()) result.starts.push_back(best_.sequence);
    for (const Draft& draft : feasible_) result.starts.push_back(draft.sequence);
    result.evaluations = evaluations();
    result.seconds = watch_.seconds();
    limits_.count(result.evaluations);
    return result;
  }

 private:
  bool is_over() const {
    return evaluations() >= limits_.nodes || watch_.expired() ||
           (!best_.sequence.empty() &&
            (search_.first_only || best_.evaluation.time <= search_.bound * (1 + kMet)));
  }
  int64_t evaluations() const { return repair_.evaluations() + simulated_; }
  bool is_counted() const { return limits_.nodes < std::numeric_limits<int64_t>::max(); }
  // From 0 to 1. By evaluations alone where they are limited: the clock differs by machine.
  double progress() const {
    if (is_counted()) {
      return static_cast<double>(evaluations()) / static_cast<double>(limits_.nodes);
    }
    return watch_.seconds() / (watch_.seconds() + std::max(watch_.left(), 1e-9));
  }
  bool is_faster(const Draft& draft, const Draft& other) const {
    return draft.evaluation.time < other.evaluation.time - kSame * base_;
  }

  void offer(const Draft& draft) {
    if (!draft.evaluation.feasible()) return;
    if (best_.sequence.empty() || is_faster(draft, best_)) best_ = draft;
  }

  // REQUIRES: is_over() is false.
  void consider(std::optional<Sequence> sequence) {
    if (!sequence) return;
    Draft draft;
    draft.sequence = std::move(*sequence);
    if (!repair_.settle(draft)) return;
    if (draft.evaluation.overflow > 0) {
      starts_.push_back(draft);
      repair_.run(draft, kInfinite);
    }
    if (!draft.evaluation.feasible()) return;
    offer(draft);
    feasible_.push_back(draft);
  }

  void start() {
    for (const Sequence& sequence : search_.starts) consider(sequence);
    if (!search_.starts.empty()) return;
    for (const FirstOrder order : {FirstOrder::kAsListed, FirstOrder::kEager}) {
      if (!is_over()) consider(keep_all(options_, order, Preference::kFastest));
      if (has_options_ && !is_over())
        consider(keep_all(options_, order, Preference::kSmallest));
    }
    for (const StartWeights& weights : all_weights()) {
      const bool is_late = !best_.sequence.empty() && !is_counted() && progress() > kStartShare;
      if (is_over() || is_late) return;
      if (weights.share > 1 && !best_.sequence.empty()) return;
      std::optional<Sequence> start = simulate_start(options_, weights);
      simulated_ += start ? static_cast<int64_t>(start->size()) : options_.problem().size();
      consider(std::move(start));
    }
  }

  // The most promising first.
  std::vector<StartWeights> all_weights() const {
    std::vector<StartWeights> all;
    const auto add = [&](double size, double reach, double share) {
      for (const FirstOrder order : {FirstOrder::kEager, FirstOrder::kAsListed}) {
        if (has_options_) all.push_back({size, reach, order, Preference::kSmallest, share});
        all.push_back({size, reach, order, Preference::kFastest, share});
      }
    };
    for (const double reach : {0.5, 1.0, 0.0, 2.0}) {
      for (const double size : {0.6, 1.0, 0.3, 1.4}) add(size, reach, 1);
    }
    for (const double share : {1.05, 1.1, 1.2, 1.4}) add(0.6, 0.5, share);
    return all;
  }

  // No start is feasible: repair them again and again, with other random choices.
  void recover() {
    while (!starts_.empty() && best_.sequence.empty() && !is_over()) {
      Draft draft = starts_[random_.below(starts_.size())];
      repair_.run(draft, kInfinite);
      offer(draft);
      if (!best_.sequence.empty()) feasible_.push_back(best_);
    }
  }

  // The fastest first, each time once.
  void sort_starts() {
    const auto is_before = [](const Draft& a, const Draft& b) {
      return a.evaluation.time < b.evaluation.time;
    };
    std::stable_sort(feasible_.begin(), feasible_.end(), is_before);
    const auto is_same = [&](const Draft& a, const Draft& b) { return !is_faster(a, b); };
    feasible_.erase(std::unique(feasible_.begin(), feasible_.end(), is_same), feasible_.end());
    if (feasible_.size() > kTrials) feasible_.resize(kTrials);
  }

  void anneal() {
    const auto trials = static_cast<double>(feasible_.size());
    const double begin = progress();
    for (int cycle = -1; !is_over();) {
      const double done = (progress() - begin) / (1 - begin);
      const double phase = done < kTrialShare
                               ? done / kTrialShare * trials
                               : trials + (done - kTrialShare) / (1 - kTrialShare) * kCycles;
      if (static_cast<int>(phase) != cycle) {
        cycle = static_cast<int>(phase);
        current_ = phase < trials ? feasible_[cycle] : best_;
        cycle_best_ = current_;
        futile_ = 0;
      }
      temperature_ = base_ * kHot * std::pow(kCold / kHot, phase - cycle);
      round();
      if (++futile_ > kMaxFutile) {
        futile_ = 0;
        current_ = cycle_best_;
      }
    }
  }

  void round() {
    repair_.start_from(current_);
    Draft draft = current_;
    if (has_choices_ && random_.chance(kRelieve)) {
      relieve_one(draft);
    } else {
      if (!ruin_.apply(draft.sequence) || !repair_.settle(draft)) return;
      // Accept what is slower by this at most; decided now so that hopeless repairs end early.
      const double limit =
          current_.evaluation.time - temperature_ * std::log(1 - random_.unit());
      if (!repair_.run(draft, limit + 10 * temperature_)) return;
      repair_.prune(draft, kPrunes);
      if (draft.evaluation.time > limit) return;
    }
    current_ = std::move(draft);
    offer(current_);
    if (!is_faster(current_, cycle_best_)) return;
    cycle_best_ = current_;
    futile_ = 0;
  }

  // Tries edits at a run of current_ that is slower than it would be with more memory.
  void relieve_one(Draft& draft) {
    std::vector<int32_t> slow;
    std::vector<double> loss;
    double sum = 0;
    for (int32_t k = 0; k < static_cast<int32_t>(draft.sequence.size()); ++k) {
      const Choice& choice = *repair_.run(k).choice;
      // Which of the two lists the choice is from does not matter for this.
      const double fastest =
          std::min(fastest_of(draft.sequence[k], false), fastest_of(draft.sequence[k], true));
      if (choice.time <= fastest) continue;
      slow.push_back(k);
      loss.push_back(choice.time - fastest);
      sum += loss.back();
    }
    if (slow.empty()) return;
    double ticket = random_.unit() * sum;
    size_t chosen = 0;
    while (chosen + 1 < slow.size() && ticket > loss[chosen]) ticket -= loss[chosen++];
    repair_.relieve(draft, slow[chosen]);
  }
  double fastest_of(OptionId o, bool again) const {
    const auto choices = options_.choices(o, again);
    return choices.empty() ? kInfinite : choices.back().time;
  }

  const Options& options_;
  const SearchOptions& search_;
  Limits limits_;
  Stopwatch watch_;
  Random random_;
  Moves moves_;
  Repair repair_;
  Ruin ruin_;
  double base_;
  bool has_choices_ = false, has_options_ = false;
  Draft current_, best_, cycle_best_;
  std::vector<Draft> starts_;    // over budget
  std::vector<Draft> feasible_;  // starts within the budget
  int64_t simulated_ = 0;        // runs of starts; each counts as an evaluation
  double temperature_ = 0;
  int futile_ = 0;
};

}  // namespace

SearchResult search_schedule(const Options& options, const SearchOptions& search) {
  return Annealing(options, search).run();
}

}  // namespace tidemark::planner::remat
