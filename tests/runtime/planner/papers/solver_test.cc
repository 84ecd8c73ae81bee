// Programs with known answers, in each solver that the system has; and solvers that lie,
// stutter, hang or die, played by shell scripts.
#include "runtime/planner/papers/solver/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "runtime/core/errors.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/papers/solver/adapters.h"
#include "runtime/planner/papers/solver/mps.h"
#include "runtime/planner/papers/solver/process.h"
#include "tests/runtime/planner/papers/solvers.h"
#include "tests/support/environment.h"
#include "tests/support/usage_error.h"

namespace tidemark::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three things of weights 3, 4, 5 and worth 4, 5, 6 into a sack of 7: the first two, worth 9.
Program knapsack() {
  Program program;
  const double weight[] = {3, 4, 5}, worth[] = {4, 5, 6};
  Row fits{.name = "fits", .upper = 7};
  for (int i = 0; i < 3; ++i) {
    const int v = program.add_binary("take" + std::to_string(i));
    program.variables[v].cost = -worth[i];
    fits.terms.push_back({v, weight[i]});
  }
  program.add_row(fits);
  return program;
}

class EachSolver : public ::testing::TestWithParam<SolverKind> {
 protected:
  void SetUp() override {
    const auto solver = solver_of(GetParam());
    if (!solver) GTEST_SKIP() << "this system has no " << to_string(GetParam());
    solver_ = *solver;
  }
  Solution run(const Program& program, double seconds = 30) const {
    return solve(program, {.seconds = seconds}, solver_);
  }
  Solver solver_;
};

