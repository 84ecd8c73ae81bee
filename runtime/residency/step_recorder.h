// Writes down a step as it is issued.
//
// Threads: the session's issuing thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/cost/cost_model.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/tensor/recipe.h"
#include "runtime/tensor/slot_table.h"

namespace tidemark {

// Numbers storages as they come first in a step. Two steps that run the same calls number
// alike.
class StepNumbering {
 public:
  void begin_step() {
    ++step_;
    count_ = 0;
  }
  uint32_t count() const { return count_; }
  bool has(const Storage& storage) const { return place_of(storage).step == step_; }
  // REQUIRES: has(storage).
  uint32_t of(const Storage& storage) const { return place_of(storage).number; }
  // It had a number in the step before, and has none in this one yet.
  bool had(const Storage& storage) const {
    return step_ > 1 && place_of(storage).step == step_ - 1;
  }
  // REQUIRES: had(storage).
  uint32_t of_before(const Storage& storage) const { return place_of(storage).number; }

  // Its number; the next one if it has none.
  uint32_t number(Storage& storage) {
    if (!has(storage)) assign(storage, count_);
    return of(storage);
  }
  // REQUIRES: !has(storage).
  void assign(Storage& storage, uint32_t number) {
    forget(storage);
    places_[storage] = {step_, number};
    count_ = std::max(count_, number + 1);
    if (storages_.size() < count_) storages_.resize(count_);
    storages_[number] = &storage;
  }
  // The step is over: numbers that it did not give are nobody's.
  void end_step() { storages_.resize(std::min<size_t>(storages_.size(), count_)); }

  // By number, who bears it: until another is given it, in this step or a later one. Null: it
  // has been forgotten.
  const std::vector<Storage*>& storages() const { return storages_; }
  Storage* find(uint32_t number) const {
    return number < storages_.size() ? storages_[number] : nullptr;
  }
  // Not to be found any more. It keeps its number.
  void forget(const Storage& storage) {
    const uint32_t number = place_of(storage).number;
    if (find(number) == &storage) storages_[number] = nullptr;
  }
  // All that have no number of this step.
  void forget_others() {
    for (Storage*& storage : storages_) {
      if (storage && !has(*storage)) storage = nullptr;
    }
  }

 private:
  struct Place {
    uint32_t step = 0;  // 0: none
    uint32_t number = 0;
  };
  Place place_of(const Storage& storage) const {
    const Place* place = places_.find(storage);
    return place ? *place : Place();
  }

  uint32_t step_ = 0;
  uint32_t count_ = 0;
  SlotTable<Place> places_;
  std::vector<Storage*> storages_;
};

// Of the call without its operands.
uint64_t call_signature(const Recipe& call);

class StepRecorder {
 public:
  void begin_step();
  void call(const Recipe& call, Nanos cost);
  void call(const Recipe& recipe, const CostModel& costs) {
    call(recipe, costs.time(recipe.cost_key));
  }
  void upload(Storage& storage);
  void read(Storage& storage);
  // The program has let go of it. From the second time on, or of a storage that is not of this
  // step: ignored.
  void unused(const Storage& storage);
  // It is about to be deleted.
  void gone(const Storage& storage) { numbering_.forget(storage); }
  // The step is over: what has not been let go of stays.
  StepTrace end_step();

  // So far.
  const StepTrace& trace() const { return trace_; }
  // Storage::id() of the trace's storage; until the next step begins.
  uint32_t id_of(uint32_t number) const { return ids_[number]; }
  StepNumbering& numbering() { return numbering_; }
  const StepNumbering& numbering() const { return numbering_; }

 private:
  uint32_t number(Storage& storage, bool at_start);

  StepNumbering numbering_;
  StepTrace trace_;
  std::vector<uint32_t> ids_;       // by storage
  std::vector<uint32_t> versions_;  // by storage: written so often in this step
};

}  // namespace tidemark
