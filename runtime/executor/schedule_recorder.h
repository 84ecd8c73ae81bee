// Records what a policy did in a step, as a schedule without placement: which calls ran and ran
// again, which storages left and came back, and how long each block lived.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/residency/storage_event.h"
#include "runtime/schedule/schedule.h"

namespace tidemark {

// Between begin_step() and end_step(), sees the same step as `steps`. `steps` must record each
// operator first.
class ScheduleRecorder final : public StorageListener {
 public:
  ScheduleRecorder(Residency& residency, const StepRecorder& steps)
      : residency_(residency), steps_(steps) {}
  ~ScheduleRecorder() override { stop(); }
  ScheduleRecorder(const ScheduleRecorder&) = delete;
  ScheduleRecorder& operator=(const ScheduleRecorder&) = delete;

  void begin_step();
  // The program waits for a value of the storage. Call before the storage is brought back.
  void read(const Storage& storage);
  bool recording() const { return recording_; }
  // `storages`: the number of storages in the step's trace. None if a storage took part that
  // was neither made in this step nor in use before it. Steps that threw leave such storages,
  // as recipes of surviving ones.
  std::optional<Schedule> end_step(size_t storages);
  void stop();

  void on_event(const StorageEvent& event) noexcept override;

 private:
  using Do = Schedule::Do;

  void run(const Recipe& call, bool again);
  void place(const Storage& storage);
  void note_evicted_sibling(const Storage& storage);
  void finish_run();
  void add(Do what, const Storage& storage);
  void take_block(const Storage& storage);
  void end_block(const Storage& storage);
  void settle_number(const Storage& storage);
  bool has_block(const Storage& storage) const { return open_.contains(&storage); }
  uint32_t number_of(const Storage& storage);
  uint32_t current_op() const { return static_cast<uint32_t>(steps_.trace().ops.size()) - 1; }

  Residency& residency_;
  const StepRecorder& steps_;
  bool recording_ = false;
  bool complete_ = true;  // all storages that took part are known
  Schedule schedule_;
  // A call that is taking its blocks; its instruction follows those that make space for it.
  bool running_ = false;
  Schedule::Instruction run_;
  struct RunBlock {
    const Storage* storage;
    const Storage* evicted;  // to make space for this call; null: none
  };
  std::vector<RunBlock> run_blocks_;
  const Recipe* run_call_ = nullptr;
  const Storage* read_ = nullptr;  // waited for; may have to be brought back first
  std::unordered_map<const Recipe*, uint32_t> op_of_;  // operators that may run again
  // Until the step's end, storages from before the step are numbered by position here, counting
  // down from kScratch. They are not referenced, so recording does not prolong their lives.
  struct Initial {
    Bytes size{0};
    uint32_t number = Schedule::kScratch;  // in the trace, once deleted, if not foreign
  };
  std::vector<Initial> initial_;
  std::unordered_map<const Storage*, uint32_t> position_;  // of storages still alive
  std::unordered_map<const Storage*, uint32_t> open_;      // the storage's current block
  std::unordered_set<const Storage*> away_;                // only a copy on a tier
};

}  // namespace tidemark