INSTANTIATE_TEST_SUITE_P(, EachSolver, ::testing::Values(SolverKind::kHighs, SolverKind::kCbc),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(EachSolver, FindsTheOptimum) {
  const Solution solution = run(knapsack());
  EXPECT_EQ(solution.status, SolveStatus::kOptimal) << solution.note;
  EXPECT_THAT(solution.values, ::testing::ElementsAre(1, 1, 0));
  EXPECT_DOUBLE_EQ(solution.objective, -9);
  EXPECT_NEAR(solution.bound, -9, 1e-5);
  EXPECT_FALSE(solution.from_start);
}

TEST_P(EachSolver, TellsWhenItFoundBetterSolutions) {
  // Large enough that the first solution is not the best.
  Program program;
  std::mt19937_64 random(3);
  for (int i = 0; i < 30; ++i) {
    program.variables[program.add_binary("b")].cost = -5 - static_cast<double>(random() % 56);
  }
  for (int r = 0; r < 8; ++r) {
    Row row{.name = "r", .upper = 300};
    for (int i = 0; i < 30; ++i) {
      row.terms.push_back({i, 1 + static_cast<double>(random() % 60)});
    }
    program.add_row(row);
  }
  const Solution solution = run(program);
  ASSERT_EQ(solution.status, SolveStatus::kOptimal) << solution.note;
  // HiGHS begins with a poor one; CBC's first may be the best.
  ASSERT_GE(solution.improvements.size(), GetParam() == SolverKind::kHighs ? 2u : 1u);
  EXPECT_EQ(solution.improvements.back().objective, solution.objective);
  EXPECT_LE(solution.improvements.back().seconds, solution.seconds);
  for (size_t i = 1; i < solution.improvements.size(); ++i) {
    EXPECT_LT(solution.improvements[i].objective, solution.improvements[i - 1].objective);
    EXPECT_GE(solution.improvements[i].seconds, solution.improvements[i - 1].seconds);
  }
  program.start = solution.values;
  const Solution again = run(program);
  ASSERT_EQ(again.improvements.size(), 1u) << "nothing is better than the start";
  EXPECT_EQ(again.improvements[0].objective, solution.objective);
}

TEST_P(EachSolver, BeginsWithAStart) {
  Program program = knapsack();
  program.start = {0, 0, 1};
  EXPECT_DOUBLE_EQ(run(program).objective, -9);
  program.start = {1, 1, 0};
  EXPECT_EQ(run(program).status, SolveStatus::kOptimal);
  program.start = {1, 1, 1};
  EXPECT_THROW(run(program), UsageError);
}

TEST_P(EachSolver, TakesEveryKindOfBoundAndRow) {
  Program program;
  const int free = program.add_variable({.name = "free", .lower = -kInfinity, .cost = 1});
  const int below = program.add_variable(
      {.name = "below", .lower = -kInfinity, .upper = 4, .integer = true, .cost = -2});
  const int fixed = program.add_variable({.name = "fixed", .lower = 2.5, .upper = 2.5});
  const int big = program.add_variable({.name = "big", .integer = true, .cost = 1e-3});
  program.add_variable({.name = "idle", .lower = 1, .upper = 3, .cost = 1});
  program.add_row({.name = "range", .lower = -3, .upper = 8, .terms = {{free, 1}, {below, 1}}});
  program.add_row({.name = "least", .lower = -6, .terms = {{free, 1}, {fixed, 1}}});
  program.add_row({.name = "equal", .lower = 700, .upper = 700, .terms = {{big, 0.5}}});
  program.add_row({.name = "any", .terms = {{free, 1}}});
  const Solution solution = run(program);
  ASSERT_EQ(solution.status, SolveStatus::kOptimal) << solution.note;
  EXPECT_THAT(solution.values,
              ::testing::Pointwise(::testing::DoubleNear(1e-6), {-7.0, 4.0, 2.5, 1400.0, 1.0}));
}

TEST_P(EachSolver, SaysThatThereIsNone) {
  Program program = knapsack();
  program.add_row({.name = "too much", .lower = 4, .terms = {{0, 1}, {1, 1}, {2, 1}}});
  const Solution solution = run(program);
  EXPECT_EQ(solution.status, SolveStatus::kInfeasible) << solution.note;
  EXPECT_THAT(solution.values, IsEmpty());
}

TEST_P(EachSolver, SaysThatThereIsNoLeast) {
  Program program;
  program.add_variable({.name = "x", .integer = true, .cost = -1});
  program.add_variable({.name = "y"});
  program.add_row({.name = "r", .upper = 3, .terms = {{0, -1}, {1, 1}}});
  EXPECT_EQ(run(program).status, SolveStatus::kUnbounded);
}

// Random programs of a few binary variables, against enumeration.
TEST_P(EachSolver, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    Program program;
    for (int i = 0; i < 6; ++i) {
      program.variables[program.add_binary("b")].cost = static_cast<double>(random() % 19) - 9;
    }
    for (int r = 0; r < 5; ++r) {
      Row row{.name = "r", .upper = static_cast<double>(random() % 12) - 3};
      for (int i = 0; i < 6; ++i) {
        if (random() % 2 == 0) row.terms.push_back({i, static_cast<double>(random() % 9) - 4});
      }
      program.add_row(row);
    }
    double best = kInfinity;
    for (unsigned mask = 0; mask < 64; ++mask) {
      std::vector<double> values(6);
      for (unsigned i = 0; i < 6; ++i) values[i] = (mask >> i) & 1;
      if (solution_violations(program, values).empty()) {
        best = std::min(best, objective(program, values));
      }
    }
    const Solution solution = run(program);
    if (best == kInfinity) {
      EXPECT_EQ(solution.status, SolveStatus::kInfeasible) << "seed " << seed;
    } else {
      EXPECT_EQ(solution.status, SolveStatus::kOptimal) << "seed " << seed;
      EXPECT_DOUBLE_EQ(solution.objective, best) << "seed " << seed;
    }
  }
}

// A market split problem, which no solver solves within a test's time.
TEST_P(EachSolver, KeepsTheStartAtTheDeadline) {
  Program program;
  std::mt19937_64 random(1);
  for (int i = 0; i < 50; ++i) program.start.push_back(program.add_binary("b") < 0 ? 1 : 0);
  for (int r = 0; r < 6; ++r) {
    Row row{.name = "half"};
    double sum = 0;
    for (int i = 0; i < 50; ++i) {
      row.terms.push_back({i, static_cast<double>(random() % 100)});
      sum += row.terms.back().factor;
    }
    row.lower = row.upper = std::floor(sum / 2);
    for (const double sign : {1.0, -1.0}) {
      const int slack = program.add_variable({.name = "slack", .cost = 1});
      program.start.push_back(sign > 0 ? row.upper : 0);
      row.terms.push_back({slack, sign});
    }
    program.add_row(row);
  }
  const Solution solution = run(program, 0.5);
  EXPECT_EQ(solution.status, SolveStatus::kFeasible);
  EXPECT_LE(solution.objective, objective(program, program.start));
  EXPECT_LE(solution.bound, solution.objective);
  EXPECT_THAT(solution_violations(program, solution.values, 1e-5), IsEmpty());
}

