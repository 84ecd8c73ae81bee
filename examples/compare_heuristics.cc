// Trains one network under several policies and budgets at once, and shows what each does to
// memory while they run. `compare_heuristics --help` explains.
//
//   $ compare_heuristics                  in a terminal: a live view
//   $ compare_heuristics --serve 8080     in the browser: http://127.0.0.1:8080/
//   $ compare_heuristics --steps 25 | cat      a line a step, and then, on two very busy cores,
//
//   lane policy      budget  steps       step  overhead                          evicted ...
//   1    none     194.0 MiB     25  1868.2 ms  reference                               0 ...
//   2    tide      97.0 MiB     25  1987.8 ms  +16.9 % (+0 to +33)                     0 ...
//   3    delta     97.0 MiB     25  2300.2 ms  within noise: +17.0 % (-5 to +32)       7 ...
//   ...
//   Losses at the same step are equal to the bit (75 comparisons).
//
// The comparison itself is examples/compare/engine.h.
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "examples/common/console.h"
#include "examples/common/interrupt.h"
#include "examples/common/output_file.h"
#include "examples/common/program.h"
#include "examples/common/report.h"
#include "examples/compare/compare_flags.h"
#include "examples/compare/engine.h"
#include "examples/compare/history.h"
#include "examples/compare/page_server.h"
#include "examples/compare/report.h"
#include "examples/compare/terminal_face.h"
#include "runtime/core/atomic_file.h"

namespace tidemark::compare {
namespace {

constexpr std::chrono::milliseconds kPoll{200};

// Prints a line whenever the slowest lane has finished a step. Returns true if it was
// interrupted.
bool run_plain(Comparison& comparison, const InterruptScope& interrupt) {
  int64_t printed = 0;
  uint64_t number = 0;
  while (true) {
    const auto now = comparison.wait_newer(number, kPoll);
    number = now->number;
    int64_t slowest = -1;
    for (const auto& lane : now->lanes) {
      if (lane->status == LaneStatus::kFailed) continue;
      if (slowest < 0 || lane->steps_done < slowest) slowest = lane->steps_done;
    }
    if (slowest > printed) {
      print_out("{}\n", round_line(*now));
      printed = slowest;
    }
    if (now->finished) return false;
    if (interrupt.requested()) return true;
  }
}

// Serves until Ctrl-C: results can be viewed after the end. Returns true if there was more to
// compute.
bool run_page(Comparison& comparison, const PageServer& server,
              const InterruptScope& interrupt) {
  print_out("Open {} in a browser on this machine. Ctrl-C ends it.\n", server.url());
  bool told = false;
  uint64_t number = 0;
  while (!interrupt.requested()) {
    const auto now = comparison.wait_newer(number, kPoll);
    number = now->number;
    if (now->finished && !told) {
      print_out("All steps are done; the page stays until Ctrl-C.\n");
    }
    told = now->finished;
  }
  const auto now = comparison.snapshot();
  return now->steps > 0 && !now->finished;
}

int compare(const CompareFlags& flags) {
  for (const std::string& path : {flags.json, flags.csv, flags.svg}) {
    if (!path.empty()) check_writable(path);
  }
  History history;
  Comparison comparison(
      {.flags = flags.run,
       .open = flags.open,
       .lanes = flags.lanes,
       .steps = flags.steps,
       .rate = flags.rate,
       .paused = flags.paused,
       .on_step = [&history](int lane, const LaneStep& step) { history.add(lane, step); }});
  bool interrupted = false;
  {
    const InterruptScope interrupt;
    if (flags.port) {
      const PageServer server(comparison, *flags.port);
      interrupted = run_page(comparison, server, interrupt);
    } else if (flags.plain) {
      interrupted = run_plain(comparison, interrupt);
    } else {
      interrupted = run_terminal(comparison, [&] { return interrupt.requested(); }) &&
                    comparison.snapshot()->steps > 0;
    }
    comparison.stop();
  }
  const auto now = comparison.snapshot();
  print_out("{}", closing_table(*now));
  if (!flags.json.empty()) write_output(flags.json, to_json_text(*now, history));
  if (!flags.csv.empty()) write_output(flags.csv, to_csv(history));
  if (!flags.svg.empty()) write_output(flags.svg, to_svg(*now));
  const int code = exit_code_of(*now);
  return code == kDone && interrupted ? kInterruptedExitCode : code;
}

}  // namespace
}  // namespace tidemark::compare

int main(int argc, char** argv) {
  return tidemark::run_program("compare_heuristics", [&] {
    int exit_code = 0;
    const auto flags = tidemark::compare::parse_compare_flags(argc, argv, exit_code);
    return flags ? tidemark::compare::compare(*flags) : exit_code;
  });
}
