#include "runtime/planner/layout/moving_pass.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {
namespace {

// If the problem does not say it: issuing a move costs as much as moving this small a share
// (1/n) of the capacity.
constexpr int64_t kFeeShare = 4096;

// Leaving a byte without a place costs as much as moving this many, and more than any wait.
constexpr int64_t kSpilled = 4000;

// States kept per run, from which later runs can continue.
constexpr size_t kStops = 12;

// For buffers below 1/kSmallShare of the capacity, hints are examined for only this many
// events: small buffers are many, and cheap to move.
constexpr int64_t kSmallShare = 1000;
constexpr size_t kHorizon = 300;

// How many buffers' lives are compared in the time in which one is sorted among some hundreds.
constexpr size_t kSorting = 8;

// Weights in mismatch(): of the space left in the hole (as a share of the capacity), of the
// difference between the neighbour's end and the buffer's (in doublings of remaining life), of
// a pinned buffer that lies apart from others that stay, and of chance.
constexpr double kRest = 4, kOdd = 0.5, kMaxOdd = 4, kApart = 1, kChance = 0.5;

// Prefix sums over offsets: how many bytes begin, or end, below an offset according to the
// hints.
class Edges {
 public:
  void add(Offset at, Bytes weight) { edges_.emplace_back(at, weight); }
  void sort() { std::sort(edges_.begin(), edges_.end()); }
  // REQUIRES: sorted, or added in order.
  void add_up() {
    for (size_t k = 1; k < edges_.size(); ++k) edges_[k].second += edges_[k - 1].second;
  }
  Bytes below(Offset place) const {
    const auto after = from(place);
    return after == edges_.begin() ? Bytes(0) : std::prev(after)->second;
  }
  template <class Visit>
  void visit(Offset begin, Offset end, Visit visit) const {
    for (auto e = from(begin); e != edges_.end() && e->first <= end; ++e) visit(e->first);
  }

 private:
  using Edge = std::pair<Offset, Bytes>;
  std::vector<Edge>::const_iterator from(Offset place) const {
    return std::lower_bound(edges_.begin(), edges_.end(), place,
                            [](const Edge& e, Offset o) { return e.first < o; });
  }
  std::vector<Edge> edges_;
};

}  // namespace

bool MovingPass::Run::better_than(const Run& other) const {
  if (complete != other.complete) return complete;
  if (placed() != other.placed()) return placed();
  return end.cost < other.end.cost;
}

MovingPass::MovingPass(const MovingProblem& problem)
    : problem_(problem),
      top_(Offset() + align_down(problem.capacity)),
      fee_(std::max(problem.fee, Bytes(problem.capacity.count() / kFeeShare))),
      first_time_(std::numeric_limits<int64_t>::max()),
      last_time_(std::numeric_limits<int64_t>::min()),
      begin_event_(problem.buffers.size()),
      end_event_(problem.buffers.size()),
      pinned_(problem.buffers.size()) {
  for (const MovingProblem::PinnedInterval& stay : problem.pinned)
    pinned_[stay.buffer].push_back(stay);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (is_empty(buffer(i))) continue;
    first_time_ = std::min(first_time_, buffer(i).begin);
    last_time_ = std::max(last_time_, buffer(i).end);
    events_.push_back({buffer(i).begin, true, i});
    events_.push_back({buffer(i).end, false, i});
  }
  // Among buffers that begin together, those at preferred offsets come first, then large ones.
  const auto key = [&](const Event& e) {
    return std::tuple(e.time, e.begins, !begins_at_preferred(e.buffer),
                      -buffer(e.buffer).size.count(), e.buffer);
  };
  std::sort(events_.begin(), events_.end(),
            [&](const Event& a, const Event& b) { return key(a) < key(b); });
  for (size_t k = 0; k < events_.size(); ++k) {
    (events_[k].begins ? begin_event_ : end_event_)[events_[k].buffer] = k;
  }
}

bool MovingPass::begins_at_preferred(size_t i) const {
  return problem_.preferred_offsets[i] && buffer(i).begin == first_time_;
}

bool MovingPass::ends_at_preferred(size_t i) const {
  return problem_.preferred_offsets[i] && buffer(i).end == last_time_;
}

