// One training run: a device, its memory of exactly the budget, and the policy that manages it.
//
//   Session session({.device = "cpu", .budget = 512_MiB});
//   for (...) session.step([&] { ...forward, backward, update... });
//
// A session is current on its thread until it is destroyed or another is made current;
// operators run in the current session. Tensors may outlive their session, but then have no
// values: they can be copied and destroyed, and any other use is a UsageError.
//
// Threads: use each session on the thread that made it; different sessions may use different
// threads. Calls that would run work throw UsageError on another thread and in the child of a
// fork().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/cost/cost_model.h"
#include "runtime/device/device.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/tier.h"
#include "runtime/policy/delta_options.h"
#include "runtime/residency/host_pieces.h"
#include "runtime/residency/residency_options.h"
#include "runtime/session/algorithms.h"
#include "runtime/telemetry/event_log.h"
#include "runtime/telemetry/step_stats.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

class ReleasePolicy;
class Residency;
class StepPlanner;
struct PlanOptions;
struct StepTrace;

struct SessionOptions {
  std::string device = "cpu";  // "cpu", "cuda", "cuda:<number>", "sim:<profile>"
  int threads = 0;  // for the compute stream; 0: OMP_NUM_THREADS, else the processors available
  // On CUDA, float32 convolutions and matrix products may round their operands to TF32 (10 bits
  // of mantissa) and accumulate in float32: several times as fast on tensor cores. Off: float32
  // throughout. No effect on other devices.
  bool tf32 = true;
  // Algorithms that calls use instead of their defaults, which round differently; null: none.
  std::shared_ptr<const AlgorithmTable> algorithms{};
  // Limit on all device memory in use. None: the device's memory.
  std::optional<Bytes> budget{};
  // The unmanaged peak of a step, if a dry run has found it. At a budget at or above this peak,
  // nothing is released.
  std::optional<Bytes> unmanaged_peak{};
  // "none", or a name from runtime/policy/registry.h.
  std::string policy = "tide";
  // Tide's policy for steps without a schedule.
  std::string fallback_policy = "price";
  // Whether repeated steps run by schedules (plan_steps()). None: only under tide, and only if
  // it may have to release.
  std::optional<bool> plan{};
  DeltaOptions delta{};
  ResidencyOptions residency{};
  // Fixed prices, with which the same program makes the same decisions on any device; costs are
  // then not learnt. Null: no fixed prices.
  std::shared_ptr<const CostTable> costs{};
  Bytes host_limit{0};  // tiers for offloading; 0: none
  Bytes disk_limit{0};
  std::string disk_directory{};  // empty: default_disk_directory()
  uint64_t seed = 0;             // for random numbers
  size_t event_capacity = 1 << 16;
  // Waits for the device at the end of each step, so that its figures are complete. Off: work
  // that is still running counts towards the next step, and the host may run ahead.
  bool synchronize_steps = true;
};

// Throws UsageError, naming the field, if a value is invalid on any machine.
void check_options(const SessionOptions& options);

