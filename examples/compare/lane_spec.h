// The specification of a lane: a policy, its filter and a budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "examples/common/flags.h"

namespace tidemark::compare {

struct LaneSpec {
  std::string policy = "tide";
  std::string filter;            // empty: the policy's default
  std::optional<Budget> budget;  // none: the comparison's; for policy "none": all it needs

  bool managed() const { return policy != "none"; }
  std::string name() const { return filter.empty() ? policy : policy + ":" + filter; }
};

// Parses "tide", "delta:lru", "dtr@40%", "delta:greedy@300MiB". Throws UsageError that lists
// the possible names.
LaneSpec parse_lane(std::string_view text);

}  // namespace tidemark::compare
