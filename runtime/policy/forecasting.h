// Base for policies that use the last step as a forecast of this step: passes all events to the
// forecast. A policy that overrides one of these functions calls the base's version.
#pragma once

#include "runtime/policy/forecast.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

template <class Base>  // IndexedPolicy, EvictOnlyPolicy
class Forecasting : public Base {
 public:
  void on_event(const StorageEvent& event) noexcept override { forecast_.on_event(event); }
  void begin_step(const MemoryView& /*view*/) override { forecast_.begin_step(); }
  void end_step(const MemoryView& /*view*/) override { forecast_.end_step(); }

 protected:
  const Forecast& forecast() const { return forecast_; }

 private:
  Forecast forecast_;
};

}  // namespace tidemark
