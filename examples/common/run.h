// From flags to an exit code: what every training program does.
//
// A dry run on the simulator (runtime/session/dry_run.h) gives the unmanaged peak and the
// smallest feasible budget; a budget below that is refused; a session of exactly the budget is
// made, and each batch is one step of it. Progress goes to standard error, tables to standard
// output, and the report to --json. Ctrl-C ends the run after its step.
//
// Where the arena is RAM (on a CPU, and on the simulation of one, which does what the real run
// would) there is no host tier by default, and what is not computed again goes to a disk. Other
// devices have a host tier of twice the unmanaged peak, and no disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "examples/common/flags.h"
#include "examples/common/program.h"
#include "examples/common/training.h"

namespace tidemark {

// `with_data`: whether the run reads any; if not, sizes alone are known. Throws UsageError,
// DataError.
using OpenJob = std::function<std::unique_ptr<Job>(bool with_data)>;

// The session that the flags ask for, but for its budget and its tiers' limits. CUDA's kernels
// are there from then on.
SessionOptions session_options(const RunFlags& flags);

// What --memory stands for; none if it is not given. Says what auto found. Throws UsageError.
std::optional<Bytes> allowed_memory(const RunFlags& flags);

// Is the device's memory RAM?
bool arena_is_in_ram(const RunFlags& flags);
// Sets limit and folder of the disk tier, by the flags or by default, as far as the disk has
// space. Throws UsageError if --disk-limit asks for one and there is no disk.
struct DiskTierChoice {
  bool by_default = false;  // no flag asks for it
  std::string note{};       // what the disk lacks, a line; empty: nothing
};
DiskTierChoice set_disk_tier(const RunFlags& flags, Bytes unmanaged_peak,
                             SessionOptions& options);

// The exit code: 0 done, 1 failed, 2 bad input, 3 the budget is infeasible or memory ran out,
// 130 interrupted. Explains itself on standard error as `program`.
int run_job(const std::string& program, const RunFlags& flags, const OpenJob& open);

}  // namespace tidemark
