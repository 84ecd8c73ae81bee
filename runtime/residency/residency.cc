// Runs calls: the life of an operator, and of a step.
#include "runtime/residency/residency.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/residency/claims.h"
#include "runtime/residency/memory_timer.h"

namespace tidemark {

// Pins and blocks of a call that is being issued. The destructor undoes what commit() did not
// keep.
class Residency::Issue {
 public:
  explicit Issue(Residency& residency) : residency_(residency) {}
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;
  ~Issue() {
    for (auto& [storage, fresh, before, over] : outputs_) {
      if (fresh && over) {
        residency_.changes_.hand_over(*storage, *over, before);
      } else if (fresh) {
        residency_.changes_.leave_block(*storage, before);
      }
    }
    for (const auto& storage : pinned_) {
      --storage->managed.pins;
      residency_.rematerialiser_.settle_unused(*storage);
    }
  }

  void pin(Storage& storage) {
    ++storage.managed.pins;
    pinned_.emplace_back(&storage);
  }
  // Gives `storage` a block that the call will write.
  void place(Storage& storage, PlacementCursor& placement) {
    const Residence before = storage.residence();
    NewBlock block = residency_.space_.allocate(storage, StreamId::kCompute, placement);
    storage.last_access = residency_.context_.clock;
    residency_.changes_.take_block(storage, block, Event{}, StorageEvent::Kind::kPlaced);
    outputs_.push_back({IntrusivePtr<Storage>(&storage), true, before, nullptr});
    pin(storage);
  }
  // Gives `storage` the block of an input, which the call will overwrite.
  void place_over(Storage& storage, Storage& input, PlacementCursor& placement) {
    const std::optional<Offset> at = placement.next();
    if (at && *at != input.managed.block.offset) placement.miss();
    const Residence before = storage.residence();
    storage.last_access = residency_.context_.clock;
    residency_.context_.device.wait(StreamId::kCompute, input.managed.touched);
    residency_.changes_.hand_over(input, storage, Residence::kDead);
    outputs_.push_back({IntrusivePtr<Storage>(&storage), true, before, &input});
    pin(storage);
  }
  // Gives the call a block that is freed once the call has run.
  Storage& scratch(Bytes bytes, const Recipe& call, PlacementCursor& placement) {
    IntrusivePtr<Storage> storage =
        residency_.context_.storages.create(bytes, Category::kWorkspace, call.name());
    storage->name = call.label();
    place(*storage, placement);
    return *outputs_.back().storage;
  }
  // After the launch, what the call wrote stays.
  void commit() {
    for (Output& output : outputs_) output.fresh = false;
  }

