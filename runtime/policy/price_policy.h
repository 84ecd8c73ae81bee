// Tide's policy for steps without a schedule. It releases the storage with the least price per
// byte and per time until its next use, or since its last use where the next is unknown. The
// price is the lesser of the time to recompute the storage now and the time that compute would
// wait for the link, counting copies already under way.
#pragma once

#include <optional>

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/forecasting.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

class PricePolicy final : public Forecasting<IndexedPolicy> {
 public:
  // `filter`: chooses instead of prices; null: prices choose. `known_to_fit`: nothing will be
  // released, so nothing is forecast.
  PricePolicy(FilterFn filter, bool known_to_fit)
      : filter_(filter), known_to_fit_(known_to_fit) {}

  Storage* choose(const MemoryView& view) override;
  bool knows_prices() const override { return !filter_; }
  std::optional<Nanos> price(const MemoryView& view, Storage& storage) override;
  Action decide(const MemoryView& view, Storage& storage) override;
  bool recompute_offloaded(const MemoryView& view, Storage& storage) override;
  void on_event(const StorageEvent& event) noexcept override {
    if (!known_to_fit_) Forecasting::on_event(event);
  }
  void begin_step(const MemoryView& view) override {
    step_began_ = view.clock();
    Forecasting::begin_step(view);
  }

 private:
  std::optional<Nanos> evict_price(const MemoryView& view, Storage& storage) const;
  Nanos offload_price(const MemoryView& view, const Storage& storage) const;
  std::optional<Nanos> release_price(const MemoryView& view, Storage& storage) const;
  Nanos until_next_use(const MemoryView& view, const Storage& storage) const;

  const FilterFn filter_;
  const bool known_to_fit_;
  Nanos step_began_{0};  // on the issue clock
  Nanos link_free_{0};   // issue clock at which copies under way will be out
};

}  // namespace tidemark
