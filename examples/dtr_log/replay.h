// Runs a recorded program (dtr_log.h) on a simulated device. The log gives the operators'
// times; a profile gives the link, tiers and block moves.
//
// A storage is freed when its last name goes; a constant stays as long as anything reads it. At
// the end, all storages that still have a name are resident at once.
//
// A round is one step, the same each time. Constants that exist before the first call and that
// the log never releases act like parameters: they are made once and stay from round to round.
// All others are made where the log creates them and freed, like results, before the round
// ends. Making a constant takes no time.
//
// Threads: the calling thread; leaves its current session unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/dtr_log/dtr_log.h"
#include "runtime/device/profile.h"
#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"

namespace tidemark {

struct ReplayResult {
  Nanos computed{0};  // by all calls of the last round, reruns included
  StepStats stats;    // of the last round
  Bytes peak{0};      // of the arena
  int rounds = 0;
  int64_t planned = 0;       // planned releases in the last round
  ReleaseSchedule schedule;  // the schedule it followed
  double overhead(const DtrLog& log) const {
    return log.time > Nanos(0)
               ? static_cast<double>(computed.count()) / static_cast<double>(log.time.count())
               : 1;
  }
};

// By then, learning policies have usually settled.
inline constexpr int kMaxRounds = 20;

// The session has `options`, on `profile`'s device. `rounds`: how often to run the log, so that
// policies that learn have steps to learn from; none: until the policy has settled, at most
// kMaxRounds times. Throws OutOfMemory.
ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    std::optional<int> rounds = 1);

// Without a budget. Its peak is the smallest budget at which nothing has to be released.
ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile);

// As replay(), with a schedule that completes (runtime/session/dry_run.h): tide makes way for
// any policy whose step is quicker, so that none is ahead of it. Policies that stand in for
// another may recompute as much as in a dry run. Throws InfeasibleBudget, with the smallest
// budget for which there is such a schedule.
ReplayResult replay_feasibly(const DtrLog& log, const SessionOptions& options,
                             const DeviceProfile& profile, std::optional<int> rounds = 1);

}  // namespace tidemark
