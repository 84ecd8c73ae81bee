#include "runtime/session/session.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "runtime/core/errors.h"
#include "runtime/device/cpu/team.h"
#include "runtime/executor/step_planner.h"
#include "runtime/policy/registry.h"
#include "runtime/residency/residency.h"

namespace tidemark {
namespace {

// Sessions of this thread, the current one last.
std::vector<Session*>& sessions() {
  thread_local std::vector<Session*> list;
  return list;
}

// The number of forks between the first process and this one: in a child, the threads of its
// parent's devices do not exist. Asking the system for the process id at each call would cost
// more.
uint32_t forks() {
  static std::atomic<uint32_t> count{0};  // relaxed: a child begins with one thread
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return count.load(std::memory_order_relaxed);
}

const SessionOptions& checked(const SessionOptions& options) {
  check_options(options);
  return options;
}

Bytes capacity_of(const SessionOptions& options, const Device& device) {
  if (options.budget) return align_down(*options.budget);
  if (options.unmanaged_peak) return align_up(*options.unmanaged_peak);
  return align_down(device.profile().memory);
}

bool learns(const SessionOptions& options) {
  return options.residency.learn_costs && !options.costs;
}

// The profile, with the link rates of the cost table.
DeviceProfile priced(DeviceProfile profile, const CostTable* costs) {
  const auto set = [](double& alone, double& duplex, const std::optional<double>& bandwidth) {
    if (bandwidth) duplex *= *bandwidth / std::exchange(alone, *bandwidth);
  };
  if (!costs) return profile;
  set(profile.offload_bandwidth, profile.duplex_offload_bandwidth, costs->offload_bandwidth);
  set(profile.reload_bandwidth, profile.duplex_reload_bandwidth, costs->reload_bandwidth);
  return profile;
}

std::unique_ptr<Device> device_of(const SessionOptions& options) {
  if (options.costs && options.device.starts_with("sim:")) {
    return make_sim_device(priced(device_profile(options.device), options.costs.get()));
  }
  return make_device(options.device, {.threads = options.threads});
}

// Without learning, the session must see the step times of the simulator.
std::unique_ptr<Device> with_clock(const SessionOptions& options,
                                   std::unique_ptr<Device> device) {
  if (learns(options) || !device->has_data()) return device;
  const DeviceProfile profile = priced(device->profile(), options.costs.get());
  return make_modelled_device(std::move(device), profile);
}

// Signatures that a session remembers; a step has some hundreds.
constexpr size_t kMaxSignatures = 1 << 15;

std::vector<Tier*> tiers_of(Tier* host, Tier* disk) {
  std::vector<Tier*> tiers;
  if (host) tiers.push_back(host);
  if (disk) tiers.push_back(disk);
  return tiers;
}

}  // namespace

Session::Session(const SessionOptions& options)
    : Session(options, device_of(checked(options))) {}

Session::Session(const SessionOptions& options, std::unique_ptr<Device> device,
                 std::unique_ptr<Arena> arena)
    : options_(checked(options)),
      forks_(forks()),
      threads_(compute_threads(options.threads)),
      device_(with_clock(options, std::move(device))),
      arena_(arena ? std::move(arena)
                   : std::make_unique<Arena>(*device_, MemoryKind::kDevice,
                                             capacity_of(options, *device_))),
      host_(options.host_limit > Bytes(0) ? make_host_tier(*device_, options.host_limit)
                                          : nullptr),
      disk_(options.disk_limit > Bytes(0)
                ? make_disk_tier(*device_, options.disk_limit, options.disk_directory)
                : nullptr),
      costs_(device_->profile()),
      events_(options.event_capacity) {
  if (options.costs) costs_.use(options.costs);
  ResidencyOptions residency = options.residency;
  residency.learn_costs = learns(options);
  const bool managed = options.policy != "none";
  const PolicyInfo& policy = find_policy(managed ? options.policy : "delta");
  residency.managed = residency.managed && managed;
  residency.evict = residency.evict && policy.evicts;
  residency.known_to_fit =
      residency.known_to_fit ||
      (options.unmanaged_peak && arena_->offsets().capacity() >= *options.unmanaged_peak);
  policy_ = policy.make(
      {options.delta, residency.known_to_fit, options.seed, options.fallback_policy});
  residency_ =
      std::make_unique<Residency>(*device_, *arena_, tiers_of(host_.get(), disk_.get()), costs_,
                                  events_, *policy_, residency);
  owner_ = residency_.get();
  const bool may_release = residency.managed && !residency.known_to_fit;
  if (options.plan.value_or(policy.plans && may_release)) plan_steps(default_plan_options());
  sessions().push_back(this);
}

Session::~Session() {
  std::erase(sessions(), this);
  if (forks_ != forks()) {
    // Destroying these would wait for threads that do not exist here; the process's end frees
    // them.
    static_cast<void>(planner_.release());
    static_cast<void>(disk_.release());
    static_cast<void>(host_.release());
    static_cast<void>(arena_.release());
    static_cast<void>(device_.release());
    return;
  }
  // These hold storages whose blocks may be written as they go (ResidencyOptions::poison).
  planner_.reset();
  dispatch_cache_.reset();
  residency_->rematerialiser().forget_recomputed();
  try {
    device_->synchronize_all();
  } catch (const std::exception&) {
    device_.reset();  // running work ends before the memory that it uses goes
  }
}

Session& Session::current() {
  if (sessions().empty()) {
    throw UsageError("there is no session on this thread: create a tidemark::Session first");
  }
  return *sessions().back();
}

void Session::check_caller() const {
  if (thread_ != std::this_thread::get_id()) {
    throw UsageError(
        "[session] used on a thread other than the one that created it; create a session for "
        "each thread");
  }
  if (forks_ != forks()) {
    throw UsageError(
        "[session] used after fork(): its threads belong to the parent; create a session in "
        "the child");
  }
}

bool Session::settled() const { return !planner_ || planner_->settled(); }

void Session::check_own(const Storage& storage, const char* operator_name) const {
  if (storage.owner() == residency_.get()) return;
  const std::string name = "[" + std::string(operator_name) + "] ";
  if (!storage.owner()) {
    throw UsageError(
        name +
        "a tensor's session has ended, and its values are gone; download() them before that");
  }
  throw UsageError(
      name +
      "a tensor belongs to another session; call make_current() on that session, or "
      "download() the tensor there and upload() it here");
}

void Session::refuse(const Tensor& tensor, const char* operator_name) const {
  if (tensor.defined()) check_own(*tensor.storage(), operator_name);
  throw UsageError("[" + std::string(operator_name) + "] a tensor is undefined");
}

void Session::make_current() {
  check_caller();
  std::erase(sessions(), this);
  sessions().push_back(this);
}

Tensor Session::upload(const TensorMeta& meta, Category category, const void* data,
                       std::shared_ptr<const void> keep_alive, const char* name) {
  TIDEMARK_CHECK(meta.is_contiguous() && meta.offset == 0, "uploads are contiguous");
  static constexpr std::byte kNothing{};
  if (meta.bytes() == Bytes(0)) data = &kNothing;  // every storage has a byte, which is copied
  if (!data && device_->has_data()) throw UsageError("[upload] no values were given");
  check_caller();
  StorageUse storage(residency_->storages().create(meta.bytes(), category, kOriginUpload));
  storage->name = name;
  upload(*storage, data, std::move(keep_alive));
  return Tensor(std::move(storage), meta);
}

Tensor Session::upload_from(const PieceSource& source, const TensorMeta& meta,
                            Category category, const char* name) {
  if (in_planned_step() || meta.bytes() == Bytes(0)) {
    // A schedule may defer the upload, so the bytes are kept.
    const auto count = static_cast<size_t>(device_->has_data() ? meta.bytes().count() : 0);
    const std::shared_ptr<std::byte[]> all(new std::byte[count]);
    const auto piece = static_cast<size_t>(kHostPiece.count());
    for (size_t at = 0; at < count; at += piece) {
      source(Bytes(static_cast<int64_t>(at)), {&all[at], std::min(piece, count - at)});
    }
    return upload(meta, category, all.get(), all, name);
  }
  TIDEMARK_CHECK(meta.is_contiguous() && meta.offset == 0, "uploads are contiguous");
  check_caller();
  StorageUse storage(residency_->storages().create(meta.bytes(), category, kOriginUpload));
  storage->name = name;
  residency_->upload(*storage, source);
  return Tensor(std::move(storage), meta);
}

bool Session::download(const Tensor& tensor, void* to) {
  return download_to(copy_into(to), tensor);
}

bool Session::download_to(const PieceSink& sink, const Tensor& tensor) {
  check_own(tensor, "download");
  if (!tensor.meta().is_contiguous()) {
    throw UsageError("[download] the tensor is not contiguous; call contiguous() on it first");
  }
  return download(*tensor.storage(), size_of(tensor.dtype()) * tensor.meta().offset,
                  tensor.meta().bytes(), sink);
}

void Session::upload(Storage& storage, const void* data,
                     std::shared_ptr<const void> keep_alive) {
  check_caller();
  check_own(storage, "upload");
  if (in_planned_step()) {
    planner_->upload(storage, data, std::move(keep_alive));
  } else {
    residency_->upload(storage, data, std::move(keep_alive));
  }
}

bool Session::download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink) {
  check_caller();
  check_own(storage, "download");
  if (in_planned_step()) planner_->before_read(storage);
  return residency_->download(storage, offset, bytes, sink);
}

