// From flags to an exit code: the run loop of every training program.
//
// A dry run on the simulator (runtime/session/dry_run.h) finds the unmanaged peak and the
// smallest feasible budget. A smaller budget is rejected. A session is then made with exactly
// the budget, and runs each batch as one step. Progress goes to standard error, tables to
// standard output, and the report to --json. Ctrl-C ends the run after the current step.
//
// If the arena is in RAM (on a CPU, and on a simulated CPU, which mirrors the real run), there
// is no host tier by default; storages that are not recomputed go to a disk. Other devices have
// a host tier of twice the unmanaged peak, and no disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "examples/common/flags.h"
#include "examples/common/program.h"
#include "examples/common/training.h"

namespace tidemark {

// `with_data`: whether the run reads data; otherwise only sizes are known. Throws UsageError,
// DataError.
using OpenJob = std::function<std::unique_ptr<Job>(bool with_data)>;

// Session options from the flags, without the budget and the tiers' limits. Registers the CUDA
// kernels.
SessionOptions session_options(const RunFlags& flags);

// The value of --memory; none if not given. Prints what "auto" found. Throws UsageError.
std::optional<Bytes> allowed_memory(const RunFlags& flags);

// What a run would need and take with these flags: for tables of several ways to do a job.
struct RunForecast {
  Bytes peak{0};   // of the arena, if nothing is released
  Bytes least{0};  // the smallest arena; unless is_least, the smallest known to work
  bool is_least = true;
  Bytes arena{0};    // that the flags give
  Bytes process{0};  // at most; on a GPU its host side
  // The time of a settled step in it. None: it is too small.
  std::optional<Nanos> step{};
  std::optional<Nanos> ample_step{};  // in the unmanaged peak
};
// Without `with_ample`, ample_step is predicted only if the flags give the whole peak.
RunForecast forecast(const RunFlags& flags, const Job& job, bool with_ample = true);

// Whether the device's memory is RAM.
bool arena_is_in_ram(const RunFlags& flags);
// The most memory that the program itself takes of the host's, beside arena, tiers and loading.
Bytes most_program_memory(const RunFlags& flags);
// Sets the disk tier's limit and folder, from the flags or by default, within the disk's free
// space. Throws UsageError if --disk-limit asks for a disk tier and there is no disk.
struct DiskTierChoice {
  bool by_default = false;  // no flag requests it
  std::string note{};       // says, in a line, what the disk lacks; empty: nothing
};
DiskTierChoice set_disk_tier(const RunFlags& flags, Bytes unmanaged_peak,
                             SessionOptions& options);

// Returns the exit code: 0 done, 1 failed, 2 bad input, 3 infeasible budget or out of memory,
// 130 interrupted. Reports errors on standard error as `program`.
int run_job(const std::string& program, const RunFlags& flags, const OpenJob& open);

// main() of a training program: parse(argc, argv, exit_code) gives its flags, or none if the
// program ends with `exit_code`; open(flags, with_data) makes the job.
template <class Parse, class Open>
int run_training(const char* program, int argc, char** argv, Parse parse, Open open) {
  return run_program(program, [&] {
    int exit_code = 0;
    const auto flags = parse(argc, argv, exit_code);
    if (!flags) return exit_code;
    return run_job(program, *flags, [&](bool with_data) { return open(*flags, with_data); });
  });
}

}  // namespace tidemark
