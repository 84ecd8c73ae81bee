// Traces as JSON text, one operator or storage per line, to be compared by eye and by diff.
//
//   {"format": "tidemark step graph", "version": 1,
//    "storages": [
//      {"origin": "upload", "name": "images", "category": "data", "size": 4096},
//      {"origin": "upload", "name": "conv1.weight", "category": "parameter", "size": 512,
//       "at_start": true, "at_end": true}],
//    "ops": [
//      {"kind": "upload", "name": "upload", "outputs": [0]},
//      {"kind": "call", "name": "conv2d", "call": "conv1: conv2d",
//       "signature": "00c0ffee00c0ffee",
//       "inputs": [[0, 0], [1, 0]], "outputs": [2], "released": [0], "workspace": 1024,
//       "cost_ns": 81000},
//      {"kind": "call", "name": "relu", "inputs": [[2, 0]], "outputs": [3],
//       "may_overwrite": [2], "released": [2]},
//      {"kind": "call", "name": "sgd", "inputs": [[1, 0, "written"], [8, 0]]}]}
//
// Inputs are [storage, version]. Omitted fields are 0, false or empty, except that "may_evict"
// and "may_offload" default to true. Sizes are bytes.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "runtime/schedule/step_trace.h"

namespace tidemark {

std::string to_json(const StepTrace& trace);
// Throws DataError, naming `source` and the place, for text that is not JSON, another format or
// version, a value of the wrong type, or a fault that trace_violations() finds.
StepTrace trace_from_json(std::string_view text, const std::string& source);

}  // namespace tidemark
