// For policies that see the last step as a forecast of this one: the forecast, told of all that
// happens. A policy that overrides one of these calls the one that it overrides.
#pragma once

#include "runtime/policy/forecast.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

template <class Base>  // IndexedPolicy, EvictOnlyPolicy
class Forecasting : public Base {
 public:
  void on_uploaded(Storage& storage) override { forecast_.uploaded(storage); }
  void on_evicted(Storage& storage) override {
    if (storage.users() == 0) forecast_.ended(storage);
  }
  void on_gone(Storage& storage) override { forecast_.ended(storage); }
  void after_operator(Residency& residency, const Recipe& call) override {
    forecast_.record(call, residency.costs());
  }
  void begin_step(Residency& /*residency*/) override { forecast_.begin_step(); }
  void end_step(Residency& /*residency*/) override { forecast_.end_step(); }

 protected:
  const Forecast& forecast() const { return forecast_; }

 private:
  Forecast forecast_;
};

}  // namespace tidemark