 private:
  struct Output {
    IntrusivePtr<Storage> storage;
    bool fresh;
    Residence before;
    Storage* over;  // the input that it overwrites; pinned
  };
  Residency& residency_;
  std::vector<Output> outputs_;
  std::vector<IntrusivePtr<Storage>> pinned_;
};

Residency::Residency(Device& device, Arena& arena, std::vector<Tier*> tiers, CostModel& costs,
                     EventLog& log, ReleasePolicy& policy, const ResidencyOptions& options)
    : context_{device, arena, std::move(tiers), costs, log, policy, options, Storages(*this)},
      measurements_(context_),
      changes_(context_),
      graph_(context_, changes_),
      transfers_(context_, changes_, graph_, measurements_),
      rematerialiser_(
          context_, changes_, graph_, transfers_,
          [this](Recipe& call, Reason reason) { issue(call, Run::kAgain, reason); }),
      space_(context_, changes_, transfers_,
             [this] { return rematerialiser_.release_claims(); }),
      host_copies_(context_, changes_, space_),
      view_(context_, changes_, graph_, transfers_) {
  context_.view = &view_;
  context_.events.listen(policy);
}

bool Residency::execute(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement,
                        Recipe* implementation) {
  return run(call, implementation ? *implementation : *call, Run::kFirst, placement);
}

void Residency::defer(const IntrusivePtr<Recipe>& call) {
  for (const Recipe::Input& input : call->inputs) {
    ManagedStorage& s = input.storage->managed;
    rematerialiser_.hold(*input.storage);
    if (!input.written) continue;
    ++s.version;
    ++s.unwritten;
  }
  keep_as_recipe(call);
}

// The call is its outputs' recipe from now on, if it can be run again.
void Residency::keep_as_recipe(const IntrusivePtr<Recipe>& call) {
  const bool pure = std::none_of(call->inputs.begin(), call->inputs.end(),
                                 [](const Recipe::Input& input) { return input.written; });
  if (!pure || !context_.options.managed || !context_.options.evict) return;
  for (const Recipe::Output& output : call->outputs) {
    if (output.storage->managed.recipe == call) continue;
    changes_.set_recipe(*output.storage, call);
  }
}

bool Residency::execute_deferred(const IntrusivePtr<Recipe>& call,
                                 const BlockPlacement& placement, Recipe* implementation) {
  const bool kept =
      run(call, implementation ? *implementation : *call, Run::kDeferred, placement);
  for (const Recipe::Input& input : call->inputs) rematerialiser_.release_hold(*input.storage);
  return kept;
}

bool Residency::recompute(Storage& storage, const BlockPlacement& placement) {
  context_.effort.stop_here();
  const IntrusivePtr<Recipe> call(storage.managed.recipe);
  if (!call || !graph_.runnable(storage)) return false;
  Claims inputs(rematerialiser_);
  if (placement.how == BlockPlacement::How::kAt) {
    // The schedule has no place for an input that would have to come back.
    const bool ready =
        std::all_of(call->inputs.begin(), call->inputs.end(),
                    [](const Recipe::Input& input) { return input.storage->resident(); });
    if (!ready) return false;
  } else {
    for (const Recipe::Input& input : call->inputs) inputs.add(*input.storage);
    rematerialiser_.materialise_inputs(*call);
  }
  const bool kept = issue(*call, Run::kAgain, Reason::kPlan, placement);
  rematerialiser_.note_recomputed(*call);
  return kept;
}

void Residency::cancel(const Recipe& call) {
  for (const Recipe::Input& input : call.inputs) {
    if (input.written) {  // readers of the old bytes can still be recomputed
      --input.storage->managed.version;
      --input.storage->managed.unwritten;
    }
    rematerialiser_.release_hold(*input.storage);
  }
  for (const Recipe::Output& output : call.outputs) {
    Storage* const storage = output.storage;
    if (!storage || storage->residence() != Residence::kEmpty) continue;
    changes_.drop_recipe(*storage);
    storage->managed.lose();
  }
  graph_.lost_source();
}

void Residency::cancel_upload(Storage& storage) {
  if (storage.residence() == Residence::kEmpty) storage.managed.lose();
}

// Runs the call, or one of its variants. The recipe of the outputs is the call.
bool Residency::run(const IntrusivePtr<Recipe>& call, Recipe& implementation, Run kind,
                    const BlockPlacement& placement) {
  context_.effort.stop_here();
  Claims inputs(rematerialiser_);
  for (const Recipe::Input& input : implementation.inputs) {
    if (input.storage->residence() == Residence::kLost) {
      throw UsageError("[" + std::string(call->name()) + "] an input's bytes are lost");
    }
    inputs.add(*input.storage);
  }
  rematerialiser_.materialise_inputs(implementation);
  RecipeGraph::Writing writing(graph_, implementation);
  rematerialiser_.protect_readers();
  const bool kept = issue(implementation, kind, Reason::kNone, placement);
  keep_as_recipe(call);
  writing.end();
  inputs.drop();
  if (placement.how != BlockPlacement::How::kAt) note_issued(*call, placement);
  context_.events.tell(StorageEvent::Kind::kCallDone);
  return kept;
}

// Makes the storage resident by recomputing or reloading it. Anything that is not held may make
// way.
void Residency::fetch(Storage& storage, Reason reason) {
  rematerialiser_.materialise(storage, reason);
  if (storage.managed.offloaded()) {
    NewBlock block = space_.allocate(storage, StreamId::kReload);
    if (storage.managed.offloaded())
      transfers_.reload(storage, std::move(block), EventKind::kReload, reason);
  }
  rematerialiser_.materialise(storage, reason);  // if its copy was dropped to make that space
  TIDEMARK_CHECK(storage.resident(), "a storage that is needed can be restored");
  changes_.set_prefetched(storage, false);
}

// Returns false if a block does not lie at its given place.
bool Residency::issue(Recipe& call, Run kind, Reason reason, const BlockPlacement& placement) {
  const bool again = kind == Run::kAgain;
  PlacementCursor places(placement);
  Issue issue(*this);
  for (const Recipe::Input& input : call.inputs) {
    fetch(*input.storage, reason == Reason::kNone ? Reason::kNeeded : reason);
    issue.pin(*input.storage);
  }
  context_.events.tell({.kind = StorageEvent::Kind::kRun, .reason = reason, .call = &call});
  Storage* overwritten = nullptr;
  if (placement.overwrites) {
    if (rematerialiser_.let_overwrite(*placement.overwrites)) {
      overwritten = placement.overwrites;
    } else if (placement.how == BlockPlacement::How::kAt) {
      places.miss();
    }
  }
  std::vector<Storage*> outputs;
  outputs.reserve(call.outputs.size());
  for (const Recipe::Output& output : call.outputs) {
    Storage* storage = output.storage;
    // A sibling that is available or that nobody needs is written to scratch: its block, if
    // any, may be in use.
    const bool missing =
        storage && (storage->residence() == Residence::kEmpty || storage->managed.evicted() ||
                    (storage->residence() == Residence::kDead && storage->managed.claims > 0));
    if (overwritten && outputs.empty()) {
      issue.place_over(*storage, *overwritten, places);
    } else if (missing) {
      issue.place(*storage, places);
    } else {
      TIDEMARK_CHECK(again, "outputs of a new call are empty");
      storage = &issue.scratch(output.bytes, call, places);
    }
    outputs.push_back(storage);
  }
  Storage* workspace =
      call.workspace > Bytes(0) ? &issue.scratch(call.workspace, call, places) : nullptr;

  // From here on no block moves.
  std::vector<std::byte*> input_addresses, output_addresses;
  for (const Recipe::Input& input : call.inputs) {
    Storage& storage = *input.storage;
    context_.device.wait(StreamId::kCompute, input.written ? storage.managed.touched
                                                           : Fence(storage.managed.written));
    const Storage& holder = &storage == overwritten ? *outputs.front() : storage;
    input_addresses.push_back(context_.arena.address(holder.managed.block.offset));
  }
  for (Storage* storage : outputs)
    output_addresses.push_back(context_.arena.address(storage->managed.block.offset));
  const Nanos cost = context_.costs.time(call.cost_key);
  const uint64_t tag = context_.log.record(
      {.kind = again ? EventKind::kRecompute : EventKind::kOperator,
       .reason = overwritten ? Reason::kInPlace : reason,
       .stream = static_cast<uint8_t>(StreamId::kCompute),
       .category = static_cast<uint8_t>(outputs.empty() ? Category::kWorkspace
                                                        : outputs.front()->category),
       .storage = outputs.empty() ? 0 : outputs.front()->id(),
       .name = call.label(),
       .op = call.name(),
       .bytes = outputs.empty() ? Bytes(0) : outputs.front()->size(),
       .issued = context_.clock,
       .expected = cost,
       .used = context_.arena.used()});
  const uint64_t timed = measurements_.add(tag, {call.cost_key, Bytes(0), again});
  const Event done = call.launch(
      context_.device,
      {input_addresses, output_addresses,
       workspace ? context_.arena.address(workspace->managed.block.offset) : nullptr},
      timed);
  issue.commit();

  context_.clock += std::max(cost, Nanos(1));
  auto used = [&](Storage& storage) {
    storage.managed.touched.forget(StreamId::kReload);  // compute has waited for the reload
    storage.managed.touched.include(done);
    storage.last_access = context_.clock;
    context_.policy.touch(storage);
    context_.events.tell(StorageEvent::Kind::kUsed, &storage);
  };
  for (const Recipe::Input& input : call.inputs) {
    if (input.storage.get() != overwritten) used(*input.storage);
    if (!input.written) continue;
    Storage& storage = *input.storage;
    if (storage.managed.has_copy()) changes_.drop_copy(storage);
    changes_.drop_recipe(storage);
    if (storage.managed.readers > 0) graph_.lost_source();
    if (kind == Run::kFirst) ++storage.managed.version;
    if (kind == Run::kDeferred) --storage.managed.unwritten;
    storage.managed.written = done;
  }
  for (Storage* storage : outputs) {
    storage->managed.written = done;
    storage->managed.touched = {};  // compute has waited for the block's last users
    used(*storage);
  }
  if (workspace) workspace->managed.touched = done;
  ++(again ? context_.stats.recomputes : context_.stats.operators);
  return places.kept();
}

bool Residency::download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink) {
  if (storage.residence() == Residence::kLost) {
    throw UsageError("[read] the bytes of " + std::string(storage.origin()) + " are lost");
  }
  fetch(storage, Reason::kNeeded);
  return host_copies_.download(storage, offset, bytes, sink);
}

