// What a shell can do to a program: streams that cannot be written, signals, limits, and
// mistakes on the command line. Every ending is an exit code and a message, never an abort.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Two steps that compute nothing, for tests of what is around them.
constexpr const char* kTraining =
    " --device sim:a100-80gb --data synthetic --image-size 8 --batch 4 --steps 2 ";

struct Ended {
  int code = -1;  // of the shell's last command; 128 + N if signal N ended it
  std::string out, error;
};

class ProgramTest : public testing::ProgramTest {
 protected:
  ProgramTest() : testing::ProgramTest("") {}

  // A line for the shell, in the empty folder.
  Ended shell(const std::string& line) const {
    const fs::path out = folder_ / "shell_out", error = folder_ / "shell_error";
    const std::string whole = "cd " + folder_.string() + " && ( " + line + " ) > " +
                              out.string() + " 2> " + error.string();
    const int status = std::system(whole.c_str());
    Ended ended{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out),
                read(error)};
    fs::remove(out);
    fs::remove(error);
    return ended;
  }
  Ended train(const std::string& rest) const {
    return shell(TIDEMARK_TRAIN_RESNET + (kTraining + rest));
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

TEST_F(ProgramTest, StandardErrorThatCannotBeWrittenDoesNotEndTraining) {
  for (const char* lost : {"2> /dev/full", "2>&-"}) {
    const Ended ended = train(lost);
    EXPECT_EQ(ended.code, 0) << lost;
    EXPECT_THAT(ended.out, HasSubstr("2 steps, ")) << lost;
    // A log line has no other place to go to.
    EXPECT_EQ(
        shell("TIDEMARK_LOG=trace " + (TIDEMARK_TRAIN_RESNET + (kTraining + std::string(lost))))
            .code,
        0)
        << lost;
  }
}

TEST_F(ProgramTest, LosingStandardOutputIsAnErrorAfterTraining) {
  for (const char* lost : {"> /dev/full", ">&-"}) {
    const Ended ended = train(std::string(lost) + " --json run.json");
    EXPECT_EQ(ended.code, 1) << lost;
    EXPECT_THAT(ended.error, HasSubstr("train_resnet: standard output could not be written: "));
    EXPECT_EQ(testing::Json::parse(read(folder_ / "run.json")).at("steps").size(), 2u) << lost;
  }
  EXPECT_EQ(train("> /dev/full 2> /dev/full").code, 1);
  EXPECT_EQ(train("<&- >&- 2>&-").code, 1);
}

TEST_F(ProgramTest, AReaderThatGoesDoesNotEndTraining) {
  const Ended ended = shell("{ " + (TIDEMARK_TRAIN_RESNET + std::string(kTraining)) +
                            "--json run.json; echo $? > code; } | (exec 0<&-)");
  EXPECT_EQ(read(folder_ / "code"), "1\n");
  EXPECT_THAT(ended.error, HasSubstr("standard output could not be written: Broken pipe"));
  EXPECT_EQ(testing::Json::parse(read(folder_ / "run.json")).at("steps").size(), 2u);
}

// Descriptors that the shell has closed are the first that open() gives out: a file of ours
// must not become standard output.
TEST_F(ProgramTest, ClosedStreamsDoNotBecomeFiles) {
  const std::string bert =
      TIDEMARK_TRAIN_BERT + std::string(" --steps 1 --batch 1 --seq-length 8 --threads 2 ");
  const Ended good = shell(bert + "--save good.safetensors --checkpoint good.state");
  ASSERT_EQ(good.code, 0) << good.error;
  const Ended closed =
      shell(bert + "--save bad.safetensors --checkpoint bad.state <&- >&- 2>&-");
  EXPECT_EQ(closed.code, 1);
  EXPECT_TRUE(read(folder_ / "good.safetensors") == read(folder_ / "bad.safetensors"));
  EXPECT_EQ(read(folder_ / "good.state").size(), read(folder_ / "bad.state").size());
}

TEST_F(ProgramTest, OtherProgramsSayThatTheirOutputIsLost) {
  const std::string layout = TIDEMARK_PLAN_GRAPH + std::string(" --layout layout.csv ");
  std::ofstream(folder_ / "layout.csv") << "id,lower,upper,size\na,0,2,4\nb,1,3,4\n";
  EXPECT_EQ(shell(layout).code, 0);
  EXPECT_THAT(shell(layout).out, HasSubstr("8 B")) << "sizes have units";
  EXPECT_EQ(shell(layout + "--capacity 2").code, 3);
  EXPECT_THAT(shell(layout + "--capacity 2").error,
              HasSubstr("does not fit in 2 B in any layout"));
  const Ended full = shell(layout + "> /dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.error,
              HasSubstr("plan_graph: standard output could not be written: No space"));
  EXPECT_EQ(shell(layout + "--nothing 2> /dev/full").code, 2);
  EXPECT_EQ(shell(TIDEMARK_TRAIN_RESNET + std::string(" --help > /dev/full")).code, 1);
}

// A limit of the shell's ulimit, in KiB, before one step of real training.
constexpr const char* kStep =
    " --image-size 8 --batch 360 --steps 1 --threads 2 --host-limit 0 ";

TEST_F(ProgramTest, LimitsOfTheProcessAreExitCodeThreeWithTheNumbers) {
  struct Case {
    const char *limit, *says;
  };
  for (const Case& c : {Case{"-v 250000", "(ulimit -v)"}, Case{"-v 350000", "(ulimit -v)"},
                        Case{"-d 1000", "(ulimit -d)"}, Case{"-d 10000", "(ulimit -d)"},
                        Case{"-d 60000", "(ulimit -d)"}, Case{"-d 250000", "(ulimit -d)"}}) {
    const Ended ended =
        shell("ulimit " + (c.limit + (" && " TIDEMARK_TRAIN_RESNET + std::string(kStep))));
    EXPECT_EQ(ended.code, 3) << c.limit << "\n" << ended.error;
    EXPECT_THAT(ended.error, HasSubstr("is limited to ")) << c.limit;
    EXPECT_THAT(ended.error, HasSubstr(c.says)) << c.limit;
  }
}

// What the kernel would end the process for (exit code 137) is refused, with a number that
// does.
TEST_F(ProgramTest, AControlGroupThatIsTooSmallIsExitCodeThreeWithWhatWouldDo) {
  constexpr const char* kMemory = "--memory ";
  const std::string in_group =
      "for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do "
      "g=$root/tidemark_test_$$; mkdir $g 2>/dev/null || continue; "
      "(echo 314572800 > $g/memory.limit_in_bytes || echo 314572800 > $g/memory.max) "
      "2>/dev/null && break; rmdir $g; g=; done; [ \"$g\" ] || exit 77; "
      "trap 'rmdir $g' EXIT; sh -c 'echo $$ > '$g'/cgroup.procs && exec \"$@\"' -- ";
  const std::string training = TIDEMARK_TRAIN_RESNET
      " --model resnet18 --data synthetic --image-size 64 --batch 64 "
      "--steps 1 --threads 2 ";
  const Ended refused = shell(in_group + training);
  if (refused.code == 77) GTEST_SKIP() << "this process may not make a control group";
  EXPECT_EQ(refused.code, 3) << refused.error;
  EXPECT_THAT(refused.error, HasSubstr("the control group /"));
  EXPECT_THAT(refused.error, HasSubstr("has 300.0 MiB"));
  const size_t at = refused.error.find(kMemory);
  ASSERT_NE(at, std::string::npos) << refused.error;
  std::istringstream number(refused.error.substr(at + std::strlen(kMemory)));
  int64_t least = 0;
  number >> least;
  EXPECT_EQ(shell(in_group + training + kMemory + std::to_string(least)).code, 0);
  EXPECT_EQ(shell(in_group + training + kMemory + std::to_string(least - 512)).code, 3);
  EXPECT_EQ(
      shell(in_group + TIDEMARK_TRAIN_RESNET " --steps 1 --image-size 24 --memory auto").code,
      0);
  EXPECT_EQ(shell(in_group + training + "--memory 2GiB").code, 3) << "more than there is";
}

// Where malloc reserved address space for each thread, oneDNN's kernels found none and crashed.
TEST_F(ProgramTest, ALimitedAddressSpaceIsEnoughForWhatAutoFindsInIt) {
  for (const char* limit : {"480000", "540000", "600000", "620000"}) {
    const Ended ended = shell(std::string("ulimit -c 0; ulimit -v ") + limit + " && " +
                              TIDEMARK_TRAIN_RESNET + kStep + "--memory auto");
    EXPECT_TRUE(ended.code == 0 || ended.code == 3) << limit << ": " << ended.code;
  }
}

TEST_F(ProgramTest, AFileThatMayNotGrowIsAnErrorThatLeavesNoPart) {
  const Ended ended = shell(
      "ulimit -f 1 && " + (TIDEMARK_TRAIN_RESNET + std::string(kTraining)) + "--json run.json");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.error, HasSubstr("run.json"));
  EXPECT_THAT(ended.error, HasSubstr("File too large"));
  EXPECT_EQ(files(), 0u) << "nothing is left in the folder";
}

