// Runs the comparison: one training job under several policies and budgets at once, each in a
// lane of its own.
//
// On a real device, the lanes take turns on one thread, one step each, so that they do not
// disturb each other; on the simulator, each lane has its own thread. Commands are queued and
// applied when a lane is between two steps (on a real device: when all lanes are, after the
// same step). A changed lane keeps its training state.
//
//   Comparison comparison({.flags = flags, .open = open, .lanes = {parse_lane("tide")}});
//   comparison.submit({.what = Command::kSwitch, .lane = 1, .spec = parse_lane("delta:lru")});
//   std::shared_ptr<const Snapshot> now = comparison.snapshot();
//
// Threads: any. The lanes run on threads of the engine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "examples/common/run.h"
#include "examples/compare/lane.h"
#include "examples/compare/snapshot.h"
#include "runtime/core/thread_annotations.h"

namespace tidemark::compare {

inline constexpr size_t kMaxLanes = 8;

struct ComparisonOptions {
  RunFlags flags;                // device, tiers, budget and so on
  OpenJob open;                  // called several times
  std::vector<LaneSpec> lanes;   // at least one
  std::optional<int64_t> steps;  // of each lane; 0: until stopped; none: the job's own
  double rate = 0;               // limit on a lane's steps per second; 0: none
  bool paused = false;           // start paused
  // Called after each step of each lane, on the lane's thread; for reports. Must not throw.
  std::function<void(int lane, const LaneStep& step)> on_step;
};

struct Command {
  enum What : uint8_t { kSwitch, kAdd, kRemove, kBudget, kPause, kResume };
  What what = kPause;
  int lane = 0;   // for kSwitch, kRemove, kBudget; kBudget with 0: all managed lanes
  LaneSpec spec;  // for kSwitch (keeps the lane's budget) and kAdd
  std::optional<Budget> budget;  // for kBudget
};

class Comparison {
 public:
  // Opens the data, does the dry run, then starts the lanes. Throws UsageError, DataError,
  // InfeasibleBudget.
  explicit Comparison(ComparisonOptions options);
  ~Comparison();
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  // Queues the command and returns its number; see Snapshot::applied. Throws UsageError for an
  // invalid command, InfeasibleBudget (with the smallest) for a budget that is too small;
  // nothing changes then.
  uint64_t submit(const Command& command) EXCLUDES(mutex_);

  std::shared_ptr<const Snapshot> snapshot() EXCLUDES(mutex_);
  // Waits for a snapshot newer than `number`; after `most`, returns the newest in any case.
  std::shared_ptr<const Snapshot> wait_newer(uint64_t number, std::chrono::milliseconds most)
      EXCLUDES(mutex_);
  // Waits until `done` holds for a snapshot, or can never hold.
  std::shared_ptr<const Snapshot> wait_until(const std::function<bool(const Snapshot&)>& done);

  // Stops each lane after its step, and waits. Published snapshots stay valid.
  void stop() EXCLUDES(mutex_);

 private:
  struct Order {
    uint64_t number = 0;
    Command command;
  };
  // A thread and its lanes.
  struct Worker {
    std::vector<std::unique_ptr<Lane>> lanes;  // the thread's alone
    std::unique_ptr<Job> job;                  // also only for the thread
    std::vector<Order> orders;                 // the engine's, under its lock
    std::thread thread;
  };
  struct Entry {
    LaneSpec planned;  // the lane's spec after all open orders
    Worker* worker = nullptr;
    std::shared_ptr<const LaneView> view;
    int colour = 0;
    Phase phase = Phase::kWaiting;
    int open_orders = 0;  // orders for this lane not applied yet
  };

  void prepare();
  void order(Worker& worker, const Order& order) REQUIRES(mutex_);
  Worker& worker_for_new_lane() REQUIRES(mutex_);
  void add_lane(const LaneSpec& spec, uint64_t number) REQUIRES(mutex_);
  Entry& entry(int lane) REQUIRES(mutex_);
  void set_budget(int lane, const Budget& budget, uint64_t number) REQUIRES(mutex_);
  LaneSpec with_budget(LaneSpec spec) const REQUIRES(mutex_);
  void done_with(const Order& order, const std::string& text, bool bad) EXCLUDES(mutex_);
  void publish(const Lane& lane) EXCLUDES(mutex_);
  void set_phase(int lane, Phase phase) EXCLUDES(mutex_);
  int free_colour() const REQUIRES(mutex_);
  void note(uint64_t command, const std::string& text, bool bad) REQUIRES(mutex_);
  void run(Worker& worker);
  bool wait_for_work(Worker& worker, std::vector<Order>& orders) EXCLUDES(mutex_);
  void apply(Worker& worker, const Order& order);
  void step(Lane& lane);
  bool has_step_to_do(const Lane& lane) const;
  std::shared_ptr<const Snapshot> assemble() REQUIRES(mutex_);

  const ComparisonOptions options_;
  const bool simulated_;
  std::unique_ptr<Job> job_;  // on a real device; shared by its lanes
  std::string about_;
  int64_t steps_ = 0;  // of each lane; 0: until stopped
  Nanos simulated_reference_{0};
  Ground ground_;  // written before any thread starts

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Worker>> workers_ GUARDED_BY(mutex_);
  std::map<int, Entry> entries_ GUARDED_BY(mutex_);
  std::map<uint64_t, int> open_orders_ GUARDED_BY(mutex_);  // how many of a command's
  LossBook losses_ GUARDED_BY(mutex_);
  std::vector<Notice> notices_ GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> latest_ GUARDED_BY(mutex_);
  uint64_t number_ GUARDED_BY(mutex_) = 1;
  uint64_t submitted_ GUARDED_BY(mutex_) = 0;
  Bytes budget_ GUARDED_BY(mutex_){0};  // of lanes without their own
  int next_lane_ GUARDED_BY(mutex_) = 1;
  bool paused_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace tidemark::compare
