// From creation to burial: what becomes of a storage as its users and readers go.
#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/residency/memory_timer.h"
#include "runtime/residency/new_block.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/walk.h"

namespace tidemark {
namespace {

// Host memory that waits for its copy: of whole uploads, and of pieces, which are made as the
// copies go.
constexpr Bytes kMaxUploading{32 << 20};
constexpr Bytes kMaxPieces = kHostPiece * 2;

// "from layer3.2.conv1: conv2d", "layer3.2.conv1.weight.grad from conv2d_grad_weight".
std::string name_and_origin(const Storage& storage) {
  const std::string name = storage.name, origin = storage.origin();
  if (name == origin || name.find(": " + origin) != std::string::npos) return "from " + name;
  return origin == kOriginUpload ? name : name + " from " + origin;
}

}  // namespace

PieceSink copy_into(void* to) {
  return [out = static_cast<std::byte*>(to)](std::span<const std::byte> piece) mutable {
    out = std::copy(piece.begin(), piece.end(), out);
  };
}

Residency::Residency(Device& device, Arena& arena, std::vector<Tier*> tiers, CostModel& costs,
                     EventLog& log, ReleasePolicy& policy, const ResidencyOptions& options)
    : device_(device),
      arena_(arena),
      tiers_(std::move(tiers)),
      costs_(costs),
      log_(log),
      policy_(policy),
      options_(options) {
  listen(policy_);
}

Residency::~Residency() {
  burying_ = true;  // storages that go now are collected, and deleted below
  for (Storage* s = storages_; s; s = s->next_) {
    s->residence_ = Residence::kLost;
    if (s->recipe_) drop_recipe(*s);
  }
  for (Storage* s : graveyard_) {
    (s->previous_ ? s->previous_->next_ : storages_) = s->next_;
    if (s->next_) s->next_->previous_ = s->previous_;
    delete s;
  }
  for (Storage* s = storages_; s;) {
    s->owner_ = nullptr;
    s = std::exchange(s->next_, nullptr);
  }
}

IntrusivePtr<Storage> Residency::create(Bytes bytes, Category category, const char* origin) {
  uint32_t slot = slots_;
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  auto storage = make_intrusive<Storage>(this, next_id_++, slot, std::max(bytes, Bytes(1)),
                                         category, origin);
  storage->next_ = storages_;
  if (storages_) storages_->previous_ = storage.get();
  storages_ = storage.get();
  return storage;
}

void Residency::become_resident(Storage& storage, NewBlock& block, Event written,
                                StorageEvent::Kind how) {
  if (storage.residence_ == Residence::kEvicted && needed(storage)) --evicted_users_;
  storage.residence_ = Residence::kResident;
  storage.written_ = written;
  // Once it is written, that came after all that was done with the block before.
  storage.touched_ = written.ticket > 0 ? Fence(written) : block.fence();
  storage.block_ = block.keep();
  put_in_place(storage);
  if (storage.tier_) ++clean_copies_;
  ++change_;
  offer_to_policy(storage);
  tell(how, &storage);
}

// What can never be released is not offered.
void Residency::offer_to_policy(Storage& storage) {
  if (!storage.resident() || storage.category == Category::kWorkspace || !options_.managed)
    return;
  const bool evictable = options_.evict && !storage.evict_pinned && storage.recipe_;
  if (evictable || can_offload(storage)) {
    policy_.add(storage);
  } else {
    policy_.remove(storage);
  }
}

// Frees the block in stream order.
void Residency::leave_arena(Storage& storage, Residence next) {
  const MemoryTimer timer(*this);
  policy_.remove(storage);
  if (std::exchange(storage.prefetched_, false)) --prefetched_;
  if (options_.poison && device_.has_data()) {
    try {
      device_.wait(StreamId::kCompute, storage.touched_);
      storage.touched_.include(device_.fill(StreamId::kCompute,
                                            arena_.address(storage.block_.offset),
                                            storage.block_.size, std::byte{0xDB}));
    } catch (const DeviceError&) {  // a failed device takes no work; handles go all the same
    }
  }
  arena_.free(storage.block_, storage.category, storage.touched_);
  take_from_place(storage);
  if (storage.tier_) --clean_copies_;
  storage.block_ = {};
  storage.residence_ = next;
  ++change_;
  if (next == Residence::kEvicted && needed(storage)) ++evicted_users_;
  tell(StorageEvent::Kind::kLeft, &storage);
}

void Residency::on_unused(Storage& storage) {
  tell(StorageEvent::Kind::kUnused, &storage);
  ++change_;
  if (!needed(storage)) settle_not_needed(storage);
}

// The last who needed it, a user or a call that was put off, has gone.
void Residency::settle_not_needed(Storage& storage) {
  if (storage.residence_ == Residence::kEvicted) {
    --evicted_users_;
    storage.residence_ = Residence::kDead;
    tell(StorageEvent::Kind::kDied, &storage);
  } else if (storage.pins_ == 0 && storage.wanted_ == 0) {
    settle_unused(storage);
  }
}

void Residency::settle_unused(Storage& storage) {
  if (!available(storage)) return;
  const bool read_by_recipes = storage.readers_ > 0 && options_.evict && options_.managed;
  if (read_by_recipes) {
    // Bytes that a recipe may still want and that cannot be computed are kept: they may be
    // offloaded like any others.
    const bool only_source =
        storage.recipe_ ? evicted_users_ > 0 && !runnable(storage) && evicted_reach(storage)
                        : true;
    const bool fits = options_.known_to_fit || planned_;
    if (only_source && !(fits && evicted_users_ == 0)) return;
    if (!storage.recipe_ || storage.runnable_at_ != epoch_) ++epoch_;
  }
  drop_tier_copy(storage);
  if (storage.resident()) {
    leave_arena(storage, Residence::kDead);
  } else {
    storage.residence_ = Residence::kDead;
    ++change_;
    tell(StorageEvent::Kind::kDied, &storage);
  }
}

void Residency::on_unreferenced(Storage& storage) {
  graveyard_.push_back(&storage);
  if (burying_) return;
  burying_ = true;
  while (!graveyard_.empty()) {
    Storage* next = graveyard_.back();
    graveyard_.pop_back();
    bury(*next);
  }
  burying_ = false;
}

void Residency::bury(Storage& storage) {
  drop_tier_copy(storage);
  if (storage.resident()) leave_arena(storage, Residence::kDead);
  drop_recipe(storage);
  tell(StorageEvent::Kind::kGone, &storage);
  (storage.previous_ ? storage.previous_->next_ : storages_) = storage.next_;
  if (storage.next_) storage.next_->previous_ = storage.previous_;
  free_slots_.push_back(storage.slot());
  delete &storage;
}

void Residency::set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe) {
  if (recipe->kept_by_++ == 0) {
    for (const Recipe::Input& input : recipe->inputs) ++input.storage->readers_;
  }
  storage.recipe_ = std::move(recipe);
  ++change_;
  offer_to_policy(storage);
}

