// Every decision about memory in random programs, under each policy, with and without tiers and
// plans, must equal the recorded one: a refactoring of the runtime must not change any.
#include <gtest/gtest.h>

#include <string>

#include "runtime/executor/step_planner.h"
#include "runtime/policy/registry.h"
#include "runtime/session/session.h"
#include "tests/support/decisions.h"
#include "tests/support/random_program.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

constexpr int kGoldenCalls = 40;

struct Tiers {
  const char* name;
  Bytes host, disk;
};

struct Room {
  const char* name;
  double share;  // of the smallest budget
};

TEST(GoldenDecisions, OfRandomPrograms) {
  GoldenDecisions golden(TIDEMARK_GOLDEN_DECISIONS);
  std::map<std::string, int64_t> released, planned;
  for (const PolicyInfo& policy : policies()) {
    for (const Tiers& tiers :
         {Tiers{"no tier", Bytes(0), Bytes(0)}, Tiers{"host", 64_MiB, Bytes(0)},
          Tiers{"24 KiB host and disk", 24_KiB, 64_MiB}}) {
      for (const Room& room : {Room{"smallest", 1}, Room{"ample", 1.4}}) {
        for (const bool plans : {false, true}) {
          Decisions decisions;
          for (uint32_t seed = 1; seed <= 6; ++seed) {
            SessionOptions options;
            options.device = "sim:a100-80gb";
            options.threads = 1;
            options.policy = policy.name;
            // Without a tier, storages that cannot be recomputed stay, which takes more memory.
            const double more = tiers.host == Bytes(0) ? 1.5 : 1;
            options.budget = align_up(share_of(kRandomProgramSmallest, more * room.share));
            options.host_limit = tiers.host;
            options.disk_limit = tiers.disk;
            options.event_capacity = 1 << 20;
            Session session(options);
            if (plans) session.plan_steps(repeatable_plans(decisions));
            try {
              run_random_program(session, seed, policy.name == "tide" ? 20 : 8, kGoldenCalls,
                                 /*alike=*/true, [&](int, int call, std::vector<Handle>& live) {
                                   if (call >= kGoldenCalls) return true;
                                   for (const Handle& handle : live)
                                     decisions.add_offset(*handle);
                                   return true;
                                 });
            } catch (const OutOfMemory& error) {
              decisions.add_out_of_memory(error);
            }
            decisions.add_events(session);
            if (plans)
              planned[std::string(policy.name)] += session.planner()->counts().planned_steps;
          }
          released[std::string(policy.name)] += decisions.count(EventKind::kEvict) +
                                                decisions.count(EventKind::kOffload) +
                                                decisions.count(EventKind::kDropClean);
          golden.expect(std::string(policy.name) + ", " + tiers.name + ", " + room.name +
                            (plans ? ", planned" : ""),
                        decisions);
        }
      }
    }
  }
  for (const PolicyInfo& policy : policies()) {
    EXPECT_GT(released[std::string(policy.name)], 0) << policy.name;
    EXPECT_GT(planned[std::string(policy.name)], 0) << policy.name;
  }
}

}  // namespace
}  // namespace tidemark::testing
