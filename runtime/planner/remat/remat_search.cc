#include "runtime/planner/remat/remat_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/planner/remat/remat_start.h"

namespace tidemark::planner::remat {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Two times that differ by less, relative to the base time, are the same.
constexpr double kSame = 1e-9;
constexpr double kHot = 5e-5, kCold = 1e-6;  // temperatures, relative to the base time
constexpr int kCycles = 2;                   // of cooling, within the limits
constexpr int kMaxFutile = 4000;             // rounds before a return to the best
constexpr int kPrunes = 2;                   // removals tried after each repair
constexpr int32_t kReach = 60;               // positions that a run moves by

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
    current_ = best_;
    if (!best_.sequence.empty()) anneal();
    SearchResult result;
    result.sequence = best_.sequence;
    result.time = best_.evaluation.time;
    result.evaluations = repair_.evaluations();
    result.seconds = watch_.seconds();
    limits_.count(result.evaluations);
    return result;
  }

 private:
  bool is_over() const {
    return repair_.evaluations() >= limits_.nodes || watch_.expired() ||
           (!best_.sequence.empty() &&
            (search_.first_only || best_.evaluation.time <= search_.bound + kSame * base_));
  }
  // From 0 to 1. By evaluations alone where they are limited: the clock differs by machine.
  double progress() const {
    if (limits_.nodes < std::numeric_limits<int64_t>::max()) {
      return static_cast<double>(repair_.evaluations()) / static_cast<double>(limits_.nodes);
    }
    return watch_.seconds() / (watch_.seconds() + std::max(watch_.left(), 1e-9));
  }

  void offer(const Draft& draft) {
    if (!draft.evaluation.feasible()) return;
    if (best_.sequence.empty() ||
        draft.evaluation.time < best_.evaluation.time - kSame * base_) {
      best_ = draft;
      futile_ = 0;
    }
  }

  void start() {
    const auto consider = [&](std::optional<Sequence> sequence) {
      if (!sequence || is_over()) return;
      Draft draft;
      draft.sequence = std::move(*sequence);
      if (!repair_.settle(draft)) return;
      starts_.push_back(draft);
      if (draft.evaluation.overflow > 0) repair_.run(draft, kInfinite);
      offer(draft);
    };
    if (!search_.start.empty()) return consider(search_.start);
    for (const FirstOrder order : {FirstOrder::kAsListed, FirstOrder::kEager}) {
      consider(keep_all(options_, order, Preference::kFastest));
      if (has_options_) consider(keep_all(options_, order, Preference::kSmallest));
    }
    for (const double size : {0.3, 0.6, 1.0, 1.4}) {
      for (const double reach : {0.0, 0.5, 1.0, 2.0}) {
        for (const FirstOrder order : {FirstOrder::kAsListed, FirstOrder::kEager}) {
          StartWeights weights{size, reach, size < 0.5 ? 1.0 : 2.0, order};
          consider(simulate_start(options_, weights));
          weights.preference = Preference::kSmallest;
          if (has_options_) consider(simulate_start(options_, weights));
        }
      }
    }
  }

  // No start is feasible: repair them again and again, with other random choices.
  void recover() {
    while (!starts_.empty() && best_.sequence.empty() && !is_over()) {
      Draft draft = starts_[random_.below(starts_.size())];
      repair_.run(draft, kInfinite);
      offer(draft);
    }
  }

  void anneal() {
    while (!is_over()) {
      const double phase = progress() * kCycles;
      const double heat = 1 - (phase - std::floor(phase));
      temperature_ = base_ * kCold * std::pow(kHot / kCold, heat);
      round();
      if (++futile_ > kMaxFutile) {
        futile_ = 0;
        current_ = best_;
      }
    }
  }

  void round() {
    repair_.start_from(current_);
    Draft draft = current_;
    const bool relieves = has_choices_ && random_.chance(0.2);
    if (relieves) {
      relieve_one(draft);
    } else {
      if (!ruin(draft.sequence) || !repair_.settle(draft)) return;
      // Accept what is slower by this at most; decided now so that hopeless repairs end early.
      const double limit =
          current_.evaluation.time - temperature_ * std::log(1 - random_.unit());
      if (!repair_.run(draft, limit + 10 * temperature_)) return;
      repair_.prune(draft, kPrunes);
      if (draft.evaluation.time > limit) return;
    }
    current_ = std::move(draft);
    offer(current_);
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

  bool ruin(Sequence& sequence) {
    const double kind = random_.unit();
    if (has_options_ && kind < 0.15) return moves_.switch_option(sequence, any_run(sequence));
    if (kind < 0.5) return remove_repeats(sequence);
    if (kind < 0.8) {
      const size_t count = 1 + random_.below(3);
      for (size_t k = 0; k < count; ++k) moves_.shift(sequence, any_run(sequence), kReach);
      return true;
    }
    const int32_t at = any_run(sequence);
    moves_.look_at(sequence, at);
    if (moves_.live().empty()) return false;
    const NodeId value = moves_.live()[random_.below(moves_.live().size())];
    return moves_.compute_before(sequence, moves_.next_use(value), value);
  }

  int32_t any_run(const Sequence& sequence) {
    return static_cast<int32_t>(random_.below(sequence.size()));
  }

  // Removes some later runs of nodes, neighbours or scattered.
  bool remove_repeats(Sequence& sequence) {
    repeats_.clear();
    ran_.assign(options_.problem().nodes.size(), 0);
    for (int32_t k = 0; k < static_cast<int32_t>(sequence.size()); ++k) {
      uint8_t& ran = ran_[options_.node(sequence[k])];
      if (ran != 0 && !moves_.is_rider(sequence, k)) repeats_.push_back(k);
      ran = 1;
    }
    if (repeats_.empty()) return false;
    const size_t count = std::min(repeats_.size(), 1 + random_.below(8));
    if (random_.chance(0.5)) {
      const size_t from = random_.below(repeats_.size() - count + 1);
      for (size_t k = from + count; k-- > from;) moves_.remove(sequence, repeats_[k]);
      return true;
    }
    for (size_t k = 0; k < count; ++k) {
      std::swap(repeats_[k], repeats_[k + random_.below(repeats_.size() - k)]);
    }
    std::sort(repeats_.begin(), repeats_.begin() + static_cast<int64_t>(count));
    for (size_t k = count; k-- > 0;) moves_.remove(sequence, repeats_[k]);
    return true;
  }

  const Options& options_;
  const SearchOptions& search_;
  Limits limits_;
  Stopwatch watch_;
  Random random_;
  Moves moves_;
  Repair repair_;
  double base_;
  bool has_choices_ = false, has_options_ = false;
  Draft current_, best_;
  std::vector<Draft> starts_;
  double temperature_ = 0;
  int futile_ = 0;
  std::vector<int32_t> repeats_;
  std::vector<uint8_t> ran_;
};

}  // namespace

SearchResult search_schedule(const Options& options, const SearchOptions& search) {
  return Annealing(options, search).run();
}

}  // namespace tidemark::planner::remat
