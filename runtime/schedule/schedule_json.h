// Schedules as JSON text, one instruction or block per line. The file includes the trace, so it
// is self-contained.
//
//   {"format": "tidemark schedule", "version": 1,
//    "method": "...", "placed": true, "residents_apart": true,
//    "peak": 4096, "peak_bound": 4096, "time_ns": 81000,
//    "initial_blocks": 1, "foreign": [512],
//    "trace": {"format": "tidemark step graph", ...},
//    "code": [
//      {"do": "run", "op": 0, "name": "conv1: conv2d", "blocks": [1, 2]},
//      {"do": "free", "storage": 3, "name": "relu"},
//      {"do": "run", "op": 0, "name": "conv1: conv2d", "again": true, "blocks": [3, 2]}],
//    "blocks": [
//      {"storage": 1, "name": "x", "size": 512, "begin": 0, "end": 3, "at": 0},
//      {"storage": 2, "name": "conv2d", "size": 512, "begin": 0, "end": 2, "at": 512},
//      {"name": "scratch", "size": 1024, "begin": 0, "end": 1, "at": 1024},
//      ...]}
//
// An instruction's "blocks" are [first, count]; without them it takes none. A block without
// "storage" is scratch or a workspace. A run in place has the storage that it overwrites:
// "overwrites": 2. Names beside numbers are for people and are ignored on
// reading. Omitted fields are 0, false or empty.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct SavedSchedule {
  StepTrace trace;
  Schedule schedule;
};

// REQUIRES: the schedule's storages and operators are in the trace. It need not be valid
// otherwise.
std::string to_json(const StepTrace& trace, const Schedule& schedule);
// Throws DataError, naming `source` and the place, for text that is not JSON, another format or
// version, a value of the wrong type, a number of an operator, storage, block or instruction
// that does not exist, sizes that are negative or sum to more than 2^60, or a faulty trace.
// Does not validate the schedule: see schedule_violations().
SavedSchedule schedule_from_json(std::string_view text, const std::string& source);

}  // namespace tidemark
