// One training run: a device, its memory of exactly the budget, and the policy that manages it.
//
//   Session session({.device = "cpu", .budget = 512_MiB});
//   for (...) session.step([&] { ...forward, backward, update... });
//
// A session is current on the thread that made it, until it is destroyed or another is made;
// operators run in the current one. Tensors may outlive their session, but have no values then:
// they can be copied and dropped, anything else is a UsageError.
//
// Threads: everything of one session on one thread; different sessions on different threads. On
// another thread, and in the child of a fork(), what would run something throws UsageError.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/executor/step_planner.h"
#include "runtime/policy/registry.h"
#include "runtime/residency/residency.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

struct SessionOptions {
  std::string device = "cpu";  // "cpu", "cuda", "cuda:<number>", "sim:<profile>"
  int threads = 0;  // of the compute stream; 0: OMP_NUM_THREADS, else the processors it may use
  // On CUDA, convolutions and matrix products of float32 may round what they multiply to TF32,
  // with 10 bits of mantissa, and add up in float32: several times as fast on tensor cores.
  // Off: float32 throughout. No effect on other devices.
  bool tf32 = true;
  // Everything on the device stays within this. None: the device's memory.
  std::optional<Bytes> budget{};
  // The unmanaged peak of a step where a dry run has found it: at or above it, nothing is
  // released.
  std::optional<Bytes> unmanaged_peak{};
  // "none", or a name from runtime/policy/registry.h.
  std::string policy = "tide";
  // The policy that tide goes by where it has no schedule.
  std::string fallback_policy = "price";
  // Do steps that repeat run by schedules (plan_steps())? None: under tide, where it may have
  // to release.
  std::optional<bool> plan{};
  DeltaOptions delta{};
  ResidencyOptions residency{};
  // Prices to go by, with which the same program decides the same on any device; nothing is
  // learnt then. Null: none.
  std::shared_ptr<const CostTable> costs{};
  Bytes host_limit{0};  // tiers for offloading; 0: none
  Bytes disk_limit{0};
  std::string disk_directory{};  // empty: TMPDIR, else /var/tmp
  uint64_t seed = 0;             // of the random numbers
  size_t event_capacity = 1 << 16;
  // Wait for the device at the end of each step, so that its figures are whole. Off: figures of
  // work that is still running count towards the next step, and the host may run ahead.
  bool synchronize_steps = true;
};

// Throws UsageError that names the field, for values that have no meaning on any machine.
void check_options(const SessionOptions& options);