void Residency::drop_recipe(Storage& storage) {
  IntrusivePtr<Recipe> recipe = std::exchange(storage.recipe_, {});
  if (!recipe) return;
  ++change_;
  offer_to_policy(storage);
  for (Recipe::Output& output : recipe->outputs) {
    if (output.storage == &storage) output.storage = nullptr;
  }
  if (--recipe->kept_by_ > 0) return;
  for (const Recipe::Input& input : recipe->inputs) --input.storage->readers_;
}

bool Residency::upload(Storage& storage, const void* from,
                       std::shared_ptr<const void> keep_alive,
                       const BlockPlacement& placement) {
  TIDEMARK_CHECK(storage.residence_ == Residence::kEmpty, "uploads fill empty storages");
  settle_host_buffers(/*wait=*/false);
  PlacementCursor place(placement);
  NewBlock block = allocate(storage, StreamId::kReload, place);
  const Event done = device_.copy(
      StreamId::kReload, {arena_.address(block.offset()), static_cast<const std::byte*>(from),
                          storage.bytes(), 0});
  // Data comes a batch at a time, from memory that its loader counts; parameters all at once.
  const bool counts = storage.category != Category::kData && device_.has_data();
  host_buffers_.push_back({done, std::move(keep_alive), counts ? storage.bytes() : Bytes(0)});
  storage.last_access = clock_;
  become_resident(storage, block, done, StorageEvent::Kind::kUploaded);
  if (counts) bound_host_buffers(kMaxUploading);
  return place.kept();
}

