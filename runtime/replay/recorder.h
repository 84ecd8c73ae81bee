// Writes down a step as it is issued.
//
// Threads: the session's issuing thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/cost/cost_model.h"
#include "runtime/graph/step_graph.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

// Numbers storages as they come first in a step. Two steps that run the same calls number
// alike.
class StepNumbering {
 public:
  void begin_step() {
    // No two steps of a process have the same number, so that none takes another's for its own;
    // 0 is what a storage has that was never numbered.
    static std::atomic<uint32_t> steps{0};
    do {
      step_ = ++steps;
    } while (step_ == 0);
    count_ = 0;
  }
  uint32_t count() const { return count_; }
  bool has(const Storage& storage) const { return storage.capture.step == step_; }
  // REQUIRES: has(storage).
  static uint32_t of(const Storage& storage) { return storage.capture.item; }
  // REQUIRES: !has(storage), and that no other has that number.
  void assign(Storage& storage, uint32_t item) { storage.capture = {step_, item}; }
  // Its number; the next one if it has none.
  uint32_t number(Storage& storage) {
    if (!has(storage)) storage.capture = {step_, count_++};
    return storage.capture.item;
  }

 private:
  uint32_t step_ = 0;
  uint32_t count_ = 0;
};

// Of the call without its operands.
uint64_t call_signature(const Recipe& call);

class StepRecorder {
 public:
  void begin_step();
  void call(const Recipe& call, const CostModel& costs);
  void upload(Storage& storage);
  void read(Storage& storage);
  void unused(const Storage& storage);
  // The step is over: what has not been let go of stays.
  StepGraph end_step();
  // Of this step, until the next begins.
  const StepNumbering& numbering() const { return numbering_; }

 private:
  uint32_t number(Storage& storage, bool at_start);

  StepNumbering numbering_;
  StepGraph graph_;
  std::vector<uint32_t> versions_;  // by storage: written so often in this step
};

}  // namespace tidemark
