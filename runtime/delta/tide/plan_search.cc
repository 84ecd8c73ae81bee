#include "runtime/delta/tide/plan_search.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <utility>

namespace tidemark {
namespace {

// What is smaller than this share of the room is not worth a decision ...
constexpr int64_t kSmallest = 2048;
// ... unless the rest does not fit without it.
constexpr int64_t kVerySmallest = 1 << 16;

// How much earlier than the link needs copies may begin to come back.
constexpr double kLeads[] = {1, 3};

// Of room that is short, in what the link takes for as much: first so that good plans are found
// on ways that do not fit, then so that it ends with one that does, whatever that takes: to
// compute again what the tier has no room for may be far dearer than copies.
constexpr double kPricesOfLacking[] = {1, 4, 16, 256, 65536};

// Pairs tried before the search ends, for each gap, of which none is better.
constexpr size_t kPairs = 100;

class Search {
 public:
  Search(const StepRecord& step, const PlanLimits& limits,
         const std::vector<PlannedRelease>& draft, int64_t effort, Bytes smallest)
      : step_(step), limits_(limits), rehearsal_(step, limits), effort_(effort) {
    for (const Gap& gap : find_gaps(step, smallest)) add(gap.item, gap.from, gap.to);
    std::stable_sort(gaps_.begin(), gaps_.end(), [](const Choice& a, const Choice& b) {
      return a.release.from < b.release.from;
    });
    for (const PlannedRelease& release : draft) {
      const auto gap = std::find_if(gaps_.begin(), gaps_.end(), [&](const Choice& g) {
        return g.release.item == release.item && g.release.from == release.from;
      });
      if (gap != gaps_.end()) *gap = {release, true};
    }
  }

  SearchResult run() {
    const std::vector<Choice> draft = gaps_;
    const int64_t part = effort_ / static_cast<int64_t>(std::size(kPricesOfLacking) + 1);
    for (size_t k = 0; k < std::size(kPricesOfLacking); ++k) {
      const double price = kPricesOfLacking[k];
      effort_ = (k == 0 ? 2 : 1) * part;
      rehearsal_.set_price_of_lacking(price);
      least_ = cost(kAny);
      lacks_ = outcome_.lacking > Bytes(0);
      bool better = !gaps_.empty();
      while (better && effort_ > 0) {
        better = change_each();
        better = change_pairs() || better;
      }
      cost(kAny);
      if (outcome_.lacking == Bytes(0)) break;
    }
    // On the way it may have gone through what lacks to where it is worse than it began.
    rehearsal_.set_price_of_lacking(*std::rbegin(kPricesOfLacking));
    least_ = cost(kAny);
    std::vector<Choice> best = std::exchange(gaps_, draft);
    if (cost(kAny) >= least_) {
      gaps_ = std::move(best);
      cost(kAny);
    }
    return {chosen_, outcome_};
  }

 private:
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  struct Choice {
    PlannedRelease release;
    bool chosen = false;
  };
  void add(uint32_t item, uint32_t from, uint32_t to) {
    const Choice gap{{item, from, to, Action::kEvict, 0}, false};
    if (may_evict(gap) || may_offload(gap)) gaps_.push_back(gap);
  }
  bool may_evict(const Choice& gap) const {
    const StepRecord::Item& item = step_.items[gap.release.item];
    return item.may_evict && item.producer != StepRecord::kNone && !gap.release.wraps();
  }
  bool may_offload(const Choice& gap) const {
    return limits_.tier_room > Bytes(0) && step_.items[gap.release.item].may_offload;
  }

  double cost(double enough) {
    chosen_.clear();
    Bytes copied{0};
    for (const Choice& gap : gaps_) {
      if (!gap.chosen) continue;
      chosen_.push_back(gap.release);
      if (gap.release.action == Action::kOffload) {
        copied += step_.items[gap.release.item].bytes;
      }
    }
    if (copied > limits_.tier_room && enough < kAny) return kAny;
    outcome_ = rehearsal_.run(chosen_, nullptr, enough);
    effort_ -= outcome_.calls;
    return outcome_.cost;
  }
  // Is it better as it is now?
  bool improves() {
    const double now = cost(least_);
    if (now >= least_) return false;
    least_ = now;
    lacks_ = outcome_.lacking > Bytes(0);
    return true;
  }