class Session {
 public:
  // Throws UsageError as check_options() does, or if the device does not exist.
  explicit Session(const SessionOptions& options);
  // For tests: takes a device and, optionally, an arena.
  Session(const SessionOptions& options, std::unique_ptr<Device> device,
          std::unique_ptr<Arena> arena = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The current session. Throws UsageError if this thread has none.
  static Session& current();
  // Makes this session current, where a thread has several: operators run in it from now on.
  void make_current();

  // Runs one whole training step: forward, backward, update. Micro-batches lie within one step.
  // If `body` throws, the step is abandoned, the session stays usable, and the exception
  // propagates. Throws UsageError within another step.
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

  // A tensor filled from host memory, which `keep_alive` owns until the copy is done. `data`
  // may be null on devices without data. The tensor cannot be recomputed, so it is never
  // evicted. `name` must live as long as the process (runtime/core/names.h).
  Tensor upload(const TensorMeta& meta, Category category, const void* data,
                std::shared_ptr<const void> keep_alive, const char* name = kOriginUpload);
  // As above, with values from `source`, piece by piece: host memory never holds a large tensor
  // whole. `source` is not called on devices without data. If `source` throws, the exception
  // propagates and no tensor is made.
  Tensor upload_from(const PieceSource& source, const TensorMeta& meta, Category category,
                     const char* name = kOriginUpload);
  // Copies the values of a contiguous tensor to `to` and waits for them. False on devices
  // without data.
  bool download(const Tensor& tensor, void* to);
  // As above, piece by piece.
  bool download_to(const PieceSink& sink, const Tensor& tensor);

  // Throws UsageError, naming the operator, if `tensor` is undefined or belongs to another
  // session.
  void check_own(const Tensor& tensor, const char* operator_name) const {
    const Storage* storage = tensor.storage().get();
    if (!storage || storage->owner() != owner_) [[unlikely]] {
      refuse(tensor, operator_name);
    }
  }

  // The category of operators' outputs from now on; see ScopedCategory.
  Category category() const { return category_; }
  void set_category(Category category) { category_ = category; }

  // Reserves the next `count` numbers of the random stream; returns the Philox offset of the
  // first.
  uint64_t reserve_random(uint64_t count) {
    return std::exchange(random_offset_, random_offset_ + count);
  }
  // For a run that continues an earlier one.
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
  // The last step that ended, as returned by step().
  const StepStats& last_step() const { return last_step_; }
  // Highest end offset in the arena since the session began.
  Bytes peak_reserved() const;
  // Live bytes by category at the moment when most were live.
  const CategoryBytes& peak_live() const;

  // Used by the dispatcher to cache results per signature; opaque here.
  std::shared_ptr<void>& dispatch_cache() { return dispatch_cache_; }

  // From now on, the dispatcher writes what the calls' other algorithms are. Null: no longer.
  void collect_offers(AlgorithmOffers* offers) { offers_ = offers; }
  AlgorithmOffers* offers() const { return offers_; }

  // Used by tensors and the dispatcher. As the Residency functions of the same names, except
  // that the planner sees each request first and may defer it.
  void execute(const IntrusivePtr<Recipe>& call);
  void upload(Storage& storage, const void* data, std::shared_ptr<const void> keep_alive);
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // From the next step on, repeated steps run by schedules (executor/step_planner.h). Under
  // tide, a session calls this itself. Under other policies, a schedule replays what the policy
  // did. Call only between steps.
  void plan_steps(PlanOptions options);
  // The options that a session uses by default: planning runs in the background, unless the
  // session's steps have to be reproducible.
  PlanOptions default_plan_options() const;
  // Null: all steps follow the policy alone.
  StepPlanner* planner() { return planner_.get(); }
  const StepPlanner* planner() const { return planner_.get(); }
  // Whether steps like the last will run as it did. False while schedules are being tried.
  bool settled() const;
  // Runs one step by the policy and records its trace.
  StepTrace record_step(const std::function<void()>& body);

 private:
  void begin_step();
  const StepStats& end_step();
  void abort_step();
  void note_peak();
  bool in_planned_step() const { return in_step_ && planner_; }
  // Throws UsageError on another thread and in the child of a fork().
  void check_caller() const;
  void check_own(const Storage& storage, const char* operator_name) const;
  [[noreturn]] void refuse(const Tensor& tensor, const char* operator_name) const;

  SessionOptions options_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const uint32_t forks_;  // forks of this process and its ancestors when it was made
  int threads_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Tier> host_;
  std::unique_ptr<Tier> disk_;
  CostModel costs_;
  EventLog events_;
  std::unique_ptr<ReleasePolicy> policy_;
  std::unique_ptr<Residency> residency_;
  const StorageOwner* owner_ = nullptr;  // the same, for check_own()
  std::unique_ptr<StepPlanner> planner_;
  bool in_step_ = false;
  uint32_t steps_ = 0;  // steps begun
  Category category_ = Category::kActivation;
  uint64_t random_offset_ = 0;
  StepStats last_step_;
  Bytes peak_reserved_{0};
  CategoryBytes peak_live_;
  std::shared_ptr<void> dispatch_cache_;
  AlgorithmOffers* offers_ = nullptr;
};

// Sets the category of operators' outputs while this object lives.
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
