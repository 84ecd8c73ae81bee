// Whatever the environment says about threads and processors, train_resnet ends with the bits
// of a plain run with the same number of threads.
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using testing::Json;

const std::string kTask = "--data synthetic --classes 10 --image-size 16 --batch 4 --steps 3 ";

class Environment : public testing::ProgramTest {
 protected:
  Environment() : ProgramTest(TIDEMARK_TRAIN_RESNET) {}

  // Losses and the checksum of the parameters.
  Json bits(const std::string& arguments) const {
    const testing::ProgramResult result = run(kTask + arguments);
    EXPECT_EQ(result.code, 0) << result.error;
    if (result.json.is_null()) return {};
    return {loss_bits(result.json), result.json.at("params_checksum")};
  }
  // With variables of the environment.
  Json bits(const std::map<std::string, std::string>& variables,
            const std::string& arguments) const {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    Json result = bits(arguments);
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    return result;
  }
};

// The first of the processors that this process may use.
cpu_set_t one_processor() {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  return one;
}

// A child runs on one processor while it lives.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    const cpu_set_t one = one_processor();
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// A child has half of a processor's time while it lives: a control group (version 1 or 2) with
// this process in it.
class HalfAProcessor {
 public:
  HalfAProcessor() {
    for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
      const fs::path group = fs::path(root) / ("tidemark_test_" + std::to_string(getpid()));
      std::error_code failed;
      if (!fs::create_directory(group, failed)) continue;
      made_ = group;
      home_ = fs::path(root) / "cgroup.procs";
      const bool limited = write(group / "cpu.max", "50000 100000") ||
                           write(group / "cpu.cfs_quota_us", "50000");
      if (limited && write(group / "cgroup.procs", "0")) return;
      leave();
    }
  }
  ~HalfAProcessor() { leave(); }
  HalfAProcessor(const HalfAProcessor&) = delete;
  HalfAProcessor& operator=(const HalfAProcessor&) = delete;

  bool holds() const { return !made_.empty(); }

 private:
  static bool write(const fs::path& path, const char* text) {
    if (!fs::exists(path)) return false;
    std::ofstream file(path);
    return (file << text << std::endl).good();
  }
  void leave() {
    if (made_.empty()) return;
    write(home_, "0");
    std::error_code ignored;
    fs::remove(made_, ignored);
    made_.clear();
  }

  fs::path made_, home_;
};

TEST_F(Environment, OpenMpVariablesChangeNothing) {
  const Json one = bits("--threads 1"), two = bits("--threads 2");
  ASSERT_NE(one, two) << "else these cases show nothing";
  using Variables = std::map<std::string, std::string>;
  for (const Variables& variables :
       std::vector<Variables>{{{"OMP_DYNAMIC", "true"}},
                              {{"OMP_MAX_ACTIVE_LEVELS", "0"}},
                              {{"OMP_NESTED", "true"}, {"OMP_MAX_ACTIVE_LEVELS", "3"}},
                              {{"OMP_NUM_THREADS", "1"}},
                              {{"OMP_NUM_THREADS", "7,2"}},
                              {{"OMP_PROC_BIND", "true"}, {"OMP_PLACES", "cores"}},
                              {{"OMP_SCHEDULE", "dynamic,1"}},
                              {{"OMP_THREAD_LIMIT", "2"}, {"OMP_DYNAMIC", "true"}}}) {
    SCOPED_TRACE(::testing::PrintToString(variables));
    EXPECT_EQ(bits(variables, "--threads 2"), two);
  }
  EXPECT_EQ(bits({{"OMP_DYNAMIC", "true"}}, "--threads 2 --budget 60%"), two);
  // There can be no second thread, and the run says so.
  EXPECT_EQ(bits({{"OMP_THREAD_LIMIT", "1"}}, "--threads 2"), one);
}

TEST_F(Environment, ProcessorsChangeNothing) {
  const Json one = bits("--threads 1"), two = bits("--threads 2");
  {
    const OneProcessor here;
    EXPECT_EQ(bits("--threads 2"), two);
    EXPECT_EQ(bits({{"OMP_DYNAMIC", "true"}}, "--threads 2"), two);
    EXPECT_EQ(bits(""), one) << "the default is as many threads as processors";
    EXPECT_EQ(bits({{"OMP_NUM_THREADS", "2"}}, ""), two) << "unless the user says otherwise";
  }
  const HalfAProcessor quota;
  if (!quota.holds()) GTEST_SKIP() << "this process may not make a control group";
  EXPECT_EQ(bits("--threads 2"), two);
  EXPECT_EQ(bits(""), one);
}

TEST_F(Environment, ProcessorsTakenAwayWhileItRunsChangeNothing) {
  const Json two = bits("--threads 2");
  const fs::path json = folder_ / "run.json";
  // The shell's first line is the process that becomes train_resnet.
  FILE* const output = popen(("echo $$; exec " TIDEMARK_TRAIN_RESNET " --threads 2 --json " +
                              json.string() + " " + kTask + " 2>&1")
                                 .c_str(),
                             "r");
  ASSERT_NE(output, nullptr);
  std::string process;
  int steps = 0;
  const cpu_set_t one = one_processor();
  for (char line[1024]; fgets(line, sizeof line, output);) {
    if (process.empty()) process = std::to_string(std::stoi(line));
    if (!std::string(line).starts_with("step ")) continue;
    if (++steps > 1) continue;
    for (const auto& thread : fs::directory_iterator("/proc/" + process + "/task")) {
      sched_setaffinity(std::stoi(thread.path().filename()), sizeof one, &one);
    }
  }
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(steps, 3);
  const Json result = Json::parse(read(json));
  EXPECT_EQ(Json({loss_bits(result), result.at("params_checksum")}), two);
}

}  // namespace
}  // namespace tidemark
