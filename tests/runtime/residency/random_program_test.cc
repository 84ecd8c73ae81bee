// The same random program of toy operators under many budgets, tiers and policies: every result
// must equal the unmanaged run's to the bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"
#include "tests/support/faulty_device.h"
#include "tests/support/random_program.h"
#include "tests/support/toy_program.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

// Set TIDEMARK_TEST_SEEDS=1000 for more, to look for rare failures.
uint32_t seeds() {
  const char* text = std::getenv("TIDEMARK_TEST_SEEDS");
  return text ? static_cast<uint32_t>(std::atoi(text)) : 3;
}

struct ProgramSetting {
  std::string name;
  Bytes host{0};
  Bytes disk{0};
  std::string policy = "delta";
  DeltaOptions delta{.filter = "base", .early_start = 0};
  ResidencyOptions residency{};
  bool slow_copies = false;
  bool alike = false;  // identical steps, for policies that learn from the last one
};

void PrintTo(const ProgramSetting& setting, std::ostream* out) { *out << setting.name; }

SessionOptions options_of(const ProgramSetting& setting, Bytes budget) {
  SessionOptions options{.threads = 1,
                         .budget = budget,
                         .policy = setting.policy,
                         .delta = setting.delta,
                         .residency = setting.residency,
                         .host_limit = setting.host,
                         .disk_limit = setting.disk};
  options.residency.poison = !setting.slow_copies;  // poisoning makes compute wait for copies
  return options;
}

class RandomProgram : public ::testing::TestWithParam<ProgramSetting> {};

