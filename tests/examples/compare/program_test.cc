// compare_heuristics as people and scripts use it.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <regex>

#include "tests/support/program_test.h"

namespace tidemark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Json;
using ::testing::Not;
using Result = testing::ProgramResult;

const std::string kSmall = "--image-size 8 --batch 8 --threads 2 ";
const std::string kSimulated = "--data synthetic --device sim:a100-80gb " + kSmall;

class CompareTest : public testing::ProgramTest {
 protected:
  CompareTest() : ProgramTest(TIDEMARK_COMPARE_HEURISTICS) {}
};

TEST_F(CompareTest, WritesReports) {
  const std::string csv = (folder_ / "c.csv").string(), svg = (folder_ / "c.svg").string();
  const Result result = run(kSmall + "--steps 3 --budget 50% --csv " + csv + " --svg " + svg);
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_THAT(result.out, ContainsRegex("step 3 .*1 none.*2 tide.*3 delta.*4 delta:lru"));
  EXPECT_THAT(result.out, HasSubstr("equal to the bit (9 comparisons)"));

  const Json& json = result.json;
  EXPECT_EQ(json.at("program"), "compare_heuristics");
  ASSERT_EQ(json.at("lanes").size(), 4U);
  ASSERT_EQ(json.at("history").size(), 4U);
  for (size_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(loss_bits(json.at("history")[lane]), loss_bits(json.at("history")[0]));
    EXPECT_EQ(json.at("lanes")[lane].at("params_checksum"),
              json.at("lanes")[0].at("params_checksum"));
    EXPECT_GT(json.at("lanes")[lane].at("blocks").size(), 50U);
    EXPECT_GT(json.at("lanes")[lane].at("curve").size(), 20U);
  }
  EXPECT_EQ(json.at("lanes")[0].at("decisions_made"), 0);
  EXPECT_GT(json.at("lanes")[3].at("decisions").size(), 0U);
  EXPECT_EQ(json.at("losses").at("mismatched"), 0);

  const std::string table = read(csv);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 4 * 3);
  EXPECT_THAT(table, HasSubstr("lane,policy,budget_bytes,step,ms,loss,loss_bits"));
  const size_t fields =
      1 + static_cast<size_t>(std::count(table.begin(), table.begin() + table.find('\n'), ','));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(1 + std::count(line.begin(), line.end(), ','), fields) << line;
  }
  const std::string picture = read(svg);
  EXPECT_THAT(picture, HasSubstr("<svg"));
  const std::regex curve("class=\"curve\""), block("class=\"block\"");
  const auto count = [&](const std::regex& what) {
    return std::distance(std::sregex_iterator(picture.begin(), picture.end(), what), {});
  };
  EXPECT_EQ(count(curve), 4);
  EXPECT_GT(count(block), 200);
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
}

TEST_F(CompareTest, BertHasLanesToo) {
  const Result result =
      run("--model bert-tiny --seq-length 16 --batch 2 --threads 2 --vocab-size 400 --steps 2 "
          "--lane none --lane delta:greedy@60% --lane tide");
  ASSERT_EQ(result.code, 0) << result.error;
  ASSERT_EQ(result.json.at("lanes").size(), 3U);
  EXPECT_EQ(result.json.at("lanes")[1].at("name"), "delta:greedy");
  EXPECT_EQ(result.json.at("losses").at("compared"), 4);
}

TEST_F(CompareTest, TheJobsOwnLengthWhereThereIsNoScreen) {
  const Result result = run(kSimulated + "--lane tide@40%");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.json.at("lanes")[0].at("steps_done"), 20);  // of synthetic data
  EXPECT_TRUE(result.json.at("lanes")[0].at("loss").is_null());
}

TEST_F(CompareTest, MistakesEndWithCodeTwo) {
  for (const char* arguments :
       {"--lane best", "--lane tide:best", "--lane dtr:lru", "--lane tide@x", "--serve 70000",
        "--serve x", "--model resnet1", "--device sim:abacus", "--policy tide", "--rate -1",
        "--svg /nowhere/at/all.svg --steps 1 --lane tide --device sim:host --data synthetic"}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_NE(result.error, "") << arguments;
    EXPECT_TRUE(result.json.is_null()) << arguments << ": noticed before training";
  }
}

