#include "runtime/planner/releases/next_use_draft.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace tidemark::planner {
namespace {

// One direction of the link: the time in each call that no copy has booked.
class FreeTime {
 public:
  explicit FreeTime(const StepTable& step) : earlier_(step.calls.size() + 1) {
    for (const StepTable::Call& call : step.calls) free_.push_back(call.cost);
    std::iota(earlier_.begin(), earlier_.end(), 0U);
  }

  // When a copy that takes `time` and ends before call `end` has to begin: before this call. It
  // does not begin before call `first`; `late` is the time that is missing then.
  struct Slot {
    uint32_t begin = 0;
    Nanos late{0};
  };
  Slot last_before(uint32_t first, uint32_t end, Nanos time) {
    uint32_t call = end;
    while (time > Nanos(0)) {
      const uint32_t before = last_free(call);  // one more than its number
      if (before <= first) return {first, time};
      call = before - 1;
      time -= free_[call];
    }
    return {call, Nanos(0)};
  }
  void book(uint32_t first, uint32_t end, Nanos time) {
    uint32_t call = end;
    while (time > Nanos(0)) {
      const uint32_t before = last_free(call);
      if (before <= first) return;
      call = before - 1;
      const Nanos taken = std::min(time, free_[call]);
      free_[call] -= taken;
      time -= taken;
      if (free_[call] == Nanos(0)) earlier_[before] = call;
    }
  }

 private:
  // The greatest n <= `end` for which call n - 1 has free time; 0: none.
  uint32_t last_free(uint32_t end) {
    uint32_t found = end;
    while (earlier_[found] != found) found = earlier_[found];
    while (earlier_[end] != found) end = std::exchange(earlier_[end], found);
    return found;
  }

  std::vector<Nanos> free_;
  std::vector<uint32_t> earlier_;  // by n: itself while call n - 1 has free time
};

class Draft {
 public:
  Draft(const StepTable& step, const PlanLimits& limits, double price)
      : step_(step),
        limits_(limits),
        price_(price),
        calls_(static_cast<uint32_t>(step.calls.size())),
        longest_(step.duration.count() / kMaxRecomputeShare),
        out_(step),
        in_(step),
        items_(step.items.size()),
        seen_(step.calls.size()),
        begins_(step.calls.size() + 1),
        ends_(step.calls.size() + 1),
        comes_back_(step.calls.size() + 1) {}

  std::vector<PlannedRelease> run() {
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const StepTable::Item& it = step_.items[i];
      if (!it.existed_before()) {
        begins_[it.begin].push_back(i);
      } else {
        enter(i);
        offer(i, it.uses.empty() ? calls_ : it.uses.front());
      }
      if (!it.at_end) ends_[it.end].push_back(i);
    }
    for (uint32_t call = 0; call < calls_; ++call) {
      for (const uint32_t i : comes_back_[call]) enter(i);
      for (const uint32_t i : begins_[call]) enter(i);
      make_space(call);
      for (const uint32_t i : step_.inputs(call)) used(i, call);
      for (const uint32_t i : step_.outputs(call)) used(i, call);
      for (const uint32_t i : ends_[call + 1]) leave(i);
    }
    std::stable_sort(
        releases_.begin(), releases_.end(),
        [](const PlannedRelease& a, const PlannedRelease& b) { return a.from < b.from; });
    return std::move(releases_);
  }

 private:
  struct State {
    bool present = false;
    bool offered = false;
    bool away_between = false;            // over the step's end
    bool copied = false;                  // at some time
    uint32_t needed = 0;                  // by this call; calls_ and above: not in this step
    uint32_t release = StepTable::kNone;  // the last one, in releases_
    uint32_t booked = 0;  // of that release: the call before which its copy back begins
    uint32_t wanted = StepTable::kNone;  // for a recomputation before its own use
  };
  using Offer = std::tuple<uint32_t, int64_t, uint32_t>;  // needed, bytes, item

  const StepTable::Item& item(uint32_t i) const { return step_.items[i]; }
  int64_t bytes(uint32_t i) const { return item(i).bytes.count(); }
  Offer offer_of(uint32_t i) const { return {items_[i].needed, bytes(i), i}; }

