// Edits of a sequence of runs.
#include "runtime/planner/remat/remat_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;

// a with a rider r -> b(a) -> c(a) -> d(b, c, r). Runs with one option each, so a run's option
// is its node.
Problem with_rider() {
  Problem problem;
  problem.nodes = {make_node(1, 10, {}), make_node(0, 1, {}), make_node(1, 10, {0}),
                   make_node(1, 10, {0}), make_node(1, 10, {1, 2, 3})};
  problem.nodes[1].rider_of = 0;
  return problem;
}

TEST(RematMoves, ARiderThatIsReadFollowsAnEarlierRunOfItsParent) {
  const Problem problem = with_rider();
  const Options options(problem, 100);
  Random random(1);
  Moves moves(options, random);
  Sequence sequence{0, 2, 0, 1, 3, 4};
  EXPECT_EQ(moves.remove(sequence, 2), 2);
  EXPECT_THAT(sequence, ElementsAre(0, 2, 3, 4));
  moves.attach_left_riders(sequence);
  EXPECT_THAT(sequence, ElementsAre(0, 1, 2, 3, 4));
  moves.attach_left_riders(sequence);
  EXPECT_THAT(sequence, ElementsAre(0, 1, 2, 3, 4)) << "once";
}

TEST(RematMoves, ARiderThatIsThereOrNotReadIsNotAttached) {
  const Problem problem = with_rider();
  const Options options(problem, 100);
  Random random(1);
  Moves moves(options, random);
  Sequence there{0, 1, 2, 0, 1, 3, 4};
  moves.remove(there, 3);
  moves.attach_left_riders(there);
  EXPECT_THAT(there, ElementsAre(0, 1, 2, 3, 4));
  Sequence unread{0, 2, 0, 1, 3};
  moves.remove(unread, 2);
  moves.attach_left_riders(unread);
  EXPECT_THAT(unread, ElementsAre(0, 2, 3));
  Sequence alone{0, 1, 4};  // no other run of its parent
  moves.remove(alone, 0);
  moves.attach_left_riders(alone);
  EXPECT_THAT(alone, ElementsAre(4));
}

}  // namespace
}  // namespace tidemark::planner::remat
