#include "runtime/policy/price_policy.h"

#include <algorithm>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

constexpr Nanos kSomeTime{1'000'000};

bool has_tier(const MemoryView& view) { return view.tier_space() > Bytes(0); }

}  // namespace

std::optional<Nanos> PricePolicy::evict_price(const MemoryView& view, Storage& storage) const {
  const bool rather_offload = storage.category == Category::kGradient && has_tier(view);
  if (rather_offload || !view.may_evict(storage)) return std::nullopt;
  const auto again = view.recompute_cost(storage, Forecast::kNever);
  if (!again) return std::nullopt;
  // The more this step has recomputed already, the less good another recomputation does.
  const Nanos program = forecast().time();
  const Nanos recomputed = view.clock() - step_began_ - program;
  const double thrash = static_cast<double>(recomputed.count()) /
                        static_cast<double>(std::max(program, kSomeTime).count());
  return Nanos(static_cast<int64_t>(
      std::min(1e15, static_cast<double>(again->count()) * (1 + 8 * thrash * thrash))));
}

// Time that compute waits: for copies under way, for this copy, and for the part of the reload
// that exceeds the time until the next use. On a saturated link each copy costs its own time,
// so copies under way count for no more than this one.
Nanos PricePolicy::offload_price(const MemoryView& view, const Storage& storage) const {
  const Nanos out = view.costs().offload_time(storage.bytes());
  const Nanos backlog = std::clamp(link_free_ - view.clock(), Nanos(0), out);
  const Nanos back = view.reload_cost(storage);
  const Nanos until = until_next_use(view, storage);
  return backlog + out + std::max(Nanos(0), back - until);
}

// The price of the cheaper way to release the storage.
std::optional<Nanos> PricePolicy::release_price(const MemoryView& view,
                                                Storage& storage) const {
  std::optional<Nanos> least = evict_price(view, storage);
  if (!has_tier(view) || storage.offload_pinned) return least;
  const Nanos offload = offload_price(view, storage);
  return least ? std::min(*least, offload) : offload;
}

Nanos PricePolicy::until_next_use(const MemoryView& view, const Storage& storage) const {
  if (!forecast().known()) return view.clock() - storage.last_access;
  return std::min(forecast().until_next_use(storage), 2 * forecast().last().duration);
}

Storage* PricePolicy::choose(const MemoryView& view) {
  // A storage that has a copy and is not needed soon is free to release: takes the one that
  // frees the most for longest.
  Storage* best = least([&](const Storage& s) -> std::optional<double> {
    if (!view.may_release(s) || !view.has_copy(s)) return std::nullopt;
    const Nanos until = until_next_use(view, s);
    if (until <= 4 * view.reload_cost(s)) return std::nullopt;
    return -static_cast<double>(s.size().count()) * static_cast<double>(until.count());
  });
  if (best) return best;
  if (filter_) {
    return index().best(filter_, view.clock(),
                        [&](const Storage& s) { return view.may_release(s); });
  }
  return least([&](Storage& s) -> std::optional<double> {
    if (!view.may_release(s)) return std::nullopt;
    const auto price = release_price(view, s);
    if (!price) return std::nullopt;
    const Nanos until = std::max(Nanos(1), until_next_use(view, s));
    return static_cast<double>(price->count()) /
           (static_cast<double>(s.size().count()) * static_cast<double>(until.count()));
  });
}

std::optional<Nanos> PricePolicy::price(const MemoryView& view, Storage& storage) {
  const Nanos until = until_next_use(view, storage);
  Nanos price;
  if (view.has_copy(storage)) {
    price = std::max(Nanos(0), 4 * view.reload_cost(storage) - until);
  } else {
    const auto least = release_price(view, storage);
    if (!least) return std::nullopt;
    price = *least;
  }
  // A storage that is needed again at once frees memory for a moment only.
  const Nanos horizon(forecast().last().duration.count() / 16);
  if (until >= horizon) return price;
  const double often = static_cast<double>(horizon.count()) /
                       static_cast<double>(std::max(Nanos(1), until).count());
  return Nanos(
      static_cast<int64_t>(std::min(1e15, static_cast<double>(price.count()) * often)));
}

Action PricePolicy::decide(const MemoryView& view, Storage& storage) {
  const auto again = evict_price(view, storage);
  if (again && *again <= offload_price(view, storage)) return Action::kEvict;
  link_free_ = std::max(link_free_, view.clock()) + view.costs().offload_time(storage.bytes());
  return Action::kOffload;
}

bool PricePolicy::recompute_offloaded(const MemoryView& view, Storage& storage) {
  const Nanos reload = view.reload_cost(storage);
  const auto again = view.recompute_cost(storage, reload);
  return again && *again < reload;
}

std::unique_ptr<ReleasePolicy> make_price_policy(const PolicySettings& settings) {
  const std::string& filter = settings.delta.filter;
  return std::make_unique<PricePolicy>(filter.empty() ? nullptr : find_filter(filter).score,
                                       settings.known_to_fit);
}

std::unique_ptr<ReleasePolicy> make_tide_policy(const PolicySettings& settings) {
  const PolicyInfo& fallback = find_policy(settings.fallback_policy);
  if (fallback.plans) throw UsageError("tide cannot be its own fallback policy");
  if (!fallback.evicts) {
    throw UsageError(
        "tide's schedules recompute, so '" + settings.fallback_policy +
        "' cannot be its fallback policy; use 'delta', which releases the same way");
  }
  return fallback.make(settings);
}

}  // namespace tidemark
