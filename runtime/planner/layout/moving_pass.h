// Private to layout/: passes through the time of a MovingProblem.
//
// Each buffer takes the place that it is hinted at if that is free when it begins, else one
// that is in the way of few bytes hinted at for later. Where no hole holds it, the run of
// neighbours is cleared that costs least to move: each of them goes to a hole elsewhere, or
// slides down within the run.
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

  // What a pass has come to before an event.
  struct State {
    size_t event = 0;
    Offsets at;
    std::vector<size_t> live;  // by offset
    std::vector<Hole> holes;   // by offset
    MovingLayout layout;
    std::vector<size_t> away;  // do not end at home
    std::vector<size_t>
        spilled;  // found no place, so they are nowhere; their offset is kNowhere
    // What is moved, something for each move, what could be moved while moves wait, and much
    // more for what is spilled.
    Bytes cost{0};
    Bytes waited_until{0};  // of the clock: the latest end that was waited for
  };
  struct Run {
    bool complete = false;  // it did not exceed the bound
    State end;
    std::vector<State> stops;  // on the way, by time

    bool placed() const { return complete && end.spilled.empty(); }
    // What is placed is; then the cost counts.
    bool better_than(const Run& other) const;
  };

  // REQUIRES: the problem outlives this.
  explicit MovingPass(const MovingProblem& problem);

  // `hints` has an offset or kNowhere for each. It goes on from the last of `stops` before
  // which nothing of `changed` begins, and gives up where the cost exceeds `bound`.
  Run run(const Offsets& hints, uint64_t seed, Bytes bound = kAny,
          const std::vector<State>& stops = {}, const std::vector<size_t>& changed = {});

  std::vector<size_t> live_at(int64_t time) const;
  // It must not be moved then, or not without a wait; what begins then has yet to be placed.
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
    Bytes hindered;  // so much is hinted at there for later
  };
  struct Blocks;  // by offset, with sums

  const Buffer& buffer(size_t i) const { return problem_.buffers[i]; }
  Offset end_of(size_t i) const { return state_.at[i] + buffer(i).size; }
  bool begins_at_home(size_t i) const;
  bool ends_at_home(size_t i) const;
  bool is_free(Offset place, Bytes size) const;
  bool fits(Bytes size) const;
  // Of a move then: what could be moved while it waits, and all that it costs. None: it must
  // not be moved.
  std::optional<Bytes> wait_for(size_t i, int64_t time) const;
  std::optional<Bytes> price(size_t i, int64_t time) const;
  std::vector<size_t>::const_iterator from(Offset place) const;

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
  const Bytes fee_;  // of a move
  int64_t first_time_, last_time_;
  std::vector<Event> events_;
  std::vector<size_t> begin_event_;  // of each buffer
  std::vector<std::vector<MovingProblem::PinnedInterval>> pinned_;
  std::mt19937_64 random_;
  State state_;
};

}  // namespace tidemark::planner
