// Private to residency/: describes memory use for error messages.
#pragma once

#include <string>

#include "runtime/residency/context.h"
#include "runtime/residency/transfers.h"

namespace tidemark {

// One line per category, the largest storages and why they stay resident, and the tiers.
// `asked`: the size that could not be allocated.
std::string describe_memory(const ResidencyContext& context, const Transfers& transfers,
                            Bytes asked);

}  // namespace tidemark
