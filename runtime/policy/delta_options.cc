#include "runtime/policy/delta_options.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {

std::span<const DeltaRepair> delta_repairs() {
  using R = DeltaRepairs;
  static constexpr std::array kAll{
      DeltaRepair{"backward", &R::backward,
                  "release in backward and update too (Assumption 2: only before the loss)"},
      DeltaRepair{"async", &R::async,
                  "compute goes on during a copy out (Assumption 2: waits for it)"},
      DeltaRepair{
          "reload", &R::reload,
          "reload a needed offloaded tensor if that is cheaper (Algorithm 1: recompute it "
          "unless uncomputable)"},
      DeltaRepair{"limits", &R::limits,
                  "prefetch until memory or the count runs out (Algorithm 4: until both do)"},
      DeltaRepair{
          "moment", &R::moment,
          "prefetch after each operator of backward (Section 4.2: when an offloaded tensor "
          "is needed)"},
      DeltaRepair{
          "order", &R::order,
          "prefetch what forward offloaded last first (Algorithm 4: first in, first out)"},
      DeltaRepair{"gradients", &R::gradients,
                  "offload gradients (Algorithm 3: evict them if that is cheaper)"},
      DeltaRepair{
          "link", &R::link,
          "price copies at the measured bandwidth (Section 4.1: at 35 % of the link's)"},
      DeltaRepair{"state", &R::state,
                  "evict parameters and optimizer state while they can be recomputed "
                  "(evict_pinned)"},
      DeltaRepair{"recent", &R::recent,
                  "early start keeps what the last operator used (Algorithm 1: releases any "
                  "tensor)"},
      DeltaRepair{
          "prices", &R::prices,
          "price recomputation by its time (Table V: by launch times, next to which copies "
          "never pay); on in delta-paper too"},
  };
  return kAll;
}

DeltaRepairs delta_as_printed() {
  DeltaRepairs repairs;
  for (const DeltaRepair& repair : delta_repairs()) repairs.*repair.on = false;
  repairs.prices = true;
  return repairs;
}

DeltaRepairs changed_repairs(DeltaRepairs from, std::string_view changes) {
  constexpr std::string_view kOff = "no-";
  while (!changes.empty()) {
    std::string_view change = changes.substr(0, changes.find(','));
    changes.remove_prefix(std::min(changes.size(), change.size() + 1));
    while (change.starts_with(' ')) change.remove_prefix(1);
    while (change.ends_with(' ')) change.remove_suffix(1);
    const bool off = change.starts_with(kOff);
    const std::string_view name = off ? change.substr(kOff.size()) : change;
    const auto all = delta_repairs();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const DeltaRepair& r) { return r.name == name; });
    if (found == all.end()) {
      std::vector<std::string> names;
      for (const DeltaRepair& repair : all) names.emplace_back(repair.name);
      throw UsageError("DELTA has no repair '" + std::string(name) +
                       "'; available: " + listed(names) + ", each also as no-NAME");
    }
    from.*found->on = !off;
  }
  return from;
}

}  // namespace tidemark
