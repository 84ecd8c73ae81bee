#include "runtime/planner/releases/release_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include "runtime/planner/releases/release_choices.h"

namespace tidemark::planner {
namespace {

// Items smaller than this share (1/n) of the space are not worth a decision ...
constexpr int64_t kSmallestRelease = 2048;
// ... unless the rest does not fit without them.
constexpr int64_t kVerySmallest = 1 << 16;

// How much earlier than the link requires, as a factor, copies may begin to come back.
constexpr double kLeads[] = {1, 3};

// Prices of a missing byte, as multiples of its time on the link. Low prices find good plans by
// way of plans that do not fit. The highest one forces a plan that fits at any cost:
// recomputing what the tier cannot hold may be far more expensive than copying.
constexpr double kHighestPrice = 65536;
constexpr double kShortfallPrices[] = {1, 4, 16, 256, kHighestPrice};
// If no plan fits even so, annealing may find one at this price, which tolerates a shortfall.
constexpr double kPriceOnTheWay = 16;

// Pairs tried per gap, none of them better, before the descent ends.
constexpr size_t kPairs = 100;

// Annealing: in how many rounds, each from the best plan so far; how much worse a change may
// be, as a share of the step, at a round's start and at its end; how many changes are of many
// gaps at once; and by how much a step must exceed its time in ample space to be worth it.
constexpr int64_t kRounds = 4;
constexpr double kHot = 1e-3;
constexpr double kCold = 1e-5;
constexpr double kShareOfLayers = 0.3;
constexpr double kWorthIt = 0.005;

class Search {
 public:
  Search(const StepTrace& trace, const StepTable& step, const PlanLimits& limits,
         const std::vector<PlannedRelease>& draft, Bytes smallest,
         const std::atomic<bool>* stop, int64_t tries)
      : step_(step),
        limits_(limits),
        simulator_(trace, step, limits),
        choices_(step, limits, draft, smallest),
        stop_(stop),
        tries_(tries) {
    double sum = 0;
    for (size_t i = 0; i < choices_.size(); ++i) {
      up_to_.push_back(sum += std::sqrt(static_cast<double>(choices_.bytes(i).count())));
    }
  }

  SearchResult run(int64_t effort) {
    fit_tier();
    const ReleaseChoices draft = choices_;
    const int64_t part = effort / 4;
    go_down(part);
    int64_t left = effort - part;
    if (outcome_.shortfall > Bytes(0)) {
      set_price(kPriceOnTheWay);
      least_ = cost(kAny);
      anneal(part);
      left -= part;
    }
    // By way of plans with a shortfall, the search may have ended worse than it began.
    set_price(kHighestPrice);
    least_ = cost(kAny);
    ReleaseChoices best = std::exchange(choices_, draft);
    if (cost(kAny) >= least_) choices_ = std::move(best);
    least_ = cost(kAny);
    if (outcome_.shortfall == Bytes(0)) anneal(left);
    return {plan_, outcome_, calls_};
  }

 private:
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  // A draft made for a larger tier may copy more than this tier holds.
  void fit_tier() {
    for (size_t i = 0; i < choices_.size() && choices_.copied() > limits_.tier_space; ++i) {
      if (!choices_.released(i)) continue;
      if (choices_.may_evict(i)) {
        choices_.evict(i);
      } else {
        choices_.keep(i);
      }
    }
    choices_.settle();
  }

  // The cost of the current plan, or more than `enough`. REQUIRES: the tier holds the first
  // plan.
  double cost(double enough) {
    if (choices_.copied() > limits_.tier_space) return kAny;
    choices_.write(plan_);
    outcome_ = simulator_.run(plan_, enough);
    effort_ -= outcome_.calls;
    if (stop_ && stop_->load(std::memory_order_relaxed)) effort_ = 0;  // skip the rest
    calls_ += outcome_.calls;
    return outcome_.cost;
  }

  // REQUIRES: cost() was of this plan.
  void settle() {
    choices_.settle();
    simulator_.settle();
  }

