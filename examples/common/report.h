// The results of a finished run: a JSON file for programs, tables for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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
  int64_t tokens = 0;                       // read; 0: not counted
  std::optional<double> validation_loss{};  // found after the step
};

// Results of --plan auto.
struct PlanSummary {
  int64_t steps = 0;  // run entirely by a plan
  int64_t mismatches = 0;
  // The last plan followed; none: no plan was followed.
  struct Followed {
    size_t operators = 0;
    Bytes peak{0};   // of a whole step, including persistent storages
    Bytes bound{0};  // where it releases nothing: a lower bound over all orders and layouts
    bool reordered = false;
    bool releases = false;    // evicts, or offloads and fetches
    bool is_partial = false;  // leaves a part of the releases to the policy
    double seconds = 0;       // to plan
    // Expected step times: in ample space, by the plan without what it leaves to the policy,
    // and the bounds for its order and for any. 0: not computed, because the plan releases
    // nothing; a bound also if the run ended before it was known.
    Nanos ample_time{0}, time{0}, time_bound{0}, any_order_bound{0};
    // Hashes of its inputs (step, costs, limits, work), and of the schedule.
    uint64_t made_from = 0, schedule = 0;
  };
  std::optional<Followed> followed;
};

// A dry run's prediction for one budget.
struct BudgetPrediction {
  Bytes budget{0};
  Bytes process{0};                    // promised for this budget
  ReleaseSchedule schedule;            // the schedule it would follow
  std::optional<StepPrediction> step;  // none: memory ran out in the simulation
  bool stopped = false;                // before the dry run had tried every schedule
};

// Filled in as results become known.
struct RunReport {
  std::string program;
  RunFlags flags;
  int64_t batch = 0;
  // For a dry run without the GPU: the profile used, and why (unless by choice).
  std::optional<std::string> estimated_by;
  std::string no_gpu;
  std::optional<Bytes> budget;  // none: as much as the unmanaged run needs
  std::optional<UnmanagedNeed> unmanaged;
  std::optional<MinimumBudget> minimum;
  // Kinds of calls that do not use their default algorithm; none: --allow-rounding is off.
  std::optional<size_t> other_algorithms;
  bool schedule_stopped = false;            // before the dry run had tried all
  std::optional<ReleaseSchedule> schedule;  // normally that of the requested policy

  int64_t first_step = 0;  // of `steps`: above 0 in a resumed run
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
  std::string disk_directory;               // of the disk tier, if there is one
  std::optional<StepPrediction> predicted;  // for a settled step, if the disk is written
  // From a dry run: the unmanaged step, then the requested budget or several.
  std::vector<BudgetPrediction> predictions;
  Bytes loader_bytes{0};
  // Memory of the process as the system reports it; none on simulated devices (sim:*).
  std::optional<Bytes> process_peak;
  std::optional<Bytes> process_promised;  // upper bound, printed before training
  // The program's own memory after the first step: without the arena, the host tier, the disk
  // tier's staging buffers and loading. None: no step was completed.
  std::optional<Bytes> program_memory;
  bool arena_in_ram = true;  // and so part of the process, as on a CPU
};

// The process's memory without a budget. If nothing had to be released, this is the measured
// memory; otherwise the arena's unmanaged peak, loading, and the program's memory after the
// first step, before any planning. None: unknown.
std::optional<Bytes> process_without_budget(const RunReport& report);

// Adds the counts, bytes and times of what a step released and brought back.
void add_decisions(nlohmann::ordered_json& json, const StepStats& s);
std::string to_json(const RunReport& report);
// Throws DataError if the file cannot be written.
void write_json(const RunReport& report, const std::string& path);

// A line that says whether the run uses another policy than the requested one; else empty.
std::string stand_in_note(const std::string& policy, const ReleaseSchedule& schedule);
// For tide, if it must release: says that schedules are made, and when they are followed.
std::string planning_note(bool in_background);
// The output of --dry-run.
std::string need_table(const RunReport& report);
// Memory saved, its cost, and where the peak is.
std::string result_table(const RunReport& report);

}  // namespace tidemark
