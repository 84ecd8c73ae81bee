// The policies by name, for --policy and comparisons.
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

#include "runtime/policy/delta_options.h"
#include "runtime/residency/policy.h"

namespace tidemark {

struct PolicySettings {
  DeltaOptions delta;         // for policies made of DELTA's parts
  bool known_to_fit = false;  // nothing will have to be released
  uint64_t seed = 0;          // for policies that draw random numbers
  std::string fallback_policy =
      "price";  // for tide: the policy that decides steps without a schedule
};

// What each policy's file defines, as make_lru_policy().
using MakePolicy = std::unique_ptr<ReleasePolicy>(const PolicySettings& settings);

struct PolicyInfo {
  std::string_view name;
  std::string_view about;  // for --help: one line
  // Whether the policy recomputes. If not, no recipes are kept, which may let inputs be freed
  // sooner.
  bool evicts = true;
  // Whether repeated steps run by a schedule found by search (executor/step_planner.h).
  bool plans = false;
  // Whether it releases by the filter of DeltaOptions, where one is given.
  bool takes_filter = false;
  // Whether it takes DeltaOptions::repairs.
  bool takes_repairs = false;
  // Kept to compare with a paper: no dry run chooses it in place of another policy.
  bool reference = false;
  MakePolicy* make = nullptr;
};

std::span<const PolicyInfo> policies();
// Throws UsageError, which lists the names.
const PolicyInfo& find_policy(std::string_view name);
// "delta, ... and tide": those that take a filter.
std::string policies_with_filter();
std::string policies_with_repairs();
// Throws UsageError, which names those, unless the policy is one of them.
void check_takes_filter(std::string_view policy);
// The same for repairs.
void check_takes_repairs(std::string_view policy);

}  // namespace tidemark
