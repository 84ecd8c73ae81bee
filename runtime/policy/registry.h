// The policies by name, for --policy and for comparisons.
//
// To add one: see README.md.
//
// Threads: any; a policy belongs to its session's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/policy/delta_policy.h"
#include "runtime/residency/policy.h"

namespace tidemark {

struct PolicySettings {
  DeltaOptions delta;         // for those that are made of its parts
  bool known_to_fit = false;  // nothing will have to be released
  uint64_t seed = 0;          // for those that draw lots
  std::string fallback_policy =
      "price";  // for tide: the policy that it goes by without a schedule
};

// What each policy's file defines, as make_lru_policy().
using MakePolicy = std::unique_ptr<ReleasePolicy>(const PolicySettings& settings);

struct PolicyInfo {
  std::string_view name;
  std::string_view about;  // for --help: a line
  // Does it recompute? If not, no recipes are kept, which may let inputs go sooner.
  bool evicts = true;
  // Do steps that repeat go by a schedule, which a search finds (executor/step_planner.h)?
  bool plans = false;
  MakePolicy* make = nullptr;
};

std::span<const PolicyInfo> policies();
// Throws UsageError that lists the names.
const PolicyInfo& find_policy(std::string_view name);

}  // namespace tidemark
