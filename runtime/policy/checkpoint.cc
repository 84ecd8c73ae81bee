// Chen et al. (2016), Section 4: a forward pass of n calls is cut into sqrt(n) segments. What
// crosses a border is kept; what lies within a segment is dropped as soon as forward is done
// with it, whatever the budget (but where all is known to fit), and recomputed segment by
// segment.
//
// Which storages forward still wants is known from the last step, so the first one, and one
// that does not go as the last, evict by staleness as memory is needed.
#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/forecasting.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class CheckpointPolicy final : public Forecasting<EvictOnlyPolicy> {
 public:
  explicit CheckpointPolicy(bool known_to_fit) : known_to_fit_(known_to_fit) {}

  Storage* choose(const Residency& residency) override {
    return index().best(lru_score, residency.clock(),
                        [&](Storage& storage) { return evictable(residency, storage); });
  }

  void after_operator(Residency& residency, const Recipe& call) override {
    if (known_to_fit_) return;
    Forecasting::after_operator(residency, call);
    if (residency.phase() == Phase::kForward) {
      forward_calls_ = forecast().calls();
      if (forecast().known()) drop_segment(residency);
    }
  }
  void begin_step(Residency& residency) override {
    segment_ = std::max<size_t>(
        1, static_cast<size_t>(std::sqrt(static_cast<double>(forward_calls_))));
    forward_end_ = forward_calls_;
    borders_.clear();
    Forecasting::begin_step(residency);
  }
  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kGone) borders_.erase(event.storage);
    Forecasting::on_event(event);
  }

 private:
  // At a segment's end: what forward still wants crosses the border and stays, also later. The
  // last segment stays whole, as backward begins with it.
  void drop_segment(Residency& residency) {
    const bool last = forecast().calls() + segment_ > forward_end_;
    if (last || forecast().calls() % segment_ != 0) return;
    std::vector<Storage*> inside;
    index().for_each([&](Storage& storage) {
      if (storage.category != Category::kActivation || borders_.count(&storage) > 0) return;
      if (forecast().next_call(storage) < forward_end_) {
        borders_.insert(&storage);
      } else if (evictable(residency, storage)) {
        inside.push_back(&storage);
      }
    });
    for (Storage* storage : inside) residency.release(*storage, Reason::kEarlyStart);
  }
  const bool known_to_fit_;
  size_t forward_calls_ = 0;  // of this step so far; of the last one when it begins
  size_t forward_end_ = 0;    // where forward is expected to end
  size_t segment_ = 1;
  std::unordered_set<const Storage*> borders_;
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_checkpoint_policy(const PolicySettings& settings) {
  return std::make_unique<CheckpointPolicy>(settings.known_to_fit);
}

}  // namespace tidemark
