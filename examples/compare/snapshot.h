// What a comparison looks like at one moment: for faces and reports. Immutable once published,
// so any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/compare/lane_spec.h"
#include "examples/compare/loss_book.h"
#include "examples/compare/step_picture.h"
#include "models/dry_run.h"
#include "runtime/telemetry/step_stats.h"

namespace tidemark::compare {

enum class LaneStatus : uint8_t { kStarting, kRunning, kFinished, kFailed };

struct LaneStep {
  int64_t step = 0;  // 0-based
  std::string name;  // of what ran it: policy and filter
  Bytes budget{0};
  std::optional<float> loss;
  StepStats stats;
};

struct LaneView {
  int id = 0;  // from 1; never used again
  LaneSpec spec;
  Bytes budget{0};
  LaneStatus status = LaneStatus::kStarting;
  std::optional<ReleaseSchedule> schedule;  // what it goes by, once that is known
  std::string error;                        // why it failed
  bool out_of_memory = false;
  int64_t steps_done = 0;  // of the training; a lane that was added begins with another's
  std::optional<Nanos> step_time;       // median of the last few with this policy and budget
  std::optional<float> loss;            // of the last step
  StepStats last;                       // step
  StepStats total;                      // over all its steps
  Bytes peak_reserved{0};               // over all its steps
  StepPicture picture;                  // of the last step
  std::optional<std::string> checksum;  // of parameters and all, when it has ended

  // "lru (by dtr)" where another takes the policy's place.
  std::string name() const {
    const bool as_asked = !schedule || schedule->policy == spec.policy;
    return as_asked ? spec.name() : spec.name() + " (by " + schedule->name() + ")";
  }
};

struct Notice {
  uint64_t command = 0;  // its number; 0: of no command
  bool bad = false;
  std::string text;
};

struct Snapshot {
  uint64_t number = 0;  // grows with each change
  std::string job;      // one line
  std::string device;
  bool simulated = false;
  int64_t steps = 0;               // to do; 0: until it is stopped
  Bytes unmanaged_peak{0};         // of a step that releases nothing
  Bytes minimum{0};                // smallest feasible budget
  Bytes budget{0};                 // of lanes that have none of their own
  std::optional<Nanos> reference;  // what a step takes when nothing is released
  std::string reference_name;      // where that comes from
  bool paused = false;
  bool finished = false;  // no lane has a step to do
  uint64_t applied = 0;   // commands up to this one are done, or refused
  std::vector<std::shared_ptr<const LaneView>> lanes;  // by id
  int64_t losses_compared = 0, losses_mismatched = 0;
  std::vector<LossMismatch> mismatches;
  std::vector<Notice> notices;  // the last few, oldest first

  // By how much a lane's step takes longer; none if one of both is not known.
  std::optional<double> overhead(const LaneView& lane) const {
    if (!reference || !lane.step_time || reference->count() == 0) return std::nullopt;
    return static_cast<double>(lane.step_time->count()) /
               static_cast<double>(reference->count()) -
           1;
  }
};

}  // namespace tidemark::compare
