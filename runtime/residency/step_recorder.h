// Records a step as it is issued.
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

// Numbers storages by first appearance in a step. Two steps with the same calls give the same
// numbers.
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
  // Whether the storage had a number in the last step and has none in this one yet.
  bool had(const Storage& storage) const {
    return step_ > 1 && place_of(storage).step == step_ - 1;
  }
  // REQUIRES: had(storage).
  uint32_t of_before(const Storage& storage) const { return place_of(storage).number; }

  // The storage's number; assigns the next number if it has none.
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
  // Ends the step: numbers not assigned in it become unused.
  void end_step() { storages_.resize(std::min<size_t>(storages_.size(), count_)); }

  // Storages by number. A number keeps its storage until reassigned, in this step or a later
  // one. Null: the storage has been forgotten.
  const std::vector<Storage*>& storages() const { return storages_; }
  Storage* find(uint32_t number) const {
    return number < storages_.size() ? storages_[number] : nullptr;
  }
  // Removes the storage from storages(). It keeps its number.
  void forget(const Storage& storage) {
    const uint32_t number = place_of(storage).number;
    if (find(number) == &storage) storages_[number] = nullptr;
  }
  // Removes all storages without a number in this step.
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

class StepRecorder {
 public:
  void begin_step();
  // `signature`: as StepTrace::Op::signature, at least within the recorded steps.
  void call(const Recipe& call, uint64_t signature, Nanos cost);
  // Records the call's variants too, as far as their inputs belong to this step.
  void call(const Recipe& recipe, const CostModel& costs);
  void upload(Storage& storage);
  void read(Storage& storage);
  // The program has dropped its last use of the storage. Ignored if repeated, or if the storage
  // is not part of this step.
  void unused(const Storage& storage);
  // The storage is about to be deleted.
  void gone(const Storage& storage) { numbering_.forget(storage); }
  // Ends the step: storages still in use survive it.
  StepTrace end_step();

  // The trace so far.
  const StepTrace& trace() const { return trace_; }
  // Storage::id() of the storage with that number in the trace; valid until the next step
  // begins.
  uint32_t id_of(uint32_t number) const { return ids_[number]; }
  StepNumbering& numbering() { return numbering_; }
  const StepNumbering& numbering() const { return numbering_; }

 private:
  uint32_t number(Storage& storage, bool at_start);
  bool may_record(const Recipe& variant, const Recipe& call) const;

  StepNumbering numbering_;
  StepTrace trace_;
  std::vector<uint32_t> ids_;       // by storage
  std::vector<uint32_t> versions_;  // times written in this step, by storage
};

}  // namespace tidemark
