// Each solver's command line and output format.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/papers/solver/process.h"
#include "runtime/planner/papers/solver/solver.h"

namespace tidemark::planner {

struct Answer {
  SolveStatus status = SolveStatus::kUnknown;
  std::vector<double> values;  // kOptimal, kFeasible
  double bound = -kInfinity;   // as far as the solver reports one
};

// Files in the folder of one call.
inline constexpr char kModelFile[] = "model.mps", kSolutionFile[] = "solution.txt",
                      kStartFile[] = "start.txt", kOptionsFile[] = "options.txt",
                      kLogFile[] = "log.txt";

// The command line; the solver should stop by itself after `seconds`. Writes other files that
// it needs into the folder.
std::vector<std::string> highs_command(const Program& program, const TemporaryFolder& folder,
                                       const SolveLimits& limits, double seconds,
                                       const std::string& path);
std::vector<std::string> cbc_command(const Program& program, const TemporaryFolder& folder,
                                     const SolveLimits& limits, double seconds,
                                     const std::string& path);

// Parse the solution file and the log. Throw DataError, naming the place.
Answer read_highs(const Program& program, const std::string& solution, const std::string& log);
Answer read_cbc(const Program& program, const std::string& solution, const std::string& log);

// Reads from a log when better solutions were found, in seconds of the solver's own clock, each
// with a lower objective than the one before. Skips what it cannot read: logs are for people.
std::vector<Improvement> highs_improvements(const std::string& log);
std::vector<Improvement> cbc_improvements(const std::string& log);

// Adds one unless it is no better than the last or its numbers make no sense.
void add_improvement(const Improvement& improvement, std::vector<Improvement>& all);

// Reads text line by line, for these two.
class Lines {
 public:
  Lines(const std::string& text, std::string name) : text_(text), name_(std::move(name)) {}
  // Reads the next line and splits it into words; false at the end. line() is the whole line.
  bool next();
  const std::vector<std::string>& words() const { return words_; }
  const std::string& line() const { return line_; }
  [[noreturn]] void fail(const std::string& what) const;  // with the place
  // Throw DataError with the place.
  double number(const std::string& word) const;                            // inf and -inf too
  size_t index(const std::string& word, char prefix, size_t count) const;  // C12 -> 12

 private:
  const std::string& text_;
  std::string name_;
  size_t at_ = 0, next_ = 0;
  std::string line_;
  std::vector<std::string> words_;
};

// Whether all of `word` is a number, which it then gives.
bool is_number(const std::string& word, double& value);

// The last number after `label` in a solver's log; `otherwise` if none.
double last_number_after(const std::string& log, const std::string& label, double otherwise);

// Throws DataError if it cannot be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace tidemark::planner
