#include "runtime/delta/tide/step_script.h"

#include <algorithm>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Of the forecast's last step, and there before it.
bool was_there(const Forecast& forecast, uint32_t item) {
  return item != StepRecord::kNone && forecast.last().items[item].was_there();
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
  const std::vector<StepRecord::Item>& items = forecast_.last().items;
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
    return target.at ? prefetch(storage)
                     : residency_.release_by(storage, Action::kOffload, Reason::kPlan);
  });
}

bool StepScript::prefetch(Storage& storage) {
  const auto at = next_place();
  return (at || residency_.make_hole(storage.size())) && residency_.prefetch(storage, at);
}

bool StepScript::end() {
  const bool whole = following_ && residency_.script() == this && !next();
  stop();
  return whole;
}

void StepScript::stop() {
  following_ = false;
  if (residency_.script() == this) residency_.follow(nullptr);
}

// Null: it has not come yet in this step.
Storage* StepScript::storage_of(uint32_t item) const {
  const bool came = item < forecast_.items() || was_there(forecast_, item);
  return came ? forecast_.storage_of(item) : nullptr;
}

MemoryScript::Place StepScript::place(const Storage& storage) {
  if (!decide_until(Kind::kBlock)) return {};
  const MemoryEvents::Block& block = plan_.memory.blocks[next_block_];
  const bool scratch = block.item == MemoryEvents::kScratch;
  const Storage* expected = scratch ? nullptr : storage_of(block.item);
  const bool same = scratch == (storage.category == Category::kWorkspace) &&
                    (!expected || expected == &storage) && block.size == storage.size();
  if (!same) return {};
  ++next_;
  return {true, next_place()};
}

bool StepScript::after_operator(const Recipe& call) {
  forecast_.record(call, residency_.costs());
  if (!forecast_.known() || !decide_until(Kind::kEndOfCall)) return false;
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

bool StepScript::decide(const MemoryEvents::Event& event) {
  Storage* storage = storage_of(event.item);
  if (!storage) return false;
  switch (event.kind) {
    case Kind::kEvict: return residency_.release_by(*storage, Action::kEvict, Reason::kPlan);
    case Kind::kDrop: return residency_.release_by(*storage, Action::kOffload, Reason::kPlan);
    case Kind::kCopyOut:
      return residency_.has_copy(*storage) || residency_.copy_out(*storage, Reason::kPlan);
    case Kind::kPrefetch: return prefetch(*storage);
    case Kind::kBlock:
    case Kind::kEndOfCall: break;  // not a decision
  }
  return false;
}

}  // namespace tidemark
