// Makes a StepPicture of each step of a session, from the event log, the arena's calls and the
// calls that are dispatched.
//
// The arena knows places but not whose they are, the log knows storages but not where. They are
// joined by their order: residency logs a release beside the free that it causes (an eviction
// and a clean drop after it, an offload before it), a move after its two calls to the arena,
// and an operator after its blocks were placed. tests/examples/compare/step_recorder_test.cc
// holds this against the step's counts.
//
//   RecordingArena arena(...);  StepRecorder recorder(session, arena);
//   session.step(...);  StepPicture picture = recorder.take();
//
// Threads: the session's issuing thread. The session must outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "examples/compare/step_picture.h"
#include "runtime/memory/arena.h"
#include "runtime/session/session.h"

namespace tidemark::compare {

// An arena that notes what it is asked for, in order with the events of a log.
class RecordingArena final : public Arena {
 public:
  using Arena::Arena;

  struct Note {
    uint64_t tag = 0;  // of the event that was recorded next
    bool placed = false;
    Block block;
    Category category = Category::kActivation;
  };

  // Until it is told of a log, nothing is noted.
  void follow(const EventLog* log) { log_ = log; }
  std::vector<Note> take() { return std::exchange(notes_, {}); }
  // See StepPicture::fragmentation; since the last call.
  double take_fragmentation();

  std::optional<Allocation> allocate(Bytes size, Category category) override;
  std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category) override;
  void free(const Block& block, Category category, const Fence& last_use) override;

 private:
  void note(bool placed, const Block& block, Category category);

  const EventLog* log_ = nullptr;
  std::vector<Note> notes_;
  bool refused_ = false;  // since the last free, a place was asked for that is taken
  double holes_ = 0;
  int64_t asked_ = 0;
};

class StepRecorder {
 public:
  StepRecorder(Session& session, RecordingArena& arena);
  ~StepRecorder();
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;

  // Of everything since the last call; its step is the last one that ended. REQUIRES: the
  // device is done, as it is after a step that synchronizes.
  StepPicture take();

 private:
  struct Output {
    uint32_t storage = 0;
    Bytes bytes{0};
    Category category = Category::kActivation;
  };
  // A dispatched call: which storages it reads and writes.
  struct Call {
    uint64_t tag = 0;  // of the event that was recorded next
    std::vector<uint32_t> inputs;
    std::vector<Output> outputs;
  };
  struct Known {
    Nanos used{0};                 // when it last was, on the device's clock
    Nanos cost{0};                 // of the operator that wrote it
    std::vector<uint32_t> inputs;  // of that
    uint64_t seen = 0;
  };
  struct Live {
    PlacedBlock block;  // times on the device's clock
    bool claimed = false;
  };

  void take_note(const RecordingArena::Note& note);
  void take_event(const EventRecord& event);
  void name_pending(const EventRecord& event, const Call* call);
  void name_last(const EventRecord& event);
  void end_block(Offset offset, Ending ending);
  void identify_last(const EventRecord& event);
  void used_now(const EventRecord& event, const Call* call);
  void decide(const EventRecord& event);
  Nanos age_of(uint32_t storage) const;
  Known& known(uint32_t storage);
  void forget_old();

  Session& session_;
  RecordingArena& arena_;
  std::deque<Call> calls_;
  std::unordered_map<uint32_t, Known> known_;
  std::map<Offset, Live> live_;
  std::vector<Offset> pending_;                // placed, and not yet claimed by an event
  std::vector<uint32_t> moved_;                // storages, since the last operator
  std::vector<PlacedBlock> ended_;             // times on the device's clock
  std::optional<RecordingArena::Note> freed_;  // the last free, if nothing came after it
  std::optional<EventRecord> offload_;         // whose free is next
  uint64_t next_tag_ = 1;
  uint64_t takes_ = 0;
  Nanos now_{0};   // where the compute stream stands
  Bytes used_{0};  // of the arena, as the last event says
  Nanos step_begin_{0}, step_end_{0};
  StepPicture picture_;
};

}  // namespace tidemark::compare
