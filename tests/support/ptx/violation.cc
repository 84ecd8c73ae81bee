#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {

const char* name_of(Check check) {
  switch (check) {
    case Check::kRace: return "race";
    case Check::kUnwrittenShared: return "unwritten shared memory";
    case Check::kCopy: return "asynchronous copy";
    case Check::kSharedBounds: return "shared memory bounds";
    case Check::kGlobalRace: return "race in global memory";
    case Check::kGlobalBounds: return "global memory bounds";
    case Check::kReadOnly: return "read-only memory";
    case Check::kLocalBounds: return "local memory bounds";
    case Check::kParamBounds: return "parameter bounds";
    case Check::kMisaligned: return "misaligned access";
    case Check::kDiverged: return "diverged warp";
    case Check::kBarrier: return "barrier";
    case Check::kUndefined: return "undefined register";
    case Check::kParameters: return "parameters";
    case Check::kLaunchShape: return "launch shape";
    case Check::kDivision: return "division by zero";
    case Check::kTrap: return "trap";
    case Check::kEndless: return "endless loop";
  }
  return "?";
}

}  // namespace tidemark::ptx
