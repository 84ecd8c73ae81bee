#include "runtime/planner/layout/moving_layout.h"
#include "tests/support/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tidemark::planner {
namespace {

Bytes blocks(int64_t count) { return kAlignment * count; }
Offset at(int64_t count) { return Offset() + blocks(count); }

MovingProblem problem_of(std::vector<Buffer> buffers, int64_t capacity) {
  MovingProblem problem;
  problem.buffers = std::move(buffers);
  problem.preferred_offsets.resize(problem.buffers.size());
  problem.capacity = blocks(capacity);
  return problem;
}

// Simulates the layout over time, byte range by byte range, and reports the first fault.
class Replay {
 public:
  Replay(const MovingProblem& problem, const MovingLayout& layout)
      : problem_(problem), layout_(layout), places_(problem.buffers.size()) {}

  // Buffers that moved while they were pinned.
  const std::set<size_t>& waits_for() const { return waits_for_; }
  std::string fault() {
    if (layout_.offsets.size() != problem_.buffers.size()) return "an offset for each buffer";
    std::set<int64_t> times;
    for (const Buffer& b : problem_.buffers) {
      if (takes_none(b)) continue;
      times.insert(b.begin), times.insert(b.end);
    }
    if (times.empty()) return layout_.moves.empty() ? "" : "there is nothing to move";
    first_ = *times.begin(), last_ = *times.rbegin();
    for (const Move& move : layout_.moves) times.insert(move.time);
    for (const int64_t time : times) {
      if (std::string fault = step(time); !fault.empty()) return fault;
    }
    if (moves_ != layout_.moves.size()) return "moves are by time";
    return moved_ == layout_.moved ? "" : "moved is the sum";
  }

 private:
  static bool takes_none(const Buffer& b) { return b.begin == b.end || b.size == Bytes(0); }

  std::string step(int64_t time) {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i] || problem_.buffers[i].end != time) continue;
      const auto& home = problem_.preferred_offsets[i];
      if (time == last_ && home && home != places_[i]) moved_ += problem_.buffers[i].size;
      places_[i].reset();
    }
    for (; moves_ < layout_.moves.size() && layout_.moves[moves_].time == time; ++moves_) {
      if (std::string fault = make(layout_.moves[moves_]); !fault.empty()) return fault;
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      if (takes_none(problem_.buffers[i]) || problem_.buffers[i].begin != time) continue;
      const auto& home = problem_.preferred_offsets[i];
      const bool elsewhere = time == first_ && home && *home != layout_.offsets[i];
      if (elsewhere) return "what is there first is at home";
      if (!free(i, layout_.offsets[i])) return "a place is taken at " + std::to_string(time);
      places_[i] = layout_.offsets[i];
    }
    return "";
  }

  std::string make(const Move& move) {
    const std::optional<Offset> from = places_[move.buffer];
    const Bytes size = problem_.buffers[move.buffer].size;
    if (!from) return "what moves lives";
    for (const MovingProblem::PinnedInterval& stay : problem_.pinned) {
      const bool pinned = stay.begin <= move.time && move.time < stay.end;
      if (stay.buffer != move.buffer || !pinned) continue;
      if (stay.until == MovingProblem::kNever) return "what pinned does not move";
      waits_for_.insert(move.buffer);
    }
    if (move.to == *from) return "a move goes elsewhere";
    if (move.to > *from && move.to < *from + size) return "a move onto itself goes down";
    places_[move.buffer].reset();
    if (!free(move.buffer, move.to)) return "a destination is taken";
    places_[move.buffer] = move.to;
    moved_ += size;
    return "";
  }

  bool free(size_t i, Offset place) const {
    const Offset end = place + problem_.buffers[i].size;
    if (place < Offset() || end > Offset() + problem_.capacity) return false;
    if (place.value() % kAlignment.count() != 0) return false;
    for (size_t j = 0; j < places_.size(); ++j) {
      if (!places_[j]) continue;
      if (*places_[j] < end && place < *places_[j] + problem_.buffers[j].size) return false;
    }
    return true;
  }

  const MovingProblem& problem_;
  const MovingLayout& layout_;
  std::vector<std::optional<Offset>> places_;
  int64_t first_ = 0, last_ = 0;
  size_t moves_ = 0;
  std::set<size_t> waits_for_;
  Bytes moved_{0};
};

Limits rounds(int64_t count, const MovingProblem& problem) {
  Limits limits;
  limits.seconds = 1e6;
  limits.nodes = count * static_cast<int64_t>(problem.buffers.size());
  return limits;
}

