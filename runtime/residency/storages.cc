#include "runtime/residency/storages.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/residency/memory_timer.h"
#include "runtime/residency/new_block.h"

namespace tidemark {

Storages::~Storages() {
  burying_ = true;  // storages that go now are collected, and deleted below
  for_each([](Storage& s) { s.managed.lose(); });
  for_each([&](Storage& s) { drop_recipe(s); });
  for (Storage* s : graveyard_) {
    unlink(*s);
    delete s;
  }
  for (Storage* s = newest_; s;) {
    s->orphan();
    s = std::exchange(s->managed.next, nullptr);
  }
}

IntrusivePtr<Storage> Storages::create(Bytes bytes, Category category, const char* origin) {
  uint32_t slot = slots_;
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  auto storage = make_intrusive<Storage>(&owner_, next_id_++, slot, std::max(bytes, Bytes(1)),
                                         category, origin);
  storage->managed.next = newest_;
  if (newest_) newest_->managed.previous = storage.get();
  newest_ = storage.get();
  return storage;
}

void Storages::unlink(Storage& storage) {
  ManagedStorage& s = storage.managed;
  (s.previous ? s.previous->managed.next : newest_) = s.next;
  if (s.next) s.next->managed.previous = s.previous;
}

void Storages::last_user_went(Storage& storage) {
  context_.events.tell(StorageEvent::Kind::kUnused, &storage);
  ++change_;
  settle_evicted(storage);
}

void Storages::hold(Storage& storage) {
  ManagedStorage& s = storage.managed;
  if (s.evicted() && !s.needed()) ++evicted_needed_;
  ++s.put_off;
}

void Storages::let_go(Storage& storage) {
  --storage.managed.put_off;
  ++change_;
  settle_evicted(storage);
}

// What is evicted and not needed any more is dead.
void Storages::settle_evicted(Storage& storage) {
  if (!storage.managed.evicted() || storage.managed.needed()) return;
  --evicted_needed_;
  die(storage);
}

void Storages::bury(Storage& storage) {
  graveyard_.push_back(&storage);
  if (std::exchange(burying_, true)) return;
  while (!graveyard_.empty()) {
    Storage& next = *graveyard_.back();
    graveyard_.pop_back();
    if (next.managed.tier) drop_copy(next);
    if (next.resident()) leave_block(next, Residence::kDead);
    drop_recipe(next);
    context_.events.tell(StorageEvent::Kind::kGone, &next);
    unlink(next);
    free_slots_.push_back(next.slot());
    delete &next;
  }
  burying_ = false;
}

void Storages::take_block(Storage& storage, NewBlock& block, Event written,
                          StorageEvent::Kind how) {
  ManagedStorage& s = storage.managed;
  if (s.evicted() && s.needed()) --evicted_needed_;
  s.take_block();
  s.written = written;
  // Once it is written, that came after all that was done with the block before.
  s.touched = written.ticket > 0 ? Fence(written) : block.fence();
  s.block = block.keep();
  put_in_place(storage);
  if (s.clean()) ++clean_;
  ++change_;
  offer_to_policy(storage);
  context_.events.tell(how, &storage);
}

void Storages::leave_block(Storage& storage, Residence next) {
  const MemoryTimer timer(context_);
  ManagedStorage& s = storage.managed;
  context_.policy.remove(storage);
  set_prefetched(storage, false);
  if (context_.options.poison && context_.device.has_data()) poison(storage);
  context_.arena.free(s.block, storage.category, s.touched);
  take_from_place(storage);
  if (s.clean()) --clean_;
  s.block = {};
  s.leave(next);
  ++change_;
  if (s.evicted() && s.needed()) ++evicted_needed_;
  context_.events.tell(StorageEvent::Kind::kLeft, &storage);
}

void Storages::move_block(Storage& storage, const Block& block, Event done) {
  ManagedStorage& s = storage.managed;
  take_from_place(storage);
  s.block = block;
  put_in_place(storage);
  s.written = done;
  s.touched = Fence(done);
  context_.events.tell(StorageEvent::Kind::kMoved, &storage, Reason::kNoRoom);
}

void Storages::die(Storage& storage) {
  storage.managed.die();
  ++change_;
  context_.events.tell(StorageEvent::Kind::kDied, &storage);
}

void Storages::add_copy(Storage& storage, Tier& tier, Pieces pieces, const Fence& done) {
  ManagedStorage& s = storage.managed;
  s.copy_out();
  ++clean_;
  s.tier = &tier;
  s.tier_pieces = std::move(pieces);
  s.tier_fence = done;
}

void Storages::drop_copy(Storage& storage) {
  ManagedStorage& s = storage.managed;
  if (s.clean()) --clean_;
  s.tier->release(s.tier_pieces, s.tier_fence);
  s.tier = nullptr;
  s.tier_fence = {};
  s.give_up_copy();
  if (!s.evicted()) return;
  ++change_;
  if (s.needed()) ++evicted_needed_;
}

// What can never be released is not offered.
void Storages::offer_to_policy(Storage& storage) {
  const bool managed = context_.options.managed && storage.category != Category::kWorkspace;
  if (!storage.resident() || !managed) return;
  const bool evictable = context_.may_evict(storage) && storage.managed.recipe;
  if (evictable || context_.may_offload(storage)) {
    context_.policy.add(storage);
  } else {
    context_.policy.remove(storage);
  }
}

void Storages::put_in_place(Storage& storage) {
  placed_.insert(storage.managed.block.offset, &storage);
}

void Storages::take_from_place(Storage& storage) {
  const auto place = placed_.find(storage.managed.block.offset);
  TIDEMARK_CHECK(place != placed_.end() && place->value == &storage,
                 "a resident storage has its place");
  placed_.erase(place);
}

void Storages::poison(Storage& storage) {
  ManagedStorage& s = storage.managed;
  try {
    context_.device.wait(StreamId::kCompute, s.touched);
    s.touched.include(context_.device.fill(StreamId::kCompute,
                                           context_.arena.address(s.block.offset), s.block.size,
                                           std::byte{0xDB}));
  } catch (const DeviceError&) {  // a failed device takes no work; handles go all the same
  }
}

void Storages::set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe) {
  if (recipe->kept_by++ == 0) {
    for (const Recipe::Input& input : recipe->inputs) ++input.storage->managed.readers;
  }
  storage.managed.recipe = std::move(recipe);
  ++change_;
  offer_to_policy(storage);
}

