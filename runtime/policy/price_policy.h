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
  Nanos link_free_{0};   // on the issue clock, when copies under way will be out
};

}  // namespace tidemark
