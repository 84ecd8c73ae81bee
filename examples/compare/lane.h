// One lane of a comparison: a training in its own session. Between two steps, another training
// with the same state can replace it.
//
// Threads: one thread per lane; several lanes may share a thread.
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

// Facts common to all lanes, found once by the dry run.
struct Ground {
  SessionOptions options;  // except for what a lane's spec sets
  UnmanagedNeed need;
  MinimumBudget minimum;
  Bytes budget{0};  // of lanes without their own
};

// The budget of a lane with `spec`. Throws InfeasibleBudget.
Bytes budget_of(const LaneSpec& spec, const Ground& ground);

class Lane {
 public:
  // REQUIRES: `job` and `ground` outlive the lane.
  Lane(int id, const Job& job, const Ground& ground);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Starts the lane, from the beginning or from another lane's state, or switches a running
  // lane to `spec`. If this throws, the lane continues as before if it can; otherwise it has
  // failed. Returns the checksum of the state carried over; empty if there was none.
  std::string open(const LaneSpec& spec, const std::optional<CarriedState>& from);
  // Runs one step. If this throws, the lane has failed. `on_planning` is called when the step
  // is computed and its policy may now take long to plan the next steps.
  void step(const std::function<void()>& on_planning);
  // REQUIRES: the lane has not failed.
  CarriedState carry_out();
  // Checksum of parameters, buffers and optimizer state; nullopt without data.
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
  // The first step of the current training, which prepares kernels, was removed from `recent`.
  bool warm_ = false;
  LaneView view_;
};

}  // namespace tidemark::compare
