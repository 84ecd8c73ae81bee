#include "runtime/planner/releases/release_draft.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

namespace tidemark::planner {
namespace {

constexpr uint32_t kNoCall = StepTable::kNone;

// Calls [begin, end).
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool contains(uint32_t call) const { return call >= begin && call < end; }
};

class Planner {
 public:
  Planner(const StepTable& step, const PlanLimits& limits)
      : step_(step),
        limits_(limits),
        calls_(static_cast<uint32_t>(step.calls.size())),
        excess_(step.calls.size(), 0),
        chosen_of_(step.items.size()) {}

  ReleaseDraft plan() {
    count_live();
    ReleaseDraft plan;
    plan.unmanaged = limits_.space + Bytes(most_excess());
    gaps_ = find_gaps(step_, Bytes(limits_.space.count() / kSmallestGap));
    choose_offloads();
    choose_evictions();
    drop_needless();
    schedule_reloads();
    plan.peak = limits_.space + Bytes(most_excess());
    for (const Choice& choice : choices_) {
      if (!choice.kept) continue;
      plan.releases.push_back(choice.release);
      if (choice.release.action == Release::kEvict) plan.recomputation += choice.price;
    }
    std::stable_sort(
        plan.releases.begin(), plan.releases.end(),
        [](const PlannedRelease& a, const PlannedRelease& b) { return a.from < b.from; });
    return plan;
  }

 private:
  struct Choice {
    PlannedRelease release;
    Nanos price{0};             // if it is an eviction
    std::vector<Range> absent;  // calls at which it is away
    bool kept = true;
  };

  const StepTable::Item& item(uint32_t number) const { return step_.items[number]; }
  int64_t bytes(uint32_t number) const { return item(number).bytes.count(); }
  Nanos end_of(uint32_t call) const { return step_.calls[call].begin + step_.calls[call].cost; }

  Range life(uint32_t number) const {
    const StepTable::Item& it = item(number);
    return {it.existed_before() ? 0 : it.begin, it.end};
  }

  void count_live() {
    for (uint32_t i = 0; i < step_.items.size(); ++i) add(life(i), bytes(i));
    for (uint32_t k = 0; k < calls_; ++k) {
      excess_[k] += step_.calls[k].workspace.count() - limits_.space.count();
      const uint32_t overwritten = step_.calls[k].overwrites;
      if (overwritten != kNoCall) excess_[k] -= bytes(overwritten);
    }
  }
  void add(const Range& range, int64_t amount) {
    for (uint32_t k = range.begin; k < range.end; ++k) excess_[k] += amount;
  }
  void add(const std::vector<Range>& ranges, int64_t amount) {
    for (const Range& range : ranges) add(range, amount);
  }
  int64_t most_excess() const {
    return excess_.empty() ? -limits_.space.count()
                           : *std::max_element(excess_.begin(), excess_.end());
  }
  bool fits() const { return most_excess() <= 0; }

  std::vector<Range> whole(const Gap& gap) const {
    if (!gap.wraps()) return {{gap.from + 1, std::min(gap.to, life(gap.item).end)}};
    if (item(gap.item).carried()) return {{0, gap.to}};
    return {{0, gap.to}, {gap.from + 1, calls_}};
  }

  bool present(uint32_t number, uint32_t call) const {
    if (!life(number).contains(call)) return false;
    for (const size_t c : chosen_of_[number]) {
      if (!choices_[c].kept) continue;
      for (const Range& range : choices_[c].absent) {
        if (range.contains(call)) return false;
      }
    }
    return true;
  }
  // Whether the item is away at `call`, with a copy that comes back for the next use.
  bool offloaded(uint32_t number, uint32_t call) const {
    for (const size_t c : chosen_of_[number]) {
      if (!choices_[c].kept || choices_[c].release.action != Release::kOffload) continue;
      for (const Range& range : choices_[c].absent) {
        if (range.contains(call)) return true;
      }
    }
    return false;
  }