class Session {
 public:
  // Throws UsageError as check_options(), or if there is no such device.
  explicit Session(const SessionOptions& options);
  // For tests: a device and an arena of one's own.
  Session(const SessionOptions& options, std::unique_ptr<Device> device,
          std::unique_ptr<Arena> arena = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws UsageError if there is none on this thread.
  static Session& current();
  // With several sessions on one thread: operators run in this one from now on.
  void make_current();

  // One training step, whole: forward, backward, update; micro-batches lie within one. If
  // `body` throws, the step is given up, the session stays usable, and the exception goes on.
  // Throws UsageError within another step.
  template <class Body>
  const StepStats& step(Body&& body) {
    begin_step();
    try {
      std::forward<Body>(body)();
      return end_step();
    } catch (...) {
      abort_step();
      throw;
    }
  }

  // A tensor filled from host memory, which `keep_alive` holds until it has been copied. `data`
  // may be null on devices without data. It cannot be recomputed, so it is never evicted.
  // `name` lives as long as the process (runtime/core/names.h).
  Tensor upload(const TensorMeta& meta, Category category, const void* data,
                std::shared_ptr<const void> keep_alive, const char* name = kOriginUpload);
  // The same from values that `source` makes, or reads, piece by piece: host memory never holds
  // a large tensor whole. Not called on devices without data. What it throws goes on, and there
  // is no tensor then.
  Tensor upload_from(const PieceSource& source, const TensorMeta& meta, Category category,
                     const char* name = kOriginUpload);
  // Copies the values of a contiguous tensor out and waits for them; false without data.
  bool download(const Tensor& tensor, void* to);
  // The same, piece by piece.
  bool download_to(const PieceSink& sink, const Tensor& tensor);

  // Throws UsageError, in the name of an operator, for a tensor that is undefined or of another
  // session.
  void check_own(const Tensor& tensor, const char* operator_name) const {
    const Storage* storage = tensor.storage().get();
    if (!storage || storage->owner() != residency_.get()) [[unlikely]] {
      refuse(tensor, operator_name);
    }
  }

  // The category that operators give to their outputs from now on; see ScopedCategory.
  Category category() const { return category_; }
  void set_category(Category category) { category_ = category; }

  // The next `count` numbers of the random stream: the Philox offset they start at.
  uint64_t reserve_random(uint64_t count) {
    return std::exchange(random_offset_, random_offset_ + count);
  }
  // For a run that goes on where another stopped.
  uint64_t random_offset() const { return random_offset_; }
  void set_random_offset(uint64_t offset) { random_offset_ = offset; }
  uint64_t seed() const { return options_.seed; }

  const SessionOptions& options() const { return options_; }
  Device& device() { return *device_; }
  const Arena& arena() const { return *arena_; }
  CostModel& costs() { return costs_; }
  EventLog& events() { return events_; }
  Residency& residency() { return *residency_; }
  int threads() const { return threads_; }
  const Tier* host() const { return host_.get(); }
  const Tier* disk() const { return disk_.get(); }
  // The last one that ended; step() returns it.
  const StepStats& last_step() const { return last_step_; }
  // Highest end offset in the arena since the session began.
  Bytes peak_reserved() const;
  // The most that was live at once, and what it was made of.
  const CategoryBytes& peak_live() const;

  // Where the dispatcher keeps what it has worked out per signature; opaque here.
  std::shared_ptr<void>& dispatch_cache() { return dispatch_cache_; }

  // What tensors and the dispatcher are made of: as Residency's functions of these names, but
  // seen by the planner, which may put them off.
  void execute(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* data, std::shared_ptr<const void> keep_alive);
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // From the next step on, steps that repeat run by schedules (executor/step_planner.h). Under
  // tide a session does that by itself; under other policies a schedule does what the policy
  // did. Only between steps.
  void plan_steps(PlanOptions options);
  // As a session has them by itself: in the background, unless its steps have to repeat.
  PlanOptions default_plan_options() const;
  // Null: steps go by the policy alone.
  StepPlanner* planner() { return planner_.get(); }
  const StepPlanner* planner() const { return planner_.get(); }
  // Will steps like the last one run as it did? False while schedules are tried.
  bool settled() const { return !planner_ || planner_->settled(); }
  // Runs a step by the policy, and writes it down.
  StepTrace record_step(const std::function<void()>& body);

 private:
  void begin_step();
  const StepStats& end_step();
  void abort_step();
  void note_peak();
  bool in_planned_step() const { return in_step_ && planner_; }
  // Throws UsageError on another thread, and in the child of a fork.
  void check_caller() const;
  void check_own(const Storage& storage, const char* operator_name) const;
  [[noreturn]] void refuse(const Tensor& tensor, const char* operator_name) const;

  SessionOptions options_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const uint32_t forks_;  // of this process and those that it comes from, when it was made
  int threads_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Tier> host_;
  std::unique_ptr<Tier> disk_;
  CostModel costs_;
  EventLog events_;
  std::unique_ptr<ReleasePolicy> policy_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<StepPlanner> planner_;
  bool in_step_ = false;
  uint32_t steps_ = 0;  // begun
  Category category_ = Category::kActivation;
  uint64_t random_offset_ = 0;
  StepStats last_step_;
  Bytes peak_reserved_{0};
  CategoryBytes peak_live_;
  std::shared_ptr<void> dispatch_cache_;
};

// Outputs of operators are of this category while it lives.
class ScopedCategory {
 public:
  ScopedCategory(Session& session, Category category)
      : session_(session), before_(session.category()) {
    session.set_category(category);
  }
  ~ScopedCategory() { session_.set_category(before_); }
  ScopedCategory(const ScopedCategory&) = delete;
  ScopedCategory& operator=(const ScopedCategory&) = delete;

 private:
  Session& session_;
  Category before_;
};

}  // namespace tidemark
