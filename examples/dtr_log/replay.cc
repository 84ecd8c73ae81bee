#include "examples/dtr_log/replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/forwarding_device.h"
#include "runtime/residency/residency.h"
#include "runtime/session/dry_run.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

using Kind = DtrLog::Step::Kind;

// Far above what any log takes; the simulator only counts.
constexpr Bytes kUnlimited{int64_t{1} << 52};

// A call of the log, with its name: takes the logged time and does nothing else.
class ReplayedCall final : public Recipe {
 public:
  ReplayedCall(const char* name, Nanos time, Nanos& computed)
      : name_(name), time_(time), computed_(computed) {}
  const char* name() const override { return name_; }
  Event launch(Device& device, const Addresses& /*addresses*/, uint64_t tag) override {
    computed_ += time_;
    return device.enqueue(StreamId::kCompute, {[](void*) {}, time_, tag});
  }

 private:
  const char* const name_;
  const Nanos time_;
  Nanos& computed_;
};

// Prices equal to the times: a call's signature is its time.
std::shared_ptr<const CostTable> prices_of(const DtrLog& log) {
  auto table = std::make_shared<CostTable>();
  for (const DtrLog::Step& step : log.steps) {
    table->operators[static_cast<uint64_t>(step.time.count())] = {.time = step.time};
  }
  return table;
}

// A device on which uploads, which have no tag, take no time.
class ReplayDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Event copy(StreamId stream, const Copy& copy) override {
    const bool upload = stream == StreamId::kReload && copy.tag == 0;
    if (upload) return enqueue_host(stream, {[](void*) {}, Nanos(0), copy.tag});
    return ForwardingDevice::copy(stream, copy);
  }
};

// Only what the log says takes time on the compute stream.
std::unique_ptr<Device> replay_device(DeviceProfile profile) {
  profile.kernel_floor = profile.launch_cost = Nanos(0);
  profile.pin_bandwidth = 0;
  return std::make_unique<ReplayDevice>(make_sim_device(profile));
}

class Replay {
 public:
  // Makes the storages that stay.
  Replay(const DtrLog& log, Session& session)
      : log_(log), session_(session), kept_(log.storages.size()) {
    std::vector<bool> stays(log.storages.size());
    for (const uint32_t storage : log.live) stays[storage] = true;
    for (const DtrLog::Step& step : log.steps) {
      if (step.kind != Kind::kConstant) break;
      const uint32_t storage = step.outputs[0];
      if (stays[storage]) kept_[storage] = constant(storage);
    }
    session_.device().synchronize_all();
  }

  void round() {
    computed_ = Nanos(0);
    held_ = kept_;
    for (const DtrLog::Step& step : log_.steps) run(step);
    outputs();
    held_.clear();
  }

  // Computed time of the last round.
  Nanos computed() const { return computed_; }

 private:
  void run(const DtrLog::Step& step) {
    switch (step.kind) {
      case Kind::kConstant: make_constant(step.outputs[0]); break;
      case Kind::kCall: call(step.name.c_str(), step.time, step.inputs, step.outputs); break;
      case Kind::kFree: held_[step.inputs[0]] = {}; break;
    }
  }

  void make_constant(uint32_t index) {
    if (!kept_[index]) held_[index] = constant(index);
  }

  // Cannot be recomputed and must not be released.
  StorageUse constant(uint32_t index) {
    StorageUse storage(session_.residency().storages().create(
        log_.storages[index].bytes, Category::kParameter, "constant"));
    storage->evict_pinned = storage->offload_pinned = true;
    session_.upload(*storage, nullptr, nullptr);
    return storage;
  }

  void call(const char* name, Nanos time, const std::vector<uint32_t>& inputs,
            const std::vector<uint32_t>& outputs) {
    auto call = make_intrusive<ReplayedCall>(name, time, computed_);
    for (const uint32_t input : inputs) {
      call->inputs.push_back({held_[input].ptr(), held_[input]->version(), false});
    }
    for (const uint32_t output : outputs) {
      StorageUse storage(session_.residency().storages().create(log_.storages[output].bytes,
                                                                Category::kActivation, name));
      call->outputs.push_back({storage.get(), storage->bytes()});
      held_[output] = std::move(storage);
    }
    call->cost_key = session_.costs().key(static_cast<uint64_t>(time.count()), {});
    session_.execute(call);
  }

  // Reads everything that has a name, at once.
  void outputs() {
    if (!log_.live.empty()) call("outputs", Nanos(0), log_.live, {});
  }

  const DtrLog& log_;
  Session& session_;
  std::vector<StorageUse> kept_;  // by storage: constants that stay from round to round
  std::vector<StorageUse> held_;  // by storage, while it has a name
  Nanos computed_{0};
};

bool is_release(const EventRecord& event) {
  return event.kind == EventKind::kEvict || event.kind == EventKind::kOffload ||
         event.kind == EventKind::kDropClean;
}

int64_t planned_releases(const EventLog& events, uint64_t since) {
  int64_t planned = 0;
  events.for_each([&](const EventRecord& event) {
    planned += event.tag >= since && is_release(event) && event.reason == Reason::kPlan;
  });
  return planned;
}

// Limits at which a replay is stopped, in the middle of a round.
struct RoundLimits {
  int64_t recomputations = std::numeric_limits<int64_t>::max();
  Nanos step{std::numeric_limits<int64_t>::max()};
};