void Storages::drop_recipe(Storage& storage) {
  IntrusivePtr<Recipe> recipe = std::exchange(storage.managed.recipe, {});
  if (!recipe) return;
  ++change_;
  offer_to_policy(storage);
  for (Recipe::Output& output : recipe->outputs) {
    if (output.storage == &storage) output.storage = nullptr;
  }
  if (--recipe->kept_by > 0) return;
  for (const Recipe::Input& input : recipe->inputs) --input.storage->managed.readers;
}

std::vector<IntrusivePtr<Storage>> Storages::in_use() const {
  std::vector<IntrusivePtr<Storage>> found;
  for_each([&](Storage& s) {
    if (s.users() > 0 && s.residence() != Residence::kEmpty) found.emplace_back(&s);
  });
  return found;
}

Bytes Storages::bytes_in_use() const {
  Bytes sum{0};
  for_each([&](const Storage& s) {
    if (s.users() > 0 && s.residence() != Residence::kEmpty) sum += s.size();
  });
  return sum;
}

std::vector<Storage*> Storages::by_address() const {
  // Pointers that are copied in the time in which a storage is examined.
  constexpr size_t kCopiedAtOnce = 8;
  context_.effort.examine(static_cast<int64_t>(placed_.size() / kCopiedAtOnce));
  std::vector<Storage*> blocks;
  blocks.reserve(placed_.size());
  for (const auto& [offset, storage] : placed_) blocks.push_back(storage);
  return blocks;
}

void Storages::set_prefetched(Storage& storage, bool ahead) {
  if (storage.managed.prefetched == ahead) return;
  storage.managed.prefetched = ahead;
  prefetched_ += ahead ? 1 : -1;
}

}  // namespace tidemark
