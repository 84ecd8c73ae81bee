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
  RunFlags run;  // what is common to all networks
  OpenJob open;
  std::vector<LaneSpec> lanes;
  std::optional<int> port;       // --serve; 0: any that is free
  bool plain = false;            // lines instead of the terminal view
  std::optional<int64_t> steps;  // none: the job's own; 0: until it is told to stop
  bool paused = false;
  double rate = 0;  // steps a second; 0: as fast as it goes

  bool live() const { return port || !plain; }
  std::string json, csv, svg;  // files; empty: none
};

// Nothing if the program is to end now, with `exit_code`: after --help, or after a mistake,
// which has been explained on standard error.
std::optional<CompareFlags> parse_compare_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark::compare
