#include "runtime/replay/memory_trace.h"

#include <utility>

namespace tidemark {

void MemoryRecorder::begin_step() {
  trace_ = {};
  position_.clear();
  open_.clear();
  there_ = residency_.in_use();
  for (size_t i = 0; i < there_.size(); ++i) {
    const Storage& storage = *there_[i];
    position_[&storage] = static_cast<uint32_t>(i);
    if (!storage.resident()) continue;
    open_[&storage] = trace_.blocks.size();
    trace_.blocks.push_back({name(storage), storage.size(), -1, 0});
    trace_.before.push_back(*residency_.offset_of(storage));
  }
  recording_ = true;
  residency_.listen(*this);
}

void MemoryRecorder::stop() {
  if (std::exchange(recording_, false)) residency_.ignore(*this);
  there_.clear();
}

MemoryTrace MemoryRecorder::end_step(size_t storages,
                                     std::vector<IntrusivePtr<Storage>>& there) {
  for (const auto& [storage, block] : open_) trace_.blocks[block].end = now();
  there.assign(storages, {});
  std::vector<uint32_t> item_of(there_.size());
  for (size_t i = 0; i < there_.size(); ++i) {
    const Storage& storage = *there_[i];
    const bool used = numbering_.has(storage);
    item_of[i] = used ? numbering_.of(storage) : static_cast<uint32_t>(there.size());
    if (!used) there.emplace_back();
    there[item_of[i]] = there_[i];
  }
  for (const auto& storage : there) trace_.was_there.push_back(static_cast<bool>(storage));
  const auto resolve = [&](uint32_t& item) {
    const uint32_t position = MemoryTrace::kScratch - 1 - item;
    if (item != MemoryTrace::kScratch && position < item_of.size()) item = item_of[position];
  };
  for (MemoryTrace::Event& event : trace_.events) resolve(event.item);
  for (MemoryTrace::Block& block : trace_.blocks) resolve(block.item);
  stop();
  return std::move(trace_);
}

uint32_t MemoryRecorder::name(const Storage& storage) const {
  if (storage.category == Category::kWorkspace) return MemoryTrace::kScratch;
  const auto position = position_.find(&storage);
  if (position != position_.end()) return MemoryTrace::kScratch - 1 - position->second;
  return numbering_.has(storage) ? numbering_.of(storage) : MemoryTrace::kScratch;
}

void MemoryRecorder::note(Kind kind, const Storage& storage) {
  trace_.events.push_back({kind, name(storage)});
}

// Null if it has none.
MemoryTrace::Block* MemoryRecorder::block_of(const Storage& storage) {
  const auto block = open_.find(&storage);
  return block == open_.end() ? nullptr : &trace_.blocks[block->second];
}

void MemoryRecorder::open(Kind kind, const Storage& storage) {
  open_[&storage] = trace_.blocks.size();
  trace_.blocks.push_back({name(storage), storage.size(), now(), 0});
  note(kind, storage);
}

void MemoryRecorder::release(Kind kind, const Storage& storage) {
  if (MemoryTrace::Block* block = block_of(storage)) {
    block->release = now();
    if (kind == Kind::kOffload && block->copied < 0) block->copied = now();
  }
  note(kind, storage);
}

void MemoryRecorder::on_event(const StorageEvent& event) noexcept {
  using Happened = StorageEvent::Kind;
  const Storage* storage = event.storage;
  MemoryTrace::Block* block = storage ? block_of(*storage) : nullptr;
  switch (event.kind) {
    case Happened::kPlaced:
    case Happened::kUploaded:
    case Happened::kReloaded: open(Kind::kBlock, *storage); break;
    case Happened::kPrefetched: open(Kind::kPrefetch, *storage); break;
    case Happened::kUsed:
      if (block) block->used = now();
      break;
    case Happened::kEvicted: release(Kind::kEvict, *storage); break;
    case Happened::kOffloaded:
    case Happened::kDropped: release(Kind::kOffload, *storage); break;
    case Happened::kCopiedOut:
      if (block) block->copied = now();
      note(Kind::kCopyOut, *storage);
      break;
    case Happened::kCopyGivenUp: note(Kind::kGiveUpCopy, *storage); break;
    case Happened::kLeft:
      if (block) block->end = now();
      open_.erase(storage);
      break;
    case Happened::kCallDone:
      trace_.events.push_back({Kind::kEndOfCall, MemoryTrace::kScratch});
      break;
    case Happened::kCall:
    case Happened::kMoved:
    case Happened::kUnused:
    case Happened::kDied:
    case Happened::kGone: break;
  }
}

}  // namespace tidemark
