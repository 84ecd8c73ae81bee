// Schedules as text: JSON, one instruction or block a line. The file holds the trace too, so
// that it says by itself what it is about.
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
// An instruction's "blocks" are [the first, how many]; without them it takes none. A block
// without "storage" is scratch or a workspace. Names beside numbers are for people and are not
// read. What is left out is 0, false or empty.
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

// REQUIRES: storages and operators that the schedule names are in the trace. It need not be
// valid otherwise.
std::string to_json(const StepTrace& trace, const Schedule& schedule);
// Throws DataError that names `source` and the place: text that is no JSON, another format or
// version, a value of the wrong kind, a number of an operator, storage, block or instruction
// that there is not, sizes that are negative or sum up to more than 2^60, a trace that is
// wrong. Whether the schedule is good is for schedule_violations() to say.
SavedSchedule schedule_from_json(std::string_view text, const std::string& source);

}  // namespace tidemark
