#include "examples/common/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "examples/common/console.h"
#include "runtime/session/dry_run.h"

namespace tidemark {
namespace {

constexpr int64_t kBarWidth = 16;
constexpr const char* kBackToStart = "\r\x1b[K";
constexpr std::chrono::milliseconds kFirstLine{1000}, kNextLine{100};
constexpr std::chrono::seconds kWorthForecasting{5};

std::string bar(int64_t done, int64_t all) {
  const int64_t filled = done * kBarWidth / std::max<int64_t>(all, 1);
  std::string text(static_cast<size_t>(filled), '=');
  if (filled < kBarWidth) text += '>';
  text.resize(kBarWidth, ' ');
  return "[" + text + "]";
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, int64_t steps, Bytes budget, int64_t done)
    : out_(out),
      terminal_(isatty(fileno(out)) != 0),
      steps_(steps),
      first_(done),
      done_(done),
      budget_(budget) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && done_ > first_) write_console(out_, "\n");
}

std::string ProgressLine::time_left() const {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
  const int64_t steps = done_ - first_;
  if (steps_ <= done_ || taken < kWorthForecasting) return "";
  const auto seconds = std::llround(taken.count() / static_cast<double>(steps) *
                                    static_cast<double>(steps_ - done_));
  if (seconds < 60) return fmt::format("  {} s left", seconds);
  if (seconds < 3600) return fmt::format("  {} min {} s left", seconds / 60, seconds % 60);
  return fmt::format("  {} h {} min left", seconds / 3600, seconds / 60 % 60);
}

void ProgressLine::step(const StepStats& stats, const StepOutcome& outcome) {
  ++done_;
  constexpr Nanos kWorthTelling{500'000'000};
  if (stats.planning_time >= kWorthTelling) {
    note(fmt::format("step {} took {:.1f} s longer to plan the next steps", done_,
                     to_seconds(stats.planning_time)));
  }
  const int64_t every = std::max<int64_t>(1, steps_ / kPlainLines);
  if (!terminal_ && done_ != first_ + 1 && done_ != steps_ && done_ % every != 0) return;

  std::string line = fmt::format("step {}/{} ", done_, steps_);
  if (terminal_) line += bar(done_, steps_) + " ";
  line += fmt::format("{:.0f} ms", to_ms(stats.duration));
  if (outcome.tokens > 0 && stats.duration > Nanos(0)) {
    line += fmt::format("  {:.0f} tokens/s",
                        static_cast<double>(outcome.tokens) / to_seconds(stats.duration));
  }
  if (outcome.loss) line += fmt::format("  loss {:.4f}", *outcome.loss);
  if (outcome.correct && outcome.guesses > 0) {
    const double share =
        static_cast<double>(*outcome.correct) / static_cast<double>(outcome.guesses);
    line += fmt::format("  accuracy {:.1f} %", 100 * share);
  }
  line +=
      fmt::format("  peak {:.1f} of {:.1f} MiB", to_mib(stats.peak_reserved), to_mib(budget_));
  const Bytes released = stats.evicted_bytes + stats.offload_bytes;
  if (released.count() > 0) line += fmt::format("  released {}", format_bytes(released));
  if (stats.recomputes > 0)
    line += fmt::format("  recomputed {:.0f} ms", to_ms(stats.recompute_time));
  if (stats.planned) line += "  planned";
  line += time_left();

  print(line, /*stays=*/!terminal_);
}

void ProgressLine::planning() {
  print(fmt::format("planning the steps after step {} ...", done_ + 1), /*stays=*/!terminal_);
}

void ProgressLine::note(std::string_view text) { print(text, /*stays=*/true); }

void ProgressLine::print(std::string_view line, bool stays) {
  write_console(out_,
                fmt::format("{}{}{}", terminal_ ? kBackToStart : "", line, stays ? "\n" : ""));
}

PassingLine::PassingLine(std::FILE* out)
    : out_(out), terminal_(isatty(fileno(out)) != 0), next_(Clock::now() + kFirstLine) {}

PassingLine::~PassingLine() {
  if (shown_) write_console(out_, kBackToStart);
}

void PassingLine::show(std::string_view text) {
  next_ = Clock::now() + kNextLine;
  shown_ = true;
  write_console(out_, fmt::format("{}{}", kBackToStart, text));
}

void ReadingLine::show(double share) {
  if (line_.is_due()) line_.show(fmt::format("reading {}: {:.0f} %", what_, 100 * share));
}

DryRunLine::DryRunLine(std::FILE* out) : line_(out) {
  if (!line_.on_terminal()) return;
  set_dry_run_progress([this](int64_t operators, int64_t units) { add(operators, units); });
}

DryRunLine::~DryRunLine() { set_dry_run_progress({}); }

void DryRunLine::add(int64_t operators, int64_t units) {
  done_ += operators;
  units_ += units;
  if (!line_.is_due()) return;
  std::string text = fmt::format("dry run: {} operators simulated", done_);
  if (bound_ > 0) {
    text += fmt::format(", {} % of its limit", std::min<int64_t>(100, 100 * units_ / bound_));
  }
  line_.show(text);
}

}  // namespace tidemark