Offset Residency::pack() {
  std::vector<IntrusivePtr<Storage>> away;
  context_.storages.for_each([&](Storage& s) {
    context_.effort.examine();
    if ((s.managed.offloaded() || s.managed.evicted()) && s.managed.needed())
      away.emplace_back(&s);
  });
  const OffsetAllocator& offsets = context_.arena.offsets();
  if (away.empty() && offsets.packed()) return Offset(0) + offsets.used();
  space_.compact_all();
  for (const auto& storage : away) fetch(*storage, Reason::kNeeded);
  return space_.compact_all();
}

void Residency::on_unused(Storage& storage) {
  changes_.last_user_went(storage);
  rematerialiser_.settle_unused(storage);
}

// --- a step ---

void Residency::begin_step() {
  context_.effort.go_on();
  context_.phase = Phase::kForward;
  measurements_.begin_step();
  context_.stats = {};
  step_began_ = context_.device.now();
  modelled_began_ = context_.device.modelled_now();
  stalled_before_ = context_.device.stalled(StreamId::kCompute);
  context_.arena.reset_peak();
  context_.policy.begin_step(view_);
}

StepStats Residency::end_step(bool synchronize) {
  Device& device = context_.device;
  context_.effort.stop_here();
  rematerialiser_.bring_back_survivors();
  graph_.lost_source();
  if (synchronize) device.synchronize_all();
  host_copies_.settle(/*wait=*/synchronize);
  measurements_.take_completions();
  if (synchronize) measurements_.stop();
  measurements_.end_step();
  StepStats& stats = context_.stats;
  stats.stall_time = device.stalled(StreamId::kCompute) - stalled_before_;
  stats.duration = device.now() - step_began_;
  stats.modelled = device.modelled_now() - modelled_began_;
  stats.peak_reserved = context_.arena.peak_reserved();
  stats.peak_live = context_.arena.peak_live().total();
  context_.policy.end_step(view_);
  return stats;
}

void Residency::abort_step() {
  rematerialiser_.forget_recomputed();
  context_.effort.go_on();
  host_copies_.settle(/*wait=*/false);
  measurements_.take_completions();
  measurements_.abort_step();
}

Residency::Kept Residency::kept() const {
  Kept kept;
  context_.storages.for_each([&](const Storage& s) {
    ++kept.storages;
    kept.recipes += s.managed.recipe ? 1 : 0;
  });
  kept.host_copies = host_copies_.count();
  return kept;
}

}  // namespace tidemark
