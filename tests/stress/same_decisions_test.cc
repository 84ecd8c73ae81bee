// A real device and a simulated one do the same, in the same order, when they are given the
// same costs.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "examples/common/shaped_training.h"
#include "runtime/cost/cost_table.h"
#include "runtime/session/dry_run.h"
#include "tests/stress/random_shapes.h"

namespace tidemark::testing {
namespace {

// Tide tries a way of planning per step; all of them are to be the same.
int steps_of(const std::string& policy) { return policy == "tide" ? 16 : 4; }

SessionOptions options_for(const ShapedJob& job, const StepShape& shape) {
  SessionOptions options{.threads = 2};
  const Program program = shaped_program(job, {shape});
  const UnmanagedNeed need = measure_unmanaged(options, program);
  options.host_limit = 2 * need.peak;
  const MinimumBudget minimum = find_minimum_budget(options, program, need);
  options.budget = align_up(minimum.budget + share_of(need.peak - minimum.budget, 0.25));
  options.event_capacity = 1 << 20;
  return options;
}

// What was done, to what, when on the issue clock, and why.
std::vector<std::string> actions(const ShapedJob& job, const StepShape& shape,
                                 const SessionOptions& options,
                                 std::shared_ptr<const CostTable>* costs = nullptr) {
  Session session(options);
  const std::unique_ptr<ShapedTraining> training = job.start();
  for (int i = 0; i < steps_of(options.policy); ++i)
    session.step([&] { training->step(shape); });
  std::vector<std::string> found;
  session.events().for_each([&](const EventRecord& event) {
    found.push_back(std::string(to_string(event.kind)) + ' ' +
                    std::string(to_string(event.reason)) + ' ' + event.name + ' ' +
                    std::to_string(event.storage) + ' ' + std::to_string(event.bytes.count()) +
                    " at " + std::to_string(event.issued.count()) + ", in use " +
                    std::to_string(event.used.count()));
  });
  if (costs) *costs = std::make_shared<const CostTable>(session.costs().table());
  return found;
}

void expect_same_decisions(const ShapedJob& job, const StepShape& shape,
                           const std::vector<std::string>& policies) {
  SessionOptions options = options_for(job, shape);
  std::shared_ptr<const CostTable> measured;
  options.policy = "lru";
  actions(job, shape, options, &measured);
  ASSERT_GT(measured->operators.size(), 20u);
  size_t timed = 0;
  for (const auto& [signature, op] : measured->operators) timed += op.measured;
  EXPECT_GT(timed, measured->operators.size() / 2);

  // By way of the file.
  options.costs = std::make_shared<const CostTable>(parse_costs("costs", to_json(*measured)));
  EXPECT_EQ(*options.costs, *measured);
  for (const std::string& policy : policies) {
    SCOPED_TRACE(policy);
    options.policy = policy;
    options.device = "cpu";
    const std::vector<std::string> real = actions(job, shape, options);
    options.device = "sim:host";
    const std::vector<std::string> simulated = actions(job, shape, options);
    ASSERT_GT(real.size(), 100u);
    size_t released = 0;
    for (size_t i = 0; i < std::min(real.size(), simulated.size()); ++i) {
      ASSERT_EQ(real[i], simulated[i]) << "action " << i;
      released += real[i].starts_with("evict") || real[i].starts_with("offload");
    }
    EXPECT_EQ(real.size(), simulated.size());
    EXPECT_GT(released, 0u);
  }
}

TEST(SameDecisionsTest, OfAResNet) {
  expect_same_decisions(*small_resnet(), {2, 40}, {"tide", "delta", "dtr"});
}

TEST(SameDecisionsTest, OfBert) {
  expect_same_decisions(*small_bert(), {2, 64}, {"tide", "delta", "dtr", "msps"});
}

}  // namespace
}  // namespace tidemark::testing