// --- solvers played by scripts ------------------------------------------------------------

class FakeSolver : public ::testing::Test {
 protected:
  // `script` is the whole solver; $out holds the name of its solution file.
  Solver fake(SolverKind kind, const std::string& script) const {
    const std::string path = folder_.file("fake");
    const char* const option = kind == SolverKind::kHighs ? "--solution_file" : "-solution";
    std::ofstream(path) << "#!/bin/sh\nprev=\nfor a in \"$@\"; do if [ \"$prev\" = " << option
                        << " ]; then out=$a; fi; prev=$a; done\n"
                        << script << "\n";
    chmod(path.c_str(), 0700);
    return {kind, path};
  }
  Solution run(SolverKind kind, const std::string& script,
               const Program& program = knapsack()) const {
    return solve(program, {.seconds = 20}, fake(kind, script));
  }
  // A killed process dies soon, but not at once. It then is a zombie until the process that
  // adopted it has reaped it. A process that was not killed would live for many minutes.
  static bool dies(pid_t pid) {
    for (const Stopwatch watch(60); !watch.expired();) {
      std::string state;
      std::ifstream status("/proc/" + std::to_string(pid) + "/status");
      for (std::string word; status >> word;) {
        if (word == "State:") status >> state;
      }
      if (state.empty() || state == "Z" || state == "X") return true;
    }
    return false;
  }
  std::string what_throws(SolverKind kind, const std::string& answer) const {
    return tidemark::testing::message_of<DataError>(
        [&] { run(kind, "cat > $out <<'E'\n" + answer + "\nE"); });
  }
  std::string what_highs_throws(const std::string& answer) const {
    return what_throws(SolverKind::kHighs, answer);
  }
  std::string what_cbc_throws(const std::string& answer) const {
    return what_throws(SolverKind::kCbc, answer);
  }

  TemporaryFolder folder_;
};

const char* const kHead = "Model status\nOptimal\n\n# Primal solution values\n";

TEST_F(FakeSolver, IsBelievedWhenItIsRight) {
  const Solution solution =
      run(SolverKind::kHighs,
          std::string("echo; echo '  Dual bound   -9'; cat > $out <<'E'\n") + kHead +
              "Feasible\nObjective -9\n# Columns 3\nC2 0\nC0 1\nC1 "
              "0.9999999\n# Rows 1\nR0 7\nE");
  EXPECT_EQ(solution.status, SolveStatus::kOptimal);
  EXPECT_THAT(solution.values, ::testing::ElementsAre(1, 1, 0));
  EXPECT_EQ(solution.bound, -9);
}

TEST_F(FakeSolver, GarbageIsAnErrorWithThePlace) {
  const std::string values = kHead + std::string("Feasible\nObjective -9\n# Columns ");
  EXPECT_THAT(what_highs_throws("<html>"), HasSubstr("no model status"));
  EXPECT_THAT(what_highs_throws("Model status"), HasSubstr("no model status"));
  EXPECT_THAT(what_highs_throws("Model status\nOptimal"), HasSubstr("no primal"));
  EXPECT_THAT(what_highs_throws(kHead + std::string("None")), HasSubstr("without a solution"));
  EXPECT_THAT(what_highs_throws(values + "2\nC0 1\nC1 1"), HasSubstr("instead of 3 columns"));
  EXPECT_THAT(what_highs_throws(values + "3\nC0 1\nC1 1"), HasSubstr("no name and value"));
  EXPECT_THAT(what_highs_throws(values + "3\nC0 1\nC0 1\nC1 1"), HasSubstr("appears twice"));
  EXPECT_THAT(what_highs_throws(values + "3\nC0 1\nC3 1\nC1 1"), HasSubstr("no 'C3' in the"));
  EXPECT_THAT(what_highs_throws(values + "3\nC0 1\nC2 one\nC1 1"),
              AllOf(HasSubstr("'one' is not a number"),
                    HasSubstr("byte 86")));  // where its line begins
  EXPECT_THAT(what_cbc_throws(""), HasSubstr("no status"));
  EXPECT_THAT(what_cbc_throws("Maybe - objective value 3"),
              HasSubstr("'Maybe' is not a status"));
  EXPECT_THAT(what_cbc_throws("Optimal - objective value -9\n 0 C0"),
              HasSubstr("is not an index"));
  EXPECT_THAT(what_cbc_throws("Optimal - objective value -9\n 0 C7 1 0"), HasSubstr("no 'C7'"));
}