std::optional<MovingLayout> lay_out(const MovingProblem& problem, int64_t count = 60) {
  auto layout = lay_out_moving(problem, rounds(count, problem));
  if (layout) {
    EXPECT_EQ(Replay(problem, *layout).fault(), "");
  }
  return layout;
}

TEST(MovingLayout, NothingMovesWhereItFits) {
  const auto nothing = lay_out(problem_of({}, 4));
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->offsets.empty());
  // No buffer with a size and a lifetime.
  const auto empty = lay_out(problem_of({{0, 5, Bytes(0)}, {3, 3, blocks(9)}}, 4));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->offsets, Offsets(2));
  // 4 | a a c c
  // 2 | b b b .
  const auto layout =
      lay_out(problem_of({{0, 2, blocks(2)}, {0, 3, blocks(2)}, {2, 4, blocks(2)}}, 4));
  ASSERT_TRUE(layout);
  EXPECT_TRUE(layout->moves.empty());
  EXPECT_EQ(layout->moved, Bytes(0));
}

TEST(MovingLayout, NoneAboveTheCapacity) {
  EXPECT_FALSE(lay_out(problem_of({{0, 2, blocks(3)}, {1, 3, blocks(2)}}, 4)));
  EXPECT_TRUE(lay_out(problem_of({{0, 2, blocks(3)}, {1, 3, blocks(2)}}, 5)));
}

// All begin at their preferred offsets, in the order a b c d, of 2 each. When a and c are gone,
// e needs both their places.
//
//   8 | d d d d              d d d e
//   6 | c c . .              c c . e     either b moves down to a's place, or d to c's, or b
//   4 | b b b b              b b . e     to c's, or d to a's: one move of 2
//   2 | a a . .    ->        a a b b
MovingProblem fragmented() {
  MovingProblem problem = problem_of({{0, 2, blocks(2)},
                                      {0, 9, blocks(2)},
                                      {0, 2, blocks(2)},
                                      {0, 8, blocks(2)},
                                      {3, 9, blocks(4)}},
                                     8);
  for (int64_t k = 0; k < 4; ++k) problem.preferred_offsets[static_cast<size_t>(k)] = at(2 * k);
  return problem;
}

TEST(MovingLayout, OneMoveJoinsTwoHoles) {
  MovingProblem problem = fragmented();
  const auto layout = lay_out(problem);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->moves.size(), 1);
  EXPECT_EQ(layout->moves[0].time, 3);
  // Moving b instead would cost twice as much: it would have to move back.
  EXPECT_EQ(layout->moves[0].buffer, 3);
  EXPECT_EQ(layout->moved, blocks(2));
}

TEST(MovingLayout, WhatEndsAwayFromHomeCounts) {
  MovingProblem problem = fragmented();
  problem.pinned.push_back({3, 0, 8});
  const auto layout = lay_out(problem);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->moves.size(), 1);
  EXPECT_EQ(layout->moves[0].buffer, 1);
  EXPECT_EQ(layout->moved, blocks(4));  // and back
}

TEST(MovingLayout, WhatMustStayIsInTheWay) {
  MovingProblem problem = fragmented();
  problem.pinned = {{1, 3, 4}, {3, 0, 8}};
  EXPECT_FALSE(lay_out(problem));
  // The buffer may move until 3, when nothing requires it, and again from 4 on.
  problem.pinned[0] = {1, 2, 3};
  EXPECT_TRUE(lay_out(problem));
  problem.pinned[0] = {1, 4, 9};
  EXPECT_TRUE(lay_out(problem));
}

// If nothing else can move, a pinned buffer does: the one with the shorter wait.
TEST(MovingLayout, WhatStaysForATimeMovesWhereThatIsWaitedFor) {
  for (const size_t shorter : {1, 3}) {
    MovingProblem problem = fragmented();
    problem.pinned = {{1, 0, 8, blocks(50)}, {3, 0, 8, blocks(50)}};
    problem.pinned[shorter / 2].until = blocks(30);
    for (int64_t time = 0; time < 9; ++time) problem.clock.push_back(blocks(6 * time));
    const auto layout = lay_out(problem);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->moves.size(), 1);
    Replay replay(problem, *layout);
    EXPECT_EQ(replay.fault(), "");
    EXPECT_EQ(replay.waits_for(), std::set<size_t>{shorter});
    // A wait of any length is accepted if it ends.
    problem.pinned[shorter / 2].until = MovingProblem::kNever;
    const auto other = lay_out(problem);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->moves[0].buffer, 4 - shorter);
    problem.pinned[0].until = problem.pinned[1].until = MovingProblem::kNever;
    EXPECT_FALSE(lay_out(problem));
  }
}

