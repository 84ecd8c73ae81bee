// Runs a recorded program (dtr_log.h) on a simulated device, whose operators take what the log
// says and whose link, tiers and block moves are a profile's.
//
// Memory is freed as the last name of a storage goes; constants stay where they are for as long
// as anything reads them; in the end all that still has a name is there at once.
//
// Threads: the calling thread; its current session is the same afterwards.
#pragma once

#include <cstdint>

#include "examples/dtr_log/dtr_log.h"
#include "runtime/device/profile.h"
#include "runtime/session/session.h"

namespace tidemark {

struct ReplayResult {
  Nanos computed{0};  // all calls that ran, again or not
  StepStats stats;    // of the last round
  Bytes peak{0};      // of the arena
  double overhead(const DtrLog& log) const {
    return log.time > Nanos(0)
               ? static_cast<double>(computed.count()) / static_cast<double>(log.time.count())
               : 1;
  }
};

// `options`: its device is `profile`'s. With several rounds the log is run again, so that
// policies that learn have a step to learn from; the result is the last round's. Throws
// OutOfMemory.
ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    int rounds = 1);

// Without a budget: its peak is the least budget at which nothing has to be released.
ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile);

}  // namespace tidemark
