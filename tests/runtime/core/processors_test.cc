#include "runtime/core/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "tests/support/fake_root.h"

namespace tidemark {
namespace {

// A tree of control groups, as the kernel would show it.
class CpuQuota : public testing::FakeRootTest {
 protected:
  void write_group(const std::string& path, const std::string& text) const {
    write("sys/fs/cgroup/" + path, text);
  }
  int of_8(const std::string& groups) const {
    write("proc/self/cgroup", groups);
    return within_cpu_quota(8, root_);
  }
};

TEST_F(CpuQuota, NoneAtAll) {
  EXPECT_EQ(within_cpu_quota(8, root_), 8);
  EXPECT_EQ(of_8(""), 8);
  EXPECT_EQ(of_8("0::/\n"), 8);
  write_group("cpu.max", "max 100000");
  write_group("app/cpu.max", "max 100000");
  EXPECT_EQ(of_8("0::/app\n"), 8);
  EXPECT_EQ(of_8("nonsense\n\n::\n0:"), 8);
}

TEST_F(CpuQuota, IsRoundedUpAndNeverNothing) {
  for (const auto& [quota, processors] : {std::pair("300000 100000", 3),
                                          {"250000 100000", 3},
                                          {"20000 100000", 1},
                                          {"0 100000", 8},
                                          {"1600000 100000", 8},
                                          {"300000 0", 8},
                                          {"12", 8},
                                          {"", 8}}) {
    write_group("app/cpu.max", quota);
    EXPECT_EQ(of_8("0::/app\n"), processors) << quota;
  }
  write_group("app/cpu.max", "300000 100000");
  EXPECT_EQ(within_cpu_quota(0, root_), 1);
}

TEST_F(CpuQuota, OfAGroupThatOursLiesIn) {
  write_group("slice/cpu.max", "200000 100000");
  write_group("slice/app/cpu.max", "400000 100000");
  EXPECT_EQ(of_8("0::/slice/app\n"), 2);
  EXPECT_EQ(of_8("0::/slice/app/gone\n"), 2);
}

TEST_F(CpuQuota, InAContainerThatSeesItsOwnGroupAlone) {
  write_group("cpu.max", "400000 100000");
  EXPECT_EQ(of_8("0::/docker/0123\n"), 4);
  EXPECT_EQ(of_8("0::/\n"), 4);
}

TEST_F(CpuQuota, VersionOne) {
  write_group("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write_group("cpu,cpuacct/cpu.cfs_period_us", "100000");
  write_group("cpu,cpuacct/app/cpu.cfs_quota_us", "150000");
  write_group("cpu,cpuacct/app/cpu.cfs_period_us", "50000");
  EXPECT_EQ(of_8("5:memory:/app\n4:cpu,cpuacct:/app\n"), 3);
  EXPECT_EQ(of_8("5:memory:/app\n4:cpu,cpuacct:/\n"), 8);
  EXPECT_EQ(of_8("4:cpuset:/app\n"), 8) << "another controller";
}

TEST_F(CpuQuota, BothVersionsAtOnce) {
  write_group("cpu/app/cpu.cfs_quota_us", "500000");
  write_group("cpu/app/cpu.cfs_period_us", "100000");
  EXPECT_EQ(of_8("1:cpu:/app\n0::/app\n"), 5);
  write_group("unified/app/cpu.max", "200000 100000");
  EXPECT_EQ(of_8("1:cpu:/app\n0::/app\n"), 2);
}

TEST(Processors, AreThoseOfTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(processors_allowed(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(processors_allowed(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace tidemark
