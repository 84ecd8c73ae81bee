// The same schedules, run live on the simulated device and simulated, do the same to each
// storage in the same order, take the same time and need the same memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/executor/toy_training.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"

namespace tidemark::testing {
namespace {

using Do = Schedule::Do;

constexpr int kSimulatedSteps = 7, kSimulatedCalls = 30;
constexpr uint32_t kSimulatedSeeds = kSanitized ? 40 : 300;

// At 1e9 every duration is a whole number of nanoseconds, so nothing is rounded twice. `link`:
// bytes per second, each way; `beside`: the share of it while the other way is busy.
DeviceProfile profile_with_link(double link, double beside = 1) {
  DeviceProfile profile;
  profile.name = "exact";
  profile.memory = Bytes(1 << 30);
  profile.float32_flops = profile.bfloat16_flops = 1e12;
  profile.memory_bandwidth = 2e9;
  profile.offload_bandwidth = profile.reload_bandwidth = link;
  profile.duplex_offload_bandwidth = profile.duplex_reload_bandwidth = beside * link;
  profile.transfer_latency = Nanos(100);
  return profile;
}

// Runs identical steps without reads, as the time of a read is not in a schedule. `after` is
// called after each step.
void run_program(Session& session, uint32_t seed, const std::function<void(StepStats)>& after) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return random() % static_cast<uint32_t>(n); };
  const auto words = [&] { return kUnitWords << pick(5); };
  std::vector<Handle> parameters;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(toy_upload(session, words(), 1, Category::kParameter));
  }
  for (int step = 0; step < kSimulatedSteps; ++step) {
    random.seed(seed);
    after(session.step([&] {
      std::vector<Handle> live = parameters;
      live.push_back(toy_upload(session, words(), 1));
      for (int call = 0; call < kSimulatedCalls; ++call) {
        std::vector<Handle> inputs;
        for (uint32_t k = 1 + pick(3); k > 0; --k) inputs.push_back(live[pick(live.size())]);
        if (pick(10) == 0) {
          toy_update(session, inputs, 1);
          continue;
        }
        std::vector<ToyOutput> outputs;
        for (uint32_t k = 1 + pick(3); k > 0; --k) outputs.push_back({words()});
        const int64_t workspace = pick(3) == 0 ? words() : 0;
        for (Handle& made : toy_call(session, inputs, outputs, 1, workspace)) {
          if (pick(4) != 0) live.push_back(std::move(made));
        }
        while (live.size() > 14) {
          live.erase(live.begin() + 4 + pick(live.size() - parameters.size()));
        }
      }
      for (const Handle& parameter : parameters)
        toy_update(session, {parameter, live.back()}, 1);
    }));
  }
}

// One thing done in a step. Frees are left out: they follow the program's own releases.
// Storages are given by number, or live by id.
struct Deed {
  static constexpr uint32_t kScratch = Schedule::kScratch;
  std::string what;
  std::vector<uint32_t> storages;

  std::string text() const {
    std::string line = what;
    for (const uint32_t s : storages) {
      line += s == kScratch ? " scratch" : ' ' + std::to_string(s);
    }
    return line;
  }
};

std::vector<Deed> deeds_of(const Schedule& schedule) {
  static const std::map<Do, std::string> kNames{
      {Do::kUpload, "upload"},   {Do::kEvict, "evict"},    {Do::kCopyOut, "copy out"},
      {Do::kOffload, "offload"}, {Do::kCopyIn, "copy in"}, {Do::kDropCopy, "drop copy"},
      {Do::kMove, "move"}};
  std::vector<Deed> deeds;
  for (const Schedule::Instruction& it : schedule.code) {
    if (it.what == Do::kFree) continue;
    Deed& deed = deeds.emplace_back();
    deed.what = it.what == Do::kRun ? (it.again ? "run again" : "run") : kNames.at(it.what);
    if (!names_op(it)) deed.storages.push_back(it.subject);
    for (uint32_t b = it.first_block; names_op(it) && b < it.first_block + it.blocks; ++b) {
      deed.storages.push_back(schedule.blocks[b].storage);
    }
  }
  return deeds;
}

class Watcher final : public StorageListener {
 public:
  explicit Watcher(Residency& residency) : residency_(residency) {
    residency_.storage_events().listen(*this);
  }
  ~Watcher() override { residency_.storage_events().ignore(*this); }
  std::vector<Deed> take() { return std::exchange(deeds_, {}); }

