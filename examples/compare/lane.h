// One lane of a comparison: a training in a session of its own, which can be replaced between
// two steps by another one with the same training state.
//
// Threads: all of one lane on one thread; several lanes may share it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "examples/common/training.h"
#include "examples/compare/carried_state.h"
#include "examples/compare/lane_spec.h"
#include "examples/compare/picture_recorder.h"
#include "examples/compare/snapshot.h"
#include "runtime/session/dry_run.h"

namespace tidemark::compare {

// What all lanes stand on: found once, by the dry run.
struct Ground {
  SessionOptions options;  // but for what a lane's spec says
  UnmanagedNeed need;
  MinimumBudget minimum;
  Bytes budget{0};  // of lanes without one of their own
};

// What a lane of `spec` gets. Throws InfeasibleBudget.
Bytes budget_of(const LaneSpec& spec, const Ground& ground);

class Lane {
 public:
  // REQUIRES: `job` and `ground` outlive it.
  Lane(int id, const Job& job, const Ground& ground);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Begins, from the beginning or with the state of another lane; or changes how it goes on. If
  // that throws, it goes on as before where it could, else it has failed. Gives the checksum of
  // the state that was carried over; empty if there was none.
  std::string open(const LaneSpec& spec, const std::optional<CarriedState>& from);
  // Runs one step. If that throws, the lane has failed. `on_planning` is called where the step
  // is computed and its policy may now take long to plan the next ones.
  void step(const std::function<void()>& on_planning);
  // REQUIRES: it has not failed.
  CarriedState carry_out();
  // Over parameters, buffers and optimizer state; nothing without data.
  std::optional<std::string> checksum();
  void fail(const std::string& why, bool out_of_memory);
  void finish();

  int id() const { return id_; }
  bool runs() const { return training_ != nullptr && view_.status == LaneStatus::kRunning; }
  bool usable() const { return training_ && view_.status != LaneStatus::kFailed; }
  int64_t steps_done() const { return view_.steps_done; }
  const LaneView& view() const { return view_; }
  // For messages: "lane 2 (delta:lru)".
  std::string title() const;

 private:
  void build(const LaneSpec& spec, const std::optional<CarriedState>& from);
  void close();

  const int id_;
  const Job& job_;
  const Ground& ground_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<PictureRecorder> recorder_;
  std::unique_ptr<Training> training_;
  // The first step since it was built, which prepares kernels, has left `recent`.
  bool warm_ = false;
  LaneView view_;
};

}  // namespace tidemark::compare
