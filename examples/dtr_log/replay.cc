#include "examples/dtr_log/replay.h"

#include <memory>
#include <utility>
#include <vector>

#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

using Kind = DtrLog::Step::Kind;

// Far above what any log takes; the simulator only counts.
constexpr Bytes kUnlimited{int64_t{1} << 52};

// A call of the log: takes its time and does nothing else. Its name is the log's.
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

// Prices that are the times themselves: a call's signature is its time.
std::shared_ptr<const CostTable> prices_of(const DtrLog& log) {
  auto table = std::make_shared<CostTable>();
  for (const DtrLog::Step& step : log.steps) {
    if (step.time <= Nanos(0)) continue;
    table->operators[static_cast<uint64_t>(step.time.count())] = {.time = step.time};
  }
  return table;
}

class Replay {
 public:
  Replay(const DtrLog& log, Session& session) : log_(log), session_(session) {}

  ReplayResult round() {
    held_.assign(log_.storages.size(), {});
    size_t next = 0;
    // What is there before the program starts takes no time of it.
    while (next < log_.steps.size() && log_.steps[next].kind == Kind::kConstant) {
      constant(log_.steps[next++]);
    }
    session_.device().synchronize_all();
    computed_ = Nanos(0);
    ReplayResult result;
    result.stats = session_.step([&] {
      for (; next < log_.steps.size(); ++next) run(log_.steps[next]);
      outputs();
    });
    result.computed = computed_;
    result.peak = session_.peak_reserved();
    held_.clear();
    return result;
  }

 private:
  void run(const DtrLog::Step& step) {
    switch (step.kind) {
      case Kind::kConstant: constant(step); break;
      case Kind::kCall: call(step.name.c_str(), step.time, step.inputs, step.outputs); break;
      case Kind::kFree: held_[step.inputs[0]] = {}; break;
    }
  }

  // Cannot be computed, and may not go.
  void constant(const DtrLog::Step& step) {
    const uint32_t index = step.outputs[0];
    StorageUse storage(session_.residency().create(log_.storages[index].bytes,
                                                   Category::kParameter, "constant"));
    storage->evict_pinned = storage->offload_pinned = true;
    session_.residency().upload(*storage, nullptr, nullptr);
    held_[index] = std::move(storage);
  }

  void call(const char* name, Nanos time, const std::vector<uint32_t>& inputs,
            const std::vector<uint32_t>& outputs) {
    auto call = make_intrusive<ReplayedCall>(name, time, computed_);
    for (const uint32_t input : inputs) {
      call->inputs.push_back({held_[input].ptr(), held_[input]->version(), false});
    }
    for (const uint32_t output : outputs) {
      StorageUse storage(session_.residency().create(log_.storages[output].bytes,
                                                     Category::kActivation, name));
      call->outputs.push_back({storage.get(), storage->bytes()});
      held_[output] = std::move(storage);
    }
    call->cost_key = session_.costs().key(static_cast<uint64_t>(time.count()), {});
    session_.residency().execute(call);
  }

  // All that has a name, at once.
  void outputs() {
    if (!log_.live.empty()) call("outputs", Nanos(0), log_.live, {});
  }

  const DtrLog& log_;
  Session& session_;
  std::vector<StorageUse> held_;  // by storage, while it has a name
  Nanos computed_{0};
};

}  // namespace

ReplayResult replay(const DtrLog& log, SessionOptions options, const DeviceProfile& profile,
                    int rounds) {
  // Nothing but what the log says takes time on the compute stream.
  DeviceProfile exact = profile;
  exact.kernel_floor = exact.launch_cost = Nanos(0);
  options.costs = prices_of(log);
  Session session(options, make_sim_device(exact));
  Replay program(log, session);
  ReplayResult result;
  for (int i = 0; i < rounds; ++i) result = program.round();
  return result;
}

ReplayResult replay_unmanaged(const DtrLog& log, const DeviceProfile& profile) {
  return replay(log, {.budget = kUnlimited, .policy = "none"}, profile);
}

}  // namespace tidemark
