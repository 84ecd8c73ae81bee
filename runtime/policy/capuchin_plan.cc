#include "runtime/policy/capuchin_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace tidemark {
namespace {

constexpr uint32_t kNone = StepTable::kNone;
constexpr double kLong = 1e15;  // nanoseconds

struct Interval {
  Nanos from{0}, to{0};
};

// One direction of the link: copies that do not overlap, by time.
class Lane {
 public:
  // The first free time of this length from `from` on.
  Interval earliest(Nanos from, Nanos length) const {
    auto copy = std::partition_point(copies_.begin(), copies_.end(),
                                     [&](const Interval& c) { return c.to <= from; });
    for (; copy != copies_.end() && from + length > copy->from; ++copy) {
      ++passed_;
      from = std::max(from, copy->to);
    }
    return {from, from + length};
  }
  // The last that ends by `to`; may begin before the step.
  Interval latest(Nanos to, Nanos length) const {
    auto copy = std::partition_point(copies_.begin(), copies_.end(),
                                     [&](const Interval& c) { return c.from < to; });
    for (; copy != copies_.begin() && std::prev(copy)->to > to - length; --copy) {
      ++passed_;
      to = std::min(to, std::prev(copy)->from);
    }
    return {to - length, to};
  }
  void take(const Interval& copy) {
    if (copy.from == copy.to) return;  // takes no room
    copies_.insert(std::find_if(copies_.begin(), copies_.end(),
                                [&](const Interval& c) { return c.from > copy.from; }),
                   copy);
  }
  int64_t passed() const { return passed_; }  // copies looked at in searches

 private:
  std::vector<Interval> copies_;
  mutable int64_t passed_ = 0;
};

struct Candidate {
  uint32_t item = 0, after = 0, before = 0;
};

struct Swap {
  Interval out, in;
  Nanos free_time() const { return in.from - out.to; }
  Nanos waiting() const { return std::max(Nanos(0), out.to - in.from); }
};

class Planner {
 public:
  Planner(const StepTable& step, const CapuchinCosts& costs)
      : step_(step),
        costs_(costs),
        short_by_(step.calls.size(), Bytes(0) - costs.capacity),
        evicted_(step.items.size()),
        read_at_(step.items.size()),
        made_in_(step.items.size()) {
    for (const StepTable::Item& item : step.items) {
      for (uint32_t k = item.existed_before() ? 0 : item.begin; k < item.end; ++k) {
        short_by_[k] += item.bytes;
      }
    }
    for (size_t k = 0; k < short_by_.size(); ++k) short_by_[k] += step.calls[k].workspace;
    count_short_calls();
    for (uint32_t item = 0; item < step.items.size(); ++item) add_candidates(item);
    drop_candidates([](const Candidate&) { return false; });
  }

  CapuchinPlan plan() {
    while (examined() < CapuchinPlan::kMaxExamined && choose_next()) {
    }
    plan_.examined = examined();
    plan_.suffices = std::none_of(short_by_.begin(), short_by_.end(),
                                  [](Bytes bytes) { return bytes > Bytes(0); });
    return std::move(plan_);
  }

