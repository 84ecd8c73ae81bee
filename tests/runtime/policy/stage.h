// The stage for policy tests: a session on a simulated device with round prices. Computing
// takes what a call says. Swapping a byte out and back costs one nanosecond, as DELTA counts it
// (35 % of the link), so one way takes 0.175 ns per byte: 90 ns for a unit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/residency/residency.h"
#include "runtime/session/session.h"
#include "tests/support/toy_program.h"

namespace tidemark::testing {

inline constexpr Bytes kUnit = kAlignment;

inline DeviceProfile round_prices() {
  DeviceProfile profile;
  profile.name = "round";
  profile.memory = kUnit * 1024;
  profile.float32_flops = 1e9;
  profile.memory_bandwidth = 1e9;
  profile.offload_bandwidth = profile.reload_bandwidth = 2e9 / 0.35;
  profile.duplex_offload_bandwidth = profile.duplex_reload_bandwidth = 2e9 / 0.35;
  profile.disk_write_bandwidth = profile.disk_read_bandwidth = 1e9;
  return profile;
}

// A call that takes the device exactly its price.
class PricedCall final : public Recipe {
 public:
  explicit PricedCall(int64_t cost) : cost_(cost) {}
  const char* name() const override { return "priced"; }
  Event launch(Device& device, const Addresses& /*addresses*/, uint64_t tag) override {
    return device.enqueue(StreamId::kCompute, {[](void*) {}, cost_, tag});
  }

 private:
  const Nanos cost_;
};

class Stage {
 public:
  // Sizes in units.
  explicit Stage(int64_t arena, const DeltaOptions& delta, int64_t host = 256,
                 const ResidencyOptions& residency = {})
      : Stage("delta", arena, host, delta, residency) {}
  Stage(const std::string& policy, int64_t arena, int64_t host, const DeltaOptions& delta = {},
        const ResidencyOptions& residency = {}, uint64_t seed = 0)
      : session_(options(policy, arena, host, delta, residency, seed),
                 make_sim_device(round_prices())) {}

  // A call that takes `cost`.
  Handle call(const std::vector<Handle>& inputs, int64_t units = 1, int64_t cost = 1,
              Category category = Category::kActivation) {
    Handle out(session_.residency().storages().create(kUnit * units, category, "priced"));
    execute(inputs, cost, out.get(), /*writes=*/false);
    return out;
  }
  // Writes inputs[0] in place.
  void update(const std::vector<Handle>& inputs, int64_t cost = 1) {
    execute(inputs, cost, nullptr, /*writes=*/true);
  }
  Handle data(int64_t units = 1, Category category = Category::kData) {
    return toy_upload(session_, units * 128, 1, category);
  }
  bool release(const Handle& handle) {
    return session_.residency().transfers().release(*handle, Reason::kNoSpace);
  }
  // Which of `handles` were released, in order.
  std::string released(const std::vector<Handle>& handles) {
    return letters(handles, {EventKind::kEvict, EventKind::kOffload, EventKind::kDropClean});
  }
  std::string prefetched(const std::vector<Handle>& handles) {
    return letters(handles, {EventKind::kPrefetch});
  }
  std::string letters(const std::vector<Handle>& handles, const std::vector<EventKind>& kinds) {
    std::string text;
    session_.events().for_each([&](const EventRecord& event) {
      for (size_t i = 0; i < handles.size(); ++i) {
        for (const EventKind kind : kinds) {
          if (handles[i] && event.kind == kind && event.storage == handles[i]->id()) {
            text += static_cast<char>('a' + i);
          }
        }
      }
    });
    return text;
  }
  int64_t count(EventKind kind) {
    int64_t n = 0;
    session_.events().for_each([&](const EventRecord& event) { n += event.kind == kind; });
    return n;
  }
  // Events of the last step, or of the one under way.
  std::vector<EventRecord> step_events() {
    std::vector<EventRecord> found;
    session_.events().for_each([&](const EventRecord& event) {
      if (event.kind == EventKind::kStepBegin) found.clear();
      found.push_back(event);
    });
    return found;
  }
  Bytes used() { return session_.arena().offsets().used(); }
  Session& session() { return session_; }
  Residency& residency() { return session_.residency(); }
  const StepStats& stats() { return residency().stats(); }

 private:
  static SessionOptions options(const std::string& policy, int64_t arena, int64_t host,
                                const DeltaOptions& delta, const ResidencyOptions& residency,
                                uint64_t seed) {
    SessionOptions options;
    options.budget = kUnit * arena;
    options.host_limit = kUnit * host;
    options.policy = policy;
    options.delta = delta;
    options.residency = residency;
    options.seed = seed;
    return options;
  }
  void execute(const std::vector<Handle>& inputs, int64_t cost, Storage* out, bool writes) {
    auto call = make_intrusive<PricedCall>(cost);
    for (const Handle& input : inputs) {
      call->inputs.push_back({input.ptr(), input->version(), writes && call->inputs.empty()});
    }
    if (out) call->outputs.push_back({out, out->bytes()});
    call->cost_key = session_.costs().key(static_cast<uint64_t>(cost), {0, Bytes(cost), false});
    session_.execute(call);
  }
  Session session_;
};

// As in release_index_test, but through the whole runtime, in an arena of 12 units:
//   a: 8 units, last used 1 ago; b: 1 unit, 7 ago; c: 2 units, 6 ago; then all 12 are needed.
// Each takes 1 to compute. In which order do they go?
inline std::string release_order(Stage& stage) {
  const Handle b = stage.call({}, 1);
  const Handle c = stage.call({}, 2);
  Handle pause = stage.call({}, 1, 4);
  const Handle a = stage.call({}, 8);
  pause = {};
  stage.call({}, 1);
  stage.call({}, 12);
  EXPECT_EQ(stage.stats().last_resorts, 0);
  return stage.released({a, b, c});
}

}  // namespace tidemark::testing
