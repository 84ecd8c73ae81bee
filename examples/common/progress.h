// Training progress on standard error: on a terminal, one line updated in place; otherwise, an
// occasional plain line.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "examples/common/training.h"
#include "runtime/core/units.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

class ProgressLine {
 public:
  // Plain lines are printed for the first and the last step, and about `kPlainLines` between.
  // `done`: steps completed before this run.
  ProgressLine(std::FILE* out, int64_t steps, Bytes budget, int64_t done = 0);
  // Ends the line that is updated in place.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Call after each step.
  void step(const StepStats& stats, const StepOutcome& outcome);
  // Call when the host starts planning later steps, which delays the next step().
  void planning();
  // Prints a separate line.
  void note(std::string_view text);

 private:
  void print(std::string_view line, bool stays);

  // " 3 min 20 s left", from the time that the steps have taken so far.
  std::string time_left() const;

  static constexpr int64_t kPlainLines = 20;

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::FILE* out_;
  bool terminal_;
  int64_t steps_;
  int64_t first_;
  int64_t done_;
  Bytes budget_;
};

// A line that is overwritten again and again: from one second on, and only on a terminal. The
// destructor erases it.
class PassingLine {
 public:
  explicit PassingLine(std::FILE* out);
  ~PassingLine();
  PassingLine(const PassingLine&) = delete;
  PassingLine& operator=(const PassingLine&) = delete;

  bool on_terminal() const { return terminal_; }
  // Whether it is time for another text.
  bool is_due() const { return terminal_ && Clock::now() >= next_; }
  void show(std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* out_;
  bool terminal_, shown_ = false;
  Clock::time_point next_;
};

// Shows how much of something is read.
class ReadingLine {
 public:
  // `what`: such as a file's name.
  ReadingLine(std::FILE* out, std::string what) : line_(out), what_(std::move(what)) {}

  void show(double share);  // from 0 to 1

 private:
  PassingLine line_;
  std::string what_;
};

// Shows the progress of dry runs on this thread.
class DryRunLine {
 public:
  explicit DryRunLine(std::FILE* out);
  ~DryRunLine();
  DryRunLine(const DryRunLine&) = delete;
  DryRunLine& operator=(const DryRunLine&) = delete;

  // The limit of their work together, in units of DryRunWork. Without one no share is shown.
  void set_bound(int64_t bound) { bound_ = bound; }

 private:
  void add(int64_t operators, int64_t units);

  PassingLine line_;
  int64_t bound_ = 0;
  int64_t done_ = 0;
  int64_t units_ = 0;
};

}  // namespace tidemark