  // So many times before the link has to begin with it, for its next use.
  uint32_t back_at(const PlannedRelease& release, double lead) const {
    const Nanos wanted = step_.calls[release.to].begin;
    const Nanos time = limits_.in_time(step_.items[release.item].bytes);
    const auto early = Nanos(static_cast<int64_t>(static_cast<double>(time.count()) * lead));
    const uint32_t least = release.wraps() ? 0 : release.from + 1;
    uint32_t at = release.to == 0 ? 0 : release.to - 1;
    while (at > least && step_.calls[at].begin + early > wanted) --at;
    return at;
  }

  bool try_as(Choice& gap, bool chosen, Action action, uint32_t reload_at) {
    const Choice before = gap;
    gap.chosen = chosen;
    gap.release.action = action;
    gap.release.reload_at = reload_at;
    const bool same =
        before.chosen == chosen &&
        (!chosen || (before.release.action == action && before.release.reload_at == reload_at));
    if (!same && improves()) return true;
    gap = before;
    return false;
  }
  // Where nothing lacks, to release more helps only in the place of something else.
  bool change(Choice& gap) {
    if (!gap.chosen && !lacks_) return false;
    bool better = try_as(gap, false, gap.release.action, 0);
    if (may_evict(gap)) better = try_as(gap, true, Action::kEvict, 0) || better;
    if (!may_offload(gap)) return better;
    for (const double lead : kLeads) {
      better = try_as(gap, true, Action::kOffload, back_at(gap.release, lead)) || better;
    }
    return better;
  }
  bool change_each() {
    bool better = false;
    for (bool again = true; again && effort_ > 0; better = better || again) {
      again = false;
      for (Choice& gap : gaps_) {
        if (effort_ <= 0) break;
        again = change(gap) || again;
      }
    }
    return better;
  }

  // One that is chosen and one that meets it, each otherwise.
  bool change_pairs() {
    bool better = false;
    for (size_t tried = 0; tried < kPairs * gaps_.size() && effort_ > 0; ++tried) {
      Choice& a = gaps_[random_() % gaps_.size()];
      Choice& b = gaps_[random_() % gaps_.size()];
      const bool meet = a.release.from < b.release.to && b.release.from < a.release.to;
      if (!a.chosen || &a == &b || !meet) continue;
      const Choice was_a = a, was_b = b;
      change_at_random(a);
      change_at_random(b);
      if (improves()) {
        better = true;
        tried = 0;
      } else {
        a = was_a;
        b = was_b;
      }
    }
    return better;
  }
  void change_at_random(Choice& gap) {
    if (gap.chosen && random_() % 2 == 0) {
      gap.chosen = false;
      return;
    }
    const bool copy = may_offload(gap) && (!may_evict(gap) || random_() % 2 == 0);
    gap.chosen = true;
    gap.release.action = copy ? Action::kOffload : Action::kEvict;
    gap.release.reload_at =
        copy ? back_at(gap.release, kLeads[random_() % std::size(kLeads)]) : 0;
  }

  const StepRecord& step_;
  const PlanLimits& limits_;
  StepRehearsal rehearsal_;
  int64_t effort_;
  std::vector<Choice> gaps_;
  double least_ = 0;    // of what has been found so far
  bool lacks_ = false;  // that
  std::vector<PlannedRelease> chosen_;
  StepRehearsal::Outcome outcome_;
  std::mt19937_64 random_{1};
};

}  // namespace

SearchResult search_releases(const StepRecord& step, const PlanLimits& limits,
                             const std::vector<PlannedRelease>& draft, int64_t effort) {
  const auto search = [&](const std::vector<PlannedRelease>& from, int64_t share) {
    return Search(step, limits, from, effort, Bytes(limits.room.count() / share)).run();
  };
  SearchResult found = search(draft, kSmallest);
  if (found.expected.lacking == Bytes(0)) return found;
  return search(found.releases, kVerySmallest);
}

}  // namespace tidemark