bool MovingPass::pinned(size_t i, int64_t time) const {
  if (buffer(i).begin == time) return true;
  return std::any_of(pinned_[i].begin(), pinned_[i].end(),
                     [&](const MovingProblem::PinnedInterval& stay) {
                       return stay.begin <= time && time < stay.end;
                     });
}

std::optional<Bytes> MovingPass::wait_for(size_t i, int64_t time) const {
  if (buffer(i).begin == time) return std::nullopt;
  Bytes wait{0};
  for (const MovingProblem::PinnedInterval& stay : pinned_[i]) {
    if (time < stay.begin || stay.end <= time) continue;
    if (stay.until == MovingProblem::kNever) return std::nullopt;
    const Bytes now = std::max(problem_.clock[static_cast<size_t>(time)], state_.waited_until);
    wait = std::max(wait, stay.until - now);
  }
  return wait;
}

std::vector<size_t> MovingPass::live_at(int64_t time) const {
  std::vector<size_t> live;
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const bool lives = buffer(i).begin <= time && time < buffer(i).end;
    if (lives && !is_empty(buffer(i))) live.push_back(i);
  }
  return live;
}

MovingPass::Run MovingPass::run(const Offsets& hints, uint64_t seed, Bytes bound,
                                const std::vector<State>& stops,
                                const std::vector<size_t>& changed) {
  random_.seed(seed);
  sort_by(hints);
  size_t event = events_.size();
  for (const size_t i : changed) event = std::min(event, begin_event_[i]);
  Run run;
  for (const State& stop : stops) {
    if (stop.event <= event) run.stops.push_back(stop);
  }
  if (run.stops.empty()) {
    state_ = {};
    state_.at.resize(problem_.buffers.size());
    state_.layout.offsets.resize(problem_.buffers.size());
    state_.holes.push_back({Offset(), top_});
  } else {
    state_ = run.stops.back();
  }
  const size_t stride = events_.size() / kStops + 1;
  for (const size_t begun = state_.event; state_.event < events_.size(); ++state_.event) {
    if (state_.event % stride == 0 && state_.event > begun) run.stops.push_back(state_);
    const Event& now = events_[state_.event];
    if (!now.begins) {
      end(now.buffer);
    } else if (!place(hints)) {
      state_.at[now.buffer] = state_.layout.offsets[now.buffer] = kNowhere;
      state_.spilled.push_back(now.buffer);
      pay(kSpilled * buffer(now.buffer).size);
    }
    if (state_.cost > bound) return run;
  }
  run.complete = true;
  run.end = std::move(state_);
  return run;
}

void MovingPass::sort_by(const Offsets& hints) {
  by_hint_.clear();
  for (const Event& event : events_) {
    if (event.begins && hints[event.buffer] != kNowhere) by_hint_.push_back(event.buffer);
  }
  by_hinted_end_ = by_hint_;
  std::sort(by_hint_.begin(), by_hint_.end(),
            [&](size_t a, size_t b) { return hints[a] < hints[b]; });
  std::sort(by_hinted_end_.begin(), by_hinted_end_.end(), [&](size_t a, size_t b) {
    return hints[a] + buffer(a).size < hints[b] + buffer(b).size;
  });
}

void MovingPass::end(size_t i) {
  if (state_.at[i] == kNowhere) return;
  if (ends_at_preferred(i) && state_.at[i] != *problem_.preferred_offsets[i]) {
    state_.away.push_back(i);
    state_.layout.moved += buffer(i).size;
    pay(buffer(i).size + fee_);
  }
  remove(i);
}

bool MovingPass::place(const Offsets& hints) {
  const auto [time, begins, i] = events_[state_.event];
  const auto put_at = [&, i = i](Offset at) {
    put(i, at);
    state_.layout.offsets[i] = at;
    return true;
  };
  const bool home = begins_at_preferred(i);
  const Offset hint = home ? *problem_.preferred_offsets[i] : hints[i];
  if (hint != kNowhere && is_free(hint, buffer(i).size)) return put_at(hint);
  if (home) return false;
  std::optional<Choice> choice = choose(i, hints);
  if (choice && choice->hindered == Bytes(0)) return put_at(choice->place);
  if (hint != kNowhere && clear_at(i, time, hint, choice ? choice->hindered : kAny)) {
    return put_at(hint);
  }
  if (!choice && clear(i, time)) choice = choose(i, hints);
  return choice && put_at(choice->place);
}

