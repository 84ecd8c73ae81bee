// What a run says about itself when it is over: a JSON file for programs, tables for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/flags.h"
#include "examples/common/training.h"
#include "runtime/memory/arena.h"
#include "runtime/session/dry_run.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark {

struct TrainedStep {
  std::optional<float> loss;
  StepStats stats;
};

// Of --plan auto.
struct PlanSummary {
  int64_t steps = 0;  // run by a plan from beginning to end
  int64_t mismatches = 0;
  // Of the plan followed last; none: there was none.
  struct Followed {
    size_t operators = 0;
    Bytes peak{0};   // of a whole step, with what lives on from step to step
    Bytes bound{0};  // no order and no layout takes less; of one that releases: no layout
    bool reordered = false;
    bool releases = false;  // evicts, or offloads and brings back
    double seconds = 0;     // to plan
    // What it was made from (step, costs, limits, work), and what was made.
    uint64_t made_from = 0, schedule = 0;
  };
  std::optional<Followed> followed;
};

// What a dry run says of a budget.
struct BudgetPrediction {
  Bytes budget{0};
  Bytes process{0};                    // promised with it
  ReleaseSchedule schedule;            // by which it goes
  std::optional<StepPrediction> step;  // none: memory ran out in the simulation
  bool stopped = false;                // the dry run, before it had tried all that it would
};

// Filled in as things become known.
struct RunReport {
  std::string program;
  RunFlags flags;
  int64_t batch = 0;
  // Of a dry run for a GPU that is not here: the profile, and why (if not by choice).
  std::optional<std::string> estimated_by;
  std::string no_gpu;
  std::optional<Bytes> budget;  // none: as much as the unmanaged run takes
  std::optional<UnmanagedNeed> unmanaged;
  std::optional<MinimumBudget> minimum;
  bool schedule_stopped = false;            // the dry run, before it had tried all
  std::optional<ReleaseSchedule> schedule;  // as a rule, that of the policy asked for

  int64_t first_step = 0;  // of `steps`: more than 0 in a run that goes on
  std::vector<TrainedStep> steps;
  std::optional<PlanSummary> plan;
  Evaluation evaluation;
  std::optional<Bytes> peak_reserved;
  std::optional<Bytes> peak_live;
  CategoryBytes peak_categories;
  std::optional<Bytes> host_peak;
  std::optional<Bytes> disk_peak;
  std::optional<std::string> params_checksum;
  Bytes host_limit{0};
  Bytes disk_limit{0};
  std::string disk_directory;               // of the disk tier, where there is one
  std::optional<StepPrediction> predicted;  // of a settled step; where the disk is written
  // Of a dry run: the unmanaged step, then the budget asked for or several.
  std::vector<BudgetPrediction> predictions;
  Bytes loader_bytes{0};
  // Of the process, as the system counts it; none where nothing is real (sim:*).
  std::optional<Bytes> process_peak;
  std::optional<Bytes> process_promised;  // the most that it takes, said before training
  // What the program itself took after the first step: beside arena, host tier, the disk's
  // staging and loading. None: no step was done.
  std::optional<Bytes> program_memory;
  bool arena_in_ram = true;  // of the process too, as on a CPU
};

// What the process would take without a budget: what it took, if nothing had to be released;
// else the arena's unmanaged peak, loading, and the program as it was after the first step,
// when it had planned nothing yet. None: not known.
std::optional<Bytes> process_without_budget(const RunReport& report);

std::string to_json(const RunReport& report);
// Throws DataError if the file cannot be written.
void write_json(const RunReport& report, const std::string& path);

// A line that says so if a run goes by something else than its policy; else empty.
std::string stand_in_note(const std::string& policy, const ReleaseSchedule& schedule);
// Of tide where it has to release: that schedules are made, and when they are followed.
std::string planning_note(bool in_background);
// What --dry-run prints.
std::string need_table(const RunReport& report);
// What was saved, what it cost, and where the peak is.
std::string result_table(const RunReport& report);

}  // namespace tidemark
