// A recorded step's releases, made as early as they can be.
//
//   as recorded   use a | ... room is wanted: | release a | block b | ...
//   at once       use a | release a | ...     | block b | ...
//
// A policy waits until it wants the room; with the whole step in view there is nothing to wait
// for. Less is live at once, so that blocks can be laid out, and copies out begin when they
// can. Step follows step: what was released before its first use in the step goes after its
// last use in the step before, and so does what is there at the end but not at the beginning.
//
// Threads: functions without state.
#pragma once

#include "runtime/replay/memory_trace.h"

namespace tidemark {

MemoryTrace released_at_once(const StepTrace& graph, MemoryTrace trace);

}  // namespace tidemark