  // Sets the price of a shortfall. Items that came back early are sent away again only at the
  // highest price: below, that would hide plans through which the way to a better one leads.
  void set_price(double times) {
    simulator_.set_shortfall_price(times);
    simulator_.set_sends_back(times == kHighestPrice);
  }

  // --- downhill ---

  void go_down(int64_t effort) {
    const int64_t part = effort / static_cast<int64_t>(std::size(kShortfallPrices) + 1);
    for (size_t k = 0; k < std::size(kShortfallPrices); ++k) {
      effort_ = (k == 0 ? 2 : 1) * part;
      set_price(kShortfallPrices[k]);
      least_ = cost(kAny);
      is_short_ = outcome_.shortfall > Bytes(0);
      bool better = choices_.size() > 0;
      while (better && effort_ > 0) {
        better = change_each();
        better = change_pairs() || better;
      }
      cost(kAny);
      if (outcome_.shortfall == Bytes(0)) break;
    }
  }
  // Keeps the change if it lowers the cost.
  bool improves() {
    if (!choices_.changed()) return false;
    const double now = cost(least_);
    if (now >= least_) {
      choices_.take_back();
      return false;
    }
    settle();
    least_ = now;
    is_short_ = outcome_.shortfall > Bytes(0);
    return true;
  }
  // Without a shortfall, another release helps only in place of an existing one.
  bool change(size_t i) {
    if (!choices_.released(i) && !is_short_) return false;
    choices_.keep(i);
    bool better = improves();
    if (choices_.may_evict(i)) {
      choices_.evict(i);
      better = improves() || better;
    }
    if (!choices_.may_offload(i)) return better;
    for (const double lead : kLeads) {
      choices_.offload(i, lead);
      better = improves() || better;
      if (!choices_.may_leave_before_end(i)) continue;
      choices_.offload(i, lead, /*before_end=*/true);
      better = improves() || better;
    }
    return better;
  }
  bool change_each() {
    bool better = false;
    for (bool again = true; again && effort_ > 0; better = better || again) {
      again = false;
      for (size_t i = 0; i < choices_.size() && effort_ > 0; ++i) again = change(i) || again;
    }
    return better;
  }
  // Changes, at random, a gap that is released and one that overlaps it.
  bool change_pairs() {
    bool better = false;
    for (size_t tried = 0; tried < kPairs * choices_.size() && effort_ > 0; ++tried) {
      const size_t i = any(), k = any();
      if (!choices_.released(i) || i == k || !choices_.meet(i, k)) continue;
      change_at_random(i);
      change_at_random(k);
      if (!improves()) continue;
      better = true;
      tried = 0;
    }
    return better;
  }

  // --- annealing ---

