// An evaluation of an edit is equal to one in full.
#include "runtime/planner/remat/edit_evaluation.h"

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "runtime/planner/remat/remat_bound.h"
#include "runtime/planner/remat/remat_moves.h"
#include "runtime/planner/remat/remat_start.h"
#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {
namespace {

// Edits a sequence at random, in one place or two.
class Editor {
 public:
  Editor(const Options& options, uint64_t seed) : random_(seed), moves_(options, random_) {}

  size_t below(size_t count) { return random_.below(count); }
  void edit(Sequence& sequence) {
    for (size_t count = 1 + below(2); count > 0 && !sequence.empty(); --count) {
      const auto at = static_cast<int32_t>(below(sequence.size()));
      const size_t kind = below(6);
      if (kind == 0) {
        moves_.remove(sequence, at);
      } else if (kind == 1) {
        moves_.shift(sequence, at, 5);
      } else if (kind == 2) {
        moves_.switch_option(sequence, at);
      } else if (kind == 3) {
        moves_.relocate(sequence, at);
      } else {
        compute_again(sequence, at);
      }
    }
  }

 private:
  void compute_again(Sequence& sequence, int32_t at) {
    moves_.look_at(sequence, at);
    if (moves_.live().empty()) return;
    const NodeId value = moves_.live()[below(moves_.live().size())];
    moves_.compute_before(sequence, moves_.next_use(value), value);
  }

  Random random_;
  Moves moves_;
};

Sequence without_idle(const Sequence& sequence, const Evaluator& evaluator) {
  Sequence result;
  for (int32_t k = 0; k < static_cast<int32_t>(sequence.size()); ++k) {
    if (!evaluator.run(k).is_idle) result.push_back(sequence[k]);
  }
  return result;
}

// Counts the edits without a conflict, and those of them that leave idle runs.
void compare(const Options& options, uint64_t seed, int& valid, int& idle) {
  const std::optional<Sequence> start =
      keep_all(options, FirstOrder::kAsListed, Preference::kFastest);
  if (!start) return;
  Evaluator full(options);
  EditEvaluator edits(options);
  Editor editor(options, seed);
  Sequence anchor = *start;
  edits.anchor(anchor);
  for (int k = 0; k < 200; ++k) {
    Sequence sequence = anchor;
    editor.edit(sequence);
    const Evaluation expected = full.evaluate(sequence), found = edits.evaluate(sequence);
    ASSERT_EQ(found.conflict, expected.conflict);
    if (expected.conflict != Conflict::kNone) continue;
    ++valid;
    idle += expected.has_idle ? 1 : 0;
    ASSERT_EQ(found.overflow, expected.overflow);
    ASSERT_NEAR(found.time, expected.time, 1e-9);
    const Sequence kept = without_idle(sequence, full);
    edits.drop_idle(sequence);
    ASSERT_EQ(sequence, kept);
    if (editor.below(4) > 0 || sequence.size() > 3 * start->size()) continue;
    anchor = sequence;
    edits.anchor(anchor);
  }
}

TEST(EditEvaluator, AgreesWithAnEvaluationInFull) {
  int valid = 0, idle = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = random_small(seed);
    try {
      check_problem(problem);
    } catch (const std::exception&) {
      continue;
    }
    compare(Options(problem, bound_budget(problem) + 2), seed, valid, idle);
  }
  EXPECT_GT(valid, 10'000);
  EXPECT_GT(idle, 1000);
}

}  // namespace
}  // namespace tidemark::planner::remat
