// Capuchin (Peng et al., 2020). Measured execution: a step whose program is not
// known yet releases on demand only ("passive mode"): the storage accessed longest ago goes to
// the tier, and comes back when it is needed. Its accesses then give one plan for all later
// steps of the program (capuchin_plan.h). Guided execution: a storage is evicted right after
// its evicted-access; or it is copied out there, loses its block once the copy is done, and is
// brought back from its in-trigger on. What the plan leaves short is released as in passive
// mode.
//
// Feedback: where a swapped storage was not back by its back-access, its
// in-trigger moves 5 % of the copy's time ahead.
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/policy/capuchin_plan.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/forecasting.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

constexpr int64_t kFeedback = 20;  // a copy's time / 20

class MspsPolicy final : public Forecasting<IndexedPolicy> {
 public:
  explicit MspsPolicy(bool known_to_fit) : known_to_fit_(known_to_fit) {}

  Storage* choose(const MemoryView& view) override {
    // Storages that have a copy by the plan go first: that is free.
    for (const Swap& swap : swaps_) {
      Storage* const storage = swap.away ? nullptr : swap.storage;
      if (storage && view.may_release(*storage) && view.has_copy(*storage)) return storage;
    }
    return index().best(lru_score, view.clock(),
                        [&](const Storage& storage) { return view.may_release(storage); });
  }
  Action decide(const MemoryView& /*view*/, Storage& /*storage*/) override {
    return Action::kOffload;
  }

  void on_event(const StorageEvent& event) noexcept override {
    if (known_to_fit_) return;
    Forecasting::on_event(event);
    if (event.kind == StorageEvent::Kind::kReloaded) late_.push_back(event.storage);
    const bool unused = loses_bytes(event) && event.storage->users() == 0;
    if (unused || event.kind == StorageEvent::Kind::kGone) {
      for (Swap& swap : swaps_) {
        if (swap.storage == event.storage) swap.storage = nullptr;
      }
    }
    if (event.kind == StorageEvent::Kind::kGone) {
      std::erase(late_, event.storage);
      std::erase_if(due_, [&](const Due& due) { return due.storage == event.storage; });
    }
  }
  void begin_step(const MemoryView& view) override {
    Forecasting::begin_step(view);
    late_.clear();
    swaps_.clear();
  }

  Decision after_operator(const MemoryView& view, Outcome last) override {
    if (last == Outcome::kNone) begin_decisions(view);
    // Without space for it now, a copy in is tried again after the next operator.
    if (last == Outcome::kImpossible && asked_) {
      swaps_.push_back({asked_, forecast().storage_of(asked_->item), /*away=*/true});
    }
    asked_ = nullptr;
    if (due_.empty()) return {};
    const Due due = due_.front();
    due_.pop_front();
    if (due.what == Decision::What::kPrefetch) asked_ = due.release;
    return {due.what, due.storage, Reason::kEarlyStart};
  }

 private:
  using Release = CapuchinPlan::Release;
  struct Planned {
    uint32_t first_seen = 0;  // of the program; 0: none yet
    size_t calls = 0;         // of the step that it was made from
    CapuchinPlan plan;
    std::vector<std::vector<Release*>> after;  // by call
  };
  // A swap whose copy out was begun and whose copy in was not.
  struct Swap {
    Release* release = nullptr;
    Storage* storage = nullptr;  // null: has ended
    bool away = false;           // its block was given up
  };
  struct Due {
    Decision::What what = Decision::What::kNothing;
    Storage* storage = nullptr;
    Release* release = nullptr;
  };

  // What is due after the last operator.
  void begin_decisions(const MemoryView& view) {
    due_.clear();
    if (!forecast().known()) return;
    Planned& planned = plan(view);
    const auto done = static_cast<uint32_t>(forecast().calls());
    if (done == 0 || done > planned.after.size()) return;
    note_late(done);
    const auto add = [&](Decision::What what, Release* release) {
      Storage* const storage = forecast().storage_of(release->item);
      if (storage) due_.push_back({what, storage, release});
    };
    const Nanos now =
        done < planned.calls ? forecast().last().calls[done].begin : forecast().last().duration;
    // A copy that is to start during the next operator starts before it.
    const Nanos next = done + 1 < planned.calls ? forecast().last().calls[done + 1].begin
                                                : forecast().last().duration;
    for (Release* release : planned.after[done - 1]) {
      add(release->swap ? Decision::What::kCopyOut : Decision::What::kEvict, release);
      if (release->swap) swaps_.push_back({release, forecast().storage_of(release->item)});
    }
    std::erase_if(swaps_, [&](Swap& swap) {
      if (!swap.away && swap.release->out <= now) {
        add(Decision::What::kOffload, swap.release);
        swap.away = true;
      }
      if (!swap.away || swap.release->in_trigger >= next) return false;
      add(Decision::What::kPrefetch, swap.release);
      return true;
    });
  }

  // The storages that the last operator had to wait for.
  void note_late(uint32_t done) {
    for (const Swap& swap : swaps_) {
      Release& release = *swap.release;
      if (release.before + 1 != done) continue;
      for (const Storage* storage : late_) {
        if (storage != forecast().storage_of(release.item)) continue;
        release.in_trigger =
            std::max(Nanos(0), release.in_trigger - Nanos(release.copy_in.count() / kFeedback));
      }
    }
    std::erase_if(swaps_, [&](const Swap& swap) { return swap.release->before < done; });
    late_.clear();
  }

  // The program's plan, made when the program is first known.
  Planned& plan(const MemoryView& view) {
    Planned& planned = plans_[forecast().program()];
    const StepTable& step = forecast().last();
    if (planned.first_seen == forecast().first_seen()) return planned;
    planned.first_seen = forecast().first_seen();
    planned.calls = step.calls.size();
    planned.plan = capuchin_plan(
        step, {.capacity = view.capacity(),
               .may_swap = view.tier_space() > Bytes(0),
               .copy_out = [&](Bytes bytes) { return view.costs().offload_time(bytes); },
               .copy_in = [&](Bytes bytes) { return view.costs().reload_time(bytes); }});
    view.examine(planned.plan.examined);
    planned.after.assign(planned.calls, {});
    for (Release& release : planned.plan.releases) {
      planned.after[release.after].push_back(&release);
    }
    return planned;
  }

  const bool known_to_fit_;
  std::unordered_map<size_t, Planned> plans_;  // by Forecast::program()
  std::deque<Due> due_;                        // after the last operator
  std::vector<Swap> swaps_;
  Release* asked_ = nullptr;          // the last decision was to bring this back
  std::vector<const Storage*> late_;  // reloaded on demand since the last operator
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_msps_policy(const PolicySettings& settings) {
  return std::make_unique<MspsPolicy>(settings.known_to_fit);
}

}  // namespace tidemark
