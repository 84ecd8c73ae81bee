#include <algorithm>

#include "runtime/planner/papers/solver/adapters.h"
#include "runtime/planner/papers/solver/mps.h"

namespace tidemark::planner {
namespace {

// A solution in HiGHS' own format, rows included.
std::string start_text(const Program& program) {
  std::string text = "Model status\nUnknown\n\n# Primal solution values\nFeasible\nObjective " +
                     to_text(objective(program, program.start)) + "\n# Columns " +
                     std::to_string(program.variables.size()) + "\n";
  for (size_t i = 0; i < program.start.size(); ++i) {
    text += "C" + std::to_string(i) + " " + to_text(program.start[i]) + "\n";
  }
  text += "# Rows " + std::to_string(program.rows.size()) + "\n";
  for (size_t i = 0; i < program.rows.size(); ++i) {
    double sum = 0;
    for (const Term& term : program.rows[i].terms) {
      sum += term.factor * program.start[term.variable];
    }
    text += "R" + std::to_string(i) + " " + to_text(sum) + "\n";
  }
  return text + "\n# Dual solution values\nNone\n\n# Basis\nHiGHS_basis_file v2\nNone\n";
}

bool objective_is_bounded(const Program& program) {
  return std::all_of(program.variables.begin(), program.variables.end(), [](const Variable& v) {
    return v.cost == 0 || (v.cost > 0 ? v.lower > -kInfinity : v.upper < kInfinity);
  });
}

SolveStatus status_of(const Program& program, const std::string& line) {
  if (line == "Optimal") return SolveStatus::kOptimal;
  if (line == "Infeasible") return SolveStatus::kInfeasible;
  if (line == "Unbounded") return SolveStatus::kUnbounded;
  if (line == "Primal infeasible or unbounded") {
    return objective_is_bounded(program) ? SolveStatus::kInfeasible : SolveStatus::kUnbounded;
  }
  return SolveStatus::kUnknown;  // at a limit, or the solver gave up
}

}  // namespace

std::vector<std::string> highs_command(const Program& program, const TemporaryFolder& folder,
                                       const SolveLimits& limits, double seconds,
                                       const std::string& path) {
  write_file(folder.file(kOptionsFile),
             "time_limit = " + to_text(seconds) +
                 "\nthreads = " + std::to_string(limits.threads) +
                 "\nrandom_seed = " + std::to_string(limits.seed % 1'000'000) +
                 "\nmip_rel_gap = " + to_text(limits.gap) + "\n");
  std::vector<std::string> command = {path, "--options_file", folder.file(kOptionsFile),
                                      "--solution_file", folder.file(kSolutionFile)};
  if (!program.start.empty()) {
    write_file(folder.file(kStartFile), start_text(program));
    command.insert(command.end(), {"--read_solution_file", folder.file(kStartFile)});
  }
  command.push_back(folder.file(kModelFile));
  return command;
}

// A row of the table that HiGHS prints, from the right: time, iterations, three counts of rows,
// gap, best solution, best bound, share explored.
//  L       0       0         0   0.00%   -447.9929167    -435   2.99%   207   10   2   35 0.1s
std::vector<Improvement> highs_improvements(const std::string& log) {
  std::vector<Improvement> all;
  Lines lines(log, "HiGHS' log");
  while (lines.next()) {
    const std::vector<std::string>& words = lines.words();
    const size_t count = words.size();
    if (count < 12 || words[count - 1].back() != 's' || words[count - 9].back() != '%')
      continue;
    Improvement row;
    const std::string& time = words[count - 1];
    if (is_number(time.substr(0, time.size() - 1), row.seconds) &&
        is_number(words[count - 7], row.objective) && is_number(words[count - 8], row.bound)) {
      add_improvement(row, all);
    }
  }
  return all;
}

Answer read_highs(const Program& program, const std::string& solution, const std::string& log) {
  Lines lines(solution, "HiGHS' solution");
  Answer answer;
  answer.bound = last_number_after(log, "\n  Dual bound ", -kInfinity);
  if (!lines.next() || lines.line() != "Model status") lines.fail("no model status");
  if (!lines.next()) lines.fail("no model status");
  answer.status = status_of(program, lines.line());
  while (lines.next() && lines.line() != "# Primal solution values") {
  }
  if (!lines.next()) lines.fail("no primal solution values");
  if (lines.line() != "Feasible") {  // "None", or values that violate the program
    if (answer.status == SolveStatus::kOptimal) lines.fail("optimal, but without a solution");
    return answer;
  }
  while (lines.next() && (lines.words().empty() || lines.words()[0] != "#")) {
  }
  const size_t count = program.variables.size();
  if (lines.words().size() != 3 || lines.words()[1] != "Columns" ||
      lines.words()[2] != std::to_string(count)) {
    lines.fail("'" + lines.line() + "' instead of " + std::to_string(count) + " columns");
  }
  answer.values.assign(count, 0);
  std::vector<bool> seen(count, false);
  for (size_t i = 0; i < count; ++i) {
    if (!lines.next() || lines.words().size() != 2) lines.fail("no name and value");
    const size_t at = lines.index(lines.words()[0], 'C', count);
    if (seen[at]) lines.fail("'" + lines.words()[0] + "' appears twice");
    seen[at] = true;
    answer.values[at] = lines.number(lines.words()[1]);
  }
  if (answer.status == SolveStatus::kUnknown) answer.status = SolveStatus::kFeasible;
  return answer;
}

}  // namespace tidemark::planner
