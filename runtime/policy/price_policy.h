// What tide does where it has no schedule. The next to go has the least price per byte and time
// until it is used next, or since it was used last where that is unknown. The price is what
// computing it again would take now, or what the link would make compute wait for, counting the
// copies already under way: whichever is less.
#pragma once

#include <optional>

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/forecasting.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

class PricePolicy final : public Forecasting<IndexedPolicy> {
 public:
  // `filter`: chooses in the place of prices; null: they do. `known_to_fit`: nothing will be
  // released, so nothing is forecast.
  PricePolicy(FilterFn filter, bool known_to_fit)
      : filter_(filter), known_to_fit_(known_to_fit) {}

  Storage* choose(const Residency& residency) override;
  bool knows_prices() const override { return !filter_; }
  std::optional<Nanos> price(const Residency& residency, Storage& storage) override;
  Action decide(const Residency& residency, Storage& storage) override;
  bool recompute_offloaded(const Residency& residency, Storage& storage) override;
  void after_operator(Residency& residency, const Recipe& call) override {
    if (!known_to_fit_) Forecasting::after_operator(residency, call);
  }
  void begin_step(Residency& residency) override {
    step_began_ = residency.clock();
    Forecasting::begin_step(residency);
  }

 private:
  std::optional<Nanos> evict_price(const Residency& residency, Storage& storage) const;
  Nanos offload_price(const Residency& residency, const Storage& storage) const;
  std::optional<Nanos> release_price(const Residency& residency, Storage& storage) const;
  Nanos until_next_use(const Residency& residency, const Storage& storage) const;

  const FilterFn filter_;
  const bool known_to_fit_;
  Nanos step_began_{0};  // on the issue clock
  Nanos link_free_{0};   // on the issue clock, when copies under way will be out
};

}  // namespace tidemark