TEST_F(FakeSolver, IsNotBelievedWhenItIsWrong) {
  const std::string values = kHead + std::string("Feasible\nObjective -9\n# Columns 3\n");
  EXPECT_THAT(what_highs_throws(values + "C0 1\nC1 1\nC2 1"),
              HasSubstr("'fits' adds up to 12"));
  EXPECT_THAT(what_highs_throws(values + "C0 1\nC1 0.5\nC2 0"), HasSubstr("not an integer"));
  EXPECT_THAT(what_highs_throws(values + "C0 2\nC1 0\nC2 0"), HasSubstr("outside"));
  EXPECT_THAT(what_highs_throws(values + "C0 nan\nC1 0\nC2 0"), HasSubstr("outside"));
  EXPECT_THAT(what_cbc_throws("Optimal - objective value -15\n0 C0 1 0\n1 C1 1 0\n2 C2 1 0"),
              HasSubstr("'fits' adds up to 12"));
  Program program = knapsack();
  program.start = {1, 0, 0};
  EXPECT_THROW(run(SolverKind::kHighs,
                   "printf 'Model status\\nInfeasible\\n\\n# Primal solution "
                   "values\\nNone\\n' > $out",
                   program),
               DataError);
  // The bound is above the start.
  EXPECT_THROW(
      run(SolverKind::kCbc,
          "echo; echo 'Lower bound: -3'; echo 'Stopped on time - objective value 1e50' "
          "> $out",
          program),
      DataError);
}

// Rows of solvers' logs; a log may hold anything.
TEST(Improvements, AreReadFromLogs) {
  const auto highs = highs_improvements(
      "Src  Proc. InQueue |  Leaves   Expl. | BestBound       BestSol    Gap | LpIters  Time\n"
      "\n"
      "         0       0         0   0.00%   -inf   inf      inf   0   0   0         0   "
      "0.0s\n"
      " J       0       0         0   0.00%   -inf   -5    Large    0   0   0         0   "
      "0.0s\n"
      "         0       0         0   0.00%   -9.5   -5  90.00%     0   0   0         3   "
      "0.1s\n"
      " L       1       0         0  50.00%   -9.25  -7  32.14%     2   1   0        12   "
      "2.5s\n"
      " L       1       0         0  50.00%   -9.25  -8  15.62%     2   1   0        12   "
      "1.5s\n"
      " L       1       0         0  50.00%   -9.25  nan  0.00%     2   1   0        12   "
      "3.0s\n"
      " L       1       0         0  50.00%   -9.25  -8x  0.00%     2   1   0        12   "
      "3.0s\n"
      " L       1       0         0  50.00%   -9.25  -8   0.00%     2   1   0        12   "
      "infs\n"
      " s % s % s % s % s % s % s % s\n"
      " T       3       0         2 100.00%   -9     -9   0.00%     2   1   0        20   "
      "4.0s\n"
      "  Timing            4.00");
  ASSERT_EQ(highs.size(), 3u);
  EXPECT_EQ(highs[0].objective, -5);
  EXPECT_EQ(highs[0].bound, -kInfinity);
  EXPECT_EQ(highs[1].objective, -7);
  EXPECT_EQ(highs[1].seconds, 2.5);
  EXPECT_EQ(highs[1].bound, -9.25);
  EXPECT_EQ(highs[2].objective, -9) << "the one that went back in time is not believed";
  const auto cbc = cbc_improvements(
      "Cbc0012I Integer solution of -5 found by rounding after 0 iterations and 0 nodes (0.02 "
      "seconds)\n"
      "Cbc0010I After 0 nodes, 1 on tree, -5 best solution, best possible -9 (0.05 seconds)\n"
      "Cbc0004I Integer solution of -4 found after 9 iterations and 1 nodes (0.06 seconds)\n"
      "Cbc0004I Integer solution of x found after 9 iterations and 1 nodes (0.06 seconds)\n"
      "Cbc0004I Integer solution of -9 found after 9 iterations and 2 nodes (1.5 seconds)\n"
      "Integer solution of\n");
  ASSERT_EQ(cbc.size(), 2u);
  EXPECT_EQ(cbc[1].objective, -9);
  EXPECT_EQ(cbc[1].seconds, 1.5);
  EXPECT_THAT(highs_improvements(""), IsEmpty());
}

