// A captured step whose calls have variants: as a problem, and back as a schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_planner.h"
#include "runtime/planner/remat/step_schedule.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/remat/small_problems.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_parts.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int64_t kLarge = 32768;

struct Step {
  StepTrace trace;
  uint32_t data, w, a, y, p, index, gp, gy, ga, dw;
};

// conv2d -> a, relu6 -> y, max_pool2d -> p and index; then their gradients, 2 ms each. The
// pooling's gradient may read y, the activation's a.
Step step() {
  Step s;
  StepTrace& trace = s.trace;
  const auto storage = [&](int64_t size, bool persistent = false) {
    return testing::add_storage(trace, size, persistent);
  };
  const auto op = [&](const char* name, std::vector<StepTrace::Input> inputs,
                      std::vector<uint32_t> outputs, std::vector<uint32_t> released = {}) {
    testing::add_op(trace, StepTrace::Kind::kCall, name, std::move(inputs), std::move(outputs));
    trace.ops.back().released = std::move(released);
  };
  s.data = storage(512);
  s.w = storage(512, true);
  s.a = storage(kLarge);
  s.y = storage(kLarge);
  s.p = storage(kLarge / 4);
  s.index = storage(kLarge / 16);
  s.gp = storage(kLarge / 4);
  s.gy = storage(kLarge);
  s.ga = storage(kLarge);
  s.dw = storage(512);
  op("upload", {}, {s.data});
  trace.ops[0].kind = StepTrace::Kind::kUpload;
  op("conv2d", {{s.data}, {s.w}}, {s.a});
  op("relu6", {{s.a}}, {s.y}, {s.a});  // its gradient reads y
  op("max_pool2d", {{s.y}}, {s.p, s.index});
  op("loss_grad", {{s.p}}, {s.gp}, {s.p});
  op("max_pool2d_grad", {{s.gp}, {s.index}}, {s.gy}, {s.gp, s.index});
  trace.ops.back().variants = {{.name = "from_input",
                                .inputs = {{s.gp}, {s.y}},
                                .workspace = Bytes(1024),
                                .cost = Nanos(3'000'000)}};
  op("relu6_grad", {{s.gy}, {s.y}}, {s.ga}, {s.gy, s.y});
  trace.ops.back().may_overwrite = {s.gy};
  trace.ops.back().variants = {{.name = "from_input",
                                .inputs = {{s.gy}, {s.a}},
                                .may_overwrite = {s.gy},
                                .cost = Nanos(2'000'000)}};
  op("conv2d_grad_weight", {{s.ga}, {s.data}}, {s.dw}, {s.ga, s.data});
  op("update_", {{s.w, 0, true}, {s.dw}}, {}, {s.dw});
  return s;
}

std::vector<std::vector<NodeId>> inputs(const Node& node) {
  std::vector<std::vector<NodeId>> all;
  for (const Variant& variant : node.variants) all.push_back(variant.inputs);
  return all;
}

TEST(StepVariants, AreThoseOfTheNode) {
  const StepTrace trace = step().trace;
  ASSERT_THAT(trace_violations(trace), IsEmpty());
  const StepProblem made = problem_from_step(trace);
  const std::vector<Node>& nodes = made.problem.nodes;
  EXPECT_NO_THROW(check_problem(made.problem));
  EXPECT_EQ(nodes[3].rider_of, 2) << "pooling's index";
  EXPECT_THAT(inputs(nodes[5]), ElementsAre(ElementsAre(3, 4), ElementsAre(1, 4)));
  EXPECT_THAT(made.variant_of[5], ElementsAre(0, 1));
  EXPECT_EQ(nodes[5].variants[1].workspace, 1024);
  EXPECT_DOUBLE_EQ(nodes[5].variants[1].time, 3);
  // From y, from a; each also in place of the gradient.
  EXPECT_THAT(inputs(nodes[6]), ElementsAre(ElementsAre(1, 5), ElementsAre(1, 5),
                                            ElementsAre(0, 5), ElementsAre(0, 5)));
  EXPECT_THAT(made.variant_of[6], ElementsAre(0, 0, 1, 1));
  for (const size_t v : {1, 3}) EXPECT_EQ(nodes[6].variants[v].overwrites, 5) << v;
  const StepProblem plain = problem_from_step(trace, {.variants = false});
  EXPECT_EQ(plain.problem.nodes[5].variants.size(), 1U);
  EXPECT_THAT(plain.variant_of[6], ElementsAre(0, 0));
}

// A schedule without them is one with them. Where y has to go while the loss is computed, its
// gradient from a takes one run again, from y two.
TEST(StepVariants, NeverTakeMoreAndSaveRuns) {
  StepTrace trace = step().trace;
  trace.ops[4].workspace = Bytes(3 * kLarge);
  const Problem plain =
      problem_from_step(trace, {.in_place = false, .variants = false}).problem;
  const Problem more = problem_from_step(trace, {.in_place = false}).problem;
  int feasible = 0, quicker = 0;
  const int64_t apart = testing::kSanitized ? 16384 : 1024;
  for (int64_t budget = 0; budget < 8 * kLarge; budget += apart) {
    const double with = optimum(more, budget), without = optimum(plain, budget);
    EXPECT_LE(with, without) << budget;
    feasible += with < kInfinite;
    quicker += with < without;
  }
  EXPECT_GT(feasible, 0);
  EXPECT_GT(quicker, 0);
}

// The search's plans in all budgets, as schedules: valid, of the time planned, and some run
// variants, although the program has dropped what these read.
TEST(StepVariants, AreInTheSchedule) {
  StepTrace trace = step().trace;
  trace.ops[4].workspace = Bytes(3 * kLarge);
  const StepProblem problem = problem_from_step(trace);
  const PlanLimits limits{.space = Bytes(16 * kLarge)};
  int found = 0, with_variants = 0;
  for (int64_t budget = 2 * kLarge; budget < 8 * kLarge; budget += 4096) {
    RematOptions options;
    options.limits.seconds = 1e9;
    options.limits.nodes = 2000;
    const RematPlan plan = plan_remat(problem.problem, budget, options);
    if (!plan.found()) continue;
    const StepSchedule made =
        schedule_from_runs(trace, problem, plan.schedule.events, limits, {});
    ASSERT_TRUE(made.schedule) << made.why_not;
    EXPECT_THAT(schedule_violations(trace, limits, *made.schedule), IsEmpty()) << budget;
    const auto run = [](const auto& it) { return it.variant != 0; };
    const auto& code = made.schedule->code;
    with_variants += std::any_of(code.begin(), code.end(), run);
    PlanLimits quick = limits;  // the upload takes no time
    quick.in_bandwidth = 1e18;
    const double ms =
        static_cast<double>(simulate(trace, quick, *made.schedule).time.count()) * 1e-6;
    EXPECT_NEAR(ms, plan.schedule.time, 1e-3) << budget;
    ++found;
  }
  EXPECT_GT(found, 10);
  EXPECT_GT(with_variants, 3);
}

// A variant is left out if it reads what was there before and the program has dropped.
TEST(StepVariants, ReadWhatAScheduleCanKeep) {
  Step s = step();
  s.trace.ops[7].released = {s.ga};
  s.trace.ops[3].released = {s.data};
  s.trace.ops[7].inputs = {{s.ga}};
  s.trace.ops[6].variants[0].inputs = {{s.gy}, {s.data}};
  const StepProblem made = problem_from_step(s.trace);
  EXPECT_THAT(made.variant_of[6], ElementsAre(0, 0));
}

}  // namespace
}  // namespace tidemark::planner::remat
