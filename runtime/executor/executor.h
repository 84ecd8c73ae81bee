// One step by a schedule: the program's calls are matched against the captured ones, and the
// schedule's instructions are carried out as the program has issued what they need.
//
//   program    conv  relu  ...  grad_a  grad_b  sgd_a  sgd_b
//   schedule   conv  relu  ...  grad_a  sgd_a  free grad_a  grad_b  sgd_b
//                                       ^ waits until the program has issued sgd_a; what comes
//                                         before it in the program is put off until its turn
//
// A `free` waits until the program has let go of the storage, so a block is never taken from
// what the program may still use. Calls that run are the program's own: a schedule decides when
// they run and where blocks lie, never what they compute.
//
// The first difference ends it: a call that does not match, a handle that is kept, a place that
// is in use. What was put off runs in the program's order, blocks stay where they are, and the
// policy decides for the rest of the step. A schedule without places is followed loosely: what
// cannot be done is left out, as the policy makes up for it.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/executor/initial_storages.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

// A schedule and the storages that it is about.
struct BoundSchedule {
  StepTrace trace;
  Schedule schedule;
  InitialStorages initial;  // of the last step that was recorded
  double seconds = 0;       // that it took to make
  uint64_t made_from = 0;   // fingerprint() of the step and the limits
};

class Executor {
 public:
  // Is what is in use what the schedule begins with?
  static bool applies(const BoundSchedule& bound, const Residency& residency);
  // Could a step that begins with this be the scheduled one?
  static bool begins_with(const StepTrace& trace, const Recipe& call);
  static bool begins_with(const StepTrace& trace, StepTrace::Kind kind, const Storage& storage);

  // Brings what is in use to its places. REQUIRES: applies().
  Executor(std::shared_ptr<const BoundSchedule> bound, Residency& residency);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // In program order; each is run, now or later, whether it matches or not.
  void call(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive);
  void read(Storage& storage);
  // The program has let go of it.
  void unused(const Storage& storage);
  // It is about to be deleted.
  void gone(const Storage& storage) { numbering_.forget(storage); }
  // All that was issued is run.
  void end_step();
  // After a failure: runs what was put off, if it can be.
  void abandon();

  // Why the schedule was left; empty as long as it is followed.
  const std::string& mismatch() const { return mismatch_; }
  // Was it the memory that differed, and not the program?
  bool memory_differed() const { return memory_differed_; }

 private:
  using Do = Schedule::Do;
  using Instruction = Schedule::Instruction;
  struct Upload {
    IntrusivePtr<Storage> storage;
    const void* from;
    std::shared_ptr<const void> keep_alive;
  };
  struct Call {
    IntrusivePtr<Recipe> call;
    std::vector<IntrusivePtr<Storage>> outputs;
  };
  struct Deferred {
    std::variant<std::monostate, Call, Upload> what;
    // What the program lets go of after it: the schedule has it until the call has run.
    std::vector<IntrusivePtr<Storage>> held;
  };

  bool begin();
  bool followed() const { return mismatch_.empty(); }
  // The operator that the trace has now, if it is of that kind.
  const StepTrace::Op* expected(StepTrace::Kind kind);
  void check_range();
  bool released_as_traced() const;
  bool bind(Storage& storage, uint32_t number);
  bool matches(const Recipe& call);

  // Is it the program's operator `op` that comes next?
  bool is_next(uint32_t op) const;
  void advance(uint32_t until = Schedule::kScratch);
  bool ready(const Instruction& instruction) const;
  bool apply(const Instruction& instruction);
  bool run_again(const Instruction& instruction);
  void free(uint32_t storage);
  void put_off(uint32_t op, Deferred deferred);
  void let_go(Deferred& deferred);
  void launch(Deferred& deferred, const BlockPlacement& placement);
  BlockPlacement placement_of(const Instruction& instruction);
  std::optional<Offset> place_of(const Instruction& instruction) const;
  Storage* find(uint32_t storage) const { return numbering_.find(storage); }

  void leave(const std::string& why);
  void leave_for_memory(const std::string& why);
  void run_deferred_in_program_order();
  void drop_claims();

  const std::shared_ptr<const BoundSchedule> bound_;
  const StepTrace& trace_;
  const Schedule& schedule_;
  Residency& residency_;
  Offset base_;  // offsets of the schedule count from here
  StepNumbering numbering_;
  std::vector<uint32_t> versions_;  // by storage
  std::vector<bool> released_;      // by storage: the program has let go of it
  // By storage: computed again on the way to something else, and claimed until it is freed.
  std::vector<IntrusivePtr<Storage>> claimed_;
  std::vector<Deferred> deferred_;  // by operator
  std::vector<Offset> places_;      // of the instruction at hand
  uint32_t issued_ = 0;             // operators that the program has issued
  uint32_t next_ = 0;               // instruction
  std::string mismatch_;
  bool all_launched_ = false;  // once it is left: nothing is put off any more
  bool memory_differed_ = false;
};

}  // namespace tidemark
