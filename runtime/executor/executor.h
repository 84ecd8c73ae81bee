// Runs one step by a schedule: matches the program's calls against the recorded ones, and
// carries out each instruction once the program has issued what it needs.
//
//   program    conv  relu  ...  grad_a  grad_b  sgd_a  sgd_b
//   schedule   conv  relu  ...  grad_a  sgd_a  free grad_a  grad_b  sgd_b
//                                       ^ waits until the program has issued sgd_a; earlier
//                                         calls of the program are deferred until their turn
//
// A `free`, and an operator that runs in place, wait until the program has dropped its last use
// of the storage, so a block is never taken from something the program may still use. Only the
// program's own calls run: a schedule decides when they run and where blocks lie, never what
// they compute.
//
// The schedule is left at the first difference: a call that does not match, a handle that is
// kept, an offset that is in use. Deferred calls then run in the program's order, blocks stay
// where they are, and the policy decides for the rest of the step. A schedule without placement
// is followed loosely: an impossible instruction is skipped, and the policy makes up for it.
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

// A schedule and the storages that it refers to.
struct BoundSchedule {
  StepTrace trace;
  Schedule schedule;
  InitialStorages initial;  // of the last recorded step
  double seconds = 0;       // spent making it
  uint64_t made_from = 0;   // fingerprint() of the step and the limits
  // Of a step by it, as expected here: a given schedule's own time is that of other costs.
  Nanos time{0};
};

class Executor {
 public:
  // Whether the storages in use match the schedule's initial ones.
  static bool applies(const BoundSchedule& bound, const Residency& residency);
  // Whether a step that begins with this call, upload or read could be the scheduled one.
  static bool begins_with(const StepTrace& trace, const Recipe& call, const CostModel& costs);
  static bool begins_with(const StepTrace& trace, StepTrace::Kind kind, const Storage& storage);

  // Moves the storages in use to their initial offsets. REQUIRES: applies().
  Executor(std::shared_ptr<const BoundSchedule> bound, Residency& residency);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Call in program order. Each one runs, now or later, whether it matches or not.
  void call(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive);
  void read(Storage& storage);
  // The program has dropped its last use of the storage.
  void unused(const Storage& storage);
  // The storage is about to be deleted.
  void gone(const Storage& storage) { numbering_.forget(storage); }
  // Runs everything that was issued and has not run yet.
  void end_step();
  // After a failure: runs deferred calls, if possible.
  void abandon();

  // Why the schedule was left; empty while it is followed.
  const std::string& mismatch() const { return mismatch_; }
  // Whether the schedule was left because of memory, not because of the program.
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
    IntrusivePtr<Recipe> variant;  // runs instead; null: the call itself
    std::vector<IntrusivePtr<Storage>> outputs;
  };
  struct Deferred {
    std::variant<std::monostate, Call, Upload> what;
    // Storages that the program drops after this call; the schedule keeps them until it has
    // run.
    std::vector<IntrusivePtr<Storage>> held;
  };

  bool begin();
  bool followed() const { return mismatch_.empty(); }
  // The trace's current operator, if it is of that kind.
  const StepTrace::Op* expected(StepTrace::Kind kind);
  void check_range();
  bool released_as_traced() const;
  bool bind(Storage& storage, uint32_t number);
  bool matches(const Recipe& call);
  std::string unexpected(const Recipe& call) const;
  IntrusivePtr<Recipe> variant_of(const Recipe& call, uint32_t op);

  // Whether `op` is the next of the program's operators.
  bool is_next(uint32_t op) const;
  void advance(uint32_t until = Schedule::kScratch);
  bool ready(const Instruction& instruction) const;
  bool awaits_drop(const Instruction& instruction) const;
  bool apply(const Instruction& instruction);
  bool run_again(const Instruction& instruction);
  bool evict(uint32_t storage);
  void free(uint32_t storage);
  void keep_for_later_runs(uint32_t storage);
  void let_go(uint32_t storage);
  void hold_instead_of_claim(uint32_t storage);
  void stop_following();
  void defer(uint32_t op, Deferred deferred);
  void release_held(Deferred& deferred);
  void launch(Deferred& deferred, const BlockPlacement& placement);
  BlockPlacement placement_of(const Instruction& instruction);
  std::optional<Offset> place_of(const Instruction& instruction) const;
  Storage* find(uint32_t storage) const { return numbering_.find(storage); }

  void leave(const std::string& why);
  std::string but_expected() const;
  void leave_for_memory(const std::string& why);
  void run_deferred_in_program_order();

  const std::shared_ptr<const BoundSchedule> bound_;
  const StepTrace& trace_;
  const Schedule& schedule_;
  Residency& residency_;
  Offset base_;  // added to the schedule's offsets
  StepNumbering numbering_;
  std::vector<uint32_t> versions_;  // by storage
  std::vector<bool> released_;      // by storage: the program has dropped it
  // By storage: recomputed for another storage, and claimed until freed.
  std::vector<IntrusivePtr<Storage>> claimed_;
  std::vector<uint32_t> variants_;  // by operator: Instruction::variant of its first run
  // By storage: the number of instructions up to its last use by a call that runs again, or by
  // a variant.
  std::vector<uint32_t> last_used_again_;
  // By storage: dropped by the program, and held for these.
  std::vector<IntrusivePtr<Storage>> kept_;
  // By storage: whether a variant reads it; once the program has dropped it, a reference, by
  // which the variant finds it even if nothing else refers to it.
  std::vector<bool> read_by_variant_;
  std::vector<IntrusivePtr<Storage>> remembered_;
  std::vector<Deferred> deferred_;  // by operator
  std::vector<Offset> places_;      // of the current instruction
  uint32_t issued_ = 0;             // operators issued by the program
  uint32_t next_ = 0;               // next instruction
  std::string mismatch_;
  bool all_launched_ = false;  // after leaving the schedule: nothing is deferred
  bool memory_differed_ = false;
};

}  // namespace tidemark
