// Every method gives valid schedules on problems that it reads; Chen's and Gist's on literal
// ones; and what a system without a solver is told.
#include "runtime/planner/papers/remat/remat_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "runtime/planner/papers/remat/step_by_method.h"
#include "runtime/planner/remat/remat_validator.h"
#include "tests/runtime/planner/papers/method_names.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/runtime/planner/papers/training_problems.h"
#include "tests/support/environment.h"
#include "tests/support/sanitized.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::HasSubstr;
using ::tidemark::testing::usage_error;

RematResult run(const char* name, const Problem& problem, int64_t budget, double seconds = 20) {
  Limits limits;
  limits.seconds = seconds;
  return find_remat_method(name)->plan(problem, budget, limits);
}

TEST(RematMethods, HaveNamesThatAreFlags) {
  expect_names_that_are_flags(remat_methods(), find_remat_method);
  for (const RematMethod& method : remat_methods()) EXPECT_FALSE(method.what.empty());
}

TEST(RematMethods, MakeValidSchedules) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Problem problem = random_training(seed, 4, seed == 0 ? plain() : TrainingFeatures{});
    const int64_t budget = problem.fixed_bytes + 60;  // more than all values together
    for (const RematMethod& method : remat_methods()) {
      if (method.needs_solver && find_solvers().empty()) continue;
      // Not all of these can do without riders or in-place variants.
      if (method.name == "checkmate" && seed > 0) continue;
      SCOPED_TRACE(method.name + ", seed " + std::to_string(seed));
      Limits limits;
      limits.seconds = 20;
      limits.nodes = 2000;
      const RematResult result = method.plan(problem, budget, limits);
      ASSERT_TRUE(result.fits(budget)) << result.note;
      const Verdict verdict = validate(problem, result.schedule.events);
      EXPECT_EQ(verdict.fault, "");
      EXPECT_EQ(verdict.peak, result.schedule.peak);
      EXPECT_DOUBLE_EQ(verdict.time, result.schedule.time);
      EXPECT_GE(result.schedule.time, optimum(problem, budget) - 1e-9);
    }
  }
}

// random_small() with what no training step has: riders that are required, second ones and
// riders of riders; nodes whose every variant overwrites an input, or is for one kind of run.
Problem random_odd(uint64_t seed) {
  Problem problem = random_small(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](int count) { return static_cast<int>(random() % count); };
  for (NodeId i = 0; i < problem.size(); ++i) {
    Node& node = problem.nodes[i];
    node.required |= below(3) == 0;
    if (i > 0 && node.after.empty() && below(4) == 0) {
      node.rider_of = below(i);
      for (Variant& variant : node.variants) variant.with.reset();
    }
    for (Variant& variant : node.variants) {
      const auto count = static_cast<int>(variant.inputs.size());
      if (count > 0 && below(6) == 0) variant.overwrites = variant.inputs[below(count)];
      if (below(8) == 0) variant.when = below(2) == 0 ? When::kFirst : When::kAgain;
    }
  }
  return problem;
}

TEST(RematMethods, RunAnyProblemOrRefuseIt) {
  const bool has_solver = !find_solvers().empty();
  std::map<std::string, int> ran, refused;
  for (uint64_t seed = 0; seed < tidemark::testing::cases(4000u); ++seed) {
    const Problem problem = seed % 2 == 0 ? random_small(seed) : random_odd(seed);
    if (!usage_error([&] { check_problem(problem); }).empty()) continue;
    for (const RematMethod& method : remat_methods()) {
      if (method.searches || (method.needs_solver && (!has_solver || seed >= 40))) continue;
      SCOPED_TRACE(method.name + ", seed " + std::to_string(seed));
      Limits limits;
      limits.seconds = 20;
      RematResult result;
      const std::string why_not =
          usage_error([&] { result = method.plan(problem, 40, limits); });
      ++(why_not.empty() ? ran : refused)[method.name];
      if (!result.found()) continue;
      EXPECT_EQ(validate(problem, result.schedule.events).fault, "");
    }
  }
  for (const char* name : {"chen", "chen-budget", "gist"}) {
    EXPECT_GT(ran[name], refused[name] / 2) << name;
  }
}

// The first node's by-product must run, although nothing reads it.
Problem with_required_rider() {
  Problem problem;
  problem.base_time = 4;
  problem.nodes = {make_node(1, 1, {}), make_node(1, 1, {}), make_node(1, 1, {0})};
  problem.nodes[1].rider_of = 0;
  problem.nodes[1].required = true;
  return problem;
}

TEST(RematMethods, RunRequiredRiders) {
  for (const RematMethod& method : remat_methods()) {
    if (method.needs_solver && (!method.knows_riders || find_solvers().empty())) continue;
    SCOPED_TRACE(method.name);
    const RematResult result = run(method.name.c_str(), with_required_rider(), 100);
    ASSERT_TRUE(result.fits(100)) << result.note;
    EXPECT_EQ(result.schedule.time, 3);
    EXPECT_EQ(result.schedule.events[1], (Event{1, 0}));
  }
}

