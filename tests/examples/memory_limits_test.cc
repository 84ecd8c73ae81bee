// From --memory, --budget and the tiers' limits to what each part gets, and what is free.
#include "examples/common/memory_limits.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <optional>
#include <string>

#include "runtime/core/process_memory.h"
#include "tests/support/fake_root.h"

namespace tidemark {
namespace {

using namespace literals;
using ::testing::HasSubstr;

// A program that wants an arena of 1000 MiB, loads with 10 and takes 200 itself.
MemoryFacts on_cpu() {
  return {.memory = {},
          .budget = {},
          .host_limit = {},
          .device_memory = {},
          .unmanaged_peak = 1000_MiB,
          .loading = 10_MiB,
          .program = 200_MiB};
}
// The same where a run that needs no management takes only 60 itself.
MemoryFacts lean_on_cpu(Bytes memory) {
  MemoryFacts facts = on_cpu();
  facts.untouched_program = 60_MiB;
  facts.memory = memory;
  return facts;
}
MemoryFacts on_gpu(Bytes memory) {
  MemoryFacts facts = on_cpu();
  facts.device_memory = memory;
  return facts;
}

std::string refusal(const MemoryFacts& facts, Bytes least) {
  try {
    check_limits(facts, derive_limits(facts), least);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What derive_limits() gives, to be compared at once.
struct Figures {
  Bytes arena{0};
  bool is_limited = false;
  Bytes promised{0};
  Bytes host{0};
  bool operator==(const Figures&) const = default;
};
void PrintTo(const Figures& figures, std::ostream* out) {
  *out << "arena " << figures.arena.count() << (figures.is_limited ? " (limited)" : "")
       << ", promised " << figures.promised.count() << ", host " << figures.host.count();
}
Figures figures(const MemoryFacts& facts) {
  const MemoryLimits limits = derive_limits(facts);
  return {limits.arena, limits.is_limited, limits.promised, limits.host};
}

TEST(MemoryLimits, OnACpuThereIsNoHostTierUnlessAskedFor) {
  MemoryFacts facts = on_cpu();
  EXPECT_EQ(figures(facts), (Figures{.arena = 1000_MiB, .promised = 1210_MiB, .host = 0_B}));
  facts.host_limit = 64_MiB;
  EXPECT_EQ(figures(facts), (Figures{.arena = 1000_MiB, .promised = 1274_MiB, .host = 64_MiB}));
}

TEST(MemoryLimits, ABudgetIsTheArenas) {
  MemoryFacts facts = on_cpu();
  facts.budget = 400_MiB;
  EXPECT_EQ(figures(facts),
            (Figures{.arena = 400_MiB, .is_limited = true, .promised = 610_MiB}));
  EXPECT_EQ(refusal(facts, 400_MiB), "");
  EXPECT_THAT(refusal(facts, 400_MiB + 512_B), HasSubstr("a budget of 419430400 bytes"));
}

TEST(MemoryLimits, ABudgetAboveThePeakIsNotTaken) {
  MemoryFacts facts = on_cpu();
  facts.budget = 4_GiB;
  EXPECT_EQ(derive_limits(facts).arena, 4_GiB);
  EXPECT_EQ(derive_limits(facts).promised, 1210_MiB);
}

TEST(MemoryLimits, OnACpuTheArenaIsWhatMemoryLeaves) {
  MemoryFacts facts = on_cpu();
  facts.memory = 700_MiB;
  facts.host_limit = 90_MiB;
  EXPECT_EQ(
      figures(facts),
      (Figures{.arena = 400_MiB, .is_limited = true, .promised = 700_MiB, .host = 90_MiB}));
  EXPECT_EQ(refusal(facts, 400_MiB), "");
  EXPECT_THAT(refusal(facts, 401_MiB), HasSubstr("at least 735051776 bytes (701.0 MiB)"));
}

TEST(MemoryLimits, WhatFitsInMemoryRunsUntouched) {
  MemoryFacts facts = on_cpu();
  facts.memory = 1210_MiB;
  EXPECT_EQ(figures(facts), (Figures{.arena = 1000_MiB, .promised = 1210_MiB}));
  facts.memory = 1210_MiB - 1_B;
  EXPECT_EQ(
      figures(facts),
      (Figures{.arena = 1000_MiB - 512_B, .is_limited = true, .promised = 1210_MiB - 512_B}));
  facts.memory = 64_GiB;
  EXPECT_EQ(derive_limits(facts).promised, 1210_MiB);
}

TEST(MemoryLimits, AnUntouchedRunNeedsLessOfTheProgram) {
  MemoryFacts facts = lean_on_cpu(1070_MiB);
  EXPECT_EQ(figures(facts), (Figures{.arena = 1000_MiB, .promised = 1070_MiB}));
  EXPECT_EQ(refusal(facts, 990_MiB), "") << "managed it would not fit, but nothing has to go";
  facts.memory = 1070_MiB - 1_B;
  EXPECT_EQ(
      figures(facts),
      (Figures{.arena = 860_MiB - 512_B, .is_limited = true, .promised = 1070_MiB - 512_B}));
  EXPECT_EQ(refusal(facts, 300_MiB), "");
  EXPECT_THAT(refusal(facts, 990_MiB), HasSubstr("at least 1121976320 bytes (1.04 GiB)"));
  facts.memory = 5_GiB;
  EXPECT_EQ(derive_limits(facts).promised, 1070_MiB);
}

TEST(MemoryLimits, AnUntouchedRunIsForTheArenaInRamAlone) {
  MemoryFacts facts = lean_on_cpu(700_MiB);
  facts.budget = 400_MiB;
  EXPECT_EQ(derive_limits(facts).promised, 610_MiB);
  MemoryFacts gpu = on_gpu(2000_MiB);
  const Bytes promised = derive_limits(gpu).promised;
  gpu.untouched_program = 60_MiB;
  EXPECT_EQ(derive_limits(gpu).promised, promised);
}

TEST(MemoryLimits, TooLittleForTheProgramAloneIsRefusedWithWhatWouldDo) {
  MemoryFacts facts = on_cpu();
  facts.memory = 50_MiB;
  EXPECT_EQ(derive_limits(facts).arena, 0_B);
  EXPECT_THAT(refusal(facts, 30_MiB),
              HasSubstr("--memory: 50.0 MiB is too little: training needs at least "
                        "251658240 bytes (240.0 MiB)"));
}

TEST(MemoryLimits, ABudgetHasToFitInMemory) {
  MemoryFacts facts = on_cpu();
  facts.memory = 610_MiB;
  facts.budget = 400_MiB;
  EXPECT_EQ(derive_limits(facts).arena, 400_MiB);
  EXPECT_EQ(refusal(facts, 100_MiB), "");
  facts.budget = 401_MiB;
  EXPECT_THAT(refusal(facts, 100_MiB), HasSubstr("at least 640679936 bytes (611.0 MiB)"));
  EXPECT_THAT(refusal(facts, 100_MiB), HasSubstr("401.0 MiB of --budget"));
}

TEST(MemoryLimits, OnAGpuMemoryBoundsTheHostSide) {
  MemoryFacts facts = on_gpu(800_MiB);
  EXPECT_EQ(
      figures(facts),
      (Figures{.arena = 800_MiB, .is_limited = true, .promised = 2210_MiB, .host = 2000_MiB}));
  facts.memory = 510_MiB;
  EXPECT_EQ(
      figures(facts),
      (Figures{.arena = 800_MiB, .is_limited = true, .promised = 510_MiB, .host = 300_MiB}));
  EXPECT_EQ(refusal(facts, 800_MiB), "");
  facts.host_limit = 301_MiB;
  EXPECT_THAT(refusal(facts, 800_MiB), HasSubstr("at least 535822336 bytes (511.0 MiB)"));
  facts.host_limit.reset();
  facts.memory = 100_MiB;
  EXPECT_EQ(derive_limits(facts).host, 0_B);
  EXPECT_THAT(refusal(facts, 800_MiB), HasSubstr("at least 220200960 bytes (210.0 MiB)"));
}

TEST(MemoryLimits, AGpuThatIsLargeEnoughIsNoLimit) {
  const MemoryLimits limits = derive_limits(on_gpu(1000_MiB));
  EXPECT_FALSE(limits.is_limited);
  EXPECT_EQ(limits.arena, 1000_MiB);
  EXPECT_THAT(refusal(on_gpu(800_MiB), 801_MiB), HasSubstr("a budget of 838860800 bytes"));
}

TEST(MemoryLimits, ADiskKeepsSomeSpaceForOthers) {
  EXPECT_EQ(spare_disk_space(10_GiB, 100_GiB), 10_GiB);
  EXPECT_EQ(spare_disk_space(99_GiB, 100_GiB), 95_GiB);
  EXPECT_EQ(spare_disk_space(1_GiB, 0_B), 0_B);
}

// What is free, from files as the kernel writes them.

class FreeMemoryTest : public testing::FakeRootTest {
 protected:
  FreeMemoryTest() {
    write("proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB");
  }

  void write_group(const std::string& folder, const std::string& limit, Bytes used,
                   Bytes inactive) const {
    const std::string at = "sys/fs/cgroup" + folder;
    write(at + "/memory.max", limit + "\n");
    write(at + "/memory.high", "max\n");
    write(at + "/memory.current", std::to_string(used.count()) + "\n");
    write(at + "/memory.stat",
          "anon 5\ninactive_file " + std::to_string(inactive.count()) + "\nactive_file 7\n");
  }
  std::optional<AutoMemory> found(Bytes resident = 100_MiB) const {
    return auto_memory(resident, memory_bounds(root_));
  }
  void expect_found(const std::string& bound, Bytes memory) const {
    const std::optional<AutoMemory> by = found();
    ASSERT_TRUE(by);
    EXPECT_EQ(by->bound, bound);
    EXPECT_EQ(by->memory, memory);
  }
};

TEST_F(FreeMemoryTest, IsWhatTheMachineHasWhereNothingElseBoundsIt) {
  const auto memory = found();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bound, "MemAvailable");
  EXPECT_EQ(memory->margin, 256_MiB);
  EXPECT_EQ(memory->memory, 100_MiB + 4_GiB - 256_MiB);
}

TEST_F(FreeMemoryTest, AGroupOfVersion2BoundsItAndItsUnusedFilePagesCountAsFree) {
  write("proc/self/cgroup", "0::/work/run.scope\n");
  write_group("/work/run.scope", "2147483648", 1_GiB, 512_MiB);
  expect_found("the control group /work/run.scope", 100_MiB + 1536_MiB - 96_MiB);
}

TEST_F(FreeMemoryTest, TheGroupAboveMayBeTighter) {
  write("proc/self/cgroup", "0::/work/run.scope\n");
  write_group("/work/run.scope", "2147483648", 100_MiB, 0_B);
  write_group("/work", "1073741824", 512_MiB, 0_B);
  expect_found("the control group /work", 100_MiB + 512_MiB - 64_MiB);
}

TEST_F(FreeMemoryTest, InAContainerTheGroupIsAtTheRoot) {
  write("proc/self/cgroup", "0::/docker/0123\n");
  write_group("", "1073741824", 512_MiB, 0_B);
  expect_found("the control group /", 100_MiB + 512_MiB - 64_MiB);
}

TEST_F(FreeMemoryTest, ALowerHighMarkIsTheBound) {
  write("proc/self/cgroup", "0::/a\n");
  write_group("/a", "max", 512_MiB, 0_B);
  EXPECT_EQ(found()->bound, "MemAvailable");
  write("sys/fs/cgroup/a/memory.high", "1073741824\n");
  EXPECT_EQ(found()->memory, 100_MiB + 512_MiB - 64_MiB);
}

TEST_F(FreeMemoryTest, AGroupOfVersion1BoundsIt) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/jobs/7\n0::/\n");
  const std::string at = "sys/fs/cgroup/memory/jobs/7/";
  write(at + "memory.limit_in_bytes", "1073741824\n");
  write(at + "memory.usage_in_bytes", "805306368\n");
  write(at + "memory.stat", "inactive_file 1\ntotal_inactive_file 268435456\n");
  EXPECT_EQ(found()->bound, "the control group /jobs/7");
  EXPECT_EQ(found()->memory, 100_MiB + 512_MiB - 64_MiB);
  write(at + "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(found()->bound, "MemAvailable");
}

TEST_F(FreeMemoryTest, TheCeilingIsTheMachinesOrAGroupsWithSwapSpace) {
  EXPECT_EQ(memory_ceiling(root_)->what, "this machine");
  EXPECT_EQ(memory_ceiling(root_)->memory, 8_GiB);
  write("proc/meminfo", "MemTotal:  8388608 kB\nSwapTotal:  1024 kB");
  write("proc/self/cgroup", "0::/a/b\n");
  write_group("/a/b", "2147483648", 2_GiB, 0_B);
  write_group("/a", "1073741824", 512_MiB, 0_B);
  write("sys/fs/cgroup/a/memory.high", "1048576");
  EXPECT_EQ(memory_ceiling(root_)->what, "the control group /a");
  EXPECT_EQ(memory_ceiling(root_)->memory, 1_GiB + 1_MiB) << "whoever else is in it";
  write("proc/self/cgroup", "4:memory:/c\n");
  write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory_ceiling(root_)->what, "this machine") << "no limit in version 1";
  write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576");
  EXPECT_EQ(memory_ceiling(root_)->memory, 2_MiB);
  EXPECT_FALSE(memory_ceiling(root_ / "nothing"));
}

TEST_F(FreeMemoryTest, LessThanNothingIsNothing) {
  write("proc/self/cgroup", "0::/a\n");
  write_group("/a", "1048576", 512_MiB, 0_B);
  EXPECT_EQ(found(10_MiB)->memory, 0_B);
  EXPECT_FALSE(auto_memory(1_GiB, {}));
}

TEST_F(FreeMemoryTest, LimitsOfTheProcessBoundIt) {
  write("proc/self/status", "VmSize:\t  102400 kB\nVmData:\t  51200 kB\n");
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    rlimit limit = before;
    limit.rlim_cur = rlim_t{1} << 31;
    ASSERT_EQ(setrlimit(resource, &limit), 0);
    const auto memory = found();
    ASSERT_EQ(setrlimit(resource, &before), 0);
    const Bytes used = resource == RLIMIT_AS ? 100_MiB : 50_MiB;
    const Bytes left = 2_GiB - used;
    EXPECT_EQ(memory->bound, resource == RLIMIT_AS ? "RLIMIT_AS" : "RLIMIT_DATA");
    EXPECT_EQ(memory->memory, 100_MiB + left - Bytes(left.count() / 16));
  }
}

}  // namespace
}  // namespace tidemark
