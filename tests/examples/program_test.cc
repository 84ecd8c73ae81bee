// What a shell can do to a program: streams that cannot be written, signals, limits, and
// mistakes on the command line. Every ending is an exit code and a message, never an abort.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
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
  const Ended full = shell(layout + "> /dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.error,
              HasSubstr("plan_graph: standard output could not be written: No space"));
  EXPECT_EQ(shell(layout + "--nothing 2> /dev/full").code, 2);
  EXPECT_EQ(shell(TIDEMARK_TRAIN_RESNET + std::string(" --help > /dev/full")).code, 1);
}

}  // namespace
}  // namespace tidemark
