// The final results of a comparison: tables for people, files for programs.
#pragma once

#include <string>

#include "examples/compare/history.h"
#include "examples/compare/snapshot.h"

namespace tidemark::compare {

// One line per lane: step time, overhead, memory, actions, loss; and whether losses are equal.
std::string closing_table(const Snapshot& now);
// One line per round, for output without a terminal: "step 12  1 none 310 ms  2 tide 312 ms
// ...".
std::string round_line(const Snapshot& now);

// The snapshot, each lane's details, and every step.
std::string to_json_text(const Snapshot& now, History& history);
// One line per lane and step.
std::string to_csv(History& history);
// The curves of resident bytes of all lanes over their last step, and the map of each lane's
// arena.
std::string to_svg(const Snapshot& now);

// 0: success; 1: losses differ or a lane failed; 3: a lane ran out of memory.
int exit_code_of(const Snapshot& now);

}  // namespace tidemark::compare
