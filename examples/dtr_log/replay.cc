#include "examples/dtr_log/replay.h"

#include <memory>
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

// None: memory ran out.
std::optional<TrialResult> try_replay(const DtrLog& log, const SessionOptions& options,
                                      const DeviceProfile& profile, int rounds) {
  try {
    return TrialResult{replay(log, options, profile, rounds).stats.modelled};
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
}

}  // namespace

ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    std::optional<int> rounds) {
  options.costs = prices_of(log);
  Session session(options, replay_device(profile));
  Replay program(log, session);
  ReplayResult result;
  // Rounds to run once the session has settled: the settled behaviour begins where such a round
  // ends.
  constexpr int kSettledRounds = 3;
  uint64_t round_began = 0;
  const int most = rounds.value_or(kMaxRounds);
  for (int settled = 0; result.rounds < most && (rounds || settled < kSettledRounds);) {
    if (session.settled()) ++settled;
    round_began = session.events().next_tag();
    result.stats = session.step([&] { program.round(); });
    ++result.rounds;
  }
  result.computed = program.computed();
  result.peak = session.peak_reserved();
  result.planned = planned_releases(session.events(), round_began);
  result.schedule = schedule_of(options);
  return result;
}

ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile) {
  return replay(log, {.budget = kUnlimited, .policy = "none"}, profile);
}

ReplayResult replay_feasibly(const DtrLog& log, const SessionOptions& options,
                             const DeviceProfile& profile, std::optional<int> rounds) {
  if (options.policy == "none") return replay(log, options, profile, rounds);
  const Trial trial = [&](const SessionOptions& tried, int tried_rounds) {
    return try_replay(log, tried, profile, tried_rounds);
  };
  if (const auto completing = completing_schedule(options, trial)) {
    return replay(log, *completing, profile, rounds);
  }
  const Bytes most = replay_unmanaged(log, profile).peak;
  throw InfeasibleBudget(
      *options.budget, least_budget(options, *options.budget + kAlignment, most, trial).budget);
}

}  // namespace tidemark