void Session::execute(const IntrusivePtr<Recipe>& call) {
  check_caller();
  residency_->storage_events().tell({.kind = StorageEvent::Kind::kCall, .call = call.get()});
  if (in_planned_step()) {
    planner_->call(call);
  } else {
    residency_->execute(call);
  }
}

PlanOptions Session::default_plan_options() const {
  return {.effort = options_.delta.plan_effort,
          .where_it_fits = false,
          .background = device_->has_data() && learns(options_)};
}

void Session::plan_steps(PlanOptions options) {
  TIDEMARK_CHECK(!in_step_, "plan_steps() between steps");
  options.search = options_.policy != "none" && find_policy(options_.policy).plans;
  planner_.reset();
  if (host_ && device_->has_data() && !options.before_use) {
    options.before_use = [tier = host_.get()](Bytes bytes, const std::atomic<bool>& stop) {
      tier->touch(bytes, stop);
    };
  }
  planner_ = std::make_unique<StepPlanner>(*residency_, costs_, std::move(options));
}

StepTrace Session::record_step(const std::function<void()>& body) {
  TIDEMARK_CHECK(!in_step_, "record_step() between steps");
  std::unique_ptr<StepPlanner> before = std::exchange(
      planner_,
      std::make_unique<StepPlanner>(*residency_, costs_, PlanOptions{.record_only = true}));
  const auto restore = [&] { return std::exchange(planner_, std::move(before)); };
  try {
    step(body);
  } catch (...) {
    restore();
    throw;
  }
  return restore()->take_recorded();
}