  void enter(uint32_t i) {
    if (items_[i].present) return;
    items_[i].present = true;
    live_ += bytes(i);
  }
  void leave(uint32_t i) {
    withdraw(i);
    if (!items_[i].present) return;
    items_[i].present = false;
    live_ -= bytes(i);
  }
  void offer(uint32_t i, uint32_t needed) {
    if (bytes(i) < limits_.space.count() / kSmallestGap) return;
    items_[i].needed = needed;
    items_[i].offered = true;
    offers_.insert(offer_of(i));
  }
  void withdraw(uint32_t i) {
    if (!items_[i].offered) return;
    offers_.erase(offer_of(i));
    items_[i].offered = false;
  }

  void used(uint32_t i, uint32_t call) {
    withdraw(i);
    State& state = items_[i];
    if (state.wanted <= call) state.wanted = StepTable::kNone;
    const std::vector<uint32_t>& uses = item(i).uses;
    const auto next = std::upper_bound(uses.begin(), uses.end(), call);
    if (next != uses.end()) {
      if (*next > call + 1) offer(i, std::min(*next, state.wanted));
    } else if (state.away_between) {
      offer(i, 2 * calls_);  // comes back in the next step
    } else if (item(i).carried() && item(i).at_end) {
      offer(i, calls_);
    }
  }

  void make_space(uint32_t call) {
    const StepTable::Call& it = step_.calls[call];
    int64_t room = limits_.space.count() - it.workspace.count();
    if (it.overwrites != StepTable::kNone) room += bytes(it.overwrites);
    const auto inputs = step_.inputs(call);
    for (auto next = offers_.end(); live_ > room && next != offers_.begin();) {
      const auto [needed, size, i] = *--next;
      if (needed <= call + 1) break;
      if (std::find(inputs.begin(), inputs.end(), i) != inputs.end()) continue;
      const bool released = release(i, call);
      ++next;  // the one before is withdrawn
      if (released) {
        leave(i);
      } else {
        withdraw(i);  // until its next use
      }
    }
  }

  // Plans the gap in which item `i` is at `call`.
  bool release(uint32_t i, uint32_t call) {
    State& state = items_[i];
    const StepTable::Item& it = item(i);
    if (state.needed > calls_) return true;  // as planned when the step began
    const auto next = std::upper_bound(it.uses.begin(), it.uses.end(), call);
    PlannedRelease planned{i, 0, calls_, Release::kOffload, calls_};
    if (next != it.uses.end()) planned.to = *next;
    if (it.existed_before() && next == it.uses.begin()) {
      if (!it.lives_through() && !it.carried()) return false;
      planned.from = it.uses.empty() ? 0 : it.uses.back();
    } else if (next == it.uses.begin()) {
      return false;  // uploaded, and not used yet
    } else {
      planned.from = *std::prev(next);
    }
    const auto waits = it.may_offload ? time_to_offload(planned, call) : std::nullopt;
    const auto again =
        planned.wraps() || planned.to == calls_ ? std::nullopt : time_again(i, planned.to);
    if (!waits && !again) return false;
    if (again && (!waits || *again <= *waits)) {
      planned.action = Release::kEvict;
      planned.reload_at = 0;
      comes_back_[state.needed].push_back(i);
      bring_sources(planned.to, call);
    } else {
      offload(planned, call);
    }
    if (planned.wraps()) {
      state.away_between = true;
      planned.leaves_before_end = can_leave_before_end(step_, limits_, planned);
    }
    state.release = static_cast<uint32_t>(releases_.size());
    releases_.push_back(planned);
    return true;
  }

  // Frozen parameters keep their copies.
  bool has_copy(const PlannedRelease& planned) const {
    return planned.wraps() ||
           (item(planned.item).lives_through() && !is_written(step_, planned.item));
  }
  std::optional<Nanos> time_to_offload(const PlannedRelease& planned, uint32_t call) {
    const Bytes size = item(planned.item).bytes;
    if (!items_[planned.item].copied && copied_ + size > limits_.tier_space)
      return std::nullopt;
    Nanos waits{0};
    Nanos copies{0};
    if (!has_copy(planned)) {
      waits += out_.last_before(planned.from + 1, call, limits_.out_time(size)).late;
      copies += limits_.out_time(size);
    }
    if (planned.to < calls_) {
      waits +=
          in_.last_before(call + 1, items_[planned.item].needed, limits_.in_time(size)).late;
      copies += limits_.in_time(size);
    }
    return waits + Nanos(static_cast<int64_t>(price_ * static_cast<double>(copies.count())));
  }
  void offload(PlannedRelease& planned, uint32_t call) {
    const Bytes size = item(planned.item).bytes;
    if (!std::exchange(items_[planned.item].copied, true)) copied_ += size;
    if (!has_copy(planned)) {
      out_.book(planned.from + 1, call, limits_.out_time(size));
    }
    if (planned.to == calls_) return;
    const uint32_t needed = items_[planned.item].needed;
    const auto slot = in_.last_before(call + 1, needed, limits_.in_time(size));
    in_.book(call + 1, needed, limits_.in_time(size));
    comes_back_[slot.begin].push_back(planned.item);
    const uint32_t least = planned.wraps() ? 0 : planned.from + 1;
    planned.reload_at = std::max(least, slot.begin == 0 ? 0 : slot.begin - 1);
    items_[planned.item].booked = slot.begin;
  }

