// Makes a StepPicture of each step of a session. Callbacks report what happens to storages and
// where they lie; the event log supplies the times, matched by tag.
//
//   PictureRecorder recorder(session);
//   session.step(...);  StepPicture picture = recorder.take();
//
// Threads: the session's issuing thread. The session must outlive it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "examples/compare/step_picture.h"
#include "runtime/residency/storage_event.h"
#include "runtime/session/session.h"

namespace tidemark::compare {

class PictureRecorder final : public StorageListener {
 public:
  explicit PictureRecorder(Session& session);
  ~PictureRecorder() override;
  PictureRecorder(const PictureRecorder&) = delete;
  PictureRecorder& operator=(const PictureRecorder&) = delete;

  // The picture of everything since the last call; its step is the last one that ended.
  // REQUIRES: the device is idle, as after a step that synchronizes.
  StepPicture take();

  void on_event(const StorageEvent& event) noexcept override;

 private:
  struct Told {
    StorageEvent::Kind kind = StorageEvent::Kind::kUsed;
    Reason reason = Reason::kNone;
    uint64_t tag = 0;   // of the next event logged
    PlacedBlock block;  // from then on; without times
  };
  struct Known {
    Nanos used{0};  // time of last use, on the device's clock
    Nanos cost{0};  // of the operator that wrote it
  };

  void take_told(const Told& told);
  void take_logged(const EventRecord& event);
  void end_block(uint32_t storage);
  void decide(const EventRecord& event);
  Nanos age_of(uint32_t storage) const;

  Session& session_;
  std::vector<Told> told_;
  std::unordered_map<uint32_t, Known> known_;
  std::unordered_map<uint32_t, PlacedBlock> live_;  // times on the device's clock
  std::vector<uint32_t> unwritten_;                 // those whose operator comes next
  std::vector<PlacedBlock> ended_;                  // times on the device's clock
  uint64_t next_tag_ = 1;
  Nanos now_{0};   // current time of the compute stream
  Bytes used_{0};  // bytes of the arena, from the last event
  Nanos step_begin_{0}, step_end_{0};
  double holes_ = 0;  // see StepPicture::fragmentation: a sum over `placed_`
  int64_t placed_ = 0;
  StepPicture picture_;
};

}  // namespace tidemark::compare
