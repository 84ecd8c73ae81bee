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

std::vector<Tier*> tiers_of(Tier* host, Tier* disk) {
  std::vector<Tier*> tiers;
  if (host) tiers.push_back(host);
  if (disk) tiers.push_back(disk);
  return tiers;
}

}  // namespace

Session::Session(const SessionOptions& options)
    : Session(options, make_device(options.device, {.threads = thread_count(options)})) {}

Session::Session(const SessionOptions& options, std::unique_ptr<Device> device,
                 std::unique_ptr<Arena> arena)
    : options_(options),
      threads_(thread_count(options)),
      device_(std::move(device)),
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
  ResidencyOptions residency = options.residency;
  const bool managed = options.policy != "none";
  const PolicyInfo& policy = find_policy(managed ? options.policy : "delta");
  residency.managed = residency.managed && managed;
  residency.evict = residency.evict && policy.evicts;
  residency.known_to_fit =
      residency.known_to_fit ||
      (options.unmanaged_peak && arena_->offsets().capacity() >= *options.unmanaged_peak);
  policy_ = policy.make({options.delta, residency.known_to_fit, options.seed});
  residency_ =
      std::make_unique<Residency>(*device_, *arena_, tiers_of(host_.get(), disk_.get()), costs_,
                                  events_, *policy_, residency);
  sessions().push_back(this);
}

Session::~Session() {
  std::erase(sessions(), this);
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
  StorageUse storage(residency_->create(meta.bytes(), category, name));
  residency_->upload(*storage, data, std::move(keep_alive));
  return Tensor(std::move(storage), meta);
}

bool Session::download(const Tensor& tensor, void* to) {
  if (!tensor.defined() || !tensor.meta().is_contiguous()) {
    throw UsageError("[download] the tensor is not contiguous; call contiguous() on it first");
  }
  return residency_->download(*tensor.storage(), size_of(tensor.dtype()) * tensor.meta().offset,
                              tensor.meta().bytes(), to);
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
  events_.record(
      {.kind = EventKind::kStepBegin, .issued = residency_->clock(), .start = device_->now()});
  residency_->begin_step();
}

const StepStats& Session::end_step() {
  last_step_ = residency_->end_step(options_.synchronize_steps);
  events_.record(
      {.kind = EventKind::kStepEnd, .issued = residency_->clock(), .start = device_->now()});
  note_peak();
  return last_step_;
}

void Session::abort_step() {
  device_->resume();
  residency_->abort_step();
  note_peak();
}

}  // namespace tidemark