// As above, but later buffers need not lie between the others: they are placed with foresight.
TEST(MovingLayout, ForesightSparesMoves) {
  // a to d begin one by one, and two of them end soon: these lie side by side.
  const auto layout = lay_out(problem_of({{0, 5, blocks(2)},
                                          {1, 9, blocks(2)},
                                          {2, 5, blocks(2)},
                                          {3, 9, blocks(2)},
                                          {6, 9, blocks(4)}},
                                         8));
  ASSERT_TRUE(layout);
  EXPECT_TRUE(layout->moves.empty());
}

TEST(MovingLayout, WhatComesBackGoesHome) {
  // Item a is at its preferred offset at first and at the end, and away in between, when b
  // takes all.
  MovingProblem problem = problem_of({{0, 1, blocks(3)},
                                      {0, 9, blocks(1)},
                                      {2, 4, blocks(7)},
                                      {5, 9, blocks(3)},
                                      {6, 8, blocks(4)}},
                                     8);
  problem.preferred_offsets = {at(1), at(0), std::nullopt, at(1), std::nullopt};
  const auto layout = lay_out(problem);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->offsets[3], at(1));
  EXPECT_EQ(layout->moved, Bytes(0));
}

// Holes of 1 between blocks of 2, which fit nowhere else: a long run has to slide.
TEST(MovingLayout, ALongRunSlides) {
  constexpr int64_t kPairs = 600;
  MovingProblem problem;
  for (int64_t k = 0; k < kPairs; ++k) {
    problem.buffers.push_back({0, 8, blocks(2)});
    problem.preferred_offsets.emplace_back(at(3 * k));
    problem.buffers.push_back({0, 2, blocks(1)});
    problem.preferred_offsets.emplace_back(at(3 * k + 2));
  }
  problem.buffers.push_back({3, 9, blocks(kPairs)});
  problem.preferred_offsets.emplace_back();
  problem.capacity = blocks(3 * kPairs);
  const auto layout = lay_out(problem, 2);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->moved, blocks(2 * (kPairs - 1)));
}

struct Draw {
  bool pinned = false;
  bool preferred_offsets = false;
};

// Buffers begin one by one, except for those that are live from the start.
MovingProblem random_moving_problem(uint64_t seed, const Draw& draw) {
  std::mt19937_64 random(seed);
  const auto upto = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n + 1));
  };
  MovingProblem problem;
  const int64_t times = 20 + upto(100);
  Offset home;
  for (int64_t there = upto(8); there > 0; --there) {
    problem.buffers.push_back({0, upto(2) ? times + 8 : 1 + upto(times), blocks(1 + upto(9))});
    problem.preferred_offsets.emplace_back();
    if (draw.preferred_offsets) problem.preferred_offsets.back() = home;
    home = home + problem.buffers.back().size;
  }
  for (int64_t time = 1; time < times; ++time) {
    const int64_t life = 1 + upto(upto(3) ? 6 : 30);
    const Bytes size = blocks(1 + upto(upto(2) ? 4 : 30));
    problem.buffers.push_back({time, std::min(time + life, times + 8), size});
    problem.preferred_offsets.emplace_back();
    const size_t i = problem.buffers.size() - 1;
    if (draw.pinned && upto(3) == 0)
      problem.pinned.push_back({i, time + upto(life), time + life});
  }
  problem.capacity = max_load(problem.buffers);
  return problem;
}

TEST(MovingLayout, WhatFitsIsPlacedWhereAllMayMove) {
  for (const bool preferred_offsets : {false, true}) {
    int moving = 0;
    for (uint64_t seed = 0; seed < tidemark::testing::cases(200u); ++seed) {
      const MovingProblem problem =
          random_moving_problem(seed, {.preferred_offsets = preferred_offsets});
      const auto layout = lay_out(problem);
      ASSERT_TRUE(layout) << seed;
      moving += layout->moves.empty() ? 0 : 1;
      MovingProblem less = problem;
      less.capacity -= kAlignment;
      EXPECT_FALSE(lay_out(less, 1)) << seed;
    }
    EXPECT_GT(moving, tidemark::testing::cases(10));
  }
}

TEST(MovingLayout, MostIsPlacedWhereSomeMustStay) {
  for (const bool preferred_offsets : {false, true}) {
    int placed = 0, placed_with_room = 0;
    for (uint64_t seed = 0; seed < tidemark::testing::cases(200u); ++seed) {
      MovingProblem problem =
          random_moving_problem(seed, {.pinned = true, .preferred_offsets = preferred_offsets});
      placed += lay_out(problem) ? 1 : 0;
      problem.capacity = problem.capacity + share_of(problem.capacity, 0.1);
      placed_with_room += lay_out(problem) ? 1 : 0;
    }
    EXPECT_GT(placed, tidemark::testing::cases(180));
    EXPECT_GT(placed_with_room, tidemark::testing::cases(195));
  }
}

