// Ours. The last step is the forecast of this one: a plan (release_plan.h) says what to copy
// out and when, what to evict, and when to bring copies back; whatever it does not foresee is
// decided by price.
//
//   copy out  as soon as the plan has it, while it stays where it is (pre-cleaning): releasing
//             it later costs nothing, and no operator waits for the copy;
//   evict     as soon as the plan has it;
//   bring back at the planned call, if there is room; else as soon as there is.
//
// Unplanned (the first step, or one that differs from the last): what a filter says if one is
// given, else the least price per byte and time until the next use, or since the last where
// that is unknown. The price is what computing
// it again would take now, or what the link would make compute wait for, counting the copies
// already under way: whichever is less.
//
// Each program (forecast.h) has its plan; it is made anew after the first steps, in which costs
// are being learnt.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "runtime/delta/forecast.h"
#include "runtime/delta/policies/indexed_policy.h"
#include "runtime/delta/tide/release_plan.h"

namespace tidemark {

// A way of planning.
struct TideWay {
  // Of the budget, what the plan leaves for fragmentation and for what it cannot foresee.
  double slack = 0.05;
  // Copies come back as if the link had this share of its bandwidth: compute that waits for one
  // costs more than the room it takes while it is early. 0: nothing is copied.
  double link_share = 0.5;
};

struct TideOptions {
  // Each is tried for a step, and going without a plan as well; what took least time is kept.
  std::vector<TideWay> ways{{0.02, 0.5}, {0.05, 0.5}, {0.1, 0.5},  {0.15, 0.5},
                            {0.2, 0.5},  {0.02, 0},   {0.05, 0},   {0.1, 0},
                            {0.05, 0.3}, {0.1, 0.3},  {0.05, 0.8}, {0.1, 0.8}};
  HeuristicFn filter = nullptr;  // for what is unplanned; null: by price
};

class TidePolicy final : public IndexedPolicy {
 public:
  TidePolicy(const TideOptions& options, bool known_to_fit)
      : options_(options), known_to_fit_(known_to_fit) {}

  Storage* choose(const Residency& residency) override;
  bool knows_prices() const override { return !options_.filter; }
  std::optional<Nanos> price(const Residency& residency, Storage& storage) override;
  Action decide(const Residency& residency, Storage& storage) override;
  bool recompute_offloaded(const Residency& residency, Storage& storage) override;
  void on_evicted(Storage& storage) override;
  void on_gone(Storage& storage) override { forecast_.forget(storage); }
  void after_operator(Residency& residency, const Recipe& call) override;
  void begin_step(Residency& residency) override;
  void end_step(Residency& residency) override;
  bool settled() const override {
    return known_to_fit_ || programs_[forecast_.program()].trial.over;
  }

 private:
  // What the plan says of an item now.
  enum class Fate : uint8_t { kStays, kEvict, kOffload };
  // What is tried: 0 is going without a plan, i is the plan made with ways[i - 1].
  struct Trial {
    size_t next = 0;  // what is tried in this step
    size_t best = 0;  // of those tried so far
    Nanos least{0};   // what a step took with it
    int warm_up = 0;  // steps in which costs are still being learnt
    bool over = false;
  };
  // What has been worked out for steps of one kind, by the forecast's number of it.
  struct Program {
    Trial trial;
    bool planned = false;  // there is a plan
    ReleasePlan plan;
    std::vector<std::vector<uint32_t>> reload_at;  // by call: items to bring back after it
  };

  Fate fate_of(const Storage& storage) const;
  std::optional<Nanos> evict_price(const Residency& residency, Storage& storage) const;
  Nanos offload_price(const Residency& residency, const Storage& storage) const;
  std::optional<Nanos> release_price(const Residency& residency, Storage& storage) const;
  Nanos until_next_use(const Residency& residency, const Storage& storage) const;
  Program& program() { return programs_[forecast_.program()]; }
  const Program& program() const { return programs_[forecast_.program()]; }
  void begin_program();
  void begin_releases(Residency& residency, uint32_t call);
  void bring_back(Residency& residency, uint32_t call);
  void learn(const Residency& residency, bool repeated);
  void make_plan(const Residency& residency, const TideWay& way);

  const TideOptions options_;
  const bool known_to_fit_;
  Forecast forecast_;
  std::array<Program, Forecast::kMostPrograms> programs_;
  size_t next_release_ = 0;  // of the plan, by `from`
  struct Planned {
    Fate fate = Fate::kStays;
    Nanos copied{0};  // on the issue clock, when its copy will be out
  };
  size_t fates_of_ = 0;         // which program's
  std::vector<Planned> fates_;  // by item
  std::vector<uint32_t> due_;   // due, and not back yet
  Nanos step_began_{0};         // on the issue clock
  Nanos link_free_{0};          // on the issue clock, when copies under way will be out
};

}  // namespace tidemark
