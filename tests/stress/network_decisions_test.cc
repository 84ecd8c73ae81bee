// Every decision about memory in the training of a ResNet and of BERT on the simulator, as they
// are on file.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/executor/step_planner.h"
#include "runtime/session/call_listener.h"
#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"
#include "tests/stress/random_shapes.h"
#include "tests/support/decisions.h"

namespace tidemark::testing {
namespace {

void expect_same_decisions(GoldenDecisions& golden, const std::string& network,
                           const ShapedJob& job, const StepShape& shape) {
  SessionOptions options{.device = "sim:a100-80gb", .threads = 2};
  options.event_capacity = 1 << 21;
  const Program program = shaped_program(job, {shape});
  const UnmanagedNeed need = measure_unmanaged(options, program);
  for (const bool tier : {false, true}) {
    int64_t released = 0;
    options.host_limit = tier ? 2 * need.peak : Bytes(0);
    const MinimumBudget minimum = find_minimum_budget(options, program, need);
    // Without a tier most policies need more.
    const double share = tier ? 0.25 : 0.7;
    options.budget = align_up(minimum.budget + share_of(need.peak - minimum.budget, share));
    for (const char* policy : {"tide", "delta", "dtr", "msps"}) {
      for (const bool plans : {false, true}) {
        options.policy = policy;
        Decisions decisions;
        Session session(options);
        const CallListener listener(session, [&](const Recipe& call) {
          for (const Recipe::Input& input : call.inputs) decisions.add_offset(*input.storage);
        });
        if (plans) session.plan_steps(repeatable_plans(decisions));
        const std::unique_ptr<ShapedTraining> training = job.start();
        const int steps = options.policy == "tide" ? 14 : 6;
        try {
          for (int i = 0; i < steps; ++i) session.step([&] { training->step(shape); });
        } catch (const OutOfMemory& error) {
          decisions.add_out_of_memory(error);
        }
        decisions.add_events(session);
        released += decisions.count(EventKind::kEvict) + decisions.count(EventKind::kOffload);
        golden.expect(network + ", " + policy + (tier ? ", host" : ", no tier") +
                          (plans ? ", planned" : ""),
                      decisions);
      }
    }
    EXPECT_GT(released, 0);
  }
}

TEST(NetworkDecisions, AreAsOnFile) {
  GoldenDecisions golden(TIDEMARK_GOLDEN_DECISIONS);
  expect_same_decisions(golden, "ResNet", *small_resnet(), {2, 40});
  expect_same_decisions(golden, "BERT", *small_bert(), {2, 64});
}

}  // namespace
}  // namespace tidemark::testing
