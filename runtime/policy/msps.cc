// Capuchin (Peng et al., 2020), on the last step's accesses. It swaps storages that the link
// can carry out and back before their next use (free time, Section 4.4), the one with most time
// to spare first. If there is none, it recomputes by memory saved per second, MSPS = m / c_r.
//
// Capuchin plans once from a profiled step; this policy decides as memory is needed. In a step
// unlike the last it is MSPS alone.
#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/policy/forecasting.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class MspsPolicy final : public Forecasting<IndexedPolicy> {
 public:
  Storage* choose(const MemoryView& view) override {
    if (forecast().known() && view.tier_space() > Bytes(0)) {
      Storage* storage = least([&](const Storage& s) -> std::optional<double> {
        if (!view.may_release(s) || s.offload_pinned) return std::nullopt;
        const Nanos free = free_time(view, s);
        if (free < Nanos(0)) return std::nullopt;
        return -static_cast<double>(free.count());
      });
      if (storage) return storage;
    }
    Storage* storage = least([&](Storage& s) -> std::optional<double> {
      if (!view.may_release(s) || !view.may_evict(s)) return std::nullopt;
      const auto cost = view.recompute_cost(s, Forecast::kNever);
      if (!cost) return std::nullopt;
      return static_cast<double>(cost->count()) / static_cast<double>(s.size().count());
    });
    if (storage) return storage;
    return least([&](const Storage& s) -> std::optional<double> {
      if (!view.may_release(s)) return std::nullopt;
      return static_cast<double>(s.last_access.count());
    });
  }
  Action decide(const MemoryView& view, Storage& storage) override {
    const bool hidden = forecast().known() && free_time(view, storage) >= Nanos(0);
    if (!hidden) return Action::kEvict;
    link_free_ =
        std::max(link_free_, view.clock()) + view.costs().offload_time(storage.bytes());
    return Action::kOffload;
  }

  void on_event(const StorageEvent& event) noexcept override {
    Forecasting::on_event(event);
    if (goes_away(event)) away_.push_back(event.storage);
    if (ends_absence(event)) {
      std::erase(away_, event.storage);
      std::erase(due_, event.storage);
    }
  }
  // "In-trigger": a storage is brought back as long before its use as its copy takes, while
  // there is space.
  Decision after_operator(const MemoryView& view, Outcome last) override {
    if (last == Outcome::kNone) due_ = find_due(view);
    if (last == Outcome::kImpossible) due_.clear();
    if (due_.empty()) return {};
    Storage* const next = due_.front();
    due_.pop_front();
    return {Decision::What::kPrefetch, next, Reason::kNone};
  }

 private:
  std::deque<Storage*> find_due(const MemoryView& view) const {
    std::deque<Storage*> due;
    if (!forecast().known()) return due;
    for (Storage* storage : away_) {
      const Nanos lead = 2 * view.reload_cost(*storage);
      if (forecast().until_next_use(*storage) <= lead) due.push_back(storage);
    }
    return due;
  }
  // Time left after the storage has gone out and come back. Negative while the link is busy
  // with another: copies that queue up would be late both ways.
  Nanos free_time(const MemoryView& view, const Storage& storage) const {
    const Nanos until = forecast().until_next_use(storage);
    if (link_free_ > view.clock()) return Nanos(-1);
    return until - view.costs().offload_time(storage.bytes()) - view.reload_cost(storage);
  }

  std::vector<Storage*> away_;
  std::deque<Storage*> due_;  // still to be brought back at this moment
  Nanos link_free_{0};        // on the issue clock, when the copies under way will be out
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_msps_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<MspsPolicy>();
}

}  // namespace tidemark
