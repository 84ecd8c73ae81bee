#include "runtime/replay/scripted_memory.h"

#include <utility>

namespace tidemark {

bool ScriptedMemory::begin_step() {
  std::vector<Residency::Target> targets;
  const auto& blocks = plan_.trace.blocks;
  std::vector<std::optional<Offset>> at(plan_.trace.was_there.size());
  for (; next_block_ < blocks.size() && blocks[next_block_].begin < 0; ++next_block_) {
    at[blocks[next_block_].item] = plan_.offsets[next_block_];
  }
  for (size_t item = 0; item < at.size(); ++item) {
    if (Storage* storage = find(static_cast<uint32_t>(item)))
      targets.push_back({storage, at[item]});
  }
  following_ = residency_.arrange(targets);
  if (following_) {
    residency_.follow(this);
  } else {
    failure_ = "what lives on cannot be brought to its places";
  }
  return following_;
}

void ScriptedMemory::end_step() {
  if (following_ && next()) failure_ = "the step ended before the plan for its memory did";
  stop();
}

void ScriptedMemory::stop() {
  if (std::exchange(following_, false)) residency_.follow(nullptr);
}

void ScriptedMemory::abandoned() {
  following_ = false;
  if (failure_.empty()) failure_ = "a place was not free";
}

MemoryScript::Place ScriptedMemory::place(const Storage& storage) {
  if (!decide_until(Kind::kBlock)) return {};
  if (!move_blocks()) {
    failure_ = "a block could not be moved";
    return {};
  }
  const MemoryTrace::Event& event = *next();
  const MemoryTrace::Block& block = plan_.trace.blocks[next_block_];
  const bool scratch = event.item == MemoryTrace::kScratch;
  const bool same =
      scratch ? storage.category == Category::kWorkspace : find(event.item) == &storage;
  if (!same || block.size != storage.size()) {
    failure_ = "a block of " + format_bytes(storage.size()) + " for [" + storage.name +
               "] was not expected";
    return {};
  }
  ++next_;
  return {true, plan_.offsets[next_block_++]};
}

bool ScriptedMemory::recompute_offloaded(const Storage& storage) {
  const MemoryTrace::Event* event = next();
  if (!event || event->kind != Kind::kGiveUpCopy || find(event->item) != &storage) return false;
  ++next_;
  return true;
}

bool ScriptedMemory::after_operator(const Recipe& /*call*/) {
  if (!decide_until(Kind::kEndOfCall)) return false;
  ++next_;
  return true;
}

// Does what comes before the next event of that kind, which has to come before any other that
// is not a decision.
bool ScriptedMemory::decide_until(Kind kind) {
  for (const MemoryTrace::Event* event; (event = next()); ++next_) {
    if (event->kind == kind) return true;
    if (!decide(*event)) break;
  }
  if (failure_.empty()) failure_ = "memory was used otherwise than planned";
  return false;
}

// Those that make room for the next event's block.
bool ScriptedMemory::move_blocks() {
  for (; next_move_ < plan_.moves.size() && plan_.moves[next_move_].event == next_;
       ++next_move_) {
    const MemoryMove& move = plan_.moves[next_move_];
    Storage* storage = find(plan_.trace.blocks[move.block].item);
    if (!storage || !residency_.move(*storage, move.to)) return false;
  }
  return true;
}

bool ScriptedMemory::decide(const MemoryTrace::Event& event) {
  Storage* storage = find(event.item);
  if (!storage) return false;
  std::optional<Offset> at;
  if (event.kind == Kind::kPrefetch) {
    if (!move_blocks()) return false;
    at = plan_.offsets[next_block_++];
  }
  return carry_out(event.kind, *storage, residency_, at);
}

}  // namespace tidemark
