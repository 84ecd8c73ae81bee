// The program from outside: exit codes, what it writes, what it says of bad files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace tidemark {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string said;
};

class PlanGraphTest : public ::testing::Test {
 protected:
  PlanGraphTest() { std::filesystem::create_directories(folder_); }
  ~PlanGraphTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(file(name), std::ios::binary).rdbuf();
    return text.str();
  }
  static Outcome run(const std::string& arguments) {
    Outcome outcome;
    const std::string command = std::string(TIDEMARK_PLAN_GRAPH) + " " + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part{};
    while (const size_t got = fread(part.data(), 1, part.size(), pipe)) {
      outcome.said.append(part.data(), got);
    }
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                  ("tidemark_plan_graph_" + std::to_string(::getpid()));
};

const char* const kBuffers = "id,lower,upper,size\na,0,2,2\nb,1,3,3\nc,2,4,2\n";

TEST_F(PlanGraphTest, LaysOutACsv) {
  const std::string csv = write("a.csv", kBuffers);
  const Outcome outcome =
      run("--layout " + csv + " --output " + file("out.csv") + " --svg " + file("out.svg"));
  EXPECT_EQ(outcome.code, 0) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("plan:"));
  EXPECT_THAT(read("out.csv"), HasSubstr("id,lower,upper,size,offset\na,0,2,2,"));
  EXPECT_THAT(read("out.svg"), HasSubstr("</svg>"));
}

TEST_F(PlanGraphTest, CapacityDecides) {
  const std::string csv = write("a.csv", kBuffers);
  EXPECT_EQ(run("--layout " + csv + " --capacity 5").code, 0);
  const Outcome outcome = run("--layout " + csv + " --capacity 4 --output " + file("out.csv"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.said, HasSubstr("does not fit in 4 bytes, in no layout"));
  EXPECT_FALSE(std::filesystem::exists(file("out.csv")));
}

TEST_F(PlanGraphTest, OrdersAGraph) {
  const std::string graph = write("g.json", R"({"nodes": [{"name": "a"}, {"name": "b"},
    {"name": "c"}, {"name": "d"}], "edges": [
    {"name": "y", "size": 4, "source": "a", "sinks": ["b"]},
    {"name": "z", "size": 8, "source": "a", "sinks": ["c"]},
    {"name": "u", "size": 1, "source": "b", "sinks": ["d"]},
    {"name": "v", "size": 2, "source": "c", "sinks": ["d"]}]})");
  const Outcome outcome =
      run("--order " + graph + " --output " + file("o.json") + " --svg " + file("o.svg"));
  EXPECT_EQ(outcome.code, 0) << outcome.said;
  const nlohmann::json json = nlohmann::json::parse(read("o.json"));
  EXPECT_EQ(json["order"], (nlohmann::json{"a", "b", "c", "d"}));
  EXPECT_EQ(json["peak"], 13);
  EXPECT_EQ(json["bound"], 13);
  EXPECT_TRUE(json["seconds"].is_number());
}

TEST_F(PlanGraphTest, BadInputIsCode2WithThePlace) {
  const Outcome negative = run("--layout " + write("n.csv", "id,lower,upper,size\n1,0,1,-4\n"));
  EXPECT_EQ(negative.code, 2);
  EXPECT_THAT(negative.said, HasSubstr("line 2: size is negative"));
  const Outcome dangling =
      run("--order " + write("d.json", R"({"nodes": [{"name": "a"}], "edges": [
        {"name": "e", "size": 1, "source": "a", "sinks": ["b"]}]})"));
  EXPECT_EQ(dangling.code, 2);
  EXPECT_THAT(dangling.said, HasSubstr("edges[0].sinks[0]: there is no node 'b'"));
  const Outcome cycle =
      run("--order " + write("c.json", R"({"nodes": [{"name": "a"}, {"name": "b"}], "edges": [
        {"name": "e", "size": 1, "source": "a", "sinks": ["b"]},
        {"name": "f", "size": 1, "source": "b", "sinks": ["a"]}]})"));
  EXPECT_EQ(cycle.code, 2);
  EXPECT_THAT(cycle.said, HasSubstr("cycle"));
  EXPECT_EQ(run("--order " + write("x.json.gz", "{}")).code, 2);
  EXPECT_EQ(run("--layout " + file("none.csv")).code, 2);
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("--layout a --order b").code, 2);
  EXPECT_EQ(run("--layout " + write("a.csv", kBuffers) + " --capacity 0").code, 2);
  EXPECT_EQ(run("--layout " + file("a.csv") + " --deadline -1").code, 2);
  EXPECT_EQ(run("--layout " + file("a.csv") + " --output /no/where").code, 2);
  EXPECT_EQ(run("--help").code, 0);
}

}  // namespace
}  // namespace tidemark
