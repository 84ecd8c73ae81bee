// The progress of training on standard error: on a terminal one line that changes in place,
// elsewhere a plain line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "runtime/core/units.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

class ProgressLine {
 public:
  // Plain lines: the first, the last, and about `kPlainLines` between.
  // `done`: steps before the first.
  ProgressLine(std::FILE* out, int64_t steps, Bytes budget, int64_t done = 0);
  // Ends the line in place.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // After each step. `correct` of `size` guesses.
  void step(const StepStats& stats, std::optional<float> loss, std::optional<int64_t> correct,
            int64_t size);
  // The host begins to plan the steps to come, and step() is called later for that.
  void planning();
  // A line of its own.
  void note(std::string_view text);

 private:
  void print(std::string_view line, bool stays);

  static constexpr int64_t kPlainLines = 20;

  std::FILE* out_;
  bool terminal_;
  int64_t steps_;
  int64_t first_;
  int64_t done_;
  Bytes budget_;
  double accuracy_ = 0;  // moving average
  double weight_ = 0;
};

// Shows the progress of dry runs on this thread, on a terminal, after one second; the
// destructor erases it.
class DryRunLine {
 public:
  // `bound`: of their work together, in units of DryRunWork.
  DryRunLine(std::FILE* out, int64_t bound);
  ~DryRunLine();
  DryRunLine(const DryRunLine&) = delete;
  DryRunLine& operator=(const DryRunLine&) = delete;

 private:
  void add(int64_t operators, int64_t units);

  using Clock = std::chrono::steady_clock;

  std::FILE* out_;
  const int64_t bound_;
  int64_t done_ = 0;
  int64_t units_ = 0;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace tidemark