TEST_F(ProgramTest, AHangUpEndsTrainingAfterItsStepAndANohupDoesNot) {
  const std::string program = TIDEMARK_TRAIN_RESNET;
  const std::string forever =
      "rm -f log; " + program +
      " --device sim:a100-80gb --data synthetic --image-size 8 --batch 4 "
      "--steps 1000000 --json run.json 2> log & P=$!; "
      "while ! grep -q 'step 1/' log; do sleep 0.05; done; ";
  const Ended hung_up = shell(forever + "kill -HUP $P; kill -HUP $P; wait $P");
  EXPECT_EQ(hung_up.code, 130);
  EXPECT_GE(testing::Json::parse(read(folder_ / "run.json")).at("steps").size(), 1u);
  const Ended ignored =
      shell("trap '' HUP; " + forever + "kill -HUP $P; kill -TERM $P; wait $P");
  EXPECT_EQ(ignored.code, 130) << "it was SIGTERM that ended it";
}

// The second one comes while the checkpoint is written that the first one asked for.
TEST_F(ProgramTest, ASecondInterruptEndsTrainingAtOnceAndLeavesNoPartialFile) {
  for (const auto& [signals, code] :
       {std::pair("INT INT", 130), {"TERM TERM", 143}, {"HUP INT", 130}}) {
    std::istringstream pair(signals);
    std::string first, second;
    pair >> first >> second;
    const Ended ended = shell(
        "rm -f log run.safetensors; " TIDEMARK_TRAIN_RESNET
        " --image-size 8 --batch 8 --steps 1000000 --threads 2 --checkpoint run.safetensors "
        "2> log & P=$!; while ! grep -q 'step 1/' log; do sleep 0.05; done; kill -" +
        first +
        " $P; while [ ! -s run.safetensors.tidemark.partial ] && kill -0 $P 2> /dev/null; do "
        ":; done; "
        "kill -" +
        second + " $P; wait $P");
    // 130 also where the file was written before the second one came.
    EXPECT_THAT(ended.code, ::testing::AnyOf(code, 130)) << signals << ended.error;
    EXPECT_FALSE(fs::exists(folder_ / "run.safetensors.tidemark.partial")) << signals;
  }
}