TEST(RematMethods, SayWhyTwoRidersCannotRun) {
  Problem problem = with_required_rider();
  problem.nodes.insert(problem.nodes.begin() + 2, problem.nodes[1]);
  for (const char* name : {"chen", "chen-budget", "gist"}) {
    EXPECT_THAT(usage_error([&] { run(name, problem, 100); }),
                HasSubstr("nodes[0] (): two riders must run"));
  }
}

// The only variant of node 1 overwrites what the last node reads: refused. A variant that does
// not is taken, wherever it is listed.
TEST(RematMethods, DoNotOverwriteWhatIsReadLater) {
  Problem problem;
  problem.base_time = 3;
  problem.nodes = {make_node(1, 1, {}), make_node(1, 1, {0}), make_node(1, 1, {0, 1})};
  problem.nodes[1].variants[0].overwrites = 0;
  const auto plan = [&](const char* name) { return run(name, problem, 100).schedule.time; };
  for (const char* name : {"chen", "gist"}) {
    EXPECT_THAT(usage_error([&] { plan(name); }),
                HasSubstr("a rule of the problem: event 2: input 0 is not live: node 2"))
        << name;
  }
  EXPECT_EQ(plan("chen-budget"), 4);  // some segments run node 0 again in time
  problem.nodes[1].variants.push_back(make_node(2, 1, {0}).variants[0]);
  for (const char* name : {"chen", "chen-budget", "gist"}) EXPECT_EQ(plan(name), 4) << name;
}

TEST(RematMethods, SayWhatToInstall) {
  const tidemark::testing::EnvironmentVariable no_highs("TIDEMARK_HIGHS", ""),
      no_cbc("TIDEMARK_CBC", "");
  for (const RematMethod& method : remat_methods()) {
    if (!method.needs_solver) continue;
    EXPECT_THAT(usage_error([&] { method.plan(toy(), 40, {}); }), HasSubstr("install HiGHS"));
  }
}

TEST(RematMethods, EndAtTheDeadline) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  // No solver answers these within a minute.
  struct Case {
    const char* method;
    std::string file;
    int64_t budget;
  };
  for (const Case& it :
       {Case{"monet", TIDEMARK_INSTANCES "/remat/bert-base_32.json.gz", 2983608217},
        Case{"checkmate", TIDEMARK_INSTANCES "/remat/resnet18_32.json.gz", 541671321}}) {
    const Problem problem = parse_remat_problem(read_text_file(it.file), it.file);
    const RematResult result = run(it.method, problem, it.budget, 0.1);
    EXPECT_FALSE(result.found()) << it.method;
    EXPECT_THAT(result.note, ::testing::AnyOf(HasSubstr("in time"), HasSubstr("no time")))
        << it.method;
  }
}

// Two values that a third call reads, in less space than the three take. This method keeps
// everything, says that it fits, and takes all the time that it may: no layout is found, and
// each try leaves time for the next.
TEST(StepByMethod, HasTimeForMargins) {
  constexpr Bytes kSize{4096};
  StepTrace trace;
  trace.storages.resize(4);
  for (StepTrace::Storage& storage : trace.storages) storage.size = kSize;
  const auto add = [&](StepTrace::Kind kind, std::vector<StepTrace::Input> inputs,
                       uint32_t output, std::vector<uint32_t> released) {
    trace.ops.push_back({.kind = kind,
                         .name = "op",
                         .inputs = std::move(inputs),
                         .outputs = {output},
                         .released = std::move(released),
                         .cost = Nanos(1000)});
  };
  add(StepTrace::Kind::kUpload, {}, 0, {});
  add(StepTrace::Kind::kCall, {{0}}, 1, {});
  add(StepTrace::Kind::kCall, {{0}}, 2, {0});
  add(StepTrace::Kind::kCall, {{1}, {2}}, 3, {1, 2, 3});

  std::vector<double> seconds;
  RematMethod method{.name = "keeps-all"};
  method.plan = [&](const Problem& problem, int64_t budget, const Limits& limits) {
    seconds.push_back(limits.seconds);
    std::vector<remat::PlannedRun> runs;
    for (NodeId node = 0; node < problem.size(); ++node) runs.push_back({node, 0});
    RematResult result{.schedule = schedule_runs(problem, runs), .seconds = limits.seconds};
    result.schedule.peak = std::min(result.schedule.peak, budget);
    return result;
  };
  Limits limits;
  limits.seconds = 16;
  const StepByMethod made =
      plan_step_by(method, trace, {.space = Bytes(2 * kSize.count())}, {}, limits);
  EXPECT_FALSE(made.schedule);
  EXPECT_THAT(made.why_not, HasSubstr("no layout"));
  EXPECT_THAT(seconds, ::testing::ElementsAre(8, 4, 2, 1, 0.5, 0.5));
}

