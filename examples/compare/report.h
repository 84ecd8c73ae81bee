// What a comparison says when it is over: tables for people, files for programs.
#pragma once

#include <string>

#include "examples/compare/history.h"
#include "examples/compare/snapshot.h"

namespace tidemark::compare {

// A line per lane: step time, overhead, memory, actions, loss; and whether losses are equal.
std::string closing_table(const Snapshot& now);
// One line for a round, where there is no terminal: "step 12  1 none 310 ms  2 tide 312 ms
// ...".
std::string round_line(const Snapshot& now);

// What the snapshot has, each lane's details, and every step.
std::string to_json_text(const Snapshot& now, History& history);
// A line per lane and step.
std::string to_csv(History& history);
// The curves of resident bytes of all lanes over their last step, and the map of each lane's
// arena.
std::string to_svg(const Snapshot& now);

// 0 all is well, 1 losses differ or a lane failed, 3 memory ran out in a lane.
int exit_code_of(const Snapshot& now);

}  // namespace tidemark::compare
