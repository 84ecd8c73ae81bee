#include "runtime/core/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/fake_root.h"

namespace tidemark {
namespace {

using namespace literals;
using Folders = std::vector<std::string>;

class ProcessLimits : public testing::FakeRootTest {
 protected:
  // Writes "PATH FOLDER"; the folder is below the root.
  Folders groups(const std::string& controller, const std::string& text) const {
    write("proc/self/cgroup", text);
    Folders found;
    for (const ControlGroup& group : control_groups(controller, root_)) {
      found.push_back(group.path + " " + group.folder.lexically_relative(root_).string());
    }
    return found;
  }
};

TEST_F(ProcessLimits, NumbersAreThoseAfterTheirKey) {
  write("a", "12 34");
  write("b", "VmSize:\t  100 kB\nVmData: 5 kB\n");
  write("c", "max");
  EXPECT_EQ(read_number(root_ / "a"), 12);
  EXPECT_EQ(read_number(root_ / "b", "VmData:"), 5);
  EXPECT_EQ(read_kib(root_ / "b", "VmSize:"), 100_KiB);
  EXPECT_EQ(read_number(root_ / "b", "100"), std::nullopt) << "a key starts its line";
  EXPECT_EQ(read_number(root_ / "b"), std::nullopt);
  EXPECT_EQ(read_number(root_ / "c"), std::nullopt);
  EXPECT_EQ(read_number(root_ / "none"), std::nullopt);
  EXPECT_EQ(read_number(root_), std::nullopt) << "a folder";
}

TEST_F(ProcessLimits, AGroupComesBeforeThoseAboveIt) {
  EXPECT_EQ(control_groups("memory", root_).size(), 0) << "no control groups at all";
  EXPECT_EQ(groups("memory", "0::/a/b\n"),
            Folders({"/a/b sys/fs/cgroup/a/b", "/a sys/fs/cgroup/a", "/ sys/fs/cgroup"}));
  EXPECT_EQ(groups("memory", "0::/\n"), Folders({"/ sys/fs/cgroup"}));
  EXPECT_EQ(groups("memory", "0::/../x\n"), Folders({"/x sys/fs/cgroup/x", "/ sys/fs/cgroup"}))
      << "of a namespace's outside";
  EXPECT_EQ(groups("memory", "nonsense\n\n::\n0:"), Folders({"/ sys/fs/cgroup"}))
      << "the third";
}

TEST_F(ProcessLimits, VersionOneHasAMountForEachController) {
  const std::string text = "3:cpu,cpuacct:/x\n2:memory:/y\n1:cpuset:/z\n";
  write("sys/fs/cgroup/cpu,cpuacct/tasks", "");
  EXPECT_EQ(groups("memory", text),
            Folders({"/y sys/fs/cgroup/memory/y", "/ sys/fs/cgroup/memory"}));
  EXPECT_EQ(groups("cpu", text),
            Folders({"/x sys/fs/cgroup/cpu,cpuacct/x", "/ sys/fs/cgroup/cpu,cpuacct"}));
  EXPECT_EQ(groups("cpuacct", text).size(), 2);
  EXPECT_EQ(groups("mem", text).size(), 0);
}

TEST_F(ProcessLimits, VersionTwoBesideVersionOne) {
  write("sys/fs/cgroup/unified/cgroup.procs", "");
  EXPECT_EQ(groups("memory", "1:memory:/\n0::/y\n"),
            Folders({"/ sys/fs/cgroup/memory", "/y sys/fs/cgroup/unified/y",
                     "/ sys/fs/cgroup/unified"}));
}

TEST_F(ProcessLimits, AreTheKernelsBesideWhatIsTaken) {
  write("proc/self/status", "VmSize:\t  102400 kB\nVmData:\t  51200 kB\n");
  ASSERT_EQ(process_limits(root_).size(), 0) << "unlimited";
  constexpr Bytes kLimit(int64_t{1} << 60);  // sanitizers reserve a lot
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    rlimit limit = before;
    limit.rlim_cur = kLimit.count();
    ASSERT_EQ(setrlimit(resource, &limit), 0);
    const std::optional<Bytes> set = resource_limit(resource);
    const std::vector<ProcessLimit> limits = process_limits(root_);
    ASSERT_EQ(setrlimit(resource, &before), 0);
    EXPECT_EQ(set, kLimit);
    ASSERT_EQ(limits.size(), 1);
    const bool space = resource == RLIMIT_AS;
    EXPECT_STREQ(limits[0].name, space ? "RLIMIT_AS" : "RLIMIT_DATA");
    EXPECT_STREQ(limits[0].flag, space ? "-v" : "-d");
    EXPECT_EQ(limits[0].limit, kLimit);
    EXPECT_EQ(limits[0].taken, space ? 100_MiB : 50_MiB);
  }
}

}  // namespace
}  // namespace tidemark