// Chooses the free place that hints claim for the fewest bytes during the buffer's life; among
// equals, one in a hole that fits, next to a buffer that ends at the same time.
std::optional<MovingPass::Choice> MovingPass::choose(size_t i, const Offsets& hints) {
  const Bytes size = buffer(i).size;
  if (!fits(size)) return std::nullopt;
  size_t horizon = end_event_[i];
  if (size * kSmallShare < problem_.capacity) {
    horizon = std::min(horizon, state_.event + kHorizon);
  }
  Edges begins, ends;
  const auto weight_of = [&](size_t other) { return std::min(size, buffer(other).size); };
  // Minus one: a buffer that ends at a place is below it, too.
  const auto last_of = [&](size_t other) {
    return hints[other] + buffer(other).size - Bytes(1);
  };
  // Either those that begin in the buffer's life are sorted, or all that are sorted are asked.
  if ((horizon - state_.event) * kSorting <= std::max(by_hint_.size(), kHorizon * kSorting)) {
    for (size_t k = state_.event + 1; k < horizon && events_[k].time < buffer(i).end; ++k) {
      const size_t other = events_[k].buffer;
      if (!events_[k].begins || hints[other] == kNowhere) continue;
      begins.add(hints[other], weight_of(other));
      ends.add(last_of(other), weight_of(other));
    }
    begins.sort(), ends.sort();
  } else {
    const auto counts = [&](size_t other) {
      return begin_event_[other] > state_.event && buffer(other).begin < buffer(i).end;
    };
    for (const size_t other : by_hint_) {
      if (counts(other)) begins.add(hints[other], weight_of(other));
    }
    for (const size_t other : by_hinted_end_) {
      if (counts(other)) ends.add(last_of(other), weight_of(other));
    }
  }
  begins.add_up(), ends.add_up();
  std::optional<Choice> best;
  double least = 0;
  const auto consider = [&](const Hole& hole, Offset place) {
    if (place < hole.begin || place + size > hole.end) return;
    Bytes hindered = begins.below(place + size) - ends.below(place);
    if (ends_at_preferred(i) && place != *problem_.preferred_offsets[i]) hindered += size;
    if (best && hindered > best->hindered) return;
    const double odd =
        mismatch(i, hole, place) + kChance * static_cast<double>(random_() >> 11) * 0x1p-53;
    if (best && hindered == best->hindered && odd >= least) return;
    best = {place, hindered};
    least = odd;
  };
  for (const Hole& hole : state_.holes) {
    if (hole.size() < size) continue;
    consider(hole, hole.begin);
    if (hole.size() == size) continue;
    if (ends_at_preferred(i)) consider(hole, *problem_.preferred_offsets[i]);
    consider(hole, hole.end - size);
    ends.visit(hole.begin, hole.end - size, [&](Offset e) { consider(hole, e + Bytes(1)); });
    begins.visit(hole.begin + size, hole.end, [&](Offset b) { consider(hole, b - size); });
  }
  return best;
}

// How poorly buffer `i` fits there: by the space that it leaves in the hole, and by how much
// sooner or later its neighbour ends. A pinned buffer should lie beside others that stay.
double MovingPass::mismatch(size_t i, const Hole& hole, Offset place) const {
  const auto share = [&](Bytes part) {
    return static_cast<double>(part.count()) / static_cast<double>(problem_.capacity.count());
  };
  const bool low = place == hole.begin, high = place + buffer(i).size == hole.end;
  std::optional<size_t> neighbour;
  const auto above = from(place);
  if (low && above != state_.live.begin()) neighbour = *std::prev(above);
  if (!low && high && above != state_.live.end()) neighbour = *above;
  double odd = 1;
  if (neighbour) {
    const auto life = [&](size_t j) {
      return static_cast<double>(buffer(j).end - buffer(i).begin + 1);
    };
    odd = std::min(kMaxOdd, std::abs(std::log2(life(*neighbour) / life(i))));
  }
  const bool apart = !pinned_[i].empty() && !((low || high) && stays_beside(i, neighbour));
  return kRest * share(hole.size() - buffer(i).size) + kOdd * odd + (apart ? kApart : 0);
}