Bytes Session::peak_reserved() const {
  return std::max(peak_reserved_, arena_->peak_reserved());
}

const CategoryBytes& Session::peak_live() const {
  return arena_->peak_live().total() > peak_live_.total() ? arena_->peak_live() : peak_live_;
}

void Session::note_peak() {
  peak_reserved_ = peak_reserved();
  peak_live_ = peak_live();
}

void Session::begin_step() {
  check_caller();
  if (in_step_) {
    throw UsageError(
        "[step] a step of this session is already running; steps do not nest, and "
        "micro-batches belong within one step");
  }
  note_peak();
  if (costs_.size() > kMaxSignatures) costs_.forget();
  events_.record({.kind = EventKind::kStepBegin,
                  .storage = ++steps_,
                  .issued = residency_->view().clock(),
                  .start = device_->now()});
  residency_->begin_step();
  in_step_ = true;
  if (planner_) planner_->begin_step();
}

const StepStats& Session::end_step() {
  if (planner_) planner_->end_step();
  in_step_ = false;
  last_step_ = residency_->end_step(options_.synchronize_steps);
  if (planner_) {
    planner_->after_step(last_step_);
    last_step_.planned = planner_->planned();
    last_step_.planning_time = planner_->planning_time();
  }
  // Virtual time stands still while the host plans.
  const Nanos planning = device_->has_data() ? last_step_.planning_time : Nanos(0);
  events_.record({.kind = EventKind::kStepEnd,
                  .storage = steps_,
                  .issued = residency_->view().clock(),
                  .expected = planning,
                  .start = device_->now()});
  note_peak();
  return last_step_;
}

void Session::abort_step() {
  device_->resume();
  residency_->effort().go_on();  // runs deferred calls, also after a stopped step
  if (planner_) planner_->abort_step();
  in_step_ = false;
  residency_->abort_step();
  note_peak();
}

}  // namespace tidemark
