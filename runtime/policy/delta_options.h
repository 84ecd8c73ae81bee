// Parameters of DELTA (delta_policy.h), and of the policies made of its parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

// What `delta` does differently from the paper (Tang et al., 2022). All on: `delta`. All off,
// but `prices`: `delta-paper`, the method as printed. delta_repairs() explains each.
struct DeltaRepairs {
  bool backward = true;
  bool async = true;
  bool reload = true;
  bool limits = true;
  bool moment = true;
  bool order = true;
  bool gradients = true;
  bool link = true;
  bool state = true;
  bool recent = true;
  bool prices = true;
};

struct DeltaRepair {
  std::string_view name;
  bool DeltaRepairs::*on;
  std::string_view about;  // for --help: ours (the paper's)
};
std::span<const DeltaRepair> delta_repairs();
// The paper's method as printed.
DeltaRepairs delta_as_printed();
// `from`, changed by a comma-separated list: "NAME" switches a repair on, "no-NAME" off. Throws
// UsageError, which lists the names.
DeltaRepairs changed_repairs(DeltaRepairs from, std::string_view changes);

struct DeltaOptions {
  // Filter: "base" (the paper's choice, also used if empty), "lru", "greedy".
  std::string filter{};
  // Releases ahead of need once this share of the arena is in use, so that copies overlap
  // compute (Section 4.3: three quarters). 0: off. Best effort.
  double early_start = 0.75;
  // Prefetcher: the maximum number of storages prefetched and not yet used. 0: off.
  int prefetch = 4;
  // Changes to the policy's own repairs, for changed_repairs().
  std::string repairs{};
  // Tide: the maximum work on one schedule (planner/releases/release_planner.h). 0: as much as
  // the steps are worth.
  int64_t plan_effort = 0;
};

}  // namespace tidemark
