// Forecasts a storage's next use from the last step of the same kind.
//
// A few programs are distinguished, such as the last, smaller batch of an epoch. The first call
// of a step identifies its program; until then the program is assumed to be the previous
// step's. Storages are new in every step, so they are identified by their order of first
// appearance (StepNumbering). After the first call that differs from the last step's, nothing
// is forecast for the rest of the step.
//
//   last step    0: conv(x, w) -> a    1: relu(a) -> b    ...    40: relu_grad(b, g)
//   this step    0: conv(x, w) -> a    1: relu(a) -> b    now: b is used next by call 40
//
// Time is the cost of the program's own calls by the cost model; recomputations are excluded.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/residency/step_recorder.h"
#include "runtime/residency/storage_event.h"
#include "runtime/schedule/step_table.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class Forecast {
 public:
  static constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};
  static constexpr size_t kMaxPrograms = 8;  // the least recently seen is forgotten

  void begin_step();
  void end_step();
  // Records a call of the program, in order; recomputations are not passed. Ignored outside
  // steps.
  void record(const Recipe& call, Nanos cost);
  // Handles every event by calling record(), uploaded() and ended().
  void on_event(const StorageEvent& event) noexcept;
  // The storage has been filled from host memory.
  void uploaded(Storage& storage);
  // The storage has lost its last user or is about to be deleted. Repeated calls are ignored.
  void ended(const Storage& storage);

  // The assumed program of this step; after the step, its actual program. A new program takes
  // the number of a forgotten one, or else the next number.
  size_t program() const { return program_; }
  // The step in which this program was first seen: tells it from others of the same number.
  uint32_t first_seen() const { return programs_[program_].first_seen; }
  // Whether this step has matched the last one of its program so far, and has calls left.
  bool known() const { return known_; }
  // The next call that uses the storage; last().calls.size() if no call does in this step.
  // REQUIRES for the functions below: known().
  size_t next_call(const Storage& storage) const;
  // Time from the end of the last call to the beginning of the next call that uses the storage,
  // possibly in the next step if the storage lives that long. kNever: no call uses it.
  Nanos until_next_use(const Storage& storage) const;

  size_t items() const { return recorder_.trace().storages.size(); }  // of this step so far
  size_t calls() const { return calls_; }                             // of this step so far
  Nanos time() const { return time_; }                                // of these calls
  // The last step of this step's program.
  const StepTable& last() const { return programs_[program_].last; }
  // The storage's number in last(); StepTable::kNone if it is not in last().
  uint32_t item_of(const Storage& storage) const;
  // The storage with this number now; null if none has it, or none has it any more.
  Storage* storage_of(uint32_t item) const { return recorder_.numbering().find(item); }

 private:
  struct Program {
    StepTrace trace;
    StepTable last;
    uint32_t first_seen = 0;  // in this step
    uint32_t seen = 0;        // last, in this step
    const StepTrace::Op& call(size_t number) const;
  };

  void find_program();
  void turn_to(size_t program);

  uint32_t step_ = 0;
  bool in_step_ = false;
  bool known_ = false;
  bool numbers_hold_ = true;  // the last step's numbers hold for this program
  size_t program_ = 0;
  std::vector<Program> programs_{1};
  StepRecorder recorder_;
  uint32_t calls_ = 0;
  Nanos time_{0};
};

}  // namespace tidemark
