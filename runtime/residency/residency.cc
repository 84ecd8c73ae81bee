// Running calls: the life of an operator.
#include "runtime/residency/residency.h"

#include <algorithm>
#include <utility>

#include "runtime/residency/claims.h"
#include "runtime/residency/memory_timer.h"
#include "runtime/residency/new_block.h"
#include "runtime/residency/walk.h"

namespace tidemark {

// Pins and blocks of a call being issued. What is not kept by commit() is undone.
class Residency::Issue {
 public:
  explicit Issue(Residency& residency) : residency_(residency) {}
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;
  ~Issue() {
    for (auto& [storage, fresh, before] : outputs_) {
      if (fresh) residency_.leave_arena(*storage, before);
    }
    for (const auto& storage : pinned_) {
      if (--storage->pins_ == 0 && storage->wanted_ == 0 && !needed(*storage)) {
        residency_.settle_unused(*storage);
      }
    }
  }

  void pin(Storage& storage) {
    ++storage.pins_;
    pinned_.emplace_back(&storage);
  }
  // Gives `storage` a block that the call will write.
  void place(Storage& storage, PlacementCursor& placement) {
    const Residence before = storage.residence_;
    NewBlock block = residency_.allocate(storage, StreamId::kCompute, placement);
    storage.last_access = residency_.clock_;
    residency_.become_resident(storage, block, Event{}, StorageEvent::Kind::kPlaced);
    outputs_.push_back({IntrusivePtr<Storage>(&storage), true, before});
    pin(storage);
  }
  // A block that is freed when the call has run.
  Storage& scratch(Bytes bytes, const Recipe& call, PlacementCursor& placement) {
    IntrusivePtr<Storage> storage = residency_.create(bytes, Category::kWorkspace, call.name());
    storage->name = call.label();
    place(*storage, placement);
    return *outputs_.back().storage;
  }
  // The call has been launched: what it wrote stays.
  void commit() {
    for (Output& output : outputs_) output.fresh = false;
  }

 private:
  struct Output {
    IntrusivePtr<Storage> storage;
    bool fresh;
    Residence before;
  };
  Residency& residency_;
  std::vector<Output> outputs_;
  std::vector<IntrusivePtr<Storage>> pinned_;
};

// What a call writes in place and recipes read. Forgotten however the call ends.
class Residency::WritingScope {
 public:
  WritingScope(Residency& residency, const Recipe& call) : residency_(residency) {
    for (const Recipe::Input& input : call.inputs) {
      if (!input.written || input.storage->readers_ == 0) continue;
      input.storage->being_written_ = true;
      residency.writing_.push_back(input.storage.get());
    }
    ++residency.change_;
  }
  ~WritingScope() { end(); }
  WritingScope(const WritingScope&) = delete;
  WritingScope& operator=(const WritingScope&) = delete;

  void end() {
    for (Storage* storage : std::exchange(residency_.writing_, {})) {
      storage->being_written_ = false;
    }
  }