// Stops a round that passes a limit, also within a call: bringing back its inputs may take many
// calls.
class RoundMeter final : public StorageListener {
 public:
  RoundMeter(Residency& residency, const RoundLimits& limits)
      : residency_(residency), limits_(limits) {
    residency_.storage_events().listen(*this);
  }
  ~RoundMeter() override { residency_.storage_events().ignore(*this); }
  RoundMeter(const RoundMeter&) = delete;
  RoundMeter& operator=(const RoundMeter&) = delete;

  void begin_round() { began_ = residency_.view().clock(); }
  void on_event(const StorageEvent& event) noexcept override {
    if (!is_block(event)) return;
    if (residency_.stats().recomputes > limits_.recomputations ||
        residency_.view().clock() - began_ > limits_.step) {
      residency_.effort().stop();
    }
  }

 private:
  Residency& residency_;
  const RoundLimits limits_;
  Nanos began_{0};
};

// Throws Effort::Stopped.
ReplayResult replay_within(const DtrLog& log, SessionOptions options,
                           const DeviceProfile& profile, std::optional<int> rounds,
                           const RoundLimits& limits) {
  options.costs = prices_of(log);
  Session session(options, replay_device(profile));
  Replay program(log, session);
  RoundMeter meter(session.residency(), limits);
  ReplayResult result;
  // Rounds to run once the session has settled: the settled behaviour begins where such a round
  // ends.
  constexpr int kSettledRounds = 3;
  uint64_t round_began = 0;
  const int most = rounds.value_or(kMaxRounds);
  for (int settled = 0; result.rounds < most && (rounds || settled < kSettledRounds);) {
    if (session.settled()) ++settled;
    round_began = session.events().next_tag();
    meter.begin_round();
    result.stats = session.step([&] { program.round(); });
    ++result.rounds;
  }
  result.computed = program.computed();
  result.peak = session.peak_reserved();
  result.planned = planned_releases(session.events(), round_began);
  result.schedule = schedule_of(options);
  return result;
}

// Replays a log by one schedule after another. Each result is kept, as the one that is chosen
// is also the one that is reported.
class Trials {
 public:
  Trials(const DtrLog& log, const SessionOptions& options, const DeviceProfile& profile,
         std::optional<int> rounds)
      : log_(log), options_(options), profile_(profile), rounds_(rounds) {}

  // Null: memory ran out, or the schedule is out of the running.
  const ReplayResult* run(const SessionOptions& tried) {
    const std::string name = schedule_of(tried).name();
    const auto found = results_.find(name);
    if (found != results_.end()) return found->second ? &*found->second : nullptr;
    std::optional<ReplayResult>& result = results_[name];
    // What the user asks for may take any time.
    const bool is_own = tried.policy == options_.policy;
    result = try_replay(tried, rounds_, is_own ? RoundLimits() : limits());
    if (!result) return nullptr;
    least_ = least_ ? std::min(*least_, result->stats.modelled) : result->stats.modelled;
    return &*result;
  }
  // Whether the program completes in so many rounds, within the budget of `tried`.
  std::optional<TrialResult> complete(const SessionOptions& tried, int rounds) const {
    const auto result =
        try_replay(tried, rounds, {.recomputations = kMaxRecomputations * log_.calls});
    return result ? std::optional(TrialResult{result->stats.modelled}) : std::nullopt;
  }
  // The quickest so far; of equals, `first`.
  const ReplayResult& quickest(const ReplayResult& first) const {
    const ReplayResult* best = &first;
    for (const auto& [name, result] : results_) {
      if (result && result->stats.modelled < best->stats.modelled) best = &*result;
    }
    return *best;
  }

 private:
  // A policy that takes far longer than another is out of the running.
  RoundLimits limits() const {
    constexpr int64_t kFarLonger = 4;
    RoundLimits limits{.recomputations = kMaxRecomputations * log_.calls};
    if (least_) limits.step = Nanos(kFarLonger * least_->count());
    return limits;
  }
  std::optional<ReplayResult> try_replay(const SessionOptions& tried, std::optional<int> rounds,
                                         const RoundLimits& limits) const {
    try {
      return replay_within(log_, tried, profile_, rounds, limits);
    } catch (const OutOfMemory&) {
      return std::nullopt;
    } catch (const Effort::Stopped&) {
      return std::nullopt;
    }
  }

  const DtrLog& log_;
  const SessionOptions& options_;
  const DeviceProfile& profile_;
  const std::optional<int> rounds_;
  std::map<std::string, std::optional<ReplayResult>> results_;  // by schedule
  std::optional<Nanos> least_;                                  // of the steps so far
};

}  // namespace

ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    std::optional<int> rounds) {
  return replay_within(log, std::move(options), profile, rounds, {});
}

ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile) {
  return replay(log, {.budget = kUnlimited, .policy = "none"}, profile);
}

ReplayResult replay_feasibly(const DtrLog& log, const SessionOptions& options,
                             const DeviceProfile& profile, std::optional<int> rounds) {
  if (options.policy == "none") return replay(log, options, profile, rounds);
  Trials trials(log, options, profile, rounds);
  const auto by_run = [&](const SessionOptions& tried, int /*rounds*/) {
    const ReplayResult* result = trials.run(tried);
    return result ? std::optional(TrialResult{result->stats.modelled}) : std::nullopt;
  };
  if (const auto completing = completing_schedule(options, by_run)) {
    const ReplayResult& found = *trials.run(*completing);
    return options.policy == "tide" ? trials.quickest(found) : found;
  }
  const Bytes most = replay_unmanaged(log, profile).peak;
  const Trial completes = [&](const SessionOptions& tried, int tried_rounds) {
    return trials.complete(tried, tried_rounds);
  };
  throw InfeasibleBudget(
      *options.budget,
      least_budget(options, *options.budget + kAlignment, most, completes).budget);
}

}  // namespace tidemark
