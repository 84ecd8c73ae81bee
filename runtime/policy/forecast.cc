#include "runtime/policy/forecast.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

bool lives_on(const Storage& storage) {
  return storage.category == Category::kParameter ||
         storage.category == Category::kOptimizerState || storage.category == Category::kBuffer;
}

// Do storages that live on bear the same numbers in both?
bool number_alike(const StepRecord& a, const StepRecord& b) {
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    [](const StepRecord::Item& x, const StepRecord::Item& y) {
                      return x.persistent == y.persistent &&
                             (!x.persistent || x.bytes == y.bytes);
                    });
}

bool same_call(const StepRecord::Call& a, const StepRecord::Call& b) {
  return a.key == b.key && a.inputs == b.inputs && a.outputs == b.outputs;
}

}  // namespace

void Forecast::begin_step() {
  ++step_;
  this_ = {};
  in_step_ = true;
  numbers_hold_ = true;
  known_ = !last().calls.empty();
}

void Forecast::end_step() {
  in_step_ = false;
  for (size_t i = 0; i < this_.items.size(); ++i) {  // nobody said that it ended
    if (storages_[i]) this_.items[i].end = static_cast<uint32_t>(this_.calls.size());
  }
  const bool repeated = std::exchange(known_, false) && calls() == last().calls.size();
  if (this_.calls.empty()) {
    storages_.clear();
    return;
  }
  if (!repeated && !last().calls.empty()) {
    program_ = programs_.size();
    if (programs_.size() < kMostPrograms) {
      programs_.emplace_back();
    } else {
      const auto oldest =
          std::min_element(programs_.begin(), programs_.end(),
                           [](const Program& a, const Program& b) { return a.seen < b.seen; });
      program_ = static_cast<size_t>(oldest - programs_.begin());
    }
  }
  programs_[program_] = {std::exchange(this_, {}), step_};
  storages_.resize(std::min(storages_.size(), last().items.size()));
}

void Forecast::expect_program(size_t program) {
  if (program != program_) turn_to(program);
}

// By the first call of this step.
void Forecast::find_program() {
  const auto begins_so = [&](const Program& program) {
    return !program.last.calls.empty() &&
           same_call(program.last.calls.front(), this_.calls.front());
  };
  if (begins_so(programs_[program_])) return;
  size_t found = programs_.size();
  for (size_t k = 0; k < programs_.size(); ++k) {
    const bool later = found == programs_.size() || programs_[k].seen > programs_[found].seen;
    if (begins_so(programs_[k]) && later) found = k;
  }
  known_ = found < programs_.size();
  if (known_) turn_to(found);
}

void Forecast::turn_to(size_t program) {
  numbers_hold_ = numbers_hold_ && number_alike(last(), programs_[program].last);
  program_ = program;
  if (numbers_hold_) return;
  for (Storage*& storage : storages_) {
    if (storage && storage->forecast.step != step_) storage = nullptr;
  }
}

void Forecast::record(const Recipe& recipe, const CostModel& costs) {
  if (!in_step_) return;
  const auto index = static_cast<uint32_t>(this_.calls.size());
  StepRecord::Call call{recipe.cost_key,
                        this_.duration,
                        costs.time(recipe.cost_key),
                        align_up(recipe.workspace),
                        {},
                        {},
                        {}};
  for (const Recipe::Input& input : recipe.inputs) {
    const uint32_t item = use(*input.storage, index);
    call.inputs.push_back(item);
    if (!input.written) continue;
    call.written.push_back(item);
    this_.items[item].may_evict = false;
  }
  for (const Recipe::Output& output : recipe.outputs) {
    if (!output.storage) continue;
    const uint32_t item = use(*output.storage, index);
    this_.items[item].producer = index;
    call.outputs.push_back(item);
  }
  this_.duration += call.cost;
  this_.calls.push_back(std::move(call));
  if (index == 0) {
    find_program();
  } else {
    known_ = known_ && index < last().calls.size() &&
             same_call(last().calls[index], this_.calls.back());
  }
}

// Its item; the next one if it has not come yet in this step.
StepRecord::Item& Forecast::number(Storage& storage) {
  if (storage.forecast.step != step_) {
    const auto number = static_cast<uint32_t>(this_.items.size());
    forget(storage);
    storage.forecast = {step_, number};
    if (storages_.size() <= number) storages_.resize(number + 1);
    storages_[number] = &storage;
    this_.items.push_back({.bytes = storage.size(),
                           .may_evict = !storage.evict_pinned,
                           .may_offload = !storage.offload_pinned,
                           .persistent = lives_on(storage),
                           .begin = static_cast<uint32_t>(this_.calls.size())});
  }
  return this_.items[storage.forecast.item];
}

void Forecast::uploaded(Storage& storage) {
  if (in_step_) number(storage).uploaded = true;
}

uint32_t Forecast::use(Storage& storage, uint32_t call) {
  StepRecord::Item& item = number(storage);
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
  const bool numbered = step > 0 && (step == step_ || (numbers_hold_ && step + 1 == step_));
  return numbered && item < last().items.size() ? item : StepRecord::kNone;
}

size_t Forecast::next_call(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepRecord::kNone) return last().calls.size();
  const std::vector<uint32_t>& uses = last().items[item].uses;
  const auto next =
      std::lower_bound(uses.begin(), uses.end(), static_cast<uint32_t>(this_.calls.size()));
  return next == uses.end() ? last().calls.size() : *next;
}

Nanos Forecast::until_next_use(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepRecord::kNone) return kNever;
  // In the last step's time throughout: what calls are thought to cost may have changed since.
  const Nanos now =
      calls() < last().calls.size() ? last().calls[calls()].begin : last().duration;
  const size_t next = next_call(storage);
  if (next < last().calls.size()) return last().calls[next].begin - now;
  if (!last().items[item].persistent || last().items[item].uses.empty()) return kNever;
  return last().duration - now + last().calls[last().items[item].uses.front()].begin;
}

}  // namespace tidemark
