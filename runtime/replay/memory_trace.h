// What happened to memory during one step that ran under a policy: which blocks there were and
// when, and what was decided. With new places for the blocks (planned_memory.h) a later step
// can do the same.
//
//   step trace    op 0 conv                op 1 relu                    op 2 conv ...
//   trace         block s2, block scratch, | evict s9, block s3, | offload s2, prefetch s7, |
//
// Time is a position in `events`. Blocks that the mechanism takes and frees by itself (outputs,
// what is recomputed or reloaded because it is needed, what nobody uses any more) come and go
// in a later step as they did in this one, as long as the decisions are the same; so only
// decisions are events, and the taking of a block, which is where the decisions before it have
// to be made by.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/residency/memory_event.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct MemoryTrace {
  using Event = MemoryEvent;
  using Kind = MemoryEvent::Kind;
  // Items are the step trace's storages; then those that it does not use.
  static constexpr uint32_t kScratch = MemoryEvent::kScratch;
  struct Block {
    uint32_t item = kScratch;
    Bytes size{0};
    int64_t begin = 0;     // the event that took it; -1: it was there before the step
    int64_t end = 0;       // it was free after the events before this one
    int64_t used = -1;     // for the last time, before this event; -1: not in this step
    int64_t copied = -1;   // out, by this event; -1: not
    int64_t release = -1;  // the event that freed it; -1: it was freed for want of users
  };

  std::vector<Event> events;
  std::vector<Block> blocks;    // by begin
  std::vector<Offset> before;   // where those that were there before the step lay then
  std::vector<bool> was_there;  // by item: before the step, wherever it was
};

// Between begin_step() and end_step() it sees all of a step that is recorded by `steps`.
class MemoryRecorder final : public StorageListener {
 public:
  MemoryRecorder(Residency& residency, const StepNumbering& numbering)
      : residency_(residency), numbering_(numbering) {}
  ~MemoryRecorder() override { stop(); }
  MemoryRecorder(const MemoryRecorder&) = delete;
  MemoryRecorder& operator=(const MemoryRecorder&) = delete;

  void begin_step();
  bool recording() const { return recording_; }
  // `storages`: how many the step's graph has. Leaves in `there` what was there before the
  // step, by item; null for what the step made.
  MemoryTrace end_step(size_t storages, std::vector<IntrusivePtr<Storage>>& there);
  void stop();

  void on_event(const StorageEvent& event) noexcept override;

 private:
  using Kind = MemoryTrace::Kind;

  void note(Kind kind, const Storage& storage);
  void open(Kind kind, const Storage& storage);
  void release(Kind kind, const Storage& storage);
  MemoryTrace::Block* block_of(const Storage& storage);
  uint32_t name(const Storage& storage) const;
  int64_t now() const { return static_cast<int64_t>(trace_.events.size()); }

  Residency& residency_;
  const StepNumbering& numbering_;
  bool recording_ = false;
  MemoryTrace trace_;
  // Until the step's end, what was there before it goes by its position here, counted down from
  // kScratch.
  std::vector<IntrusivePtr<Storage>> there_;
  std::unordered_map<const Storage*, uint32_t> position_;
  std::unordered_map<const Storage*, size_t> open_;  // its block that has no end yet
};

}  // namespace tidemark