void Residency::upload(Storage& storage, const PieceSource& source) {
  TIDEMARK_CHECK(storage.residence_ == Residence::kEmpty, "uploads fill empty storages");
  PlacementCursor anywhere;
  NewBlock block = allocate(storage, StreamId::kReload, anywhere);
  std::byte* const to = arena_.address(block.offset());
  const bool has_data = device_.has_data();
  Event done;
  for (Bytes at{0}; at < storage.bytes(); at += kHostPiece) {
    const Bytes size = std::min(kHostPiece, storage.bytes() - at);
    const auto count = static_cast<size_t>(has_data ? size.count() : 0);
    const std::shared_ptr<std::byte[]> piece(new std::byte[count]);
    if (has_data) source(at, {piece.get(), count});
    done = device_.copy(StreamId::kReload,
                        {has_data ? to + at.count() : nullptr, piece.get(), size, 0});
    block.fence().include(done);
    host_buffers_.push_back({done, piece, has_data ? size : Bytes(0)});
    bound_host_buffers(kMaxPieces);
  }
  storage.last_access = clock_;
  become_resident(storage, block, done, StorageEvent::Kind::kUploaded);
}

void Residency::settle_host_buffers(bool wait) {
  if (wait) {
    for (const HostBuffer& buffer : host_buffers_) device_.synchronize(buffer.done);
  }
  std::erase_if(host_buffers_,
                [&](const HostBuffer& buffer) { return device_.done(buffer.done); });
}

void Residency::bound_host_buffers(Bytes most) {
  Bytes sum(0);
  for (const HostBuffer& buffer : host_buffers_) sum += buffer.bytes;
  for (const HostBuffer& buffer : host_buffers_) {
    if (sum <= most) break;
    device_.synchronize(buffer.done);
    sum -= buffer.bytes;
  }
  settle_host_buffers(/*wait=*/false);
}

bool Residency::download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink) {
  fetch(storage, Reason::kNeeded);
  tell(StorageEvent::Kind::kUsed, &storage);
  // By way of a buffer of our own: a copy that fails is tried again, when the caller's memory
  // may be gone.
  const bool has_data = device_.has_data();
  const Bytes piece = std::min(bytes, kHostPiece);
  const auto size = static_cast<size_t>(has_data ? piece.count() : 0);
  const std::shared_ptr<std::byte[]> buffer = std::make_shared_for_overwrite<std::byte[]>(size);
  device_.wait(StreamId::kOffload, storage.written_);
  for (Bytes at{0}; at < bytes; at += piece) {
    const Bytes part = std::min(piece, bytes - at);
    const std::byte* from =
        has_data ? arena_.address(storage.block_.offset + offset + at) : nullptr;
    const Event done = device_.copy(StreamId::kOffload, {buffer.get(), from, part, 0});
    storage.touched_.include(done);
    host_buffers_.push_back({done, buffer});
    device_.synchronize(done);
    if (has_data) sink({buffer.get(), static_cast<size_t>(part.count())});
  }
  settle_host_buffers(/*wait=*/false);
  return has_data;
}

void Residency::begin_step() {
  stopped_ = false;
  phase_ = Phase::kForward;
  stats_ = {};
  step_began_ = device_.now();
  modelled_began_ = device_.modelled_now();
  stalled_before_ = device_.stalled(StreamId::kCompute);
  arena_.reset_peak();
  policy_.begin_step(*this);
}

void Residency::bring_back_survivors() {
  recomputed_.clear();
  while (evicted_users_ > 0) {
    std::vector<Storage*> evicted;
    for_each_storage([&](Storage& s) {
      if (s.residence_ == Residence::kEvicted && needed(s)) evicted.push_back(&s);
    });
    std::reverse(evicted.begin(), evicted.end());  // oldest first
    for (Storage* storage : evicted) {
      if (storage->residence_ == Residence::kEvicted) materialise(*storage, Reason::kEndOfStep);
      drop_recipe(*storage);
    }
  }
  for (const auto& storage : in_use()) drop_recipe(*storage);
}

StepStats Residency::end_step(bool synchronize) {
  stop_here();
  bring_back_survivors();
  ++epoch_;
  if (synchronize) device_.synchronize_all();
  settle_host_buffers(/*wait=*/synchronize);
  take_completions();
  if (synchronize) stop_measuring();
  costs_.end_step(options_.learn_costs && learning_);
  stats_.stall_time = device_.stalled(StreamId::kCompute) - stalled_before_;
  stats_.duration = device_.now() - step_began_;
  stats_.modelled = device_.modelled_now() - modelled_began_;
  stats_.peak_reserved = arena_.peak_reserved();
  stats_.peak_live = arena_.peak_live().total();
  policy_.end_step(*this);
  return stats_;
}

