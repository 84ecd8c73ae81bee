#include "runtime/delta/tide/tide_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/cost/link_rate.h"
#include "runtime/delta/policies/policy.h"

namespace tidemark {
namespace {

// Steps after which a new program's plan is made anew, as its operators are timed.
constexpr int kLearningSteps = 1;

constexpr Nanos kSomeTime{1'000'000};

bool has_tier(const Residency& residency) { return residency.tier_room() > Bytes(0); }

}  // namespace

TidePolicy::Fate TidePolicy::fate_of(const Storage& storage) const {
  if (!program().planned || !forecast_.known()) return Fate::kStays;
  const uint32_t item = forecast_.item_of(storage);
  return item < fates_.size() ? fates_[item].fate : Fate::kStays;
}

std::optional<Nanos> TidePolicy::evict_price(const Residency& residency,
                                             Storage& storage) const {
  const bool rather_offload = storage.category == Category::kGradient && has_tier(residency);
  if (rather_offload || !residency.may_evict(storage)) return std::nullopt;
  const auto again = residency.recompute_cost(storage, Forecast::kNever);
  if (!again) return std::nullopt;
  // The more has been computed again in this step, the less will do any good.
  const Nanos program = forecast_.time();
  const Nanos recomputed = residency.clock() - step_began_ - program;
  const double thrash = static_cast<double>(recomputed.count()) /
                        static_cast<double>(std::max(program, kSomeTime).count());
  return Nanos(static_cast<int64_t>(
      std::min(1e15, static_cast<double>(again->count()) * (1 + 8 * thrash * thrash))));
}

// What compute waits for: copies under way, this one, and what it takes to come back beyond the
// time there is. Where the link is what everything waits for, each copy costs its own time, so
// no more is counted of those under way.
Nanos TidePolicy::offload_price(const Residency& residency, const Storage& storage) const {
  const Nanos out = residency.costs().offload_time(storage.bytes());
  const Nanos backlog = std::clamp(link_free_ - residency.clock(), Nanos(0), out);
  const Nanos back = residency.reload_cost(storage);
  const Nanos until = until_next_use(residency, storage);
  return backlog + out + std::max(Nanos(0), back - until);
}

// Of what can be done with it.
std::optional<Nanos> TidePolicy::release_price(const Residency& residency,
                                               Storage& storage) const {
  std::optional<Nanos> least = evict_price(residency, storage);
  if (!has_tier(residency) || storage.offload_pinned) return least;
  const Nanos offload = offload_price(residency, storage);
  return least ? std::min(*least, offload) : offload;
}

Nanos TidePolicy::until_next_use(const Residency& residency, const Storage& storage) const {
  if (!forecast_.known()) return residency.clock() - storage.last_access;
  return std::min(forecast_.until_next_use(storage), 2 * forecast_.last().duration);
}

Storage* TidePolicy::choose(const Residency& residency) {
  // Free, or decided already: the one that frees most for longest.
  Storage* best = least([&](const Storage& s) -> std::optional<double> {
    if (!residency.may_release(s)) return std::nullopt;
    const Fate fate = fate_of(s);
    const Nanos until = until_next_use(residency, s);
    const bool copied =
        residency.has_copy(s) &&
        (fate == Fate::kOffload ? fates_[forecast_.item_of(s)].copied <= residency.clock()
                                : until > 4 * residency.reload_cost(s));
    if (!copied && fate != Fate::kEvict) return std::nullopt;
    return -static_cast<double>(s.size().count()) * static_cast<double>(until.count());
  });
  if (best) return best;
  if (options_.filter) {
    return index().best(options_.filter, residency.clock(),
                        [&](const Storage& s) { return residency.may_release(s); });
  }
  return least([&](Storage& s) -> std::optional<double> {
    if (!residency.may_release(s)) return std::nullopt;
    const auto price = release_price(residency, s);
    if (!price) return std::nullopt;
    const Nanos until = std::max(Nanos(1), until_next_use(residency, s));
    return static_cast<double>(price->count()) /
           (static_cast<double>(s.size().count()) * static_cast<double>(until.count()));
  });
}

std::optional<Nanos> TidePolicy::price(const Residency& residency, Storage& storage) {
  const Fate fate = fate_of(storage);
  if (fate == Fate::kEvict) return Nanos(0);
  const Nanos until = until_next_use(residency, storage);
  Nanos price;
  if (residency.has_copy(storage)) {
    price = std::max(Nanos(0), 4 * residency.reload_cost(storage) - until);
  } else {
    const auto least = release_price(residency, storage);
    if (!least) return std::nullopt;
    price = *least;
  }
  // What is wanted again at once makes room for a moment only.
  const Nanos horizon(forecast_.last().duration.count() / 16);
  if (until >= horizon) return price;
  const double often = static_cast<double>(horizon.count()) /
                       static_cast<double>(std::max(Nanos(1), until).count());
  return Nanos(
      static_cast<int64_t>(std::min(1e15, static_cast<double>(price.count()) * often)));
}

Action TidePolicy::decide(const Residency& residency, Storage& storage) {
  switch (fate_of(storage)) {
    case Fate::kEvict: return Action::kEvict;
    case Fate::kOffload: return Action::kOffload;
    case Fate::kStays: break;
  }
  const auto again = evict_price(residency, storage);
  if (again && *again <= offload_price(residency, storage)) return Action::kEvict;
  link_free_ =
      std::max(link_free_, residency.clock()) + residency.costs().offload_time(storage.bytes());
  return Action::kOffload;
}

bool TidePolicy::recompute_offloaded(const Residency& residency, Storage& storage) {
  const Nanos reload = residency.reload_cost(storage);
  const auto again = residency.recompute_cost(storage, reload);
  return again && *again < reload;
}

void TidePolicy::on_evicted(Storage& storage) {
  if (storage.users() == 0) forecast_.ended(storage);
}

void TidePolicy::after_operator(Residency& residency, const Recipe& call) {
  if (known_to_fit_) return;
  const auto index = static_cast<uint32_t>(forecast_.calls());
  forecast_.record(call, residency.costs());
  if (index == 0) begin_program();
  if (!program().planned || !forecast_.known()) return;
  // What was wanted by this call has had its gap.
  for (const uint32_t item : forecast_.last().calls[index].inputs) fates_[item] = {};
  begin_releases(residency, index);
  bring_back(residency, index);
}

// The step's first call has told which program it is.
void TidePolicy::begin_program() {
  if (std::exchange(fates_of_, forecast_.program()) == forecast_.program()) return;
  fates_.assign(forecast_.last().items.size(), {});
}

void TidePolicy::begin_releases(Residency& residency, uint32_t call) {
  const std::vector<PlannedRelease>& releases = program().plan.releases;
  for (; next_release_ < releases.size() && releases[next_release_].from <= call;
       ++next_release_) {
    const PlannedRelease& release = releases[next_release_];
    Storage* storage = forecast_.storage_of(release.item);
    if (!storage || !storage->resident()) continue;
    if (release.action == Action::kEvict) {
      fates_[release.item] = {Fate::kEvict, Nanos(0)};
      if (residency.may_release(*storage) && residency.may_evict(*storage)) {
        residency.release(*storage, Reason::kEarlyStart);
      }
    } else if (residency.has_copy(*storage) ||
               residency.copy_out(*storage, Reason::kEarlyStart)) {
      link_free_ = std::max(link_free_, residency.clock()) +
                   residency.costs().offload_time(storage->bytes());
      fates_[release.item] = {Fate::kOffload, link_free_};
    }
  }
}

void TidePolicy::bring_back(Residency& residency, uint32_t call) {
  const std::vector<uint32_t>& now = program().reload_at[call];
  due_.insert(due_.end(), now.begin(), now.end());
  while (!due_.empty()) {
    Storage* storage = forecast_.storage_of(due_.front());
    if (storage && storage->residence() == Residence::kOffloaded &&
        !residency.prefetch(*storage)) {
      return;  // no room: again after the next operator
    }
    fates_[due_.front()] = {};
    due_.erase(due_.begin());
  }
}

void TidePolicy::begin_step(Residency& residency) {
  step_began_ = residency.clock();
  forecast_.begin_step();
  next_release_ = 0;
  due_.clear();
}

void TidePolicy::end_step(Residency& residency) {
  const bool repeated = forecast_.known() && forecast_.calls() == forecast_.last().calls.size();
  forecast_.end_step();
  if (known_to_fit_ || forecast_.last().calls.empty()) return;
  learn(residency, repeated);
}

// One step with each way of planning, then the best for as long as steps repeat. That is also
// what keeps a plan from thrashing. Where a step fits as it is, there is nothing to plan.
void TidePolicy::learn(const Residency& residency, bool repeated) {
  if (!repeated) {
    program() = {};
    program().trial.warm_up = kLearningSteps;
    return;
  }
  Trial& trial = program().trial;
  if (trial.over) return;
  if (trial.warm_up > 0) {
    --trial.warm_up;
    return;
  }
  const StepStats& stats = residency.stats();
  const Nanos took = stats.modelled;
  const bool fits = trial.next == 0 && stats.evictions + stats.offloads + stats.clean_drops +
                                               stats.reloads + stats.recomputes ==
                                           0;
  if (trial.next == 0 || took < trial.least) {
    trial.least = took;
    trial.best = trial.next;
  }
  ++trial.next;
  trial.over = fits || trial.next > options_.ways.size();
  const size_t way = trial.over ? trial.best : trial.next;
  if (way == 0) {
    program().planned = false;
  } else {
    make_plan(residency, options_.ways[way - 1]);
  }
}

void TidePolicy::make_plan(const Residency& residency, const TideWay& way) {
  const LinkRate out = offload_rate(residency.costs());
  const LinkRate in = reload_rate(residency.costs());
  PlanLimits limits;
  limits.room = share_of(residency.arena().offsets().capacity(), 1 - way.slack);
  limits.tier_room = way.link_share > 0 ? residency.tier_room() : Bytes(0);
  limits.latency = out.latency;
  limits.out_bandwidth = out.bytes_per_second;
  limits.in_bandwidth = std::max(0.01, way.link_share) * in.bytes_per_second;
  Program& now = program();
  now.plan = make_release_plan(forecast_.last(), limits);
  now.planned = true;
  fates_.assign(forecast_.last().items.size(), {});
  fates_of_ = forecast_.program();
  now.reload_at.assign(forecast_.last().calls.size(), {});
  for (const PlannedRelease& release : now.plan.releases) {
    if (release.action != Action::kOffload) continue;
    now.reload_at[release.reload_at].push_back(release.item);
  }
}

std::unique_ptr<ReleasePolicy> make_tide_policy(const PolicySettings& settings) {
  TideOptions options;
  const std::string& filter = settings.delta.filter;
  if (!filter.empty()) options.filter = find_heuristic(filter).score;
  return std::make_unique<TidePolicy>(options, settings.known_to_fit);
}

}  // namespace tidemark
