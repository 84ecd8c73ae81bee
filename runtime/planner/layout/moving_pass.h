// Private to layout/: passes through the time of a MovingProblem.
//
// Each buffer takes its hinted offset if that is free when the buffer begins. Otherwise it
// takes an offset that blocks few bytes hinted for later. If no hole holds it, the cheapest run
// of neighbours is cleared: each neighbour moves to a hole elsewhere, or is compacted within
// the run.
//
//   | a |hole| b | c |hole| d |   hole   |      needed: as much as from a to d
//   | a | c |     free    | d | b | hole |      b fits elsewhere, c pinned in the run
//
// Threads: a pass belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "runtime/planner/layout/moving_layout.h"

namespace tidemark::planner {

class MovingPass {
 public:
  static constexpr Offset kNowhere{-1};
  static constexpr Bytes kAny{std::numeric_limits<int64_t>::max()};

  struct Hole {
    Offset begin, end;
    Bytes size() const { return end - begin; }
  };

  // The state of a pass before an event.
  struct State {
    size_t event = 0;
    Offsets at;
    std::vector<size_t> live;  // by offset
    std::vector<Hole> holes;   // by offset
    MovingLayout layout;
    std::vector<size_t> away;     // that end away from their preferred offset
    std::vector<size_t> spilled;  // without space: their offset is kNowhere
    // Bytes moved, a fee per move, the bytes that could be moved during waits, and a large cost
    // per spilled buffer.
    Bytes cost{0};
    Bytes waited_until{0};  // on the clock: the latest end waited for
  };
  struct Run {
    bool complete = false;  // the cost stayed within the bound
    State end;
    std::vector<State> stops;  // intermediate states, by time

    bool placed() const { return complete && end.spilled.empty(); }
    // Complete runs are better, then runs without spilled buffers; then the cost decides.
    bool better_than(const Run& other) const;
  };

  // REQUIRES: the problem outlives this.
  explicit MovingPass(const MovingProblem& problem);

  // `hints` has an offset or kNowhere per buffer. The run resumes from the last of `stops`
  // before any of `changed` begins, and stops when the cost exceeds `bound`.
  Run run(const Offsets& hints, uint64_t seed, Bytes bound = kAny,
          const std::vector<State>& stops = {}, const std::vector<size_t>& changed = {});

  std::vector<size_t> live_at(int64_t time) const;
  // Whether the buffer must not move at `time`, or only after a wait. Buffers that begin at
  // `time` have not been placed yet.
  bool pinned(size_t i, int64_t time) const;

 private:
  struct Event {
    int64_t time;
    bool begins;
    size_t buffer;
  };
  // Neighbouring blocks: live[first] to live[last].
  struct Window {
    Bytes price;
    size_t first, last;
    Bytes largest;  // of the blocks
    bool operator>(const Window& other) const;
  };
  struct Choice {
    Offset place;
    Bytes hindered;  // bytes hinted there for later
  };
  struct Blocks;  // by offset, with sums

  const Buffer& buffer(size_t i) const { return problem_.buffers[i]; }
  Offset end_of(size_t i) const { return state_.at[i] + buffer(i).size; }
  bool begins_at_preferred(size_t i) const;
  bool ends_at_preferred(size_t i) const;
  bool is_free(Offset place, Bytes size) const;
  bool fits(Bytes size) const;
  // The cost of waiting for a move at `time`, in bytes that could be moved meanwhile. None: the
  // buffer must not move.
  std::optional<Bytes> wait_for(size_t i, int64_t time) const;
  std::optional<Bytes> price(size_t i, int64_t time) const;
  std::vector<size_t>::const_iterator from(Offset place) const;

  void sort_by(const Offsets& hints);
  bool place(const Offsets& hints);
  void end(size_t i);
  std::optional<Choice> choose(size_t i, const Offsets& hints);
  double mismatch(size_t i, const Hole& hole, Offset place) const;
  bool stays_beside(size_t i, std::optional<size_t> neighbour) const;

  bool clear(size_t i, int64_t time);
  bool clear_at(size_t i, int64_t time, Offset place, Bytes bound);
  bool clear_range(size_t i, int64_t time, const Hole& range, size_t first, size_t last);
  bool compact(size_t i, int64_t time, const Blocks& blocks);

  void put(size_t i, Offset at);
  void remove(size_t i);
  void move(size_t i, int64_t time, Offset to);
  void pay(Bytes price) { state_.cost += price; }

  const MovingProblem& problem_;
  const Offset top_;
  const Bytes fee_;  // per move
  int64_t first_time_, last_time_;
  std::vector<Event> events_;
  std::vector<size_t> begin_event_, end_event_;  // by buffer
  std::vector<std::vector<MovingProblem::PinnedInterval>> pinned_;
  std::mt19937_64 random_;
  std::vector<size_t> by_hint_, by_hinted_end_;  // buffers with a hint: by its begin, and end
  State state_;
};

}  // namespace tidemark::planner