  void on_event(const StorageEvent& event) noexcept override {
    using Kind = StorageEvent::Kind;
    switch (event.kind) {
      case Kind::kRun:
        run_ = deeds_.size();
        deeds_.push_back({event.reason == Reason::kNone ? "run" : "run again", {}});
        break;
      case Kind::kPlaced:
        deeds_[run_].storages.push_back(event.storage->category == Category::kWorkspace
                                            ? Deed::kScratch
                                            : event.storage->id());
        break;
      case Kind::kUploaded: add("upload", event); break;
      case Kind::kReloaded:
      case Kind::kPrefetched: add("copy in", event); break;
      case Kind::kEvicted: add("evict", event); break;
      case Kind::kOffloaded:
      case Kind::kDropped: add("offload", event); break;
      case Kind::kCopiedOut: add("copy out", event); break;
      case Kind::kCopyDropped: add("drop copy", event); break;
      case Kind::kMoved: add("move", event); break;
      default: break;
    }
  }

 private:
  void add(const char* what, const StorageEvent& event) {
    deeds_.push_back({what, {event.storage->id()}});
  }

  Residency& residency_;
  std::vector<Deed> deeds_;
  size_t run_ = 0;  // the latest call: blocks may move while it takes its own blocks
};

// The first deed that differs from the schedule; empty if there is none. Live ids are mapped to
// numbers of the schedule at their first appearance, and must match from then on.
std::string first_difference(const std::vector<Deed>& live, const std::vector<Deed>& planned) {
  std::map<uint32_t, uint32_t> number_of, id_of;
  for (size_t i = 0; i < std::max(live.size(), planned.size()); ++i) {
    const std::string at = "deed " + std::to_string(i) + ": ";
    if (i == live.size()) return at + "nothing, but planned " + planned[i].text();
    if (i == planned.size()) return at + live[i].text() + ", but nothing is planned";
    bool same = live[i].what == planned[i].what &&
                live[i].storages.size() == planned[i].storages.size();
    for (size_t k = 0; same && k < live[i].storages.size(); ++k) {
      const uint32_t id = live[i].storages[k], number = planned[i].storages[k];
      same = number_of.try_emplace(id, number).first->second == number &&
             (number == Deed::kScratch || id_of.try_emplace(number, id).first->second == id);
    }
    if (!same) return at + live[i].text() + ", but planned " + planned[i].text();
  }
  return "";
}

// When compute had finished the step's work, and storages that are away at its end were out.
Nanos compute_end(Session& session) {
  std::map<uint32_t, Nanos> copied_out;  // by storage: the end of its last copy
  Nanos end{0};
  session.events().for_each([&](const EventRecord& event) {
    switch (event.kind) {
      case EventKind::kOperator:
      case EventKind::kRecompute:
      case EventKind::kCompact: end = std::max(end, event.end); break;
      case EventKind::kOffload:
      case EventKind::kCopyOut: copied_out[event.storage] = event.end; break;
      default: break;
    }
  });
  session.residency().storages().for_each([&](const Storage& storage) {
    if (storage.managed.offloaded()) end = std::max(end, copied_out[storage.id()]);
  });
  return end;
}

int64_t moves(const std::vector<Deed>& deeds) {
  return std::count_if(deeds.begin(), deeds.end(),
                       [](const Deed& deed) { return deed.what == "move"; });
}

// Counts moves of blocks that a copy was reading, or whose copy in had just been waited for.
int64_t moves_beside_copies(Session& session) {
  std::map<uint32_t, Nanos> copied;  // until when, by storage
  int64_t count = 0;
  session.events().for_each([&](const EventRecord& event) {
    switch (event.kind) {
      case EventKind::kOffload:
      case EventKind::kCopyOut:
      case EventKind::kReload:
      case EventKind::kPrefetch: copied[event.storage] = event.end; break;
      case EventKind::kCompact: count += event.start <= copied[event.storage]; break;
      default: break;
    }
  });
  return count;
}

struct Seen {
  int steps = 0;
  int dead_moves = 0;              // steps that had one
  int64_t moved_while_copied = 0;  // blocks, in all steps
  double live = 0, simulated = 0;  // time of all steps
  std::map<Do, int64_t> code;
};

std::unique_ptr<Session> session_in(Bytes budget, const DeviceProfile& profile) {
  SessionOptions options;
  options.threads = 1;
  options.budget = budget;
  options.host_limit = Bytes(64 << 20);
  options.event_capacity = 1 << 18;
  options.costs = std::make_shared<CostTable>(toy_costs());
  return std::make_unique<Session>(options, make_sim_device(profile));
}

Bytes budget_of(uint32_t seed, const DeviceProfile& profile) {
  Bytes peak{0};
  run_program(*session_in(Bytes(64 << 20), profile), seed,
              [&](const StepStats& stats) { peak = stats.peak_reserved; });
  return align_up(share_of(peak, 0.6 + 0.05 * (seed % 8)));
}