  // The planned release over which the item is away at `call`; null: it is there, or ended.
  PlannedRelease* away(uint32_t i, uint32_t call) {
    if (items_[i].release == StepTable::kNone) return nullptr;
    PlannedRelease& it = releases_[items_[i].release];
    const bool covers = it.wraps() ? call < it.to : it.from < call && call < it.to;
    return covers ? &it : nullptr;
  }
  bool lives(uint32_t i, uint32_t call) const {
    return call < item(i).end && (item(i).existed_before() || call > item(i).begin);
  }

  // Time to recompute the item for `call`, with all that has to be recomputed for it. Lists in
  // sources_ what is read besides.
  std::optional<Nanos> time_again(uint32_t i, uint32_t call) {
    Nanos time{0};
    ++walk_;
    sources_.clear();
    std::vector<uint32_t> pending{i};
    while (!pending.empty()) {
      const StepTable::Item& it = item(pending.back());
      pending.pop_back();
      if (!it.may_evict || it.producer == StepTable::kNone) return std::nullopt;
      if (std::exchange(seen_[it.producer], walk_) == walk_) continue;
      time += step_.calls[it.producer].cost;
      if (time > Nanos(longest_)) return std::nullopt;
      for (const uint32_t input : step_.inputs(it.producer)) {
        const PlannedRelease* gap = away(input, call);
        if (gap && gap->to == calls_) return std::nullopt;  // not back in this step
        const bool is_evicted = gap && gap->action == Release::kEvict;
        (!lives(input, call) || is_evicted ? pending : sources_).push_back(input);
      }
    }
    return time;
  }
  // What the recomputation looked at last reads has to be there by then.
  void bring_sources(uint32_t needed, uint32_t call) {
    for (const uint32_t source : sources_) {
      if (away(source, needed)) {
        bring_earlier(source, needed, call);
      } else {
        want(source, needed);
      }
    }
  }
  // REQUIRES: the item is to be offloaded at `needed`. Its copy begins as long before as it was
  // to begin before its own use.
  void bring_earlier(uint32_t i, uint32_t needed, uint32_t call) {
    PlannedRelease& gap = releases_[items_[i].release];
    const Nanos lead = step_.calls[gap.to].begin - step_.calls[items_[i].booked].begin;
    uint32_t at = std::min(gap.reload_at, needed == 0 ? 0 : needed - 1);
    const uint32_t least = gap.wraps() ? 0 : gap.from + 1;
    while (at > least && step_.calls[at].begin + lead > step_.calls[needed].begin) --at;
    gap.reload_at = std::max(at, least);
    comes_back_[std::max(call, gap.reload_at) + 1].push_back(i);
  }
  void want(uint32_t i, uint32_t needed) {
    State& state = items_[i];
    if (needed >= state.wanted) return;
    state.wanted = needed;
    if (!state.offered || state.needed <= needed) return;
    withdraw(i);
    offer(i, needed);
  }

  const StepTable& step_;
  const PlanLimits& limits_;
  const double price_;
  const uint32_t calls_;
  const int64_t longest_;
  FreeTime out_, in_;
  std::vector<State> items_;
  std::vector<uint32_t> seen_;  // by call: the last walk that visited it
  uint32_t walk_ = 0;
  std::vector<uint32_t> sources_;  // of the recomputation looked at last
  std::vector<std::vector<uint32_t>> begins_, ends_, comes_back_;  // by call: items
  std::set<Offer> offers_;
  int64_t live_ = 0;
  Bytes copied_{0};
  std::vector<PlannedRelease> releases_;
};

}  // namespace

std::vector<PlannedRelease> draft_by_next_use(const StepTable& step, const PlanLimits& limits,
                                              double price) {
  return Draft(step, limits, price).run();
}

}  // namespace tidemark::planner
