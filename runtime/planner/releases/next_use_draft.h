// A first plan of releases by Belady's rule (Belady, 1966): goes through the step call by call,
// and where space is short releases the storage that is needed last. This suits steps that use
// large storages in turn, as networks do whose weights do not fit: of weights that are read
// forwards and then backwards, those used around the turn stay.
//
// A storage that is released is evicted or offloaded, whichever costs less: a recomputation, or
// the time that compute would wait for the link. Copies back are booked on the link, each as
// late as possible: where it is busy, a copy has to begin earlier.
//
// Pure.
#pragma once

#include <vector>

#include "runtime/planner/releases/release_draft.h"

namespace tidemark::planner {

// Releases by first call; they may not suffice. `price`: what a copy costs besides waiting, as
// a share of its time; the higher, the more is recomputed instead.
std::vector<PlannedRelease> draft_by_next_use(const StepTable& step, const PlanLimits& limits,
                                              double price);

}  // namespace tidemark::planner
