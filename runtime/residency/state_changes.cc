#include "runtime/residency/state_changes.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/residency/memory_timer.h"
#include "runtime/residency/new_block.h"

namespace tidemark {

StateChanges::~StateChanges() {
  destroying_ = true;  // storages that go now are collected, and deleted below
  context_.storages.for_each([](Storage& s) { s.managed.lose(); });
  context_.storages.for_each([&](Storage& s) { drop_recipe(s); });
  for (Storage* s : graveyard_) context_.storages.destroy(*s);
}

void StateChanges::last_user_went(Storage& storage) {
  context_.events.tell(StorageEvent::Kind::kUnused, &storage);
  ++counts_.changes;
  settle_evicted(storage);
}

void StateChanges::hold(Storage& storage) {
  ManagedStorage& s = storage.managed;
  if (s.evicted() && !s.needed()) ++counts_.evicted_needed;
  ++s.deferred_users;
}

void StateChanges::release_hold(Storage& storage) {
  --storage.managed.deferred_users;
  ++counts_.changes;
  settle_evicted(storage);
}

// An evicted storage that is no longer needed is dead.
void StateChanges::settle_evicted(Storage& storage) {
  if (!storage.managed.evicted() || storage.managed.needed()) return;
  --counts_.evicted_needed;
  die(storage);
}

void StateChanges::destroy(Storage& storage) {
  graveyard_.push_back(&storage);
  if (std::exchange(destroying_, true)) return;
  while (!graveyard_.empty()) {
    Storage& next = *graveyard_.back();
    graveyard_.pop_back();
    if (next.managed.tier) drop_copy(next);
    if (next.resident()) leave_block(next, Residence::kDead);
    drop_recipe(next);
    context_.events.tell(StorageEvent::Kind::kGone, &next);
    context_.storages.destroy(next);
  }
  destroying_ = false;
}

void StateChanges::take_block(Storage& storage, NewBlock& block, Event written,
                              StorageEvent::Kind how) {
  ManagedStorage& s = storage.managed;
  if (s.evicted() && s.needed()) --counts_.evicted_needed;
  s.take_block();
  s.written = written;
  // The write, if there is one, comes after all earlier uses of the block.
  s.touched = written.ticket > 0 ? Fence(written) : block.fence();
  s.block = block.keep();
  enter(storage);
  if (s.clean()) ++counts_.clean;
  ++counts_.changes;
  context_.events.tell(how, &storage);
}

void StateChanges::leave_block(Storage& storage, Residence next) {
  const MemoryTimer timer(context_);
  ManagedStorage& s = storage.managed;
  withdraw(storage);
  if (context_.options.poison && context_.device.has_data()) poison(storage);
  context_.arena.free(s.block, storage.category, s.touched);
  if (s.clean()) --counts_.clean;
  s.block = {};
  s.leave(next);
  ++counts_.changes;
  if (s.evicted() && s.needed()) ++counts_.evicted_needed;
  context_.events.tell(StorageEvent::Kind::kLeft, &storage);
}

void StateChanges::hand_over(Storage& from, Storage& to, Residence next) {
  ManagedStorage& old = from.managed;
  ManagedStorage& s = to.managed;
  if (old.has_copy()) drop_copy(from);
  withdraw(from);
  context_.arena.recategorise(old.block, from.category, to.category);
  s.take_block();
  s.block = std::exchange(old.block, {});
  s.written = old.written;
  s.touched = old.touched;
  old.leave(next);
  ++counts_.changes;
  context_.events.tell(StorageEvent::Kind::kLeft, &from);
  enter(to);
  context_.events.tell(StorageEvent::Kind::kPlaced, &to);
}

void StateChanges::move_block(Storage& storage, const Block& block, Event done) {
  ManagedStorage& s = storage.managed;
  take_from_place(storage);
  s.block = block;
  placed_.insert(block.offset, &storage);
  s.written = done;
  s.touched = Fence(done);
  context_.events.tell(StorageEvent::Kind::kMoved, &storage, Reason::kNoSpace);
}

void StateChanges::die(Storage& storage) {
  storage.managed.die();
  ++counts_.changes;
  context_.events.tell(StorageEvent::Kind::kDied, &storage);
}

void StateChanges::add_copy(Storage& storage, Tier& tier, Pieces pieces, const Fence& done) {
  ManagedStorage& s = storage.managed;
  s.copy_out();
  ++counts_.clean;
  s.tier = &tier;
  s.tier_pieces = std::move(pieces);
  s.tier_fence = done;
}

void StateChanges::drop_copy(Storage& storage) {
  ManagedStorage& s = storage.managed;
  if (s.clean()) --counts_.clean;
  s.tier->release(s.tier_pieces, s.tier_fence);
  s.tier = nullptr;
  s.tier_fence = {};
  s.drop_copy();
  if (!s.evicted()) return;
  ++counts_.changes;
  if (s.needed()) ++counts_.evicted_needed;
}

void StateChanges::enter(Storage& storage) {
  if (context_.arena.in_plan(storage.managed.block)) return;
  placed_.insert(storage.managed.block.offset, &storage);
  offer_to_policy(storage);
}

// Storages that can never be released, and those in an open plan, are not offered.
void StateChanges::offer_to_policy(Storage& storage) {
  const bool managed = context_.options.managed && storage.category != Category::kWorkspace;
  if (!storage.resident() || !managed || context_.arena.in_plan(storage.managed.block)) return;
  const bool evictable = context_.may_evict(storage) && storage.managed.recipe;
  if (evictable || context_.may_offload(storage)) {
    context_.policy.add(storage);
  } else {
    context_.policy.remove(storage);
  }
}

// From now on, neither the policy nor placed() knows the storage.
void StateChanges::withdraw(Storage& storage) {
  context_.policy.remove(storage);
  set_prefetched(storage, false);
  if (!context_.arena.in_plan(storage.managed.block)) take_from_place(storage);
}

void StateChanges::take_from_place(Storage& storage) {
  const auto place = placed_.find(storage.managed.block.offset);
  TIDEMARK_CHECK(place != placed_.end() && place->value == &storage,
                 "a resident storage has its place");
  placed_.erase(place);
}

void StateChanges::poison(Storage& storage) {
  ManagedStorage& s = storage.managed;
  try {
    context_.device.wait(StreamId::kCompute, s.touched);
    s.touched.include(context_.device.fill(StreamId::kCompute,
                                           context_.arena.address(s.block.offset), s.block.size,
                                           std::byte{0xDB}));
  } catch (const DeviceError&) {  // a failed device takes no work; handles go all the same
  }
}

void StateChanges::set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe) {
  if (recipe->kept_by++ == 0) {
    for (const Recipe::Input& input : recipe->inputs) ++input.storage->managed.readers;
  }
  storage.managed.recipe = std::move(recipe);
  ++counts_.changes;
  offer_to_policy(storage);
}

void StateChanges::drop_recipe(Storage& storage) {
  IntrusivePtr<Recipe> recipe = std::exchange(storage.managed.recipe, {});
  if (!recipe) return;
  ++counts_.changes;
  offer_to_policy(storage);
  for (Recipe::Output& output : recipe->outputs) {
    if (output.storage == &storage) output.storage = nullptr;
  }
  if (--recipe->kept_by > 0) return;
  for (const Recipe::Input& input : recipe->inputs) --input.storage->managed.readers;
}

void StateChanges::set_prefetched(Storage& storage, bool ahead) {
  if (storage.managed.prefetched == ahead) return;
  storage.managed.prefetched = ahead;
  counts_.prefetched += ahead ? 1 : -1;
}

std::vector<Storage*> StateChanges::by_address() const {
  // Pointers that are copied in the time it takes to examine one storage.
  constexpr size_t kCopiedAtOnce = 8;
  context_.effort.examine(static_cast<int64_t>(placed_.size() / kCopiedAtOnce));
  std::vector<Storage*> blocks;
  blocks.reserve(placed_.size());
  for (const auto& [offset, storage] : placed_) blocks.push_back(storage);
  return blocks;
}

}  // namespace tidemark
