// Greedy starts where memory is short: recomputation goes segment by segment, from the values
// that are kept, and does not start over for each value.
#include "runtime/planner/remat/remat_start.h"

#include <gtest/gtest.h>

#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "tests/runtime/planner/remat/small_problems.h"

namespace tidemark::planner::remat {
namespace {

// f0 -> f1 -> ... -> loss -> ... -> b1 -> b0, where the run b(i) uses f(i) and b(i + 1).
Problem chain(int length) {
  Problem problem;
  for (NodeId i = 0; i < length; ++i) {
    problem.nodes.push_back(
        make_node(1, 1, i == 0 ? std::vector<NodeId>{} : std::vector<NodeId>{i - 1}));
  }
  for (NodeId i = length; i-- > 0;) {
    const NodeId last = problem.size() - 1;
    problem.nodes.push_back(
        make_node(1, 1, i == last ? std::vector<NodeId>{i} : std::vector<NodeId>{i, last}));
  }
  problem.base_time = 2.0 * length;
  return problem;
}

// The least ratio over the weights; infinite if all get stuck.
double best_ratio(const Problem& problem, int64_t budget) {
  const Options options(problem, budget);
  Evaluator evaluator(options);
  double best = std::numeric_limits<double>::infinity();
  for (const double size : {0.3, 0.6, 1.0}) {
    for (const double reach : {0.0, 0.5, 1.0}) {
      const auto start = simulate_start(options, {size, reach, FirstOrder::kEager});
      if (!start) continue;
      const Evaluation evaluation = evaluator.evaluate(*start);
      EXPECT_EQ(evaluation.conflict, Conflict::kNone);
      EXPECT_EQ(evaluation.overflow, 0);
      best = std::min(best, evaluation.time / problem.base_time);
    }
  }
  return best;
}

TEST(RematStart, ChainsInLittleMemory) {
  EXPECT_LE(best_ratio(chain(64), 64), 1.02);
  EXPECT_LE(best_ratio(chain(64), 18), 1.45);
  EXPECT_LE(best_ratio(chain(64), 8), 1.9);
}

TEST(RematStart, RecomputesGradientsInOnePass) {
  const std::string path = TIDEMARK_INSTANCES "/remat/resnet18_32.json.gz";
  const Problem problem = parse_remat_problem(read_text_file(path), path);
  EXPECT_LE(best_ratio(problem, 684617932), 1.14);
  EXPECT_LE(best_ratio(problem, 613144627), 1.26);
}

}  // namespace
}  // namespace tidemark::planner::remat
