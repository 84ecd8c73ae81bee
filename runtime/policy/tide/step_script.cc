#include "runtime/policy/tide/step_script.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Of the forecast's last step, and there before it.
bool was_there(const Forecast& forecast, uint32_t item) {
  return item != StepTable::kNone && forecast.last().items[item].was_there();
}

}  // namespace

std::vector<Bytes> find_strangers(const Residency& residency, const Forecast& forecast) {
  std::vector<Bytes> sizes;
  for (const auto& storage : residency.in_use()) {
    if (!was_there(forecast, forecast.item_of(*storage))) sizes.push_back(storage->size());
  }
  return sizes;
}

bool StepScript::begin() {
  const MemoryEvents& memory = plan_.memory;
  const std::vector<StepTable::Item>& items = forecast_.last().items;
  std::vector<std::optional<Offset>> at(items.size());
  for (; next_block_ < memory.there; ++next_block_) {
    at[memory.blocks[next_block_].item] =
        plan_.placed() ? plan_.offsets[next_block_] : Offset(0);
  }
  std::vector<Block> strangers = plan_.strangers;
  std::vector<Residency::Target> targets;
  for (const auto& storage : residency_.in_use()) {
    const uint32_t item = forecast_.item_of(*storage);
    if (was_there(forecast_, item)) {
      targets.push_back({storage.get(), at[item]});
      continue;
    }
    const auto place =
        std::find_if(strangers.begin(), strangers.end(),
                     [&](const Block& block) { return block.size == storage->size(); });
    if (place == strangers.end()) return false;
    targets.push_back({storage.get(), place->offset});
    strangers.erase(place);
  }
  const auto expected = std::count_if(items.begin(), items.end(),
                                      [](const auto& item) { return item.was_there(); });
  const size_t found = targets.size() - (plan_.strangers.size() - strangers.size());
  following_ = found == static_cast<size_t>(expected) && settle(targets);
  if (following_) residency_.follow(this);
  return following_;
}

bool StepScript::settle(const std::vector<Residency::Target>& targets) {
  if (plan_.placed()) return residency_.arrange(targets);
  return std::all_of(targets.begin(), targets.end(), [&](const Residency::Target& target) {
    Storage& storage = *target.storage;
    if (storage.resident() == target.at.has_value()) return true;
    return carry_out(target.at ? Kind::kPrefetch : Kind::kOffload, storage, residency_);
  });
}

bool StepScript::end() {
  const bool whole = following_ && residency_.script() == this && !next();
  stop();
  return whole;
}

void StepScript::stop() {
  const bool followed = std::exchange(following_, false);
  if (followed && residency_.script() == this) residency_.follow(nullptr);
}

// Null: it has not come yet in this step.
Storage* StepScript::storage_of(uint32_t item) const {
  const bool came = item < forecast_.items() || was_there(forecast_, item);
  return came ? forecast_.storage_of(item) : nullptr;
}

// Is the block that the plan has next for that storage, as far as can be told?
bool StepScript::is_for(const MemoryEvents::Block& block, const Storage& storage) const {
  const bool scratch = block.item == MemoryEvents::kScratch;
  const Storage* expected = scratch ? nullptr : storage_of(block.item);
  return scratch == (storage.category == Category::kWorkspace) &&
         (!expected || expected == &storage) && block.size == storage.size();
}

MemoryScript::Place StepScript::place(const Storage& storage) {
  if (!plan_.placed()) {
    decide_up_to(storage);
    return {true, std::nullopt};
  }
  if (!decide_until(Kind::kBlock) || !move_blocks()) return {};
  if (!is_for(plan_.memory.blocks[next_block_], storage)) return {};
  ++next_;
  return {true, plan_.offsets[next_block_++]};
}

// Without places nothing depends on what has gone otherwise than planned: where more was
// released than that, its blocks come unforeseen, and decisions on it are done already.
void StepScript::decide_up_to(const Storage& storage) {
  size_t block = next_block_;
  for (size_t e = next_; e < plan_.memory.events.size(); ++e) {
    const Kind kind = plan_.memory.events[e].kind;
    if (kind == Kind::kEndOfCall) return;
    const bool takes = kind == Kind::kBlock || kind == Kind::kPrefetch;
    if (kind == Kind::kBlock && is_for(plan_.memory.blocks[block], storage)) {
      decide_all_before(e);
      ++next_;
      ++next_block_;
      return;
    }
    block += takes;
  }
}

void StepScript::decide_all_before(size_t end) {
  for (; next_ < end; ++next_) {
    const MemoryEvents::Event& event = plan_.memory.events[next_];
    if (event.kind == Kind::kBlock) {
      ++next_block_;
    } else {
      decide(event);
    }
  }
}

bool StepScript::after_operator(const Recipe& call) {
  forecast_.record(call, residency_.costs());
  if (!forecast_.known()) return false;
  if (!plan_.placed()) {
    size_t end = next_;
    while (end < plan_.memory.events.size() &&
           plan_.memory.events[end].kind != Kind::kEndOfCall) {
      ++end;
    }
    decide_all_before(end);
    if (!next()) return false;
  } else if (!decide_until(Kind::kEndOfCall)) {
    return false;
  }
  ++next_;
  return true;
}

// Does what comes before the next event of that kind, which has to come before any other that
// is not a decision.
bool StepScript::decide_until(Kind kind) {
  for (const MemoryEvents::Event* event; (event = next()); ++next_) {
    if (event->kind == kind) return true;
    if (!decide(*event)) return false;
  }
  return false;
}

// Those that make room for the next event's block.
bool StepScript::move_blocks() {
  for (; next_move_ < plan_.moves.size() && plan_.moves[next_move_].event == next_;
       ++next_move_) {
    const MemoryMove& move = plan_.moves[next_move_];
    Storage* storage = storage_of(plan_.memory.blocks[move.block].item);
    if (!storage || !residency_.move(*storage, move.to)) return false;
  }
  return true;
}

bool StepScript::decide(const MemoryEvents::Event& event) {
  if (event.kind == Kind::kPrefetch && !move_blocks()) return false;
  const auto at = event.kind == Kind::kPrefetch ? next_place() : std::nullopt;
  Storage* storage = storage_of(event.item);
  return storage && carry_out(event.kind, *storage, residency_, at);
}

}  // namespace tidemark
