// Comparisons small enough for tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/resnet_flags.h"
#include "examples/common/resnet_job.h"
#include "examples/compare/engine.h"

namespace tidemark::compare::testing {

inline std::vector<LaneSpec> lanes(const std::vector<std::string>& texts) {
  std::vector<LaneSpec> specs;
  specs.reserve(texts.size());
  for (const std::string& text : texts) specs.push_back(parse_lane(text));
  return specs;
}

// ResNet-18 on images of 24 x 24 pixels; on the CPU with data, on the simulator without.
inline ComparisonOptions small(const std::string& device,
                               const std::vector<std::string>& lane_texts, int64_t steps) {
  ResNetFlags flags;
  flags.device = device;
  flags.data = flags.on_simulator() ? "synthetic" : "digits";
  flags.image_size = 24;
  flags.batch = 8;
  flags.threads = 2;
  flags.steps = 1000;
  ComparisonOptions options;
  options.flags = static_cast<const RunFlags&>(flags);
  options.open = [flags](bool with_data) { return open_resnet_job(flags, with_data); };
  options.lanes = lanes(lane_texts);
  options.steps = steps;
  return options;
}

// A job of which only so many trainings start at once; the next ones wait until they are let
// go.
class HeldJob final : public Job {
 public:
  HeldJob(std::unique_ptr<Job> job, std::shared_future<void> go, int starts)
      : job_(std::move(job)), go_(std::move(go)), starts_(starts) {}
  int64_t batch() const override { return job_->batch(); }
  int64_t steps() const override { return job_->steps(); }
  std::string announcement() const override { return job_->announcement(); }
  Program dry_run() const override { return job_->dry_run(); }
  std::unique_ptr<Training> start() const override {
    if (starts_-- <= 0) go_.wait();
    return job_->start();
  }

 private:
  std::unique_ptr<Job> job_;
  std::shared_future<void> go_;
  mutable std::atomic<int> starts_;
};

// Of the comparison's trainings, `starts` start; the others wait until the result is set.
inline std::unique_ptr<std::promise<void>> hold(ComparisonOptions& options, int starts) {
  auto go = std::make_unique<std::promise<void>>();
  options.open = [open = options.open, held = go->get_future().share(),
                  starts](bool with_data) {
    return std::make_unique<HeldJob>(open(with_data), held, starts);
  };
  return go;
}

// Whether each lane is what it was told to be.
inline bool has_started(const Snapshot& now) {
  return std::none_of(
      now.standings.begin(), now.standings.end(),
      [](const LaneStanding& standing) { return standing.pending.has_value(); });
}

// Waits until `command` has been carried out, or refused.
inline std::shared_ptr<const Snapshot> wait_applied(Comparison& comparison, uint64_t command) {
  return comparison.wait_until([&](const Snapshot& now) { return now.applied >= command; });
}

// Waits until each lane that runs has done so many steps.
inline std::shared_ptr<const Snapshot> wait_steps(Comparison& comparison, int64_t steps) {
  return comparison.wait_until([&](const Snapshot& now) {
    for (const auto& lane : now.lanes) {
      if (lane->status != LaneStatus::kFailed && lane->steps_done < steps) return false;
    }
    return true;
  });
}

}  // namespace tidemark::compare::testing
