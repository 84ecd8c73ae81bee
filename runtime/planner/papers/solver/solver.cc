#include "runtime/planner/papers/solver/solver.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "runtime/core/errors.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/papers/solver/adapters.h"
#include "runtime/planner/papers/solver/mps.h"

namespace tidemark::planner {
namespace {

// The answer to a program that fits into memory is far smaller.
constexpr int64_t kMaxAnswer = int64_t{1} << 30;
// Shares of the remaining time that the solvers are given; the rest is for them to finish in.
// CBC rarely looks at the clock.
constexpr double kShareHighs = 0.85, kShareCbc = 0.75;
// Objectives that agree to this precision count as equal.
constexpr double kAgree = 1e-6;

bool is_executable(const std::string& path) {
  std::error_code ignored;
  return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
}

std::optional<std::string> find_executable(const char* variable, const char* name) {
  if (const char* const set = std::getenv(variable)) {
    if (*set == '\0') return std::nullopt;
    if (!is_executable(set)) {
      throw UsageError(std::string(variable) + " is '" + set + "', which is not an executable");
    }
    return std::filesystem::absolute(set).string();
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (std::filesystem::path(folder) / name).string();
    if (!folder.empty() && is_executable(file)) return std::filesystem::absolute(file).string();
  }
  return std::nullopt;
}

std::optional<std::string> read_if_there(const std::string& path, const std::string& name) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return std::nullopt;
  if (size > kMaxAnswer) throw DataError(name, kMaxAnswer, "is too long");
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string last_line(const std::string& log) {
  const size_t end = log.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return "";
  const size_t begin = log.rfind('\n', end);
  const std::string line = log.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
  return ": " + line.substr(0, std::min<size_t>(line.find('\n'), 200));
}

bool is_less(double a, double b) { return a < b - kAgree * std::max(1.0, std::abs(b)); }

// Accepts of the solver's claims only those that our own check confirms.
void take(const Program& program, Answer answer, double gap, Solution& solution) {
  const auto fail = [&](const std::string& what) {
    throw DataError(solution.solver + "'s solution", what);
  };
  const bool has_start = !solution.values.empty();
  const bool has_values =
      answer.status == SolveStatus::kOptimal || answer.status == SolveStatus::kFeasible;
  if (!has_values && answer.status != SolveStatus::kUnknown) {
    if (has_start && answer.status == SolveStatus::kInfeasible) {
      fail("says infeasible, but the start is a solution");
    }
    solution.status = answer.status;
    return;
  }
  double found = kInfinity;
  if (has_values) {
    for (size_t i = 0; i < answer.values.size(); ++i) {
      double& value = answer.values[i];
      const double integer = std::round(value);
      if (program.variables[i].integer && std::abs(value - integer) <= kIntegerTolerance) {
        value = integer;
      }
    }
    const auto violations = solution_violations(program, answer.values, 10 * kAgree);
    if (!violations.empty()) fail("is not valid: " + violations[0]);
    found = objective(program, answer.values);
    if (answer.status == SolveStatus::kOptimal) {
      answer.bound = std::max(answer.bound, found - gap * std::abs(found));
    }
  }
  if (has_values && (!has_start || found < solution.objective)) {
    solution.values = std::move(answer.values);
    solution.objective = found;
    solution.from_start = false;
  }
  if (solution.values.empty()) {
    solution.bound = answer.bound;
    return;
  }
  if (is_less(solution.objective, answer.bound)) {
    fail("its bound " + to_text(answer.bound) + " is above a solution of " +
         to_text(solution.objective));
  }
  solution.bound = std::min(answer.bound, solution.objective);
  solution.status =
      answer.status == SolveStatus::kOptimal ? SolveStatus::kOptimal : SolveStatus::kFeasible;
}

// `logged`: on the solver's clock, which starts at `begin`. The last is the solution, if any.
void add_improvements(const std::vector<Improvement>& logged, double begin,
                      Solution& solution) {
  const bool has_solution = !solution.values.empty();
  Improvement last{solution.from_start ? begin : solution.seconds, solution.objective,
                   solution.bound};
  for (Improvement improvement : logged) {
    improvement.seconds += begin;
    if (has_solution && !is_less(solution.objective, improvement.objective)) {
      if (!solution.from_start) last.seconds = improvement.seconds;
      last.bound = improvement.bound;
      break;
    }
    solution.improvements.push_back(improvement);
  }
  if (has_solution && solution.from_start) solution.improvements.clear();
  if (has_solution) solution.improvements.push_back(last);
}

}  // namespace

const char* to_string(SolverKind kind) { return kind == SolverKind::kHighs ? "HiGHS" : "CBC"; }

const char* to_string(SolveStatus status) {
  switch (status) {
    case SolveStatus::kOptimal: return "optimal";
    case SolveStatus::kFeasible: return "feasible";
    case SolveStatus::kInfeasible: return "infeasible";
    case SolveStatus::kUnbounded: return "unbounded";
    case SolveStatus::kUnknown: return "no answer";
  }
  return "";
}

std::vector<Solver> find_solvers() {
  std::vector<Solver> found;
  if (auto path = find_executable("TIDEMARK_HIGHS", "highs")) {
    found.push_back({SolverKind::kHighs, std::move(*path)});
  }
  if (auto path = find_executable("TIDEMARK_CBC", "cbc")) {
    found.push_back({SolverKind::kCbc, std::move(*path)});
  }
  return found;
}

Solver require_solver() {
  const std::vector<Solver> found = find_solvers();
  if (found.empty()) {
    throw UsageError(
        "[solver] no solver of integer programs was found: install HiGHS "
        "(scripts/get_highs.sh) or CBC (apt-get install coinor-cbc), or set TIDEMARK_HIGHS or "
        "TIDEMARK_CBC");
  }
  return found[0];
}

Solution solve(const Program& program, const SolveLimits& limits, const Solver& solver) {
  check_program(program);
  const Stopwatch watch(limits.seconds);
  Solution solution;
  solution.solver = to_string(solver.kind);
  if (!program.start.empty()) {
    const auto violations = solution_violations(program, program.start);
    if (!violations.empty()) {
      throw UsageError("[program] the start is not a solution: " + violations[0]);
    }
    solution.status = SolveStatus::kFeasible;
    solution.values = program.start;
    solution.objective = objective(program, program.start);
    solution.from_start = true;
  }
  const bool highs = solver.kind == SolverKind::kHighs;
  const TemporaryFolder folder;
  write_file(folder.file(kModelFile), to_mps(program));
  const double seconds = std::max(0.01, (highs ? kShareHighs : kShareCbc) * watch.left());
  const auto command =
      (highs ? highs_command : cbc_command)(program, folder, limits, seconds, solver.path);
  const double begin = watch.seconds();
  const ProcessEnd end =
      run_process(command, std::max(0.0, watch.left()), folder.file(kLogFile));
  const std::string log = read_if_there(folder.file(kLogFile), "what it printed").value_or("");
  // A solver that was killed may have written half of its solution.
  const auto text =
      end.timed_out ? std::nullopt : read_if_there(folder.file(kSolutionFile), solution.solver);
  if (text)
    take(program, (highs ? read_highs : read_cbc)(program, *text, log), limits.gap, solution);
  if (!text) {
    solution.note = to_string(end, limits.seconds);
    if (!end.timed_out) solution.note += last_line(log);
  }
  solution.seconds = watch.seconds();
  add_improvements((highs ? highs_improvements : cbc_improvements)(log), begin, solution);
  return solution;
}

Solution solve(const Program& program, const SolveLimits& limits) {
  return solve(program, limits, require_solver());
}

}  // namespace tidemark::planner