 private:
  void add_candidates(uint32_t item) {
    if (step_.items[item].bytes == Bytes(0)) return;
    const auto& uses = step_.items[item].uses;
    for (size_t i = 1; i < uses.size(); ++i) {
      if (uses[i] > uses[i - 1] + 1) candidates_.push_back({item, uses[i - 1], uses[i]});
    }
  }
  // The calls [first, last) at which the candidate's space is free: of one that is swapped,
  // from the end of its copy out to the start of its copy in. If the copies overlap, all calls
  // between wait for them.
  std::pair<uint32_t, uint32_t> away(const Candidate& c, const Swap* swap) const {
    uint32_t first = c.after + 1, last = c.before;
    if (!swap || swap->free_time() < Nanos(0)) return {first, last};
    const auto call =
        std::partition_point(step_.calls.begin(), step_.calls.end(),
                             [&](const StepTable::Call& k) { return k.begin < swap->out.to; });
    first = std::max(first, static_cast<uint32_t>(call - step_.calls.begin()));
    if (first >= last) return {first, first};
    const auto end = std::partition_point(  // each ends no earlier than the last one
        step_.calls.begin() + first, step_.calls.begin() + last,
        [&](const StepTable::Call& k) { return k.begin + k.cost <= swap->in.from; });
    return {first, static_cast<uint32_t>(end - step_.calls.begin())};
  }
  // Whether memory is short at any of these calls.
  bool helps(const Candidate& c, const Swap* swap) const {
    const auto [first, last] = away(c, swap);
    return short_calls_[last] > short_calls_[first];
  }
  void count_short_calls() {
    short_calls_.assign(short_by_.size() + 1, 0);
    for (size_t k = 0; k < short_by_.size(); ++k) {
      short_calls_[k + 1] = short_calls_[k] + (short_by_[k] > Bytes(0));
    }
  }

  std::optional<Swap> swap_of(const Candidate& c) const {
    const StepTable::Item& item = step_.items[c.item];
    if (!costs_.may_swap || !item.may_offload) return std::nullopt;
    const StepTable::Call& after = step_.calls[c.after];
    return Swap{out_.earliest(after.begin + after.cost, costs_.copy_out(item.bytes)),
                in_.latest(step_.calls[c.before].begin, costs_.copy_in(item.bytes))};
  }

  // Algorithm 1: a swap that can be hidden; else what has the least overhead. False if nothing
  // is left that helps.
  bool choose_next() {
    const auto best = most_free_time();
    if (!best.first || best.second.free_time() < Nanos(0)) return choose_least_overhead(best);
    take(*best.first, best.second);
    return true;
  }

  std::pair<const Candidate*, Swap> most_free_time() const {
    std::pair<const Candidate*, Swap> best{nullptr, {}};
    examined_ += static_cast<int64_t>(candidates_.size());
    for (const Candidate& c : candidates_) {
      const auto swap = swap_of(c);
      if (!swap || (best.first && swap->free_time() <= best.second.free_time())) continue;
      if (helps(c, &*swap)) best = {&c, *swap};
    }
    return best;
  }

  bool choose_least_overhead(const std::pair<const Candidate*, Swap>& swap) {
    const Candidate* again = nullptr;
    Nanos time{0};
    double most = 0;
    examined_ += static_cast<int64_t>(candidates_.size());
    for (const Candidate& c : candidates_) {
      if (!may_recompute(c)) continue;
      const auto bytes = static_cast<double>(step_.items[c.item].bytes.count());
      // What takes longer has a lower MSPS.
      const Nanos enough = most > 0 && bytes / most < kLong
                               ? Nanos(static_cast<int64_t>(bytes / most) + 1)
                               : Nanos(std::numeric_limits<int64_t>::max());
      const Nanos takes = overhead(c, enough);
      const double msps = bytes / static_cast<double>(std::max<int64_t>(1, takes.count()));
      if (again && msps <= most) continue;
      again = &c;
      time = takes;
      most = msps;
    }
    if (!again && !swap.first) return false;
    if (again && (!swap.first || time <= swap.second.waiting())) {
      take(*again, std::nullopt);
    } else {
      take(*swap.first, swap.second);
    }
    return true;
  }

  bool may_recompute(const Candidate& c) const {
    return step_.items[c.item].may_evict && step_.items[c.item].producer != kNone;
  }

  // Whether the item is away, or gone, when the call runs.
  bool is_missing(uint32_t item, uint32_t call) const {
    const StepTable::Item& it = step_.items[item];
    if (it.producer == kNone) return false;  // kept for recomputation
    if (it.end <= call) return true;
    return std::any_of(evicted_[item].begin(), evicted_[item].end(),
                       [&](const Candidate& c) { return c.after < call && call < c.before; });
  }

