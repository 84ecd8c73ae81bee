// What a lane of a comparison is run by: a policy, its filter and a budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "examples/common/flags.h"

namespace tidemark::compare {

struct LaneSpec {
  std::string policy = "tide";
  std::string filter;            // empty: the policy's own
  std::optional<Budget> budget;  // none: that of the comparison; of policy "none": all it needs

  bool managed() const { return policy != "none"; }
  std::string name() const { return filter.empty() ? policy : policy + ":" + filter; }
};

// "tide", "delta:lru", "dtr@40%", "delta:greedy@300MiB". Throws UsageError that says what there
// is.
LaneSpec parse_lane(std::string_view text);

}  // namespace tidemark::compare