  // Time to recompute the item for `call`, including everything to be recomputed for it. None:
  // it cannot be recomputed.
  std::optional<Nanos> price(uint32_t number, uint32_t call) {
    if (!item(number).may_evict || item(number).producer == kNoCall) return std::nullopt;
    ++walk_;
    seen_.resize(step_.calls.size());
    Nanos total{0};
    std::vector<uint32_t> pending{item(number).producer};
    seen_[item(number).producer] = walk_;
    while (!pending.empty()) {
      const uint32_t producer = pending.back();
      pending.pop_back();
      total += step_.calls[producer].cost;
      for (const uint32_t input : step_.inputs(producer)) {
        if (present(input, call) || offloaded(input, call)) continue;
        const uint32_t next = item(input).producer;
        if (next == kNoCall || !item(input).may_evict) return std::nullopt;
        if (seen_[next] == walk_) continue;
        seen_[next] = walk_;
        pending.push_back(next);
      }
    }
    return total;
  }

  // Copies out go in the order in which they may begin. Copies back go in the order in which
  // they are needed, each as late as possible.
  struct Transfer {
    size_t gap;
    Nanos ready;  // negative for a gap that wraps, unless carried
    Nanos wanted;
    Nanos left{0};  // when the copy is out
    Nanos back{0};  // when it has to begin to come back
  };
  void schedule(std::vector<Transfer>& transfers) const {
    std::stable_sort(transfers.begin(), transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.ready < b.ready; });
    Nanos free = transfers.empty() ? Nanos(0) : transfers.front().ready;
    for (Transfer& t : transfers) {
      free = std::max(free, t.ready) + limits_.out_time(item(gaps_[t.gap].item).bytes);
      t.left = free;
    }
    std::stable_sort(transfers.begin(), transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.wanted > b.wanted; });
    Nanos next = transfers.empty() ? Nanos(0) : transfers.front().wanted;
    for (Transfer& t : transfers) {
      next = std::min(next, t.wanted) - limits_.in_time(item(gaps_[t.gap].item).bytes);
      t.back = next;
    }
  }

  // Offloads the items that are most expensive to recompute, as long as all copies are out
  // before the peak and need not come back before it.
  void choose_offloads() {
    if (limits_.tier_space <= Bytes(0) || fits()) return;
    const auto fullest = static_cast<uint32_t>(
        std::max_element(excess_.begin(), excess_.end()) - excess_.begin());
    const Nanos peak = step_.calls[fullest].begin;
    struct Offload {
      size_t gap;
      double worth;
    };
    std::vector<Offload> candidates;
    for (size_t g = 0; g < gaps_.size(); ++g) {
      const Gap& gap = gaps_[g];
      bool covers = false;
      for (const Range& range : whole(gap)) covers = covers || range.contains(fullest);
      if (!covers || !item(gap.item).may_offload) continue;
      const bool over_the_end = gap.wraps() || gap.to == calls_;
      const auto again = over_the_end ? std::nullopt : price(gap.item, gap.to);
      const double worth =
          again ? static_cast<double>(again->count()) / static_cast<double>(bytes(gap.item))
                : std::numeric_limits<double>::max();
      candidates.push_back({g, worth});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Offload& a, const Offload& b) { return a.worth > b.worth; });
    std::vector<Transfer> accepted;
    int64_t copied = 0;
    for (const Offload& candidate : candidates) {
      const Gap& gap = gaps_[candidate.gap];
      if (excess_[fullest] - copied <= 0) break;
      if (copied + bytes(gap.item) > limits_.tier_space.count()) continue;
      std::vector<Transfer> tried = accepted;
      tried.push_back({candidate.gap, ready(gap), wanted(gap)});
      schedule(tried);
      const bool hidden = std::all_of(tried.begin(), tried.end(), [&](const Transfer& t) {
        return t.left <= peak && t.back >= peak;
      });
      if (!hidden) continue;
      accepted = std::move(tried);
      copied += bytes(gap.item);
    }
    for (const Transfer& t : accepted) {
      const Gap& gap = gaps_[t.gap];
      const uint32_t out = std::max(first_call_at(t.left), gap.wraps() ? 0 : gap.from + 1);
      const uint32_t back =
          gap.to == calls_ ? calls_ : std::min(last_call_before(t.back), gap.to - 1);
      Choice choice{{gap.item, gap.from, gap.to, Release::kOffload, back}, Nanos(0), {}, true};
      choice.release.leaves_before_end =
          t.left <= Nanos(0) && can_leave_before_end(step_, limits_, choice.release);
      choice.absent.push_back({out, std::min(back + 1, life(gap.item).end)});
      // Also away at the step's end, once the copy is out there.
      if (gap.wraps() && !item(gap.item).carried()) {
        const uint32_t left = first_call_at(t.left + step_.duration);
        choice.absent.push_back({std::max(gap.from + 1, left), calls_});
      }
      choose(std::move(choice));
    }
  }
  Nanos ready(const Gap& gap) const {
    if (!gap.wraps()) return end_of(gap.from);
    return item(gap.item).carried() ? Nanos(0) : end_of(gap.from) - step_.duration;
  }
  // Nothing waits for an item that may stay away.
  Nanos wanted(const Gap& gap) const {
    if (gap.to < calls_) return step_.calls[gap.to].begin;
    return step_.duration + limits_.in_time(item(gap.item).bytes);
  }
  uint32_t first_call_at(Nanos time) const {
    uint32_t call = 0;
    while (call < calls_ && step_.calls[call].begin < time) ++call;
    return call;
  }
  uint32_t last_call_before(Nanos time) const {
    const uint32_t after = first_call_at(time + Nanos(1));
    return after == 0 ? 0 : after - 1;
  }

  void choose(Choice choice) {
    add(choice.absent, -bytes(choice.release.item));
    chosen_of_[choice.release.item].push_back(choices_.size());
    choices_.push_back(std::move(choice));
  }

  int64_t use_of(const Gap& gap) const {
    int64_t sum = 0;
    for (const Range& range : whole(gap)) {
      for (uint32_t k = range.begin; k < range.end; ++k) {
        sum += std::clamp<int64_t>(excess_[k], 0, bytes(gap.item));
      }
    }
    return sum;
  }
  bool taken(const Gap& gap) const {
    return std::any_of(chosen_of_[gap.item].begin(), chosen_of_[gap.item].end(), [&](size_t c) {
      return choices_[c].kept && choices_[c].release.from == gap.from;
    });
  }

  void choose_evictions() {
    struct Offer {
      double rate;
      size_t gap;
      bool operator<(const Offer& other) const {
        return rate != other.rate ? rate > other.rate : gap > other.gap;
      }
    };
    std::priority_queue<Offer> offers;
    const Nanos dearest(step_.duration.count() / kMaxRecomputeShare);
    const auto rate_of = [&](const Gap& gap) -> std::optional<double> {
      const int64_t use = use_of(gap);
      if (use == 0) return std::nullopt;
      const auto time = price(gap.item, gap.to);
      if (!time || *time > dearest) return std::nullopt;
      return static_cast<double>(time->count()) / static_cast<double>(use);
    };
    for (size_t g = 0; g < gaps_.size(); ++g) {
      if (gaps_[g].wraps() || gaps_[g].to == calls_ || taken(gaps_[g])) continue;
      if (const auto rate = rate_of(gaps_[g])) offers.push({*rate, g});
    }
    while (!offers.empty() && !fits()) {
      const Offer best = offers.top();
      offers.pop();
      const Gap& gap = gaps_[best.gap];
      const auto rate = rate_of(gap);
      if (!rate) continue;
      if (!offers.empty() && *rate > offers.top().rate) {
        offers.push({*rate, best.gap});
        continue;
      }
      choose({{gap.item, gap.from, gap.to, Release::kEvict, 0},
              *price(gap.item, gap.to),
              whole(gap),
              true});
    }
  }

  // Takes back evictions that the others have made needless, the most expensive first.
  void drop_needless() {
    std::vector<size_t> order;
    for (size_t c = 0; c < choices_.size(); ++c) {
      if (choices_[c].release.action == Release::kEvict) order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return choices_[a].price > choices_[b].price; });
    for (const size_t c : order) {
      Choice& choice = choices_[c];
      const int64_t size = bytes(choice.release.item);
      const bool needless =
          std::all_of(choice.absent.begin(), choice.absent.end(), [&](const Range& range) {
            return std::all_of(excess_.begin() + range.begin, excess_.begin() + range.end,
                               [&](int64_t excess) { return excess + size <= 0; });
          });
      if (!needless) continue;
      choice.kept = false;
      add(choice.absent, size);
    }
  }

  // An offloaded item that others are recomputed from has to come back before its own next use.
  void schedule_reloads() {
    for (Choice& choice : choices_) {
      if (choice.release.action != Release::kOffload) continue;
      for (const Choice& other : choices_) {
        if (!other.kept || other.release.action != Release::kEvict) continue;
        const uint32_t to = other.release.to;
        const uint32_t producer = item(other.release.item).producer;
        const auto inputs = step_.inputs(producer);
        if (std::find(inputs.begin(), inputs.end(), choice.release.item) == inputs.end() ||
            to <= choice.release.from || to >= choice.release.to) {
          continue;
        }
        const Nanos time = limits_.in_time(item(choice.release.item).bytes);
        const uint32_t earlier = last_call_before(step_.calls[to].begin - time);
        const uint32_t back =
            std::max(choice.release.from, std::min(choice.release.reload_at, earlier));
        Range& absent = choice.absent.front();
        const Range early{std::min(absent.end, std::max(absent.begin, back + 1)), absent.end};
        add(early, bytes(choice.release.item));
        absent.end = early.begin;
        choice.release.reload_at = back;
      }
    }
  }

  const StepTable& step_;
  const PlanLimits& limits_;
  const uint32_t calls_;
  std::vector<int64_t> excess_;  // bytes live at each call, minus the space
  std::vector<Gap> gaps_;
  std::vector<Choice> choices_;
  std::vector<std::vector<size_t>> chosen_of_;  // by item
  std::vector<uint32_t> seen_;                  // by call: the last walk that visited it
  uint32_t walk_ = 0;
};

}  // namespace

