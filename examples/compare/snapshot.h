// The state of a comparison at one moment, for views and reports. Immutable once published, so
// any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/compare/lane_spec.h"
#include "examples/compare/loss_book.h"
#include "examples/compare/overhead.h"
#include "examples/compare/step_picture.h"
#include "examples/compare/step_series.h"
#include "runtime/session/dry_run.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark::compare {

enum class LaneStatus : uint8_t { kStarting, kRunning, kFinished, kFailed };

struct LaneStep {
  int64_t step = 0;  // 0-based
  std::string name;  // of the policy and filter that ran it
  Bytes budget{0};
  std::optional<float> loss;
  StepStats stats;
};

struct LaneView {
  int id = 0;  // from 1; never reused
  LaneSpec spec;
  Bytes budget{0};
  LaneStatus status = LaneStatus::kStarting;
  std::optional<ReleaseSchedule> schedule;  // the schedule the lane follows, once known
  std::string error;                        // the reason for a failure
  bool out_of_memory = false;
  int64_t steps_done = 0;  // of the training; an added lane starts with another lane's count
  std::vector<TimedStep> recent;        // the last few with this policy and budget
  std::optional<Nanos> step_time;       // median of those
  std::optional<float> loss;            // of the last step
  StepStats last;                       // step
  StepStats total;                      // over all its steps
  Bytes peak_reserved{0};               // over all its steps
  StepPicture picture;                  // of the last step
  StepSeries series;                    // all its steps, whatever ran them
  std::optional<std::string> checksum;  // of parameters and all, when it has ended

  // "lru (by dtr)" if another policy replaces the requested one.
  std::string name() const {
    const bool as_asked = !schedule || schedule->policy == spec.policy;
    return as_asked ? spec.name() : spec.name() + " (by " + schedule->name() + ")";
  }
};

// The current activity of a lane's thread.
enum class Phase : uint8_t {
  kWaiting,    // for the lane's turn, or for a command
  kPreparing,  // a change: policies are tried on the simulator, and the state is carried over
  kStepping,
  kPlanning,  // the step is over; its policy plans the next ones
};

// The engine's view of a lane, in addition to the lane's own.
struct LaneStanding {
  int colour = 0;  // below kMaxLanes; unique among current lanes
  Phase phase = Phase::kWaiting;
  std::optional<LaneSpec> pending;  // the requested spec, until it takes effect
  Bytes pending_budget{0};
};

struct Notice {
  uint64_t command = 0;  // its number; 0: of no command
  bool bad = false;
  std::string text;
};

struct Snapshot {
  uint64_t number = 0;  // increases with each change
  std::string job;      // one line
  std::string device;
  bool simulated = false;
  int64_t steps = 0;                        // to do; 0: until stopped
  Bytes unmanaged_peak{0};                  // of a step that releases nothing
  Bytes minimum{0};                         // smallest feasible budget
  Bytes budget{0};                          // of lanes without their own
  std::optional<Nanos> reference;           // time of a step when nothing is released
  std::string reference_name;               // the source of `reference`
  int reference_lane = 0;                   // the lane it comes from; 0: none
  std::vector<TimedStep> reference_recent;  // the last steps of that lane; empty if simulated
  bool paused = false;
  bool finished = false;  // no lane has steps left
  uint64_t applied = 0;   // commands up to this one are done or rejected
  std::vector<std::shared_ptr<const LaneView>> lanes;  // by id
  std::vector<LaneStanding> standings;                 // beside `lanes`
  int64_t losses_compared = 0, losses_mismatched = 0;
  std::vector<LossMismatch> mismatches;
  std::vector<Notice> notices;  // the last few, oldest first

  // Nullopt if either time is unknown.
  std::optional<Overhead> overhead(const LaneView& lane) const {
    if (!simulated) return measured_overhead(lane.recent, reference_recent);
    if (!reference || reference->count() == 0) return std::nullopt;
    return simulated_overhead(lane.recent, *reference);
  }
  // As text: that of describe(), or "reference".
  std::string overhead_text(const LaneView& lane, bool with_spread) const {
    return lane.id == reference_lane ? "reference" : describe(overhead(lane), with_spread);
  }
};

}  // namespace tidemark::compare