// If pinned buffers may move after a wait, everything is placed; waits are rare if they are
// long.
TEST(MovingLayout, WaitsAreFew) {
  const auto waits = [](int64_t wait) {
    size_t count = 0;
    for (uint64_t seed = 0; seed < tidemark::testing::cases(200u); ++seed) {
      MovingProblem problem = random_moving_problem(seed, {.pinned = true});
      int64_t last = 0;
      for (const Buffer& b : problem.buffers) last = std::max(last, b.end);
      problem.clock.resize(static_cast<size_t>(last) + 1);
      for (MovingProblem::PinnedInterval& stay : problem.pinned) stay.until = blocks(wait);
      const auto layout = lay_out(problem);
      EXPECT_TRUE(layout) << seed;
      if (!layout) continue;
      Replay replay(problem, *layout);
      EXPECT_EQ(replay.fault(), "") << seed;
      count += replay.waits_for().size();
    }
    return count;
  };
  const size_t short_ones = waits(1), long_ones = waits(1000);
  if (tidemark::testing::kSanitized) return;  // too few cases
  EXPECT_GT(long_ones, 0);
  EXPECT_GT(short_ones, 4 * long_ones);
}

TEST(MovingLayout, MoreRoundsAndMoreRoomMoveLess) {
  Bytes few{0}, many{0}, roomy{0};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    MovingProblem problem = random_moving_problem(seed, {.preferred_offsets = true});
    const Bytes first = lay_out(problem, 1)->moved, last = lay_out(problem, 60)->moved;
    EXPECT_LE(last, first) << seed;
    few += first, many += last;
    problem.capacity = problem.capacity + share_of(problem.capacity, 0.2);
    roomy += lay_out(problem)->moved;
  }
  EXPECT_LT(2 * many, few);
  EXPECT_LT(8 * roomy, many);
}

// Small buffers lie apart where there is a little space for it, and so never move.
TEST(MovingLayout, SmallBuffersAreInNobodysWay) {
  constexpr int64_t kLarge = 10'000;  // times as large as the small ones
  size_t moving = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MovingProblem problem = random_moving_problem(seed, {.preferred_offsets = true});
    const size_t large = problem.buffers.size();
    for (size_t i = 0; i < large; ++i) {
      Buffer& buffer = problem.buffers[i];
      buffer.size = buffer.size * kLarge;
      auto& home = problem.preferred_offsets[i];
      // Two small ones lie below them.
      if (home) home = at((*home - at(0)).count() / kAlignment.count() * kLarge + 2);
      problem.buffers.push_back(
          {buffer.begin, std::min(buffer.begin + 7, buffer.end), blocks(1)});
      problem.preferred_offsets.emplace_back();
    }
    int64_t last = 0;
    for (const Buffer& buffer : problem.buffers) last = std::max(last, buffer.end);
    const size_t lowest = problem.buffers.size();
    // One that stays, and one that comes back.
    for (const auto& [begin, end, home] :
         {std::tuple{int64_t{0}, last, 0}, {0, 5, 1}, {9, last, 1}}) {
      problem.buffers.push_back({begin, end, blocks(1)});
      problem.preferred_offsets.emplace_back(at(home));
    }
    problem.capacity = max_load(problem.buffers) + blocks(static_cast<int64_t>(large));
    const auto layout = lay_out(problem, 10);
    ASSERT_TRUE(layout) << seed;
    for (size_t i = lowest; i < problem.buffers.size(); ++i) {
      EXPECT_EQ(layout->offsets[i], *problem.preferred_offsets[i]) << seed;
    }
    for (const Move& move : layout->moves) {
      EXPECT_LT(move.buffer, large) << seed;
      ++moving;
    }
  }
  EXPECT_GT(moving, 10);
}

TEST(MovingLayout, SameNodesAndSeedGiveTheSame) {
  const auto flat = [](const MovingLayout& layout) {
    std::vector<int64_t> numbers{layout.moved.count()};
    for (const Offset o : layout.offsets) numbers.push_back(o.value());
    for (const Move& m : layout.moves) {
      numbers.insert(numbers.end(), {m.time, static_cast<int64_t>(m.buffer), m.to.value()});
    }
    return numbers;
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const MovingProblem problem =
        random_moving_problem(seed, {.pinned = true, .preferred_offsets = true});
    const auto one = lay_out(problem), other = lay_out(problem);
    ASSERT_EQ(one.has_value(), other.has_value());
    if (one) {
      EXPECT_EQ(flat(*one), flat(*other)) << seed;
    }
  }
}

}  // namespace
}  // namespace tidemark::planner