// What a killed solver has printed is known, though its solution is lost.
TEST_F(FakeSolver, ThatIsKilledLeavesItsImprovements) {
  const Solution solution =
      solve(knapsack(), {.seconds = 0.5},
            fake(SolverKind::kHighs,
                 "echo ' J 0 0 0 0.00% -12 -6 100.00% 0 0 0 0 0.0s'; exec sleep 1000"));
  EXPECT_EQ(solution.status, SolveStatus::kUnknown);
  ASSERT_EQ(solution.improvements.size(), 1u) << solution.note;
  EXPECT_EQ(solution.improvements[0].objective, -6);
}

// CBC also reports infeasibility if its time was up before it began.
TEST_F(FakeSolver, CbcsInfeasibleIsNoProofWhereItRanOutOfTimeOrHasAStart) {
  const std::string infeasible = "echo 'Infeasible - objective value 0' > $out";
  EXPECT_EQ(run(SolverKind::kCbc, infeasible).status, SolveStatus::kInfeasible);
  EXPECT_EQ(run(SolverKind::kCbc, "echo; echo 'Result - Stopped on time limit'; " + infeasible)
                .status,
            SolveStatus::kUnknown);
  Program program = knapsack();
  program.start = {1, 0, 0};
  const Solution solution = run(SolverKind::kCbc, infeasible, program);
  EXPECT_EQ(solution.status, SolveStatus::kFeasible);
  EXPECT_TRUE(solution.from_start);
}

TEST_F(FakeSolver, ThatHangsIsKilledWithAllItStarted) {
  // The script's child would write later if it lived. `wait` blocks on a child that sleeps.
  Program program = knapsack();
  const Solver solver = fake(SolverKind::kHighs, "echo $$ > " + folder_.file("pid") +
                                                     "; echo half > $out; sleep 1000 & "
                                                     "echo $! >> " +
                                                     folder_.file("pid") + "; wait");
  Solution solution = solve(program, {.seconds = 0.3}, solver);
  EXPECT_EQ(solution.status, SolveStatus::kUnknown);
  EXPECT_EQ(solution.note, "killed after 0.3 s");
  program.start = {1, 0, 0};
  solution = solve(program, {.seconds = 0.3}, solver);
  EXPECT_EQ(solution.status, SolveStatus::kFeasible);
  EXPECT_TRUE(solution.from_start);
  EXPECT_DOUBLE_EQ(solution.objective, -4);
  std::ifstream pids(folder_.file("pid"));
  int count = 0;
  for (pid_t pid = 0; pids >> pid; ++count) {
    EXPECT_TRUE(dies(pid));
  }
  EXPECT_GE(count, 1);  // two if it got that far
}

TEST_F(FakeSolver, ThatDiesIsNoAnswer) {
  const Solution crashed = run(SolverKind::kCbc, "echo out of memory; kill -9 $$");
  EXPECT_EQ(crashed.status, SolveStatus::kUnknown);
  EXPECT_EQ(crashed.note, "ended by signal 9: out of memory");
  const Solution failed = run(SolverKind::kHighs, "echo; echo no licence; exit 4");
  EXPECT_EQ(failed.note, "exit code 4: no licence");
  const Solution absent = solve(knapsack(), {}, {SolverKind::kHighs, folder_.file("none")});
  EXPECT_EQ(absent.status, SolveStatus::kUnknown);
  EXPECT_EQ(absent.note, "could not be started");
}