 private:
  Residency& residency_;
};

bool Residency::execute(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement) {
  return run(call, Run::kFirst, placement);
}

void Residency::defer(Recipe& call) {
  for (const Recipe::Input& input : call.inputs) {
    hold(*input.storage);
    if (!input.written) continue;
    ++input.storage->version_;
    ++input.storage->unwritten_;
  }
}

void Residency::hold(Storage& storage) {
  if (storage.residence_ == Residence::kEvicted && !needed(storage)) ++evicted_users_;
  ++storage.put_off_;
}

void Residency::let_go(Storage& storage) {
  if (--storage.put_off_ == 0 && storage.users_ == 0) settle_not_needed(storage);
}

bool Residency::execute_deferred(const IntrusivePtr<Recipe>& call,
                                 const BlockPlacement& placement) {
  const bool kept = run(call, Run::kDeferred, placement);
  for (const Recipe::Input& input : call->inputs) let_go(*input.storage);
  return kept;
}

bool Residency::recompute(Storage& storage, const BlockPlacement& placement) {
  stop_here();
  const IntrusivePtr<Recipe> call(storage.recipe_);
  if (!call || !runnable(storage)) return false;
  const bool ready =
      std::all_of(call->inputs.begin(), call->inputs.end(),
                  [](const Recipe::Input& input) { return input.storage->resident(); });
  if (!ready) return false;
  const bool kept = issue(*call, Run::kAgain, Reason::kPlan, placement);
  for (const Recipe::Output& output : call->outputs) {
    if (output.storage && output.storage->resident()) recomputed_.emplace_back(output.storage);
  }
  return kept;
}

void Residency::unclaim(Storage& storage) {
  if (--storage.wanted_ == 0 && storage.pins_ == 0 && !needed(storage)) {
    settle_unused(storage);
  }
}

void Residency::give_up(Recipe& call) {
  for (const Recipe::Input& input : call.inputs) {
    if (input.written) {  // what reads the bytes as they are can still be computed from them
      --input.storage->version_;
      --input.storage->unwritten_;
    }
    let_go(*input.storage);
  }
  for (const Recipe::Output& output : call.outputs) {
    if (output.storage->residence_ == Residence::kEmpty) {
      output.storage->residence_ = Residence::kLost;
    }
  }
}

bool Residency::run(const IntrusivePtr<Recipe>& call, Run kind,
                    const BlockPlacement& placement) {
  stop_here();
  bool pure = true;
  Claims inputs(*this);
  for (const Recipe::Input& input : call->inputs) {
    if (input.storage->residence_ == Residence::kLost) {
      throw UsageError("[" + std::string(call->name()) + "] an input's bytes are lost");
    }
    inputs.add(*input.storage);
    pure = pure && !input.written;
  }
  materialise_inputs(*call);
  const auto recomputed = std::exchange(recomputed_, {});
  WritingScope writing(*this, *call);
  for (const auto& storage : recomputed) {
    // As with what protect_readers_of() brings back: it could not be had again after the write.
    if (!writing_.empty() && storage->recipe_ && depends_on_written(*storage))
      drop_recipe(*storage);
  }
  for (Storage* storage : std::vector(writing_)) protect_readers_of(*storage);
  const bool kept = issue(*call, kind, Reason::kNone, placement);
  if (pure && options_.managed && options_.evict) {
    for (const Recipe::Output& output : call->outputs) set_recipe(*output.storage, call);
  }
  writing.end();
  inputs.drop();
  try {
    const MemoryTimer timer(*this);
    if (!placement.scheduled()) policy_.after_operator(*this, *call);
  } catch (const Error&) {
    // The call has been issued, and what failed here was best effort. A device that has failed
    // says so again at the next call.
  }
  tell(StorageEvent::Kind::kCallDone);
  return kept;
}

// Resident, whatever it takes short of recomputing a claimed storage.
void Residency::fetch(Storage& storage, Reason reason) {
  materialise(storage, reason);
  if (storage.residence_ == Residence::kOffloaded) {
    PlacementCursor anywhere;
    reload(storage, allocate(storage, StreamId::kReload, anywhere), EventKind::kReload, reason);
  }
  TIDEMARK_CHECK(storage.resident(), "a storage that is wanted can be had");
  if (std::exchange(storage.prefetched_, false)) --prefetched_;
}

// False if a block does not lie where it was to.
bool Residency::issue(Recipe& call, Run kind, Reason reason, const BlockPlacement& placement) {
  const bool again = kind == Run::kAgain;
  PlacementCursor places(placement);
  Issue issue(*this);
  for (const Recipe::Input& input : call.inputs) {
    fetch(*input.storage, reason == Reason::kNone ? Reason::kNeeded : reason);
    issue.pin(*input.storage);
  }
  tell({.kind = StorageEvent::Kind::kRun, .reason = reason, .call = &call});
  std::vector<Storage*> outputs;
  outputs.reserve(call.outputs.size());
  for (const Recipe::Output& output : call.outputs) {
    Storage* storage = output.storage;
    // A sibling that is here, on a tier or wanted by nobody is written to scratch: its block,
    // if any, may be in use.
    const bool missing =
        storage && (storage->residence_ == Residence::kEmpty ||
                    storage->residence_ == Residence::kEvicted ||
                    (storage->residence_ == Residence::kDead && storage->wanted_ > 0));
    if (missing) {
      issue.place(*storage, places);
    } else {
      TIDEMARK_CHECK(again, "outputs of a new call are empty");
      storage = &issue.scratch(output.bytes, call, places);
    }
    outputs.push_back(storage);
  }
  Storage* workspace =
      call.workspace > Bytes(0) ? &issue.scratch(call.workspace, call, places) : nullptr;

  // From here on nothing moves.
  std::vector<std::byte*> input_addresses, output_addresses;
  for (const Recipe::Input& input : call.inputs) {
    Storage& storage = *input.storage;
    device_.wait(StreamId::kCompute,
                 input.written ? storage.touched_ : Fence(storage.written_));
    input_addresses.push_back(arena_.address(storage.block_.offset));
  }
  for (Storage* storage : outputs)
    output_addresses.push_back(arena_.address(storage->block_.offset));
  const Nanos cost = costs_.time(call.cost_key);
  const uint64_t tag =
      log_.record({.kind = again ? EventKind::kRecompute : EventKind::kOperator,
                   .reason = reason,
                   .stream = static_cast<uint8_t>(StreamId::kCompute),
                   .category = static_cast<uint8_t>(
                       outputs.empty() ? Category::kWorkspace : outputs.front()->category),
                   .storage = outputs.empty() ? 0 : outputs.front()->id(),
                   .name = call.label(),
                   .op = call.name(),
                   .bytes = outputs.empty() ? Bytes(0) : outputs.front()->size(),
                   .issued = clock_,
                   .expected = cost,
                   .used = arena_.used()});
  measure(tag, {call.cost_key, Bytes(0), again});
  const Event done =
      call.launch(device_,
                  {input_addresses, output_addresses,
                   workspace ? arena_.address(workspace->block_.offset) : nullptr},
                  tag);
  issue.commit();

  clock_ += std::max(cost, Nanos(1));
  auto used = [&](Storage& storage) {
    storage.touched_.forget(StreamId::kReload);  // compute has waited for it
    storage.touched_.include(done);
    storage.last_access = clock_;
    policy_.touch(storage);
    tell(StorageEvent::Kind::kUsed, &storage);
  };
  for (const Recipe::Input& input : call.inputs) {
    used(*input.storage);
    if (!input.written) continue;
    Storage& storage = *input.storage;
    drop_tier_copy(storage);
    drop_recipe(storage);
    if (storage.readers_ > 0) ++epoch_;
    if (kind == Run::kFirst) ++storage.version_;
    if (kind == Run::kDeferred) --storage.unwritten_;
    storage.written_ = done;
  }
  for (Storage* storage : outputs) {
    storage->written_ = done;
    storage->touched_ = {};  // compute has waited for whoever had the block before
    used(*storage);
  }
  if (workspace) workspace->touched_ = done;
  ++(again ? stats_.recomputes : stats_.operators);
  return places.kept();
}

}  // namespace tidemark
