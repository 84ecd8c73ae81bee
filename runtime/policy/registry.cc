#include <array>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/policy/registry.h"

namespace tidemark {

MakePolicy make_tide_policy, make_price_policy, make_delta_policy, make_delta_paper_policy,
    make_dtr_policy, make_lru_policy, make_greedy_policy, make_msps_policy,
    make_offload_only_policy, make_checkpoint_policy, make_random_policy, make_austere_policy;

std::span<const PolicyInfo> policies() {
  static constexpr std::array kAll{
      PolicyInfo{.name = "tide",
                 .about = "ours: steps that repeat run under a plan; others as with 'price'",
                 .plans = true,
                 .takes_filter = true,
                 .make = make_tide_policy},
      PolicyInfo{.name = "price",
                 .about = "tide without plans: release what is cheapest to restore",
                 .takes_filter = true,
                 .make = make_price_policy},
      PolicyInfo{.name = "delta",
                 .about = "DELTA: evict or offload, whichever is cheaper",
                 .takes_filter = true,
                 .takes_repairs = true,
                 .make = make_delta_policy},
      PolicyInfo{.name = "delta-paper",
                 .about = "DELTA as printed, without the repairs of 'delta'",
                 .takes_filter = true,
                 .takes_repairs = true,
                 .reference = true,
                 .make = make_delta_paper_policy},
      PolicyInfo{.name = "dtr",
                 .about = "DTR: evict what costs least to recompute per byte and staleness",
                 .make = make_dtr_policy},
      PolicyInfo{
          .name = "lru", .about = "evict the least recently used", .make = make_lru_policy},
      PolicyInfo{.name = "greedy", .about = "evict the largest", .make = make_greedy_policy},
      PolicyInfo{.name = "msps",
                 .about = "Capuchin: offload what the link can hide, else evict by MSPS",
                 .make = make_msps_policy},
      PolicyInfo{.name = "offload-only",
                 .about = "DELTA that never recomputes",
                 .evicts = false,
                 .takes_filter = true,
                 .takes_repairs = true,
                 .make = make_offload_only_policy},
      PolicyInfo{.name = "checkpoint",
                 .about = "Chen: keep the boundaries of sqrt(n) segments",
                 .make = make_checkpoint_policy},
      PolicyInfo{
          .name = "random", .about = "evict or offload at random", .make = make_random_policy},
      PolicyInfo{.name = "austere",
                 .about = "the last resort only: the stalest first, by fixed rules",
                 .make = make_austere_policy},
  };
  return kAll;
}

const PolicyInfo& find_policy(std::string_view name) {
  std::vector<std::string> names{"none"};
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == name) return policy;
    names.emplace_back(policy.name);
  }
  throw UsageError("unknown policy '" + std::string(name) + "'; available: " + listed(names));
}

namespace {

std::string policies_where(bool PolicyInfo::*holds) {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : policies()) {
    if (policy.*holds) names.emplace_back(policy.name);
  }
  return listed(names, " and ");
}

}  // namespace

std::string policies_with_filter() { return policies_where(&PolicyInfo::takes_filter); }

std::string policies_with_repairs() { return policies_where(&PolicyInfo::takes_repairs); }

void check_takes_filter(std::string_view policy) {
  if (policy != "none" && find_policy(policy).takes_filter) return;
  throw UsageError("'" + std::string(policy) + "' takes no filter; filters are for " +
                   policies_with_filter());
}

void check_takes_repairs(std::string_view policy) {
  if (policy != "none" && find_policy(policy).takes_repairs) return;
  throw UsageError("'" + std::string(policy) + "' takes no repairs; they are for " +
                   policies_with_repairs());
}

}  // namespace tidemark
