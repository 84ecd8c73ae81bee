#include <algorithm>
#include <cmath>

#include "runtime/planner/papers/solver/adapters.h"
#include "runtime/planner/papers/solver/mps.h"

namespace tidemark::planner {

std::vector<std::string> cbc_command(const Program& program, const TemporaryFolder& folder,
                                     const SolveLimits& limits, double seconds,
                                     const std::string& path) {
  std::vector<std::string> command = {path,          folder.file(kModelFile),
                                      "-timeMode",   "elapsed",
                                      "-seconds",    to_text(seconds),
                                      "-ratioGap",   to_text(limits.gap),
                                      "-randomSeed", std::to_string(limits.seed % 1'000'000)};
  if (!program.start.empty()) {
    // Lists the integers that are not 0; CBC finds the rest by itself.
    std::string text = "Stopped - objective value 0\n";
    for (size_t i = 0; i < program.start.size(); ++i) {
      if (!program.variables[i].integer || program.start[i] == 0) continue;
      text += std::to_string(i) + " C" + std::to_string(i) + " " +
              to_text(std::round(program.start[i])) + " 0\n";
    }
    write_file(folder.file(kStartFile), text);
    command.insert(command.end(), {"-mipstart", folder.file(kStartFile)});
  }
  command.insert(command.end(), {"-solve", "-solution", folder.file(kSolutionFile)});
  return command;
}

// Cbc0012I Integer solution of -9 found by rounding after 0 iterations and 0 nodes (0.02
// seconds)
std::vector<Improvement> cbc_improvements(const std::string& log) {
  std::vector<Improvement> all;
  Lines lines(log, "CBC's log");
  while (lines.next()) {
    const std::vector<std::string>& words = lines.words();
    const size_t count = words.size();
    if (count < 7 || words[1] != "Integer" || words[2] != "solution" ||
        words[count - 1] != "seconds)" || words[count - 2][0] != '(') {
      continue;
    }
    Improvement found;
    if (is_number(words[4], found.objective) &&
        is_number(words[count - 2].substr(1), found.seconds)) {
      add_improvement(found, all);
    }
  }
  return all;
}

Answer read_cbc(const Program& program, const std::string& solution, const std::string& log) {
  // "Optimal - objective value 12.5", "Stopped on time - objective value 13", ...
  Lines lines(solution, "CBC's solution");
  if (!lines.next()) lines.fail("is empty");
  const size_t dash = lines.line().find(" - objective value ");
  if (dash == std::string::npos) lines.fail("no status");
  const std::string status = lines.line().substr(0, dash);
  Answer answer;
  // The bound at the root, with six digits, and the one at the end, with three decimals; either
  // may have been rounded up.
  const double root = last_number_after(log, "Continuous objective value is ", -kInfinity);
  const double end = last_number_after(log, "\nLower bound:", -kInfinity);
  answer.bound = std::max(root - 5e-6 * std::abs(root), end - 5e-4);
  if (status.find("nfeasible") != std::string::npos) {
    // CBC also says this if its time was up before it began. If there is a start, which has
    // been checked, it can mean nothing else.
    const bool out_of_time = log.find("topped on time") != std::string::npos;
    if (!out_of_time && program.start.empty()) answer.status = SolveStatus::kInfeasible;
    return answer;
  }
  if (status.find("nbounded") != std::string::npos) {
    answer.status = SolveStatus::kUnbounded;
    return answer;
  }
  const double objective = lines.number(lines.line().substr(dash + 19));
  constexpr double kNothingFound = 1e49;
  if (status.find("no integer solution") != std::string::npos || objective > kNothingFound) {
    return answer;
  }
  if (status != "Optimal" && status.rfind("Stopped", 0) != 0) {
    lines.fail("'" + status + "' is not a status");
  }
  answer.status = status == "Optimal" ? SolveStatus::kOptimal : SolveStatus::kFeasible;
  const size_t count = program.variables.size();
  answer.values.assign(count, 0);  // CBC leaves out zeros
  std::vector<bool> seen(count, false);
  while (lines.next()) {
    // index, name, value, reduced cost; "**" marks an infeasible row
    std::vector<std::string> words = lines.words();
    if (!words.empty() && words[0] == "**") words.erase(words.begin());
    if (words.size() != 4)
      lines.fail("'" + lines.line() + "' is not an index, a name, a value and a cost");
    const size_t at = lines.index(words[1], 'C', count);
    if (seen[at]) lines.fail("'" + words[1] + "' appears twice");
    seen[at] = true;
    answer.values[at] = lines.number(words[2]);
  }
  return answer;
}

}  // namespace tidemark::planner
