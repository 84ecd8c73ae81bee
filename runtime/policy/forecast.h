// The last step of its kind as a forecast of this one: when will a storage be used next?
//
// A few programs are told apart (the last, smaller batch of an epoch is one): which one a step
// is shows by its first call; until then it is thought to be as the step before. Storages are
// new in every step, so they are known by the place where they come first (StepNumbering). From
// the first call on that differs from the last step's, nothing is forecast for the rest of the
// step.
//
//   last step    0: conv(x, w) -> a    1: relu(a) -> b    ...    40: relu_grad(b, g)
//   this step    0: conv(x, w) -> a    1: relu(a) -> b    now: b is used next by call 40
//
// Time is that of the program's own calls, as the cost model prices them; what is recomputed is
// not in it.
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
  static constexpr size_t kMaxPrograms = 8;  // the one not seen for longest is forgotten

  void begin_step();
  void end_step();
  // A call of the program, in order; recomputations are not told. Outside a step: ignored.
  void record(const Recipe& call, Nanos cost);
  // Whatever happens: record(), uploaded() and ended() follow from it.
  void on_event(const StorageEvent& event) noexcept;
  // It has been filled from host memory.
  void uploaded(Storage& storage);
  // Nobody uses the storage any more, or it is about to be deleted. From the second time on:
  // ignored.
  void ended(const Storage& storage);

  // Which program this step is thought to be; after the step, which it was. One that had not
  // been seen takes the number of one that is forgotten, or the next.
  size_t program() const { return program_; }
  // Has this step gone as the last of its program so far, and is there more of it to come?
  bool known() const { return known_; }
  // The next call that uses it; last().calls.size() if none does in this step.
  // REQUIRES for the rest: known().
  size_t next_call(const Storage& storage) const;
  // From the end of the last call to the beginning of that one, which may be one of the next
  // step's if it lives that long. kNever: nobody will.
  Nanos until_next_use(const Storage& storage) const;

  size_t items() const { return recorder_.trace().storages.size(); }  // of this step so far
  size_t calls() const { return calls_; }                             // of this step so far
  Nanos time() const { return time_; }                                // of them
  // Of its program.
  const StepTable& last() const { return programs_[program_].last; }
  // Its number in last(); StepTable::kNone if it was not in it.
  uint32_t item_of(const Storage& storage) const;
  // The storage that bears the number now; null if there is none (yet, or any more).
  Storage* storage_of(uint32_t item) const { return recorder_.numbering().find(item); }

 private:
  struct Program {
    StepTrace trace;
    StepTable last;
    uint32_t seen = 0;  // the step
    const StepTrace::Op& call(size_t number) const;
  };

  void find_program();
  void turn_to(size_t program);

  uint32_t step_ = 0;
  bool in_step_ = false;
  bool known_ = false;
  bool numbers_hold_ = true;  // those that the step before gave, in this program
  size_t program_ = 0;
  std::vector<Program> programs_{1};
  StepRecorder recorder_;
  uint32_t calls_ = 0;
  Nanos time_{0};
};

}  // namespace tidemark
