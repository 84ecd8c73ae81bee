// The command line of compare_heuristics.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/run.h"
#include "examples/compare/lane_spec.h"

namespace tidemark::compare {

struct CompareFlags {
  RunFlags run;  // common to all networks
  OpenJob open;
  std::vector<LaneSpec> lanes;
  std::optional<int> port;       // --serve; 0: any that is free
  bool plain = false;            // lines instead of the terminal view
  std::optional<int64_t> steps;  // none: the job's own; 0: until stopped
  bool paused = false;
  double rate = 0;  // limit on steps per second; 0: none

  bool live() const { return port || !plain; }
  std::string json, csv, svg;  // files; empty: none
};

// Returns nothing if the program should exit now, with `exit_code`: after --help, or after a
// mistake, already explained on standard error.
std::optional<CompareFlags> parse_compare_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark::compare