TEST_F(CompareTest, AnInfeasibleBudgetIsRefusedWithTheNumber) {
  const Result result = run(kSmall + "--steps 1 --budget 1MiB");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.error, ContainsRegex("[0-9]"));
}

TEST_F(CompareTest, HelpTeaches) {
  const Result help = run("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* text : {"--lane", "--serve", "delta:lru", "Exit codes", "--image-size"}) {
    EXPECT_THAT(help.out, HasSubstr(text));
  }
  EXPECT_THAT(help.out, Not(HasSubstr("--checkpoint")));
  EXPECT_THAT(run("--model bert-tiny --help").out, HasSubstr("--seq-length"));
}

// The program in a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const std::string& arguments) {
    winsize window{};
    window.ws_row = 30;
    window.ws_col = 110;
    pid_ = forkpty(&master_, nullptr, nullptr, &window);
    if (pid_ == 0) {
      setenv("LC_ALL", "C.UTF-8", 1);
      const std::string command =
          std::string("exec ") + TIDEMARK_COMPARE_HEURISTICS + " " + arguments;
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
  }
  // Reads until `text` comes, or the end. False: it did not come in time.
  bool wait_for(const std::string& text) {
    const size_t from = seen_.size();
    while (seen_.find(text, from > text.size() ? from - text.size() : 0) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  void press(const std::string& keys) {
    ASSERT_EQ(write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void send(int signal) const { kill(pid_, signal); }
  int exit_code() {
    while (read_some()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& seen() const { return seen_; }

 private:
  bool read_some() {
    constexpr int kPatienceMs = 120'000;
    pollfd ready{master_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) return false;
    char buffer[4096];
    const ssize_t n = read(master_, buffer, sizeof(buffer));
    if (n <= 0) return false;
    seen_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  int master_ = -1;
  pid_t pid_ = -1;
  std::string seen_;
};

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

TEST(CompareInATerminal, ShowsAViewTakesKeysAndLeavesTheTerminalAsItWas) {
  Terminal terminal(kSimulated + "--lane none --lane tide@40%");
  ASSERT_TRUE(terminal.wait_for(kEnter)) << terminal.seen();
  ASSERT_TRUE(terminal.wait_for("2 tide")) << terminal.seen();
  terminal.press("2s");
  ASSERT_TRUE(terminal.wait_for("lane 2 to")) << terminal.seen();
  terminal.press("delta:lru\r");
  ASSERT_TRUE(terminal.wait_for("2 delta:lru")) << terminal.seen();
  terminal.press("q");
  EXPECT_EQ(terminal.exit_code(), 0) << terminal.seen();
  EXPECT_THAT(terminal.seen(), HasSubstr(kLeave));
  EXPECT_GT(terminal.seen().find("Overhead: relative to"), terminal.seen().find(kLeave));
}

TEST(CompareInATerminal, CtrlCAndSigtermEndItInOrder) {
  Terminal keys(kSimulated + "--lane tide@40% --steps 100000");
  ASSERT_TRUE(keys.wait_for("1 tide"));
  keys.press("\x03");
  EXPECT_EQ(keys.exit_code(), 130);
  EXPECT_THAT(keys.seen(), HasSubstr(kLeave));

  Terminal signal(kSimulated + "--lane tide@40% --steps 100000");
  ASSERT_TRUE(signal.wait_for("1 tide"));
  signal.send(SIGTERM);
  EXPECT_EQ(signal.exit_code(), 130);
  EXPECT_THAT(signal.seen(), HasSubstr(kLeave));
}

TEST(CompareInATerminal, EndsByItselfAfterItsSteps) {
  Terminal terminal(kSimulated + "--lane tide@40% --steps 5 --rate 1000");
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_THAT(terminal.seen(), HasSubstr(kLeave));
}

}  // namespace
}  // namespace tidemark
