// Chen et al. (2016), Section 4: a forward pass of n calls is cut into sqrt(n) segments.
// Storages that cross a border are kept. Those within a segment are dropped as soon as forward
// is done with it, whatever the budget (unless everything is known to fit), and recomputed
// segment by segment.
//
// The last step tells which storages forward still needs. The first step, and a step unlike the
// last, therefore evict by staleness as memory is needed.
#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_set>

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/forecasting.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class CheckpointPolicy final : public Forecasting<EvictOnlyPolicy> {
 public:
  explicit CheckpointPolicy(bool known_to_fit) : known_to_fit_(known_to_fit) {}

  Storage* choose(const MemoryView& view) override {
    return index().best(lru_score, view.clock(),
                        [&](Storage& storage) { return evictable(view, storage); });
  }

  Decision after_operator(const MemoryView& view, Outcome last) override {
    if (known_to_fit_) return {};
    if (last == Outcome::kNone) {
      dropped_.clear();
      if (view.phase() == Phase::kForward) {
        forward_calls_ = forecast().calls();
        if (forecast().known()) end_segment(view);
      }
    }
    if (dropped_.empty()) return {};
    Storage* const next = dropped_.front();
    dropped_.pop_front();
    return {Decision::What::kRelease, next, Reason::kEarlyStart};
  }
  void begin_step(const MemoryView& view) override {
    segment_ = std::max<size_t>(
        1, static_cast<size_t>(std::sqrt(static_cast<double>(forward_calls_))));
    forward_end_ = forward_calls_;
    borders_.clear();
    Forecasting::begin_step(view);
  }
  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kGone) {
      borders_.erase(event.storage);
      std::erase(dropped_, event.storage);
    }
    if (!known_to_fit_) Forecasting::on_event(event);
  }

 private:
  // At a segment's end, storages that forward still needs cross the border and stay, also
  // later. The last segment stays whole, as backward begins with it.
  void end_segment(const MemoryView& view) {
    const bool last = forecast().calls() + segment_ > forward_end_;
    if (last || forecast().calls() % segment_ != 0) return;
    index().for_each([&](Storage& storage) {
      if (storage.category != Category::kActivation || borders_.count(&storage) > 0) return;
      if (forecast().next_call(storage) < forward_end_) {
        borders_.insert(&storage);
      } else if (evictable(view, storage)) {
        dropped_.push_back(&storage);
      }
    });
  }
  const bool known_to_fit_;
  size_t forward_calls_ = 0;  // in this step so far; at its start, the last step's
  size_t forward_end_ = 0;    // where forward is expected to end
  size_t segment_ = 1;
  std::unordered_set<const Storage*> borders_;
  std::deque<Storage*> dropped_;  // in the segment that just ended, still to be released
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_checkpoint_policy(const PolicySettings& settings) {
  return std::make_unique<CheckpointPolicy>(settings.known_to_fit);
}

}  // namespace tidemark