TEST_P(RandomProgram, EqualsTheUnmanagedRunToTheBit) {
  const ProgramSetting& setting = GetParam();
  const Bytes smallest = kRandomProgramSmallest;
  const int steps = setting.alike ? 8 : 3, calls = setting.alike ? 30 : 60;
  int64_t released = 0;
  for (uint32_t seed = 1; seed <= seeds(); ++seed) {
    const std::vector<uint64_t> expected =
        unmanaged_random_program(seed, steps, calls, setting.alike);
    for (const Bytes budget : {smallest, smallest * 2, 64_MiB}) {
      auto device = std::make_unique<FaultyDevice>(make_cpu_device({.threads = 1}));
      if (setting.slow_copies) device->delay_copies(seed, Nanos(100'000));
      Session session(options_of(setting, budget), std::move(device));
      ASSERT_EQ(run_random_program(session, seed, steps, calls, setting.alike), expected)
          << setting.name << ", seed " << seed << ", budget " << budget.count();
      EXPECT_LE(session.peak_reserved(), budget);
      released += releases(session);
    }
  }
  EXPECT_GT(released, 0) << "the budgets should have been tight";
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RandomProgram,
    ::testing::Values(
        ProgramSetting{.name = "base", .host = 64_MiB},
        ProgramSetting{.name = "lru_early",
                       .host = 64_MiB,
                       .delta = {.filter = "lru", .early_start = 0.75}},
        ProgramSetting{.name = "greedy",
                       .host = 64_MiB,
                       .delta = {.filter = "greedy", .early_start = 0.5}},
        ProgramSetting{
            .name = "serial_copies", .host = 64_MiB, .residency = {.overlap = false}},
        ProgramSetting{.name = "offload_only", .host = 64_MiB, .residency = {.evict = false}},
        ProgramSetting{.name = "austere", .host = 64_MiB, .policy = "austere"},
        ProgramSetting{.name = "disk", .disk = 64_MiB, .delta = {.early_start = 0.75}},
        ProgramSetting{.name = "small_host_then_disk", .host = 24_KiB, .disk = 64_MiB},
        ProgramSetting{.name = "always_recompute",
                       .host = 64_MiB,
                       .delta = {.early_start = 0, .repairs = "no-reload"}},
        ProgramSetting{.name = "assumption2",
                       .host = 64_MiB,
                       .delta = {.early_start = 0, .repairs = "no-backward"}},
        ProgramSetting{.name = "delta_paper",
                       .host = 64_MiB,
                       .policy = "delta-paper",
                       .delta = {.early_start = 0.75}},
        ProgramSetting{.name = "delta_paper_lru_slow_copies",
                       .host = 64_KiB,
                       .disk = 64_MiB,
                       .policy = "delta-paper",
                       .delta = {.filter = "lru", .early_start = 0.5},
                       .slow_copies = true},
        ProgramSetting{.name = "delta_without_prices",
                       .host = 64_MiB,
                       .delta = {.early_start = 0.75, .repairs = "no-prices"}},
        ProgramSetting{.name = "no_sliding", .host = 64_MiB, .residency = {.compact = false}},
        ProgramSetting{.name = "slow_copies", .host = 64_MiB, .slow_copies = true},
        ProgramSetting{.name = "slow_copies_early",
                       .host = 64_KiB,
                       .disk = 64_MiB,
                       .delta = {.early_start = 0.75},
                       .slow_copies = true},
        ProgramSetting{.name = "slow_copies_offload_only",
                       .host = 64_MiB,
                       .delta = {.early_start = 0.5},
                       .residency = {.evict = false},
                       .slow_copies = true},
        ProgramSetting{.name = "tide", .host = 64_MiB, .policy = "tide"},
        ProgramSetting{.name = "tide_alike", .host = 64_MiB, .policy = "tide", .alike = true},
        ProgramSetting{.name = "tide_alike_small_host_then_disk",
                       .host = 24_KiB,
                       .disk = 64_MiB,
                       .policy = "tide",
                       .alike = true},
        ProgramSetting{.name = "tide_alike_slow_copies",
                       .host = 64_MiB,
                       .policy = "tide",
                       .slow_copies = true,
                       .alike = true},
        ProgramSetting{.name = "tide_alike_serial_copies",
                       .host = 64_MiB,
                       .policy = "tide",
                       .residency = {.overlap = false},
                       .alike = true},
        ProgramSetting{.name = "dtr", .host = 64_MiB, .policy = "dtr"},
        ProgramSetting{.name = "lru", .host = 64_MiB, .policy = "lru"},
        ProgramSetting{.name = "by_size", .host = 64_MiB, .policy = "greedy"},
        ProgramSetting{.name = "msps", .host = 64_MiB, .policy = "msps"},
        ProgramSetting{.name = "msps_alike_slow_copies",
                       .host = 64_MiB,
                       .policy = "msps",
                       .slow_copies = true,
                       .alike = true},
        ProgramSetting{
            .name = "offload_only_by_name", .host = 64_MiB, .policy = "offload-only"},
        ProgramSetting{
            .name = "checkpoint_alike", .host = 64_MiB, .policy = "checkpoint", .alike = true},
        ProgramSetting{.name = "random", .host = 64_MiB, .policy = "random"}),
    [](const auto& tested) { return tested.param.name; });

// Without a tier, storages that cannot be recomputed have to stay; if that is too much, the
// error is typed. Each budget is tried.
TEST(RandomProgramEvictOnly, EqualsTheUnmanagedRunToTheBit) {
  std::map<std::string_view, int64_t> evicted;
  for (uint32_t seed = 1; seed <= seeds(); ++seed) {
    const std::vector<uint64_t> expected =
        unmanaged_random_program(seed, 6, 30, /*alike=*/true);
    SessionOptions options;
    options.threads = 1;
    options.residency.poison = true;
    for (const PolicyInfo& policy : policies()) {
      options.policy = policy.name;
      for (const Bytes budget : {56_KiB, 64_KiB, 80_KiB, 96_KiB}) {
        options.budget = budget;
        Session session(options);
        try {
          ASSERT_EQ(run_random_program(session, seed, 6, 30, /*alike=*/true), expected)
              << policy.name << ", seed " << seed;
        } catch (const OutOfMemory&) {
          continue;
        }
        session.events().for_each([&](const EventRecord& event) {
          evicted[policy.name] += event.kind == EventKind::kEvict;
        });
      }
    }
  }
  for (const PolicyInfo& policy : policies()) {
    EXPECT_EQ(evicted[policy.name] > 0, policy.evicts) << policy.name;
  }
}

}  // namespace
}  // namespace tidemark::testing
