#include "runtime/delta/forecast.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

bool lives_on(const Storage& storage) {
  return storage.category == Category::kParameter ||
         storage.category == Category::kOptimizerState || storage.category == Category::kBuffer;
}

bool same_call(const StepRecord::Call& a, const StepRecord::Call& b) {
  return a.key == b.key && a.inputs == b.inputs && a.outputs == b.outputs;
}

}  // namespace

void Forecast::begin_step() {
  ++step_;
  this_ = {};
  in_step_ = true;
  known_ = !last_.calls.empty();
}

void Forecast::end_step() {
  last_ = std::exchange(this_, {});
  storages_.resize(std::min(storages_.size(), last_.items.size()));
  in_step_ = known_ = false;
}

void Forecast::record(const Recipe& recipe, const CostModel& costs) {
  if (!in_step_) return;
  const auto index = static_cast<uint32_t>(this_.calls.size());
  StepRecord::Call call{recipe.cost_key,
                        this_.duration,
                        costs.time(recipe.cost_key),
                        align_up(recipe.workspace),
                        {},
                        {}};
  for (const Recipe::Input& input : recipe.inputs) {
    const uint32_t item = use(*input.storage, index);
    if (input.written) this_.items[item].may_evict = false;
    call.inputs.push_back(item);
  }
  for (const Recipe::Output& output : recipe.outputs) {
    if (!output.storage) continue;
    const uint32_t item = use(*output.storage, index);
    this_.items[item].producer = index;
    call.outputs.push_back(item);
  }
  this_.duration += call.cost;
  known_ = known_ && index < last_.calls.size() && same_call(last_.calls[index], call);
  this_.calls.push_back(std::move(call));
}

uint32_t Forecast::use(Storage& storage, uint32_t call) {
  if (storage.forecast.step != step_) {
    const auto number = static_cast<uint32_t>(this_.items.size());
    forget(storage);
    storage.forecast = {step_, number};
    if (storages_.size() <= number) storages_.resize(number + 1);
    storages_[number] = &storage;
    this_.items.push_back({.bytes = storage.size(),
                           .may_evict = !storage.evict_pinned,
                           .may_offload = !storage.offload_pinned,
                           .persistent = lives_on(storage)});
  }
  StepRecord::Item& item = this_.items[storage.forecast.item];
  item.uses.push_back(call);
  item.end = call + 1;
  return storage.forecast.item;
}

void Forecast::ended(const Storage& storage) {
  if (!in_step_ || storage.forecast.step != step_) return;
  // What a recomputation brings back for a moment ends again, and is forgotten by then.
  if (storage_of(storage.forecast.item) != &storage) return;
  this_.items[storage.forecast.item].end = static_cast<uint32_t>(this_.calls.size());
  forget(storage);
}

void Forecast::forget(const Storage& storage) {
  const uint32_t item = storage.forecast.item;
  if (storage_of(item) == &storage) storages_[item] = nullptr;
}

uint32_t Forecast::item_of(const Storage& storage) const {
  const auto [step, item] = storage.forecast;
  // One that has not been used yet in this step lives on from the last one, whose number it
  // bears.
  const bool numbered = step > 0 && (step == step_ || step + 1 == step_);
  return numbered && item < last_.items.size() ? item : StepRecord::kNone;
}

size_t Forecast::next_call(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepRecord::kNone) return last_.calls.size();
  const std::vector<uint32_t>& uses = last_.items[item].uses;
  const auto next =
      std::lower_bound(uses.begin(), uses.end(), static_cast<uint32_t>(this_.calls.size()));
  return next == uses.end() ? last_.calls.size() : *next;
}

Nanos Forecast::until_next_use(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepRecord::kNone) return kNever;
  // In the last step's time throughout: what calls are thought to cost may have changed since.
  const Nanos now = calls() < last_.calls.size() ? last_.calls[calls()].begin : last_.duration;
  const size_t next = next_call(storage);
  if (next < last_.calls.size()) return last_.calls[next].begin - now;
  if (!last_.items[item].persistent) return kNever;
  return last_.duration - now + last_.calls[last_.items[item].uses.front()].begin;
}

}  // namespace tidemark
