// Runs a recorded program (dtr_log.h) on a simulated device, whose operators take what the log
// says and whose link, tiers and block moves are a profile's.
//
// Memory is freed as the last name of a storage goes; constants stay where they are for as long
// as anything reads them; in the end all that still has a name is there at once.
//
// A round is one step, the same each time. Constants that are there before the first call and
// that the log never lets go of are as parameters are: made once, and there from round to
// round. All others are made where the log has them, and go, as results do, before the round
// ends. Making one takes no time.
//
// Threads: the calling thread; its current session is the same afterwards.
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
  Nanos computed{0};  // all calls that ran, again or not; in the last round
  StepStats stats;    // of the last round
  Bytes peak{0};      // of the arena
  int rounds = 0;
  int64_t planned = 0;       // releases of the last round that were planned ahead
  ReleaseSchedule schedule;  // what it went by
  double overhead(const DtrLog& log) const {
    return log.time > Nanos(0)
               ? static_cast<double>(computed.count()) / static_cast<double>(log.time.count())
               : 1;
  }
};

// Policies that learn have settled by then, as a rule.
inline constexpr int kMaxRounds = 20;

// `options`: its device is `profile`'s. `rounds`: the log is run so often, so that policies
// that learn have steps to learn from; none: until the policy has settled, at most kMaxRounds
// times. Throws OutOfMemory.
ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    std::optional<int> rounds = 1);

// Without a budget: its peak is the least budget at which nothing has to be released.
ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile);

// As replay(), by a schedule that completes (runtime/session/dry_run.h). Throws
// InfeasibleBudget, with the least budget at which one does.
ReplayResult replay_feasibly(const DtrLog& log, const SessionOptions& options,
                             const DeviceProfile& profile, std::optional<int> rounds = 1);

}  // namespace tidemark