  // The time to run the item's producer at `call`, and those of missing sources, each once.
  // Lists in read_ the sources read. Stops counting once above `enough`.
  Nanos recompute_time(uint32_t item, uint32_t call, Nanos enough) const {
    ++search_;
    read_.clear();
    to_make_.assign(1, item);
    Nanos time{0};
    while (!to_make_.empty() && time <= enough) {
      const uint32_t made = to_make_.back();
      to_make_.pop_back();
      if (std::exchange(made_in_[made], search_) == search_) continue;
      const uint32_t producer = step_.items[made].producer;
      time += step_.calls[producer].cost;
      examined_ += 1 + static_cast<int64_t>(step_.inputs(producer).size());
      for (const uint32_t input : step_.inputs(producer)) {
        (is_missing(input, call) ? to_make_ : read_).push_back(input);
      }
    }
    return time;
  }

  // Algorithm 2: with the candidate away, earlier choices that read it have to make it, too.
  Nanos overhead(const Candidate& c, Nanos enough) const {
    const Nanos own = recompute_time(c.item, c.before, enough);
    examined_ += static_cast<int64_t>(read_at_[c.item].size());
    const auto again =
        std::count_if(read_at_[c.item].begin(), read_at_[c.item].end(),
                      [&](uint32_t call) { return c.after < call && call < c.before; });
    return (1 + again) * own;
  }

  void take(const Candidate& chosen, const std::optional<Swap>& swap) {
    const Candidate c = chosen;
    CapuchinPlan::Release release{.item = c.item, .after = c.after, .before = c.before};
    if (swap) {
      out_.take(swap->out);
      in_.take(swap->in);
      release.swap = true;
      release.out = swap->out.to;
      release.copy_in = swap->in.to - swap->in.from;
      release.in_trigger = std::max(Nanos(0), swap->in.from);
    } else {
      recompute_time(c.item, c.before, Nanos(std::numeric_limits<int64_t>::max()));
      for (const uint32_t source : read_) read_at_[source].push_back(c.before);
      evicted_[c.item].push_back(c);
    }
    plan_.releases.push_back(release);
    const auto [first, last] = away(c, swap ? &*swap : nullptr);
    for (uint32_t k = first; k < last; ++k) short_by_[k] -= step_.items[c.item].bytes;
    count_short_calls();
    examined_ += static_cast<int64_t>(short_by_.size());
    drop_candidates([&](const Candidate& o) { return o.item == c.item && o.after == c.after; });
  }
  // Besides those, what no longer helps never will: memory only gets less short.
  template <class Chosen>
  void drop_candidates(const Chosen& chosen) {
    std::erase_if(candidates_,
                  [&](const Candidate& c) { return chosen(c) || !helps(c, nullptr); });
  }
  int64_t examined() const { return examined_ + out_.passed() + in_.passed(); }

  const StepTable& step_;
  const CapuchinCosts& costs_;
  std::vector<Bytes> short_by_;  // by call: live bytes above the capacity
  std::vector<Candidate> candidates_;
  Lane out_, in_;
  std::vector<uint32_t> short_calls_;            // of the first k calls
  std::vector<std::vector<Candidate>> evicted_;  // chosen to be recomputed, by item
  std::vector<std::vector<uint32_t>> read_at_;   // by item: before which calls it is read again
  mutable std::vector<uint32_t> made_in_;        // by item: the last search that made it
  mutable uint32_t search_ = 0;
  mutable std::vector<uint32_t> to_make_, read_;  // of the last search
  mutable int64_t examined_ = 0;
  CapuchinPlan plan_;
};

}  // namespace

CapuchinPlan capuchin_plan(const StepTable& step, const CapuchinCosts& costs) {
  return Planner(step, costs).plan();
}

}  // namespace tidemark
