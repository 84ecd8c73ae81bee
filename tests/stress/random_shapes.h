// Steps of random shapes, and what of it stays behind.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "examples/common/shaped_training.h"
#include "examples/common/soak.h"
#include "runtime/residency/residency.h"
#include "runtime/session/dry_run.h"

namespace tidemark::testing {

inline std::unique_ptr<ShapedJob> small_resnet() {
  ResNetFlags flags;
  flags.data = "synthetic";
  flags.image_size = 64;
  flags.stem = "imagenet";
  flags.classes = 10;
  flags.batch = 1;
  return make_shaped_job(flags);
}

inline std::unique_ptr<ShapedJob> small_bert() {
  BertFlags flags;
  flags.vocabulary_size = 500;
  flags.length = 64;
  flags.batch = 1;
  complete(flags);
  return make_shaped_job(flags);
}

struct RandomShapes {
  std::string device = "sim:v100-16gb";
  std::string policy = "tide";
  double share = 0.5;  // the budget, from what is needed at least to what is without one
  int64_t batch = 4;   // the largest
  int64_t steps = 250;
};

// Of memory that this process has allocated, the mean over a tenth of the steps.
class HeapWatch {
 public:
  void look() { in_use_.push_back(static_cast<double>(mallinfo2().uordblks)); }
  double first() const { return mean(in_use_.begin()); }
  double last() const { return mean(in_use_.end() - tenth()); }

 private:
  using Iterator = std::vector<double>::const_iterator;
  std::ptrdiff_t tenth() const {
    return std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(in_use_.size()) / 10);
  }
  double mean(Iterator begin) const {
    return std::accumulate(begin, begin + tenth(), 0.0) / static_cast<double>(tenth());
  }
  std::vector<double> in_use_;
};

// With room for the largest shape there is room for each, and nothing piles up.
inline void train_random_shapes(const ShapedJob& job, const RandomShapes& what) {
  SCOPED_TRACE(job.announcement() + " on " + what.device + ", " + what.policy);
  const Program largest = shaped_program(job, {{what.batch, job.sizes().back()}});
  SessionOptions options{.device = what.device, .threads = 2, .policy = what.policy};
  const UnmanagedNeed need = measure_unmanaged(options, largest);
  options.host_limit = 2 * need.peak;
  options.event_capacity = 1 << 10;  // fewer than the shortest run's kernels
  // Each shape is planned, and how well does not matter here.
  options.delta.plan_effort = 100'000;
  const MinimumBudget minimum = find_minimum_budget(options, largest, need);
  options.budget = align_up(minimum.budget + share_of(need.peak - minimum.budget, what.share));
  if (what.policy == "none") {
    // Shapes one after the other part the arena in ways in which the largest alone does not.
    options.budget = 2 * need.peak;
    options.host_limit = Bytes(0);
  }

  Session session(options);
  const std::unique_ptr<ShapedTraining> training = job.start();
  HeapWatch heap;
  const SoakReport report =
      soak(session, *training, {.batch = what.batch, .sizes = job.sizes(), .steps = what.steps},
           [&] {
             heap.look();
             return false;
           });
  EXPECT_EQ(report.steps, what.steps);
  EXPECT_EQ(report.out_of_memory, 0);
  EXPECT_LE(report.peak, *options.budget);
  EXPECT_LE(report.host_peak, options.host_limit);
  EXPECT_TRUE(report.flat());

  const Residency::Kept kept = session.residency().kept();
  EXPECT_NEAR(report.first.kept, report.last.kept, 1e-6);
  EXPECT_NEAR(report.last.kept, static_cast<double>(kept.storages), 1e-6);
  EXPECT_EQ(kept.recipes, 0);
  EXPECT_EQ(kept.host_copies, 0);
  EXPECT_EQ(session.events().size(), options.event_capacity) << "more events than are kept";
  if (what.steps >= 100) {
    // The first steps are by the policy; later, each shape's schedule has what lives on begin
    // in places of its own.
    const double more = what.policy == "tide" ? 1.5 : 1.2;
    EXPECT_LE(report.last.moves, more * report.first.moves + 1);
  }
  if (what.policy == "none") {
    // Nothing moves, so this is the allocator's doing.
    EXPECT_LT(report.last.spread, 1.25);
    EXPECT_LE(report.last.spread, 1.05 * report.first.spread);
    EXPECT_EQ(report.last.moves, 0);
  }
  if (session.device().has_data()) return;  // kernels are kept there, up to a limit
  // Tide keeps a schedule of each shape.
  EXPECT_LE(heap.last(), 1.1 * heap.first() + (5 << 20));
}

}  // namespace tidemark::testing