TEST_F(FakeSolver, DiesWithWhoStartedIt) {
  const std::string pid_file = folder_.file("pid");
  const Solver solver = fake(SolverKind::kCbc, "echo $$ > " + pid_file + "; exec sleep 1000");
  const pid_t child = fork();
  if (child == 0) {
    solve(knapsack(), {.seconds = 1000}, solver);
    _exit(0);
  }
  pid_t pid = 0;
  while (pid == 0) std::ifstream(pid_file) >> pid;
  // A killed process cannot remove its temporary folder.
  const std::string folder =
      std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/cwd").string();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(dies(pid));
  std::filesystem::remove_all(folder);
}

TEST_F(FakeSolver, LeavesNothingBehind) {
  const std::string base = folder_.file("tmp");
  std::filesystem::create_directory(base);
  const tidemark::testing::EnvironmentVariable temporary("TMPDIR", base.c_str());
  const std::string seen = folder_.file("seen");
  EXPECT_NO_THROW(
      run(SolverKind::kHighs, "dirname $out > " + seen + "; touch dropped; exit 1"));
  std::string used;
  std::ifstream(seen) >> used;
  EXPECT_EQ(std::filesystem::path(used).parent_path(), base);
  EXPECT_THROW(run(SolverKind::kHighs, "echo garbage > $out"), DataError);
  solve(knapsack(), {.seconds = 0.1}, fake(SolverKind::kCbc, "sleep 1000"));
  EXPECT_TRUE(std::filesystem::is_empty(base));
  EXPECT_FALSE(std::filesystem::exists("dropped"));
  temporary.set("/no/such/folder");
  EXPECT_NO_THROW(run(SolverKind::kHighs, "exit 1"));  // the default is /tmp
}

TEST_F(FakeSolver, IsFoundByVariableAndPath) {
  const Solver solver = fake(SolverKind::kCbc, "");
  const tidemark::testing::EnvironmentVariable highs("TIDEMARK_HIGHS", ""),
      cbc("TIDEMARK_CBC", "");
  EXPECT_THAT(find_solvers(), IsEmpty());
  try {
    require_solver();
    ADD_FAILURE() << "found one";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("apt-get install coinor-cbc"));
  }
  cbc.set(solver.path.c_str());
  ASSERT_EQ(find_solvers().size(), 1u);
  EXPECT_EQ(find_solvers()[0].kind, SolverKind::kCbc);
  cbc.set("/no/such/cbc");
  EXPECT_THROW(find_solvers(), UsageError);
  cbc.set(nullptr);
  std::filesystem::copy(solver.path, folder_.file("cbc"));
  const std::string folder = std::filesystem::path(solver.path).parent_path();
  const tidemark::testing::EnvironmentVariable path("PATH", folder.c_str());
  ASSERT_EQ(find_solvers().size(), 1u);
  EXPECT_EQ(find_solvers()[0].path, folder_.file("cbc"));
}

TEST(Program, ThatMakesNoSenseIsRefused) {
  const auto expect = [](const char* what, const std::function<void(Program&)>& spoil) {
    Program program = knapsack();
    spoil(program);
    try {
      check_program(program);
      ADD_FAILURE() << what << ": passed";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  };
  expect("variable 1 'take1': its bounds", [](Program& p) { p.variables[1].lower = 2; });
  expect("variable 1 'take1': its bounds", [](Program& p) { p.variables[1].upper = NAN; });
  expect("variable 0 'take0': its cost", [](Program& p) { p.variables[0].cost = kInfinity; });
  expect("row 0 'fits': no such variable: 3", [](Program& p) {
    p.rows[0].terms.push_back({3, 1});
  });
  expect("row 0 'fits': two terms", [](Program& p) { p.rows[0].terms.push_back({0, 1}); });
  expect("row 0 'fits': a coefficient", [](Program& p) { p.rows[0].terms[0].factor = NAN; });
  expect("row 0 'fits': its bounds", [](Program& p) { p.rows[0].lower = 8; });
  expect("the start has 1 values", [](Program& p) { p.start = {1}; });
}

TEST(Mps, WritesAllDigits) {
  EXPECT_EQ(to_text(0.1), "0.1");
  EXPECT_EQ(std::stod(to_text(1.0 / 3)), 1.0 / 3);
  EXPECT_THAT(to_mps(knapsack()), HasSubstr(" C2 COST -6\n C2 R0 5\n"));
}

}  // namespace
}  // namespace tidemark::planner