// Runs a random program in at least 60 % of its peak by a random schedule; `check` compares
// each step that follows it.
template <class Check>
void compare(uint32_t seed, const DeviceProfile& profile, bool placed, Seen& seen,
             const Check& check) {
  const auto session = session_in(budget_of(seed, profile), profile);
  PlanLimits limits;
  PlanOptions plan = quiet();
  plan.producer = [&](const StepTrace& trace, const PlanLimits& given,
                      const std::vector<Bytes>& foreign) {
    limits = given;
    std::mt19937 random(seed);
    auto order = random_order(trace, random);
    // The host runs ahead of compute: live, uploads start earlier than in a simulated step.
    const auto upload = std::find(order.begin(), order.end(), 0);
    std::rotate(order.begin(), upload, upload + 1);
    return schedule_with(trace, order, random_releases(limits, random), limits, foreign,
                         placed);
  };
  session->plan_steps(plan);
  Watcher watcher(session->residency());
  int planned = 0;
  run_program(*session, seed, [&](const StepStats& stats) {
    const auto live = watcher.take();
    if (!stats.planned || ++planned < 2) return;  // the first one moves blocks to their places
    const BoundSchedule& bound = *session->planner()->current();
    // Storages that end elsewhere than they begin are moved back first, which is not part of
    // the step's time.
    if (count_ending_elsewhere(bound.schedule) > 0) return;
    // A dead storage that a deferred operator let go of no longer moves.
    if (placed && moves(live) < moves(deeds_of(bound.schedule))) {
      ++seen.dead_moves;
      return;
    }
    const ScheduleCost cost = simulate(bound.trace, limits, bound.schedule);
    const Nanos began = session->device().modelled_now() - stats.modelled;
    const Nanos took = compute_end(*session) - began;
    check(live, took, stats, cost, bound.schedule);
    ++seen.steps;
    seen.live += static_cast<double>(took.count());
    seen.simulated += static_cast<double>(cost.time.count());
    for (const auto& it : bound.schedule.code) ++seen.code[it.what];
  });
  seen.moved_while_copied += moves_beside_copies(*session);
}

// Whether or not copies slow down those the other way.
TEST(LiveAndSimulated, PlacedSchedulesAreEqualInEventsBytesAndTime) {
  Seen seen;
  for (uint32_t seed = 1; seed <= kSimulatedSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare(seed, profile_with_link(1e9, seed % 2 == 0 ? 0.5 : 1), /*placed=*/true, seen,
            [](const std::vector<Deed>& live, Nanos took, const StepStats& stats,
               const ScheduleCost& cost, const Schedule& schedule) {
              EXPECT_EQ(first_difference(live, deeds_of(schedule)), "");
              EXPECT_EQ(took.count(), cost.time.count());
              EXPECT_EQ(stats.peak_reserved, cost.peak);
              EXPECT_EQ(cost.peak, schedule.peak);
            });
  }
  if (kSanitized) return;  // too few for the counts
  EXPECT_GT(seen.steps, 100);
  EXPECT_LT(seen.dead_moves, 10);
  EXPECT_GT(seen.moved_while_copied, 10);
  for (const Do what :
       {Do::kRun, Do::kEvict, Do::kCopyOut, Do::kOffload, Do::kCopyIn, Do::kMove}) {
    EXPECT_GT(seen.code[what], 100) << static_cast<int>(what);
  }
}

// Without places, blocks slide together. This takes time and waits for copies of the blocks
// that slide, while a simulation only counts bytes. The slower the link, the larger the
// difference: 0.2 % of all steps' time where copying the largest block takes an eighth of a
// call, 0.4 % at four tenths (here), 0.5 % at half a call, 9 % at eight calls. In a few steps,
// another storage is released because a block cannot slide.
TEST(LiveAndSimulated, SchedulesWithoutPlacesTakeAboutAsLong) {
  Seen seen;
  int as_scheduled = 0;
  DeviceProfile profile = profile_with_link(20e9);
  profile.memory_bandwidth = 2e13;
  for (uint32_t seed = 1; seed <= kSimulatedSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare(seed, profile, /*placed=*/false, seen,
            [&](std::vector<Deed> live, Nanos, const StepStats& stats, const ScheduleCost&,
                const Schedule& schedule) {
              std::erase_if(live, [](const Deed& deed) { return deed.what == "move"; });
              as_scheduled += first_difference(live, deeds_of(schedule)).empty() ? 1 : 0;
              EXPECT_LE(stats.peak_reserved, budget_of(seed, profile));
            });
  }
  if (kSanitized) return;
  EXPECT_GT(seen.steps, 150);
  EXPECT_GT(as_scheduled, seen.steps * 9 / 10);
  EXPECT_NEAR(seen.live / seen.simulated, 1, 0.005);
}

}  // namespace
}  // namespace tidemark::testing
