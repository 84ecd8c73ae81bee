// Carries out a memory plan: the step does what was rehearsed, event after event, each block at
// its planned place. A plan without places is followed as far as it goes: where room is short,
// more is released by price.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/policy/forecast.h"
#include "runtime/policy/tide/memory_plan.h"
#include "runtime/residency/memory_script.h"
#include "runtime/residency/residency.h"

namespace tidemark {

class StepScript final : public MemoryScript {
 public:
  // All outlive it. While it is followed it records the program's calls in the forecast.
  StepScript(const MemoryPlan& plan, Forecast& forecast, Residency& residency)
      : plan_(plan), forecast_(forecast), residency_(residency) {}
  ~StepScript() override { stop(); }
  StepScript(const StepScript&) = delete;
  StepScript& operator=(const StepScript&) = delete;

  // At a step's beginning: brings what is there to where the plan has it, and takes over. False
  // if that cannot be.
  bool begin();
  // False: it was not followed to the end.
  bool end();

  Place place(const Storage& storage) override;
  bool recompute_offloaded(const Storage& /*storage*/) override { return false; }
  bool after_operator(const Recipe& call) override;
  void abandoned() override { following_ = false; }

 private:
  using Kind = MemoryEvents::Kind;

  void stop();
  Storage* storage_of(uint32_t item) const;
  bool settle(const std::vector<Residency::Target>& targets);
  std::optional<Offset> next_place() {
    const size_t block = next_block_++;
    return plan_.placed() ? std::optional(plan_.offsets[block]) : std::nullopt;
  }
  const MemoryEvents::Event* next() const {
    return next_ < plan_.memory.events.size() ? &plan_.memory.events[next_] : nullptr;
  }
  bool is_for(const MemoryEvents::Block& block, const Storage& storage) const;
  void decide_up_to(const Storage& storage);
  void decide_all_before(size_t end);
  bool decide_until(Kind kind);
  bool decide(const MemoryEvents::Event& event);
  bool move_blocks();

  const MemoryPlan& plan_;
  Forecast& forecast_;
  Residency& residency_;
  bool following_ = false;
  size_t next_ = 0;        // of the events
  size_t next_block_ = 0;  // of the blocks
  size_t next_move_ = 0;   // of the moves
};

// What lives from step to step and is none of the forecast's last step, by size: what a plan
// for it has to leave room for.
std::vector<Bytes> find_strangers(const Residency& residency, const Forecast& forecast);

}  // namespace tidemark