TEST_F(ProgramTest, AnOutputThatFailsTakesNoOtherWithIt) {
  ASSERT_EQ(shell("mkdir gone").code, 0);
  // It can be written when the run begins.
  const Ended ended = shell(
      TIDEMARK_TRAIN_RESNET
      " --image-size 8 --batch 8 --steps 3 --save gone/w.safetensors --trace t.json "
      "--save-costs costs.json --json run.json 2> log & P=$!; while ! grep -q 'step 1/' log; "
      "do sleep 0.05; done; rmdir gone; wait $P");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(read(folder_ / "log"), HasSubstr("gone/w.safetensors: cannot be written"));
  for (const char* file : {"t.json", "costs.json", "run.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / file)) << file;
  }
}

TEST_F(ProgramTest, HopelessPathsAreToldBeforeTraining) {
  ASSERT_EQ(shell("ln -s circle circle; mkfifo pipe").code, 0);
  for (const char* flags :
       {"--json circle", "--trace circle", "--save-costs circle", "--save circle"}) {
    const Ended ended = train(flags);
    EXPECT_EQ(ended.code, 2) << flags;
    EXPECT_EQ(ended.error.find("step 1/"), std::string::npos) << flags << ended.error;
  }
  const Ended disk =
      shell(TIDEMARK_TRAIN_RESNET " --image-size 8 --batch 8 --steps 1 --disk-directory none");
  EXPECT_EQ(disk.code, 2);
  EXPECT_THAT(disk.error, HasSubstr("--disk-directory: there is no folder none"));
}

TEST_F(ProgramTest, APipeGetsAllOfTheJson) {
  const Ended ended = shell("mkfifo pipe; cat pipe > got & " TIDEMARK_TRAIN_RESNET
                            " --image-size 8 --batch 8 --steps 1 --json pipe; wait");
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(testing::Json::parse(read(folder_ / "got")).at("steps").size(), 1u);
}

TEST_F(ProgramTest, NumbersBelowZeroAreNoSeeds) {
  for (const char* seed : {"-1", "1.5", "18446744073709551616", "x"}) {
    const Ended ended = train(std::string("--seed ") + seed);
    EXPECT_EQ(ended.code, 2) << seed;
    EXPECT_THAT(ended.error, HasSubstr(std::string("'") + seed + "' is not a whole number"));
  }
  EXPECT_EQ(train("--seed 18446744073709551615 --dry-run").code, 0);
  std::ofstream(folder_ / "layout.csv") << "id,lower,upper,size\na,0,2,4\n";
  EXPECT_EQ(shell(TIDEMARK_PLAN_GRAPH + std::string(" --layout layout.csv --seed -1")).code, 2);
}

TEST_F(ProgramTest, PathsThatCannotBeMeantAreRefusedBeforeAnythingRuns) {
  std::ofstream(folder_ / "text") << "some text";
  ASSERT_EQ(shell("mkdir inner; ln -s one link; ln text hard").code, 0);
  struct Case {
    const char *flags, *says;
  };
  for (const Case& c : {
           Case{"--json ''", "--json: its value is empty"},
           Case{"--trace ''", "--trace: its value is empty"},
           Case{"--json inner", "--json: inner is a folder"},
           Case{"--save inner/", "is a folder"},
           Case{"--json nowhere/run.json", "there is no folder"},
           Case{"--json one --trace one", "--json and --trace would write the same file"},
           Case{"--json one --trace ./inner/../one", "would write the same file"},
           Case{"--json link --save one", "would write the same file"},
           Case{"--checkpoint hard --save text", "would write the same file"},
           Case{"--save-vocab one --save-costs one", "would write the same file"},
           Case{"--data text --json ./text", "--json would overwrite"},
           Case{"--data text --save hard", "--save would overwrite"},
       }) {
    const Ended ended = shell(TIDEMARK_TRAIN_BERT + (" --steps 1 " + std::string(c.flags)));
    EXPECT_EQ(ended.code, 2) << c.flags;
    EXPECT_THAT(ended.error, HasSubstr(c.says)) << c.flags;
    EXPECT_THAT(ended.out, IsEmpty()) << c.flags;
  }
  EXPECT_EQ(read(folder_ / "text"), "some text");
  EXPECT_EQ(train("--json /dev/null --trace /dev/null").code, 0);
  ASSERT_EQ(shell("echo old > trace; ln -s trace trace_link; ln -s new json_link").code, 0);
  ASSERT_EQ(train("--json json_link --trace trace_link").code, 0);
  for (const char* link : {"json_link", "trace_link"}) {
    EXPECT_TRUE(fs::is_symlink(folder_ / link)) << link;
    EXPECT_TRUE(testing::Json::accept(read(folder_ / link))) << link;
  }
  const Ended both = train("--json /dev/stdout");
  EXPECT_EQ(both.code, 0);
  const size_t json = both.out.find("{\n");
  ASSERT_NE(json, std::string::npos) << both.out;
  EXPECT_EQ(testing::Json::parse(both.out.substr(json)).at("steps").size(), 2u);
  EXPECT_THAT(both.out.substr(0, json), HasSubstr("2 steps, "));
}

TEST_F(ProgramTest, ABatchThatIsTooLargeIsSaidBeforeMemoryFills) {
  const Ended digits = shell(
      TIDEMARK_TRAIN_RESNET +
      std::string(
          " --device sim:a100-80gb --image-size 8 --batch 1048576 --steps 1 --json run.json"));
  EXPECT_EQ(digits.code, 0) << digits.error;
  EXPECT_THAT(digits.error, HasSubstr("--batch 1048576 is larger than the data set; a step "
                                      "takes all 1437 samples"));
  EXPECT_EQ(testing::Json::parse(read(folder_ / "run.json")).at("batch"), 1437);
  // With 16 GiB at most before it is refused; what the machine has is less than training takes.
  const Ended synthetic = shell(
      "ulimit -v 16777216; " +
      (TIDEMARK_TRAIN_RESNET +
       std::string(" --data synthetic --batch 1048576 --steps 1 --threads 2 --host-limit 0")));
  EXPECT_EQ(synthetic.code, 3);
  EXPECT_THAT(synthetic.error, HasSubstr("a step takes all 100000 samples"));
  EXPECT_THAT(synthetic.error, HasSubstr("of memory and swap space"));
}

TEST_F(ProgramTest, BundledFilesAreFoundFromAnyFolderAndAfterInstallation) {
  const Ended here = shell(TIDEMARK_REPLAY_LOG + std::string(" data/logs/diamond.log"));
  EXPECT_EQ(here.code, 0) << here.error;
  EXPECT_EQ(shell("cd / && " +
                  (TIDEMARK_TRAIN_RESNET +
                   std::string(" --image-size 8 --batch 1437 --steps 1 --threads 2 --dry-run")))
                .code,
            0);
  ASSERT_EQ(shell("mkdir -p bin share/tidemark/data/logs; cp " TIDEMARK_REPLAY_LOG " bin; cp " +
                  (TIDEMARK_DATA + std::string("/logs/diamond.log")) +
                  " share/tidemark/data/logs/installed.log")
                .code,
            0);
  const Ended installed =
      shell("cd / && " + (folder_ / "bin/replay_log").string() + " data/logs/installed.log");
  EXPECT_EQ(installed.code, 0) << installed.error;
  const Ended missing = shell(TIDEMARK_REPLAY_LOG + std::string(" data/logs/none.log"));
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.error, HasSubstr("data/logs/none.log: not found; looked for "));
  EXPECT_THAT(missing.error, HasSubstr("share/tidemark/data/logs/none.log"));
  EXPECT_THAT(missing.error, HasSubstr(TIDEMARK_DATA "/logs/none.log"));
}

}  // namespace
}  // namespace tidemark