std::vector<Gap> find_gaps(const StepTable& step, Bytes smallest) {
  const auto calls = static_cast<uint32_t>(step.calls.size());
  std::vector<Gap> gaps;
  for (uint32_t i = 0; i < step.items.size(); ++i) {
    const StepTable::Item& item = step.items[i];
    if (item.bytes < smallest || item.uses.empty()) continue;
    for (size_t u = 0; u + 1 < item.uses.size(); ++u) {
      if (item.uses[u + 1] > item.uses[u] + 1) {
        gaps.push_back({i, item.uses[u], item.uses[u + 1]});
      }
    }
    const bool comes_first = item.existed_before() && item.carried() && item.uses.front() > 0;
    if (item.lives_through() || comes_first) {
      gaps.push_back({i, item.uses.back(), item.uses.front()});
    }
    if (item.carried() && item.uses.back() + 1 < item.end) {
      gaps.push_back({i, item.uses.back(), calls});
    }
  }
  return gaps;
}

bool is_written(const StepTable& step, uint32_t item) {
  const std::vector<uint32_t>& uses = step.items[item].uses;
  return std::any_of(uses.begin(), uses.end(), [&](uint32_t call) {
    const auto list = step.written(call);
    return std::find(list.begin(), list.end(), item) != list.end();
  });
}

bool can_leave_before_end(const StepTable& step, const PlanLimits& limits,
                          const PlannedRelease& release) {
  const StepTable::Item& item = step.items[release.item];
  if (!release.wraps() || !item.lives_through()) return false;
  if (!is_written(step, release.item)) return true;  // its copy stays valid
  const StepTable::Call& last = step.calls[release.from];
  return last.begin + last.cost + limits.out_time(item.bytes) <= step.duration;
}

ReleaseDraft draft_releases(const StepTable& step, const PlanLimits& limits) {
  return Planner(step, limits).plan();
}

}  // namespace tidemark::planner
