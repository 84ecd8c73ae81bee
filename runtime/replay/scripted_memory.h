// Does what a planned step's memory says, event after event: the residency manager asks it for
// each block's place, and it makes the decisions that come before that.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/replay/planned_memory.h"
#include "runtime/residency/memory_script.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"

namespace tidemark {

class ScriptedMemory final : public MemoryScript {
 public:
  // All outlive it. `items`: which of the plan's items are known by now; kept up to date by
  // whoever matches the program's calls.
  ScriptedMemory(const PlannedMemory& plan, const StepNumbering& items, Residency& residency)
      : plan_(plan), items_(items), residency_(residency) {}
  ~ScriptedMemory() override { stop(); }
  ScriptedMemory(const ScriptedMemory&) = delete;
  ScriptedMemory& operator=(const ScriptedMemory&) = delete;

  // Brings what lives on to its places, and takes over. False, and nothing is taken over, if
  // that cannot be.
  bool begin_step();
  // The program's calls are over. A failure if something of the plan is left undone.
  void end_step();
  void stop();

  // Why the plan is not followed any more; empty while it is.
  const std::string& failure() const { return failure_; }

  Place place(const Storage& storage) override;
  bool recompute_offloaded(const Storage& storage) override;
  bool after_operator(const Recipe& call) override;
  void abandoned() override;

 private:
  using Kind = MemoryTrace::Kind;

  Storage* find(uint32_t item) const { return items_.find(item); }
  const MemoryTrace::Event* next() const {
    return next_ < plan_.trace.events.size() ? &plan_.trace.events[next_] : nullptr;
  }
  bool decide_until(Kind kind);
  bool decide(const MemoryTrace::Event& event);
  bool move_blocks();

  const PlannedMemory& plan_;
  const StepNumbering& items_;
  Residency& residency_;
  bool following_ = false;
  size_t next_ = 0;        // of the events
  size_t next_block_ = 0;  // of the blocks
  size_t next_move_ = 0;   // of the moves
  std::string failure_;
};

}  // namespace tidemark