void Residency::abort_step() {
  recomputed_.clear();
  stopped_ = false;
  settle_host_buffers(/*wait=*/false);
  take_completions();
  costs_.end_step(/*use=*/false);
}

uint64_t Residency::log(EventKind kind, Reason reason, const Storage& storage, StreamId stream,
                        Nanos expected) {
  EventRecord event;
  event.kind = kind;
  event.reason = reason;
  event.stream = static_cast<uint8_t>(stream);
  event.category = static_cast<uint8_t>(storage.category);
  event.storage = storage.id();
  event.name = storage.name;
  event.op = storage.origin();
  event.bytes = storage.size();
  event.issued = clock_;
  event.expected = expected;
  event.used = arena_.used();
  return log_.record(event);
}

void Residency::measure(uint64_t tag, const Measured& work) {
  constexpr size_t kKept = 1 << 16;
  if (tag % (kKept / 2) == 0) take_completions();
  measured_.resize(tag - first_measured_ + 1);
  measured_.back() = work;
  stop_measuring(kKept);
}

void Residency::stop_measuring(size_t but) {
  while (measured_.size() > but) {
    const Measured& untimed = measured_.front();
    if (untimed.recomputed) stats_.recompute_time += costs_.time(untimed.key);
    measured_.pop_front();
    ++first_measured_;
  }
}

// Joins what the device has timed with what was issued.
void Residency::take_completions() {
  for (const Completion& done : device_.take_completions()) {
    log_.complete(done.tag, done.start, done.end);
    if (done.tag < first_measured_ || done.tag - first_measured_ >= measured_.size()) continue;
    Measured& work = measured_[done.tag - first_measured_];
    const Nanos time = done.end - done.start;
    if (work.key) costs_.measured_op(work.key, time);
    if (work.copied > Bytes(0)) costs_.measured_copy(done.stream, work.copied, time);
    if (std::exchange(work.recomputed, false)) stats_.recompute_time += time;
  }
}

Residency::Kept Residency::kept() const {
  Kept kept;
  for (const Storage* s = storages_; s; s = s->next_) {
    ++kept.storages;
    kept.recipes += s->recipe_ ? 1 : 0;
  }
  kept.host_buffers = static_cast<int64_t>(host_buffers_.size());
  return kept;
}

std::string Residency::describe_memory(Bytes asked) {
  constexpr size_t kLargest = 5;
  std::vector<Storage*> resident;
  for (Storage* s = storages_; s; s = s->next_) {
    if (s->resident()) resident.push_back(s);
  }
  std::sort(resident.begin(), resident.end(), [](const Storage* a, const Storage* b) {
    return a->size() != b->size() ? a->size() > b->size() : a->id() < b->id();
  });
  const OffsetAllocator& offsets = arena_.offsets();
  std::string text = "  in use: " + format_bytes(offsets.used()) + " of " +
                     format_bytes(offsets.capacity()) + "; largest hole " +
                     format_unlike(offsets.largest_hole(), asked) + " of " +
                     format_bytes(offsets.unused()) + " unused, in " +
                     std::to_string(offsets.holes().size()) + " pieces";
  for (size_t c = 0; c < kCategoryCount; ++c) {
    const auto category = static_cast<Category>(c);
    if (arena_.live()[category] == Bytes(0)) continue;
    text += "\n  " + std::string(to_string(category)) + ": " +
            format_bytes(arena_.live()[category]);
  }
  text += resident.empty() ? "\n  no tensor is in it" : "\n  largest tensors:";
  for (size_t i = 0; i < std::min(kLargest, resident.size()); ++i) {
    Storage& s = *resident[i];
    const char* why = s.pins_ > 0         ? "needed by the operator"
                      : s.wanted_ > 0     ? "needed by a recomputation"
                      : !options_.managed ? "memory is not managed"
                      : can_evict(s)      ? "can be evicted"
                      : can_offload(s)    ? "can be offloaded if a tier has room"
                      : tiers_.empty()    ? "cannot be recomputed, and there is no tier"
                                          : "cannot be released";
    text += "\n    " + format_bytes(s.size()) + " " + name_and_origin(s) + " (" + why + ")";
  }
  for (const Tier* tier : tiers_) {
    text += "\n  " + tier->name() + " tier: " + format_bytes(tier->used()) + " of " +
            format_bytes(tier->limit()) + " used";
  }
  return text;
}

}  // namespace tidemark
