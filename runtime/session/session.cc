#include "runtime/session/session.h"

#include <algorithm>
#include <thread>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Sessions of this thread, the current one last.
std::vector<Session*>& sessions() {
  thread_local std::vector<Session*> list;
  return list;
}

int thread_count(const SessionOptions& options) {
  return options.threads > 0
             ? options.threads
             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Bytes capacity_of(const SessionOptions& options, const Device& device) {
  if (options.budget) return align_down(*options.budget);
  if (options.unmanaged_peak) return align_up(*options.unmanaged_peak);
  return align_down(device.profile().memory);
}

bool learns(const SessionOptions& options) {
  return options.residency.learn_costs && !options.costs;
}

// As the prices have the link.
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
  return make_device(options.device, {.threads = thread_count(options)});
}

// Without learning, what a step takes has to be known as the simulator has it.
std::unique_ptr<Device> with_clock(const SessionOptions& options,
                                   std::unique_ptr<Device> device) {
  if (learns(options) || !device->has_data()) return device;
  const DeviceProfile profile = priced(device->profile(), options.costs.get());
  return make_modelled_device(std::move(device), profile);
}

// Signatures that a session remembers; a step has some hundreds.
constexpr size_t kMostSignatures = 1 << 15;

std::vector<Tier*> tiers_of(Tier* host, Tier* disk) {
  std::vector<Tier*> tiers;
  if (host) tiers.push_back(host);
  if (disk) tiers.push_back(disk);
  return tiers;
}

}  // namespace

Session::Session(const SessionOptions& options) : Session(options, device_of(options)) {}

Session::Session(const SessionOptions& options, std::unique_ptr<Device> device,
                 std::unique_ptr<Arena> arena)
    : options_(options),
      threads_(thread_count(options)),
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
  policy_ =
      policy.make({options.delta, residency.known_to_fit, options.seed, options.unplanned});
  residency_ =
      std::make_unique<Residency>(*device_, *arena_, tiers_of(host_.get(), disk_.get()), costs_,
                                  events_, *policy_, residency);
  sessions().push_back(this);
}

Session::~Session() {
  std::erase(sessions(), this);
  residency_->set_listener(nullptr);
  try {
    device_->synchronize_all();
  } catch (const std::exception&) {
    device_.reset();  // what still runs ends here, before the memory that it uses goes
  }
}

Session& Session::current() {
  if (sessions().empty()) {
    throw UsageError("there is no session on this thread: make a tidemark::Session first");
  }
  return *sessions().back();
}

void Session::make_current() {
  std::erase(sessions(), this);
  sessions().push_back(this);
}

Tensor Session::upload(const TensorMeta& meta, Category category, const void* data,
                       std::shared_ptr<const void> keep_alive, const char* name) {
  TIDEMARK_CHECK(meta.is_contiguous() && meta.offset == 0, "uploads are contiguous");
  static constexpr std::byte kNothing{};
  if (meta.bytes() == Bytes(0)) data = &kNothing;  // every storage has a byte, which is copied
  StorageUse storage(residency_->create(meta.bytes(), category, kOriginUpload));
  storage->name = name;
  upload(*storage, data, std::move(keep_alive));
  return Tensor(std::move(storage), meta);
}

bool Session::download(const Tensor& tensor, void* to) {
  if (!tensor.defined() || !tensor.meta().is_contiguous()) {
    throw UsageError("[download] the tensor is not contiguous; call contiguous() on it first");
  }
  return download(*tensor.storage(), size_of(tensor.dtype()) * tensor.meta().offset,
                  tensor.meta().bytes(), to);
}

void Session::upload(Storage& storage, const void* data,
                     std::shared_ptr<const void> keep_alive) {
  if (intercepted()) {
    interceptor_->upload(storage, data, std::move(keep_alive));
  } else {
    residency_->upload(storage, data, std::move(keep_alive));
  }
}

bool Session::download(Storage& storage, Bytes offset, Bytes bytes, void* to) {
  if (intercepted()) interceptor_->before_read(storage);
  return residency_->download(storage, offset, bytes, to);
}

void Session::execute(const IntrusivePtr<Recipe>& call) {
  if (intercepted()) {
    interceptor_->call(call);
  } else {
    residency_->execute(call);
  }
}

void Session::set_interceptor(std::unique_ptr<StepInterceptor> interceptor) {
  TIDEMARK_CHECK(!in_step_, "an interceptor comes and goes between steps");
  interceptor_ = std::move(interceptor);
  residency_->set_listener(interceptor_.get());
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
  note_peak();
  if (costs_.size() > kMostSignatures) costs_.forget();
  events_.record(
      {.kind = EventKind::kStepBegin, .issued = residency_->clock(), .start = device_->now()});
  residency_->begin_step();
  in_step_ = true;
  if (interceptor_) interceptor_->begin_step();
}

const StepStats& Session::end_step() {
  if (interceptor_) interceptor_->end_step();
  in_step_ = false;
  last_step_ = residency_->end_step(options_.synchronize_steps);
  last_step_.planned = interceptor_ && interceptor_->planned();
  events_.record(
      {.kind = EventKind::kStepEnd, .issued = residency_->clock(), .start = device_->now()});
  note_peak();
  return last_step_;
}

void Session::abort_step() {
  device_->resume();
  if (intercepted()) interceptor_->abort_step();
  in_step_ = false;
  residency_->abort_step();
  note_peak();
}

}  // namespace tidemark