// A chain of ten nodes of 10 bytes and time 1; for each a backward node of time 2 that reads
// its value and the gradient, which has no bytes.
Problem chain() {
  Problem problem;
  problem.base_time = 30;
  for (NodeId i = 0; i < 10; ++i) {
    problem.nodes.push_back(
        make_node(1, 10, i > 0 ? std::vector{i - 1} : std::vector<NodeId>{}));
  }
  problem.nodes.push_back(make_node(2, 0, {9}));
  for (NodeId i = 8; i >= 0; --i) {
    problem.nodes.push_back(make_node(2, 0, {i, problem.size() - 1}));
  }
  return problem;
}

// Nine places for cuts; checkpoints 2, 5 and 8; three segments of two values run again.
TEST(Chen, KeepsSquareRootOfAChain) {
  const RematResult result = run("chen", chain(), 0);
  EXPECT_EQ(result.schedule.time, 10 + 20 + 6);
  EXPECT_EQ(result.schedule.peak, 40);
}

TEST(Chen, CutsByBudget) {
  EXPECT_EQ(run("chen-budget", chain(), 100).schedule.time, 30);
  const RematResult half = run("chen-budget", chain(), 50);
  ASSERT_TRUE(half.fits(50)) << half.note;
  EXPECT_GT(half.schedule.time, 30);
  EXPECT_LE(half.schedule.time, 38);
  const RematResult none = run("chen-budget", chain(), 20);
  EXPECT_FALSE(none.found());
  EXPECT_EQ(none.note, "no size of segments fits");
}

// Node 3's by-product, which its backward node reads, runs again with it.
TEST(Chen, RunsRidersWithTheirNodes) {
  Problem problem = chain();
  Node rider = make_node(0, 1, {});
  rider.rider_of = 3;
  problem.nodes.push_back(rider);
  problem.nodes[16].variants[0].inputs = {3, 15, 20};
  problem.nodes[19].required = true;
  const RematResult result = run("chen", problem, 0);
  EXPECT_EQ(result.schedule.time, 10 + 20 + 6);
  EXPECT_EQ(
      std::count(result.schedule.events.begin(), result.schedule.events.end(), Event{20, 0}),
      2);
}

// MONeT decides over more than where segments end. (Where its bounds on memory are coarse, as
// on the toy, a schedule of Chen's may still be faster.)
TEST(Chen, IsNotFasterThanMonetOnAChain) {
  TIDEMARK_SKIP_WITHOUT_SOLVER();
  for (int64_t budget = 100; budget >= 40; budget -= 10) {
    const RematResult chen = run("chen-budget", chain(), budget);
    const RematResult monet = run("monet", chain(), budget);
    ASSERT_TRUE(chen.fits(budget) && monet.fits(budget)) << budget;
    EXPECT_EQ(monet.status, SolveStatus::kOptimal);
    EXPECT_LE(monet.schedule.time, chen.schedule.time) << budget;
  }
}

// x (8 bytes) -> relu (8; in place) -> pool (4), then their gradients: pool's reads relu's
// value or 1 byte of indices, relu's reads its value or 1 byte of signs.
Problem relu_and_pool() {
  Problem problem;
  problem.base_time = 7;
  problem.nodes = {make_node(1, 8, {}),     make_node(1, 8, {0}),   make_node(0, 1, {1}),
                   make_node(1, 4, {1}),    make_node(0, 1, {3}),   make_node(1, 1, {3}),
                   make_node(1, 0, {1, 5}), make_node(1, 0, {1, 6})};
  problem.nodes[2].rider_of = 1;
  problem.nodes[4].rider_of = 3;
  problem.nodes[1].variants.push_back(problem.nodes[1].variants[0]);
  problem.nodes[1].variants[1].overwrites = 0;
  problem.nodes[1].variants[1].workspace = -8;
  for (const auto& [reader, bits] : {std::pair<NodeId, NodeId>{6, 4}, {7, 2}}) {
    problem.nodes[reader].variants.push_back(problem.nodes[reader].variants[0]);
    problem.nodes[reader].variants[1].inputs[0] = bits;
    std::sort(problem.nodes[reader].variants[1].inputs.begin(),
              problem.nodes[reader].variants[1].inputs.end());
  }
  problem.nodes[7].required = true;
  return problem;
}

// Neither encoding alone frees relu's value; both do. Peaks: x and relu share 8 bytes; pool
// runs with relu's 8, its signs and its own 4.
TEST(Gist, EncodesReluAndPoolTogether) {
  const Problem problem = relu_and_pool();
  const RematResult result = run("gist", problem, 0);
  std::vector<Event> runs;
  for (const Event& event : result.schedule.events) {
    if (event.is_run()) runs.push_back(event);
  }
  const std::vector<Event> expected{{0, 0}, {1, 1}, {2, 0}, {3, 0},
                                    {4, 0}, {5, 0}, {6, 1}, {7, 1}};
  EXPECT_EQ(runs, expected);
  EXPECT_EQ(result.schedule.peak, 13);
  // With another reader of relu's value in the backward pass the encodings would only add
  // bytes.
  Problem convolution = problem;
  convolution.nodes.push_back(make_node(1, 0, {1, 6}));
  const RematResult kept = run("gist", convolution, 0);
  for (const Event& event : kept.schedule.events) EXPECT_NE(event.node, 2);
}

}  // namespace
}  // namespace tidemark::planner::remat
