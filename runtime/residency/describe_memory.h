// Private to residency/: what is where and how much, for error messages.
#pragma once

#include <string>

#include "runtime/residency/context.h"
#include "runtime/residency/transfers.h"

namespace tidemark {

// One line per category, the largest storages and why they stay, and the tiers. `asked`: what
// found no room.
std::string describe_memory(const ResidencyContext& context, const Transfers& transfers,
                            Bytes asked);

}  // namespace tidemark