// Whether the neighbour stays while `i` is pinned. The arena's ends always stay, and a buffer
// at its preferred offset should.
bool MovingPass::stays_beside(size_t i, std::optional<size_t> neighbour) const {
  if (!neighbour) return true;
  const size_t j = *neighbour;
  if (ends_at_preferred(j) && state_.at[j] == *problem_.preferred_offsets[j]) return true;
  return std::any_of(pinned_[j].begin(), pinned_[j].end(), [&](const auto& stay) {
    return stay.begin < pinned_[i].front().end && pinned_[i].front().begin < stay.end;
  });
}

bool MovingPass::is_free(Offset place, Bytes size) const {
  const auto after =
      std::upper_bound(state_.holes.begin(), state_.holes.end(), place,
                       [](Offset o, const Hole& hole) { return o < hole.begin; });
  return after != state_.holes.begin() && std::prev(after)->end >= place + size;
}

bool MovingPass::fits(Bytes size) const {
  return std::any_of(state_.holes.begin(), state_.holes.end(),
                     [&](const Hole& hole) { return hole.size() >= size; });
}

// The lowest block that begins at or above `place`.
std::vector<size_t>::const_iterator MovingPass::from(Offset place) const {
  return std::lower_bound(state_.live.begin(), state_.live.end(), place,
                          [&](size_t j, Offset o) { return state_.at[j] < o; });
}

// A buffer at its preferred offset costs twice as much, as it has to move back.
std::optional<Bytes> MovingPass::price(size_t i, int64_t time) const {
  const std::optional<Bytes> wait = wait_for(i, time);
  if (!wait) return std::nullopt;
  const bool leaves = ends_at_preferred(i) && state_.at[i] == *problem_.preferred_offsets[i];
  const Bytes once = buffer(i).size + fee_;
  return *wait + (leaves ? 2 * once : once);
}

void MovingPass::put(size_t i, Offset at) {
  std::vector<Hole>& holes = state_.holes;
  const auto hole = std::prev(std::upper_bound(
      holes.begin(), holes.end(), at, [](Offset o, const Hole& h) { return o < h.begin; }));
  const Hole below{hole->begin, at}, above{at + buffer(i).size, hole->end};
  const bool has_below = below.size() > Bytes(0), has_above = above.size() > Bytes(0);
  if (has_below) *hole = below;
  if (has_above && !has_below) *hole = above;
  if (has_above && has_below) holes.insert(std::next(hole), above);
  if (!has_above && !has_below) holes.erase(hole);
  state_.live.insert(from(at), i);
  state_.at[i] = at;
}

void MovingPass::remove(size_t i) {
  state_.live.erase(from(state_.at[i]));
  std::vector<Hole>& holes = state_.holes;
  Hole hole{state_.at[i], end_of(i)};
  auto after = std::lower_bound(holes.begin(), holes.end(), hole.begin,
                                [](const Hole& h, Offset o) { return h.begin < o; });
  if (after != holes.end() && after->begin == hole.end) {
    hole.end = after->end;
    after = holes.erase(after);
  }
  if (after != holes.begin() && std::prev(after)->end == hole.begin) {
    std::prev(after)->end = hole.end;
  } else {
    holes.insert(after, hole);
  }
}

void MovingPass::move(size_t i, int64_t time, Offset to) {
  if (state_.at[i] == to) return;
  remove(i);
  put(i, to);
  state_.layout.moves.push_back({time, i, to});
  state_.layout.moved += buffer(i).size;
  const Bytes wait = wait_for(i, time).value_or(Bytes(0));
  if (wait > Bytes(0)) {
    const Bytes now = problem_.clock[static_cast<size_t>(time)];
    state_.waited_until = std::max(now, state_.waited_until) + wait;
  }
  pay(buffer(i).size + fee_ + wait);
}

}  // namespace tidemark::planner
