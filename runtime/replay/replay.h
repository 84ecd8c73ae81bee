// One step by a plan: the program's calls are matched against the captured ones and launched in
// the plan's order, at the plan's places.
//
//   program   conv  relu  ...  grad_a  grad_b  sgd_a  sgd_b
//   plan      conv  relu  ...  grad_a  sgd_a   grad_b  sgd_b     sgd_a frees grad_a early
//                                      ^ launched once sgd_a, and all before it in the plan,
//                                        have been issued
//
// With an order of its own an operator is launched when the program has issued the next one:
// by then the program has let go of what it lets go of in between, so that lives end no later
// than the plan has them end. A plan in program order puts nothing off.
//
// Places are given without looking whether they are unused. They are: before each operator the
// program has to have let go of what it had let go of by then in the captured step.
//
// A plan with releases (planned_memory.h) is in program order; its memory is scripted, and
// places are taken from the arena as any others, so that one that is in use ends the plan.
//
// A call that does not match ends it: what was put off runs in program order, blocks stay where
// they are, and the policy takes over for the rest of the step.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/replay/planned_step.h"
#include "runtime/replay/scripted_memory.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"

namespace tidemark {

class Replay {
 public:
  // Does what lives on agree with the plan?
  static bool applies(const PlannedStep& step, const Residency& residency);

  // Packs what lives on, or brings it to its places. `step` outlives it. REQUIRES: applies().
  Replay(const PlannedStep& step, Residency& residency);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Could a step that begins with this be the planned one?
  static bool begins_with(const PlannedStep& step, const Recipe& call);
  static bool begins_with(const PlannedStep& step, const Storage& uploaded);

  // In program order; each is run, now or later, whether it matches or not.
  void call(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive);
  void read(Storage& storage);
  // The program has let go of it.
  void unused(const Storage& storage);
  // It is about to be deleted.
  void gone(const Storage& storage);
  // Everything that was issued is run. Says that it did not match if calls are missing.
  void end_step();
  // After a failure: runs what was put off, if it can be.
  void abandon();

  // Why this step is not as planned; empty as long as it is.
  const std::string& mismatch() const { return mismatch_; }
  // Was it the memory, and not the program?
  bool memory_failed() const { return memory_ && !memory_->failure().empty(); }

 private:
  struct Upload {
    IntrusivePtr<Storage> storage;
    const void* from;
    std::shared_ptr<const void> keep_alive;
  };
  struct Call {
    IntrusivePtr<Recipe> call;
    std::vector<IntrusivePtr<Storage>> outputs;
  };
  using Issued = std::variant<std::monostate, Call, Upload>;

  void look_for_failure();
  const StepTrace::Op* expected(StepTrace::Kind kind);
  bool released_as_planned() const;
  bool bind(Storage& storage, uint32_t number);
  bool matches(const Recipe& call);
  void fail(const std::string& why);
  void place(Storage& storage);
  void issue(Issued issued);
  void launch_before(uint32_t matched);
  void launch(Issued& issued);
  void run_in_program_order();

  const PlannedStep& step_;
  Residency& residency_;
  Offset base_;
  StepNumbering numbering_;
  std::vector<uint32_t> versions_;
  std::vector<bool> gone_;  // by storage: the program has let go of it
  std::optional<ScriptedMemory> memory_;
  std::vector<Issued> issued_;  // by operator; empty once it is launched
  uint32_t matched_ = 0;        // operators issued so far
  uint32_t launched_ = 0;       // of the plan's order
  std::string mismatch_;
};

}  // namespace tidemark