  void anneal(int64_t effort) {
    for (int64_t k = 0; k < kRounds; ++k) {
      anneal_once(effort / kRounds);
      cost(kAny);
    }
  }
  void anneal_once(int64_t effort) {
    const Nanos longer = outcome_.time - step_.duration;
    const auto duration = static_cast<double>(step_.duration.count());
    const bool worth_it = static_cast<double>(longer.count()) >= kWorthIt * duration;
    if (!worth_it || effort <= 0) return;
    effort_ = effort;
    const int64_t tries = tries_ * static_cast<int64_t>(choices_.size());
    ReleaseChoices best = choices_;
    double now = least_;
    for (int64_t tried = 0; tried < tries && effort_ > 0; ++tried) {
      const double done =
          std::max(1 - static_cast<double>(effort_) / static_cast<double>(effort),
                   static_cast<double>(tried) / static_cast<double>(tries));
      const double heat = duration * kHot * std::pow(kCold / kHot, done);
      const double enough = now - heat * std::log(1 - share());
      change_some();
      if (!choices_.changed()) continue;
      const double then = cost(enough);
      if (then > enough || then == kAny) {
        choices_.take_back();
        continue;
      }
      settle();
      now = then;
      if (now >= least_) continue;
      least_ = now;
      best = choices_;
    }
    choices_ = std::move(best);
  }
  void change_some() {
    const size_t i = any();
    if (share() < kShareOfLayers) {
      change_layers(i);
      return;
    }
    if (random_() % 2 == 0) {
      change_at_random(i);
      return;
    }
    const size_t k = any();
    if (i == k || !choices_.meet(i, k)) return;
    if (!choices_.released(i) && !choices_.released(k)) return;
    change_at_random(i);
    change_at_random(k);
  }
  // Changes some neighbours of the same kind, gap `i` among them, and sometimes another kind in
  // the same layers.
  void change_layers(size_t i) {
    const std::vector<size_t>& layers = choices_.alike(i);
    const auto at =
        static_cast<size_t>(std::lower_bound(layers.begin(), layers.end(), i) - layers.begin());
    const size_t count = 1 + random_() % layers.size();
    const size_t first = at - std::min(at, random_() % count);
    const size_t last = std::min(first + count, layers.size()) - 1;
    const uint32_t begin = choices_.from(layers[first]), end = choices_.from(layers[last]);
    change_between(begin, end, layers);
    const std::vector<size_t>& others = choices_.alike(any());
    if (random_() % 2 == 0 && &others != &layers) change_between(begin, end, others);
  }
  void change_between(uint32_t begin, uint32_t end, const std::vector<size_t>& layers) {
    const uint64_t way = random_() % 3;
    const double lead = kLeads[random_() % std::size(kLeads)];
    const bool before_end = choices_.may_leave_before_end(layers.front()) && random_() % 2 == 0;
    for (const size_t i : layers) {
      if (choices_.from(i) < begin || choices_.from(i) > end) continue;
      if (way == 0) choices_.keep(i);
      if (way == 1 && choices_.may_evict(i)) choices_.evict(i);
      if (way == 2 && choices_.may_offload(i))
        choices_.offload(i, lead, before_end && choices_.may_leave_before_end(i));
    }
  }

  void change_at_random(size_t i) {
    if (choices_.released(i) && random_() % 2 == 0) {
      choices_.keep(i);
    } else if (choices_.may_offload(i) && (!choices_.may_evict(i) || random_() % 2 == 0)) {
      const double lead = kLeads[random_() % std::size(kLeads)];
      choices_.offload(i, lead, choices_.may_leave_before_end(i) && random_() % 2 == 0);
    } else {
      choices_.evict(i);
    }
  }
  // Larger items are likelier, by the square root of their size.
  size_t any() {
    const auto at = std::upper_bound(up_to_.begin(), up_to_.end() - 1, share() * up_to_.back());
    return static_cast<size_t>(at - up_to_.begin());
  }
  double share() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // in [0, 1)

  const StepTable& step_;
  const PlanLimits& limits_;
  StepSimulator simulator_;
  ReleaseChoices choices_;
  std::vector<double> up_to_;  // by choice: cumulative weight, its own included
  int64_t effort_ = 0;
  int64_t calls_ = 0;
  double least_ = 0;       // cost of the best plan so far
  bool is_short_ = false;  // whether that plan has a shortfall
  std::vector<PlannedRelease> plan_;
  StepSimulator::Outcome outcome_;
  std::mt19937_64 random_{1};
  const std::atomic<bool>* stop_;
  const int64_t tries_;
};

}  // namespace

SearchResult search_releases(const StepTrace& trace, const StepTable& step,
                             const PlanLimits& limits, const std::vector<PlannedRelease>& draft,
                             int64_t effort, const std::atomic<bool>* stop, int64_t tries) {
  const auto search = [&](const std::vector<PlannedRelease>& from, int64_t share) {
    return Search(trace, step, limits, from, Bytes(limits.space.count() / share), stop, tries)
        .run(effort);
  };
  SearchResult found = search(draft, kSmallestRelease);
  if (found.expected.shortfall == Bytes(0)) return found;
  SearchResult again = search(found.releases, kVerySmallest);
  again.calls += found.calls;
  return again;
}

}  // namespace tidemark::planner
