// Writes down what a policy did about a step, as a schedule without places: what ran, what ran
// again, what left and came back, and how long each block was there.
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

// Between begin_step() and end_step() it sees all of a step that `steps` records, each operator
// right after `steps` has.
class ScheduleRecorder final : public StorageListener {
 public:
  ScheduleRecorder(Residency& residency, const StepRecorder& steps)
      : residency_(residency), steps_(steps) {}
  ~ScheduleRecorder() override { stop(); }
  ScheduleRecorder(const ScheduleRecorder&) = delete;
  ScheduleRecorder& operator=(const ScheduleRecorder&) = delete;

  void begin_step();
  // The program waits for a value of it. To be told before the storage is brought back.
  void read(const Storage& storage);
  bool recording() const { return recording_; }
  // `storages`: how many the step's trace has. None if something took part that is neither of
  // this step nor in use before it: a step that was ended by an exception leaves such, as
  // recipes of what the program kept from it.
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
  bool complete_ = true;  // all that took part is known
  Schedule schedule_;
  // A call that takes its blocks; its instruction comes after what makes space for them.
  bool running_ = false;
  Schedule::Instruction run_;
  struct RunBlock {
    const Storage* storage;
    const Storage* evicted;  // by the space that this call needed; null: none was
  };
  std::vector<RunBlock> run_blocks_;
  const Recipe* run_call_ = nullptr;
  const Storage* read_ = nullptr;  // is waited for, and may have to be brought back first
  std::unordered_map<const Recipe*, uint32_t> op_of_;  // operators that may run again
  // Until the step's end, what was there before it goes by its position here, counted down from
  // kScratch. It is not held: what nobody else wants goes as it would without being recorded.
  struct Initial {
    Bytes size{0};
    uint32_t number = Schedule::kScratch;  // of the trace, once it is gone; or it is foreign
  };
  std::vector<Initial> initial_;
  std::unordered_map<const Storage*, uint32_t> position_;  // of those that are not gone
  std::unordered_map<const Storage*, uint32_t> open_;      // its block that has no end yet
  std::unordered_set<const Storage*> away_;                // a copy on a tier, and no block
};

}  // namespace tidemark
