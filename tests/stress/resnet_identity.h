// Trains a ResNet for a few steps with the pieces of train_resnet, under a list of memory
// settings, and expects the same losses, parameters, buffers and optimizer state, to the bit.
//
// Threads: the calling thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/image_training.h"
#include "runtime/core/errors.h"
#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/summary.h"
#include "tests/support/device_under_test.h"
#include "tests/support/machine.h"

namespace tidemark::testing {

enum class TierKind { kHost, kDisk };

struct Memory {
  // Of the unmanaged peak; 0: the smallest feasible budget, which is used as well where the
  // share is less. Without AVX2 it is 42 % for ResNet-18: kernels take larger workspaces.
  double share = 0;
  std::string filter = "base";
  bool overlap = true;
  TierKind tier = TierKind::kHost;
  std::string policy = "delta";
};

inline void PrintTo(const Memory& memory, std::ostream* out) {
  *out << (memory.share > 0 ? std::to_string(memory.share) : "smallest") << ", "
       << memory.policy << ", " << memory.filter << (memory.overlap ? "" : ", no overlap")
       << (memory.tier == TierKind::kDisk ? ", disk" : "");
}

class ResnetIdentity {
 public:
  struct Outcome {
    std::vector<uint32_t> loss_bits;
    std::string checksum;
    bool operator==(const Outcome&) const = default;
  };

  ResnetIdentity(const std::string& model, const std::string& data, int64_t image_size,
                 int64_t batch, int64_t steps, DType dtype = DType::kFloat32) {
    flags_.dtype = dtype;
    flags_.model = model;
    flags_.data = data;
    flags_.image_size = image_size;
    flags_.batch = batch;
    flags_.steps = steps;
    flags_.seed = 5;
    flags_.threads = test_threads();
    data_ = open_data(flags_);
    data_.test = nullptr;  // training alone
    data_.test_size = 0;
    program_ = training_program(flags_, data_, make_schedule(flags_, data_));
    need_ = measure_unmanaged(options_of({}), program_);
    SessionOptions options = options_of({});
    options.policy = "none";
    options.budget = need_.peak;
    expected_ = train(options);
    EXPECT_EQ(peak_, need_.peak) << "what the dry run foresees";
    EXPECT_EQ(train(options), expected_) << "a repeated run";
  }

  // The same as unmanaged, within the budget.
  void check_all(std::initializer_list<Memory> all) {
    for (const Memory& memory : all) check(memory);
  }
  void check(const Memory& memory) {
    SCOPED_TRACE(::testing::PrintToString(memory));
    SessionOptions options = options_of(memory);
    options.budget = budget_of(memory, options);
    EXPECT_EQ(train(options), expected_);
    EXPECT_LE(peak_, *options.budget);
    if (memory.share < 1) {
      EXPECT_GT(total_.evictions + total_.offloads, 0);
    }
  }

  // With all the memory of the unmanaged run, managing does nothing.
  void check_untouched() {
    SessionOptions options = options_of({});
    options.budget = options.unmanaged_peak = need_.peak;
    EXPECT_EQ(train(options), expected_);
    EXPECT_EQ(peak_, need_.peak);
    EXPECT_EQ(total_.evictions + total_.offloads + total_.clean_drops, 0);
    EXPECT_EQ(total_.reloads + total_.recomputes + total_.compactions, 0);
  }

  // By a plan from the third step on; then again within just what that plan takes.
  void check_planned() {
    SessionOptions options = options_of({.policy = "tide"});
    options.budget = need_.peak;
    plan_ = true;
    EXPECT_EQ(train(options), expected_);
    EXPECT_EQ(planned_, flags_.steps - 2);
    EXPECT_EQ(last_.peak_reserved, planned_peak_);
    EXPECT_LT(planned_peak_, need_.peak);
    options.budget = planned_peak_;
    EXPECT_EQ(train(options), expected_);
    EXPECT_EQ(planned_, flags_.steps - 2);
    EXPECT_EQ(last_.peak_reserved, planned_peak_);
    EXPECT_EQ(last_.evictions + last_.offloads + last_.reloads, 0);
    plan_ = false;
  }
  // The same where the plan has to release, as the policy did in the third step.
  void check_planned_releases(const Memory& memory) {
    SessionOptions options = options_of(memory);
    options.budget = budget_of(memory, options);
    plan_ = true;
    EXPECT_EQ(train(options), expected_);
    EXPECT_EQ(planned_, flags_.steps - 3);
    EXPECT_GT(last_.evictions + last_.offloads + last_.clean_drops, 0);
    EXPECT_EQ(last_.compactions, 0);
    EXPECT_EQ(last_.peak_reserved, planned_peak_);
    EXPECT_LE(planned_peak_, *options.budget);
    plan_ = false;
  }

  // One block less than the smallest budget is too little.
  void check_too_little() {
    SessionOptions options = options_of({});
    options.budget = budget_of({}, options) - kAlignment;
    EXPECT_THROW(train(options), OutOfMemory);
  }

 private:
  SessionOptions options_of(const Memory& memory) const {
    SessionOptions options;
    options.device = device_under_test();
    options.threads = flags_.threads;
    options.policy = memory.policy;
    options.delta.filter = memory.filter;
    options.residency.overlap = memory.overlap;
    (memory.tier == TierKind::kHost ? options.host_limit : options.disk_limit) = 2 * need_.peak;
    return options;
  }

  Bytes budget_of(const Memory& memory, const SessionOptions& options) const {
    const Bytes smallest = find_minimum_budget(options, program_, need_).budget;
    if (memory.share == 0) return smallest;
    return std::max(smallest, Budget{.bytes = {}, .share = memory.share}.resolve(need_.peak));
  }

  Outcome train(const SessionOptions& options) {
    Outcome outcome;
    total_ = {};
    Session session(options);
    if (plan_) session.plan_steps({.background = false});
    ImageTraining training(flags_, data_);
    Loader loader(data_.train, {.batch = flags_.batch, .shuffle = true, .seed = flags_.seed});
    loader.pin(session.device());
    for (int64_t i = 0; i < flags_.steps; ++i) {
      const HostBatch batch = loader.next().value();
      const StepStats& stats = session.step([&] {
        outcome.loss_bits.push_back(std::bit_cast<uint32_t>(*training.train(batch).loss));
      });
      last_ = stats;
      total_ += stats;
    }
    if (plan_) {
      planned_ = session.planner()->counts().planned_steps;
      const BoundSchedule* plan = session.planner()->current();
      planned_peak_ = !plan ? Bytes(0)
                      : plan->schedule.residents_apart
                          ? session.residency().storages().bytes_in_use() + plan->schedule.peak
                          : plan->schedule.peak;
    }
    outcome.checksum = training.checksum().value();
    peak_ = session.peak_reserved();
    return outcome;
  }

  ResNetFlags flags_;
  DataSource data_;
  Program program_;
  UnmanagedNeed need_;
  Outcome expected_;
  // Of the last run.
  Bytes peak_{0};
  StepStats total_;
  StepStats last_;

  bool plan_ = false;
  int64_t planned_ = 0;  // steps
  Bytes planned_peak_{0};
};

}  // namespace tidemark::testing
