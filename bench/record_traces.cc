// Records what training requests from the arena, on the simulator: one file for each run in
// training_run.h.
//
//   record_traces FOLDER [PART_OF_NAME]
#include <cmath>
#include <iostream>
#include <string>

#include "bench/recording_arena.h"
#include "bench/run_main.h"
#include "bench/training_run.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

void record(const TrainingRun& run, const std::string& folder) {
  MemoryTrace trace;
  const TrainingResult result = train(run, [&](Device& device, Bytes capacity) {
    return std::make_unique<RecordingArena>(device, capacity, trace);
  });
  StepStats total;
  for (const StepStats& step : result.steps) {
    total.evictions += step.evictions;
    total.offloads += step.offloads;
    total.recomputes += step.recomputes;
    total.compactions += step.compactions;
  }
  trace.about = {
      {"model", run.model},
      {"device", run.device},
      {"batch", std::to_string(run.batch)},
      {"image", std::to_string(run.image)},
      {"unmanaged_peak", std::to_string(result.unmanaged_peak.count())},
  };
  if (run.room) {
    trace.about["room"] = std::to_string(std::lround(*run.room * 100));
    trace.about["budget"] = std::to_string(result.budget.count());
    trace.about["filter"] = run.filter;
    trace.about["evictions"] = std::to_string(total.evictions);
    trace.about["offloads"] = std::to_string(total.offloads);
    trace.about["recomputes"] = std::to_string(total.recomputes);
    trace.about["compactions"] = std::to_string(total.compactions);
  }
  write_trace(trace, folder + "/" + run.name() + ".txt.gz");
  std::cout << run.name() << ": " << trace.events.size() << " events, at most "
            << format_bytes(trace.max_live()) << " live\n";
}

int run(int argc, char** argv) {
  if (const auto code =
          explain_usage(argc, argv, argc < 2 || argc > 3 || argv[1][0] == '-',
                        "record_traces FOLDER [PART_OF_NAME]\n\nWrites the allocations of "
                        "simulated training steps, for allocator_fragmentation.")) {
    return *code;
  }
  const std::string part = argc > 2 ? argv[2] : "";
  for (const TrainingRun& run : training_runs()) {
    if (run.name().find(part) == std::string::npos) continue;
    try {
      record(run, argv[1]);
    } catch (const Error& error) {
      std::cerr << "record_traces: " << run.name() << ": " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) { return tidemark::run(argc, argv); }
