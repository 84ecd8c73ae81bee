// The program from outside: exit codes, what it writes, what it says of bad files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "tests/support/environment.h"

namespace tidemark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = -1;
  std::string said;
};

const char* const kToy = R"({"format": "remat-1", "name": "toy", "unit_time": "ms", "nodes": [
  {"name": "a", "time": 1, "bytes": 10, "inputs": []},
  {"name": "b", "time": 1, "bytes": 20, "inputs": [0]},
  {"name": "c", "time": 1, "bytes": 10, "inputs": [1]},
  {"name": "dc", "time": 1, "bytes": 10, "inputs": [1, 2]},
  {"name": "db", "time": 1, "bytes": 10, "inputs": [0, 3]},
  {"name": "da", "time": 1, "bytes": 0, "inputs": [0, 4]}]})";

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
    const std::string command = std::string(TIDEMARK_PLAN_GRAPH " ") + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part{};
    while (const size_t got = fread(part.data(), 1, part.size(), pipe)) {
      outcome.said.append(part.data(), got);
    }
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  // Plans kToy's rematerialisation and writes the schedule to file(output).
  Outcome plan_toy(const std::string& flags, const std::string& output) const {
    return run("--remat " + write("toy.json", kToy) + " " + flags + " --output " +
               file(output));
  }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                  ("tidemark_plan_graph_" + std::to_string(::getpid()));
};

const char* const kGraph = R"({"nodes": [{"name": "a"}, {"name": "b"},
  {"name": "c"}, {"name": "d"}], "edges": [
  {"name": "y", "size": 4, "source": "a", "sinks": ["b"]},
  {"name": "z", "size": 8, "source": "a", "sinks": ["c"]},
  {"name": "u", "size": 1, "source": "b", "sinks": ["d"]},
  {"name": "v", "size": 2, "source": "c", "sinks": ["d"]}]})";

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

TEST_F(PlanGraphTest, PlansByTheMethodNamed) {
  const std::string csv = write("a.csv", kBuffers);
  EXPECT_EQ(run("--layout " + csv + " --method default").code, 0);
  const Outcome none = run("--layout " + csv + " --method lescea-best-fit");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.said, HasSubstr("--method lescea-best-fit has no layout of its own"));
  EXPECT_EQ(run("--layout " + csv + " --method magic").code, 2);
}

TEST_F(PlanGraphTest, TakesRoamsParameters) {
  const std::string step = "--model alexnet --batch 1 --optimizer adam-unfused ";
  const auto peak = [&](const std::string& flags) {
    EXPECT_EQ(run(step + "--method roam --output " + file("p.json") + flags).code, 0) << flags;
    return nlohmann::json::parse(read("p.json"))["peak"].get<int64_t>();
  };
  const int64_t usual = peak("");
  EXPECT_EQ(peak(" --roam-node-limit 100 --roam-delay-radius 8"), usual);
  // No update waits, and each runs when activations are there.
  EXPECT_NE(peak(" --roam-delay-radius 1000"), usual);
  for (const char* bad :
       {"--roam-node-limit 0", "--roam-node-limit x", "--roam-delay-radius -1",
        "--roam-delay-coefficient 0", "--roam-delay-coefficient nan"}) {
    EXPECT_EQ(run(step + "--method roam " + bad).code, 2) << bad;
  }
  const Outcome other = run(step + "--roam-node-limit 50");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.said, HasSubstr("--roam-node-limit is for --method roam and its variants"));
}

// A flag that the mode or the method does not use is refused, not ignored.
TEST_F(PlanGraphTest, RefusesFlagsWithoutAMeaning) {
  const std::string show = "--show " + file("none.json") + " ";
  const std::string remat = "--remat " + write("toy.json", kToy) + " --budget 100 ";
  const std::string step = "--model alexnet --batch 1 ";
  const std::string layout = "--layout " + write("a.csv", kBuffers) + " ";
  const std::string order = "--order " + write("g.json", kGraph) + " ";
  struct Case {
    std::string arguments, flag, belongs_to;
  };
  const std::string of_roam = "--method roam and its variants";
  for (const Case& it : {
           Case{show + "--deadline 5", "--deadline", "planning"},
           Case{show + "--parallel-safe --seed 3", "--seed", "planning"},
           Case{show + "--method roam", "--method", "planning"},
           Case{show + "--roam-node-limit 3", "--roam-node-limit", of_roam},
           Case{show + "--parallel-safe --roam-node-limit 3", "--roam-node-limit", of_roam},
           Case{show + "--save-schedule " + file("x.json"), "--save-schedule",
                "--parallel-safe"},
           Case{show + "--in-place", "--in-place", "a step"},
           Case{step + "--estimate --nodes 5", "--nodes", "planning"},
           Case{step + "--estimate --in-place", "--in-place", "a step"},
           Case{step + "--write-remat " + file("x.json") + " --svg x.svg", "--svg", "a step"},
           Case{step + "--write-remat " + file("x.json") + " --method roam", "--method",
                "planning"},
           Case{remat + "--profile nosuch", "--profile", "--show or a step with --budget"},
           Case{remat + "--roam-delay-radius 3", "--roam-delay-radius", of_roam},
           Case{remat + "--method monet --nodes 5", "--nodes", "our own search"},
           Case{remat + "--method chen --seed 5", "--seed", "a search or a solver"},
           Case{step + "--method olla-published --in-place", "--in-place", "default, olla"},
           Case{step + "--method olla-published --nodes 5", "--nodes", "our own search"},
           Case{step + "--method lescea-best-fit --in-place", "--in-place", "default, olla"},
           Case{layout + "--in-place", "--in-place", "a step"},
           Case{layout + "--method program-order-best-fit --nodes 5", "--nodes", "our own"},
           Case{order + "--in-place", "--in-place", "a step"},
           Case{order + "--save-graph " + file("x.json"), "--save-graph",
                "GRAPH.json or --model"},
       }) {
    const Outcome outcome = run(it.arguments);
    EXPECT_EQ(outcome.code, 2) << it.arguments;
    EXPECT_THAT(outcome.said, HasSubstr("plan_graph: " + it.flag + " is for ")) << it.arguments;
    EXPECT_THAT(outcome.said, HasSubstr(it.belongs_to)) << it.arguments;
  }
}

TEST_F(PlanGraphTest, OllaNeedsASolver) {
  const std::string csv =
      write("a.csv", "id,lower,upper,size\na,0,2,2\nb,1,3,3\nc,2,4,2\nd,0,1,3\n");
  setenv("TIDEMARK_HIGHS", "", 1);
  const bool has_cbc = std::system("command -v cbc > /dev/null") == 0;
  if (has_cbc) {
    const Outcome outcome = run("--layout " + csv + " --method olla --output " + file("o.csv"));
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    EXPECT_THAT(read("o.csv"), HasSubstr("id,lower,upper,size,offset"));
    const Outcome published = run("--order " + write("g.json", kGraph) +
                                  " --method olla-published --output " + file("o.json"));
    EXPECT_EQ(published.code, 0) << published.said;
    EXPECT_EQ(nlohmann::json::parse(read("o.json"))["method"], "OLLA as published");
    EXPECT_THAT(published.said, HasSubstr("plan: OLLA as published "));
    EXPECT_THAT(published.said, HasSubstr("with offsets: OLLA as published "));
  }
  setenv("TIDEMARK_CBC", "", 1);
  for (const std::string method : {"olla", "olla-published"}) {
    const Outcome none = run("--model resnet18 --batch 1 --method " + method);
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.said, HasSubstr("apt-get install coinor-cbc"));
  }
  unsetenv("TIDEMARK_HIGHS");
  unsetenv("TIDEMARK_CBC");
}

// That a solver answers too late is no mistake in the flags, and no proof that nothing fits.
TEST_F(PlanGraphTest, NoAnswerInTimeIsCode1) {
  const std::string late = write("late", "#!/bin/sh\nexec sleep 1000\n");
  std::filesystem::permissions(late, std::filesystem::perms::owner_all);
  const testing::EnvironmentVariable no_highs("TIDEMARK_HIGHS", ""),
      late_cbc("TIDEMARK_CBC", late.c_str());
  const std::string csv =
      write("a.csv", "id,lower,upper,size\na,0,2,2\nb,1,3,3\nc,2,4,2\nd,0,1,3\n");
  const std::string toy = "--remat " + write("toy.json", kToy) + " --budget ";
  struct Case {
    std::string arguments, method, said;
  };
  for (const Case& it :
       {Case{"--layout " + csv + " --output " + file("o"), "olla-published",
             "[olla] the solver found no places within 0.2 s: killed after 0."},
        Case{"--order " + write("g.json", kGraph) + " --output " + file("o"), "olla-published",
             "[olla] the solver found no order within 0.2 s: killed after 0."},
        Case{"--model alexnet --batch 1 --output " + file("o"), "olla-published",
             "[olla] the solver found no order within 0.1 s, half of the deadline"},
        Case{toy + "40 --output " + file("o"), "monet", "that none fits is not proven"},
        Case{"--model alexnet --batch 1 --budget 99% --save-schedule " + file("o"), "checkmate",
             "that none fits is not proven"}}) {
    const std::string arguments = it.arguments + " --method " + it.method + " --deadline ";
    const Outcome outcome = run(arguments + "0.2");
    EXPECT_EQ(outcome.code, 1) << arguments << outcome.said;
    EXPECT_THAT(outcome.said, HasSubstr(it.said)) << arguments;
    const Outcome none = run(arguments + "0");
    EXPECT_EQ(none.code, 2) << arguments;
    EXPECT_THAT(none.said,
                HasSubstr("--deadline 0 leaves no time for the solver that --method " +
                          it.method + " needs"));
    EXPECT_FALSE(std::filesystem::exists(file("o"))) << arguments;
  }
  // With a start of ours OLLA has a plan. It keeps the paper's control edges, so LESCEA's
  // order, which does not, is better in the same table.
  const Outcome start = run("--model alexnet --batch 1 --method olla --deadline 0.2");
  EXPECT_EQ(start.code, 0) << start.said;
  EXPECT_THAT(start.said, HasSubstr("plan: OLLA's start"));
  EXPECT_THAT(start.said, HasSubstr("OLLA's orders keep control edges"));
  // Nor does the end of our own search say that nothing fits, unless the bound does.
  EXPECT_EQ(run(toy + "40 --deadline 0").code, 1);
  EXPECT_EQ(run(toy + "1 --deadline 0").code, 3);
}

TEST_F(PlanGraphTest, CapacityDecides) {
  const std::string csv = write("a.csv", kBuffers);
  EXPECT_EQ(run("--layout " + csv + " --capacity 5").code, 0);
  const Outcome outcome = run("--layout " + csv + " --capacity 4 --output " + file("out.csv"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.said, HasSubstr("does not fit in 4 B in any layout"));
  EXPECT_FALSE(std::filesystem::exists(file("out.csv")));
}

TEST_F(PlanGraphTest, OrdersAGraph) {
  const std::string graph = write("g.json", kGraph);
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

TEST_F(PlanGraphTest, PlansANetworkByName) {
  const Outcome outcome =
      run("--model resnet18 --batch 2 --output " + file("plan.json") + " --save-graph " +
          file("graph.json") + " --svg " + file("plan.svg"));
  ASSERT_EQ(outcome.code, 0) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("program order, best fit"));
  const auto plan = nlohmann::json::parse(read("plan.json"));
  EXPECT_EQ(plan["order"].size(), plan["operators"]);
  EXPECT_LE(plan["bound"], plan["peak"]);
  for (const auto& method : plan["methods"]) EXPECT_LE(plan["peak"], method["peak"]);
  EXPECT_THAT(read("plan.svg"), HasSubstr("</svg>"));
  // The graph that was written gives the same plan.
  const Outcome again = run(file("graph.json") + " --output " + file("again.json"));
  ASSERT_EQ(again.code, 0) << again.said;
  const auto same = nlohmann::json::parse(read("again.json"));
  EXPECT_EQ(same["peak"], plan["peak"]);
  EXPECT_EQ(same["operators"], plan["operators"]);
}

TEST_F(PlanGraphTest, CapturesSgdWithoutMomentum) {
  const auto captured = [&](const std::string& flags) {
    const Outcome outcome = run("--batch 1 --estimate --save-graph " + file("g.json") + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    return nlohmann::json::parse(read("g.json"))["storages"].size();
  };
  // A network of images and another way to capture; ResNet-18 has 62 parameters, R3D-18 too.
  for (const std::string model :
       {" --model resnet18 --image-size 32", " --model r3d_18 --image-size 32"}) {
    EXPECT_EQ(captured(model), captured(model + " --momentum 0") + 62) << model;
  }
  EXPECT_EQ(run("--model resnet18 --momentum 2").code, 2);
  EXPECT_EQ(run("--model resnet18 --momentum nan").code, 2);
  EXPECT_EQ(run("g.json --momentum 0").code, 2);
  EXPECT_EQ(run("--model resnet18 --optimizer adam --momentum 0").code, 2);
}

TEST_F(PlanGraphTest, CapturesTextModelsWithoutClipping) {
  const auto captured = [&](const std::string& flags) {
    const Outcome outcome =
        run("--model bert-tiny --batch 1 --seq-length 16 --estimate "
            "--save-graph " +
            file("g.json") + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    std::vector<std::string> names;
    const auto graph = nlohmann::json::parse(read("g.json"));
    for (const auto& op : graph["ops"]) names.push_back(op["name"]);
    return names;
  };
  const auto clipped = captured(""), free = captured(" --clip 0");
  EXPECT_EQ(captured(" --clip 1"), clipped);
  EXPECT_LT(free.size(), clipped.size());
  EXPECT_EQ(run("--model resnet18 --clip 0").code, 2);
  EXPECT_EQ(run("--model r3d_18 --clip 1").code, 2);
  EXPECT_EQ(run("--model bert-tiny --clip -1").code, 2);
  EXPECT_EQ(run("--model bert-tiny --clip nan").code, 2);
  EXPECT_EQ(run("g.json --clip 0").code, 2);
}

TEST_F(PlanGraphTest, PlansNetworksThatNoProgramTrains) {
  for (const std::string arguments :
       {"--model r3d_18 --image-size 32", "--model transformer-base --seq-length 16",
        "--model unet --image-size 32", "--model unet3d --image-size 32",
        "--model unet-upsample --image-size 32", "--model unet3d-upsample --image-size 32",
        "--model xlm-roberta-base --seq-length 16",
        "--model bert-tiny --optimizer adam-unfused"}) {
    const Outcome outcome =
        run(arguments + " --batch 1 --deadline 0.2 --output " + file("plan.json"));
    ASSERT_EQ(outcome.code, 0) << arguments << outcome.said;
    const auto plan = nlohmann::json::parse(read("plan.json"));
    EXPECT_LE(plan["bound"], plan["peak"]) << arguments;
  }
  // Thirteen operators in place of one for each of bert-tiny's parameters, of which the fused
  // update takes the small ones together.
  const auto operators = [&](const std::string& optimizer) {
    run("--model bert-tiny --deadline 0.1 --optimizer " + optimizer + " --output " +
        file("plan.json"));
    return nlohmann::json::parse(read("plan.json"))["operators"].get<int>();
  };
  EXPECT_GT(operators("adam-unfused"), operators("adam") + 40 * 12);
}

TEST_F(PlanGraphTest, SavesAScheduleAndShowsIt) {
  const Outcome saved =
      run("--model resnet18 --batch 1 --nodes 1000 --save-schedule " + file("s.json"));
  ASSERT_EQ(saved.code, 0) << saved.said;
  // What is printed is what is saved.
  const nlohmann::json schedule = nlohmann::json::parse(read("s.json"));
  EXPECT_THAT(saved.said, ContainsRegex("plan: " + schedule["method"].get<std::string>() +
                                        " .* " + schedule["peak"].dump() + " +[0-9]+\n"));
  EXPECT_THAT(saved.said, HasSubstr("persistent storages, "));
  const Outcome shown = run("--show " + file("s.json") + " --svg " + file("s.svg"));
  EXPECT_EQ(shown.code, 0) << shown.said;
  for (const char* line :
       {"192 operators", "placed, by ", "order ", " in place), 3 uploads, 2 reads, ",
        "with residents", "ms expected", "simulated ", "bound         nothing is released"}) {
    EXPECT_THAT(shown.said, HasSubstr(line));
  }
  EXPECT_THAT(read("s.svg"), HasSubstr("conv1: conv2d"));

  const Outcome tight = run("--show " + file("s.json") + " --budget 1MiB");
  EXPECT_EQ(tight.code, 3);
  EXPECT_THAT(tight.said, HasSubstr("MiB short"));
  const std::string refused = "does not fit in 1.0 MiB; ";
  ASSERT_THAT(tight.said, HasSubstr(refused));
  const std::string enough =
      std::to_string(std::stoll(tight.said.substr(tight.said.find(refused) + refused.size())));
  EXPECT_THAT(tight.said, HasSubstr(enough + " bytes ("));
  EXPECT_EQ(run("--show " + file("s.json") + " --budget " + enough).code, 0);
  const Outcome unwritten =
      run("--show " + file("s.json") + " --parallel-safe --budget 1MiB --save-schedule " +
          file("p.json"));
  EXPECT_EQ(unwritten.code, 3);
  EXPECT_THAT(unwritten.said, HasSubstr(file("p.json") + " is not written"));
  EXPECT_FALSE(std::filesystem::exists(file("p.json")));

  const Outcome again =
      run("--show " + file("s.json") + " --parallel-safe --save-schedule " + file("p.json"));
  EXPECT_EQ(again.code, 0) << again.said;
  EXPECT_THAT(run("--show " + file("p.json")).said,
              HasSubstr("laid out so that no stream waits for bytes"));
  EXPECT_EQ(run("--parallel-safe").code, 2);

  // The first upload comes last.
  nlohmann::ordered_json broken = nlohmann::ordered_json::parse(read("s.json"));
  std::swap(broken["code"].front(), broken["code"].back());
  const Outcome invalid = run("--show " + write("b.json", broken.dump()));
  EXPECT_EQ(invalid.code, 1);
  EXPECT_THAT(invalid.said, HasSubstr("not valid: "));
  EXPECT_EQ(run("--show " + write("c.json", read("s.json").substr(0, 5000))).code, 2);
  EXPECT_EQ(run("--layout x.csv --save-schedule " + file("t.json")).code, 2);

  // Nothing is written over what is read, or twice.
  const std::string before = read("s.json");
  EXPECT_EQ(run("--show " + file("s.json") + " --svg " + file("s.json")).code, 2);
  EXPECT_EQ(read("s.json"), before);
  EXPECT_EQ(run("--model resnet18 --save-graph " + file("t.json") + " --save-schedule " +
                file("t.json"))
                .code,
            2);
  EXPECT_EQ(run("--model resnet18 --save-schedule " + file("none/t.json")).code, 2);
  EXPECT_EQ(run("--show " + file("s.json") + " --budget 0").code, 2);
  EXPECT_THAT(run("--shwo " + file("s.json")).said,
              HasSubstr("plan_graph: unknown flag --shwo; did you mean --show?"));
  EXPECT_EQ(run("--show " + file("s.json") + " --output " + file("o.csv")).code, 2);
  EXPECT_THAT(run("--modle resnet18 --batch 1").said, HasSubstr("did you mean --model?"));
  EXPECT_THAT(run("--help").said, HasSubstr("unet3d-upsample"));
}

TEST_F(PlanGraphTest, PlansRematerialisation) {
  const Outcome outcome = plan_toy("--budget 40 --deadline 2", "s.json");
  EXPECT_EQ(outcome.code, 0) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("toy: 6 nodes, budget 40 bytes"));
  const nlohmann::json json = nlohmann::json::parse(read("s.json"));
  EXPECT_EQ(json["time"], 7);
  EXPECT_EQ(json["peak"], 40);
  EXPECT_EQ(json["budget_bytes"], 40);
  EXPECT_NEAR(json["bound"].get<double>(), 7, 1e-3);
  EXPECT_EQ(json["schedule"][0], (nlohmann::json{"compute", 0, 0}));
}

TEST_F(PlanGraphTest, PlansRematerialisationByPublishedMethods) {
  const Outcome fits = plan_toy("--budget 40 --method chen-budget", "c.json");
  EXPECT_EQ(fits.code, 0) << fits.said;
  EXPECT_THAT(fits.said, HasSubstr("7.000000"));
  EXPECT_THAT(fits.said, HasSubstr("has no bound of its own"));
  EXPECT_THAT(read("c.json"), HasSubstr("compute"));
  // Gist takes no budget: its schedule is written, and the exit code says that it does not fit.
  const Outcome over = plan_toy("--budget 40 --method gist", "g.json");
  EXPECT_EQ(over.code, 3) << over.said;
  EXPECT_THAT(over.said, HasSubstr("more than the budget"));
  EXPECT_THAT(read("g.json"), HasSubstr("compute"));
}

TEST_F(PlanGraphTest, WritesACapturedStepAsARematerialisationProblem) {
  const Outcome written =
      run("--model resnet18 --batch 2 --image-size 32 --write-remat " + file("step.json"));
  EXPECT_EQ(written.code, 0) << written.said;
  const nlohmann::json problem = nlohmann::json::parse(read("step.json"));
  EXPECT_EQ(problem["format"], "remat-1");
  const auto budget = problem["budgets"][0]["bytes"].get<int64_t>();
  for (const char* const method : {"default", "chen"}) {
    // Chen's takes no budget; it only must read the problem.
    const int code = run("--remat " + file("step.json") + " --budget " +
                         std::to_string(budget) + " --deadline 1 --method " + method)
                         .code;
    EXPECT_THAT(code, ::testing::AnyOf(0, 3)) << method;
  }
  EXPECT_EQ(run("--remat " + file("step.json") + " --budget 4MiB --write-remat x.json").code,
            2);
}

// Each part of the model that MONeT's ablation switches, on a real step.
TEST_F(PlanGraphTest, WritesProblemsWithoutAPartOfTheModel) {
  // Of images of this size, ResNet-18 pools once.
  const std::string step = "--model resnet18 --batch 2 --image-size 72 ";
  struct Counts {
    int nodes = 0, once = 0, in_place = 0, variants = 0;
    int64_t workspace = 0;
  };
  const auto count = [&](const std::string& flags) {
    const Outcome made = run(step + "--write-remat " + file("step.json") + flags);
    EXPECT_EQ(made.code, 0) << made.said;
    const nlohmann::json problem = nlohmann::json::parse(read("step.json"));
    Counts counts;
    for (const auto& node : problem["nodes"]) {
      const std::string name = node["name"];
      ++counts.nodes;
      counts.once += node.value("once", false) ? 1 : 0;
      counts.variants += static_cast<int>(node["variants"].size());
      for (const auto& variant : node["variants"]) {
        counts.in_place += variant.contains("overwrites") ? 1 : 0;
      }
      if (name.starts_with("conv2d")) {
        counts.workspace += node["variants"][0].value("workspace", int64_t{0});
      }
    }
    return counts;
  };
  const Counts plain = count("");
  EXPECT_GT(plain.workspace, 0);
  const Counts variants = count(" --same-bit-variants");
  EXPECT_EQ(variants.variants - plain.variants, 9) << "gradients of ReLU and of max pooling";
  EXPECT_EQ(variants.workspace, plain.workspace);
  EXPECT_EQ(variants.in_place, plain.in_place);
  EXPECT_GT(count(" --in-place").in_place, plain.in_place);
  EXPECT_EQ(count(" --no-workspace").workspace, 0);
  const Counts single = count(" --no-recompute");
  EXPECT_LT(plain.once, plain.nodes);
  EXPECT_EQ(single.once, plain.nodes);
  for (const char* flag : {"--same-bit-variants", "--no-workspace", "--no-recompute"}) {
    EXPECT_EQ(run(step + flag).code, 2) << flag;
  }
}

TEST_F(PlanGraphTest, NamesNodesThatNeverRun) {
  std::string nodes = R"({"name": "a", "time": 1, "bytes": 1})";
  for (int i = 1; i <= 6; ++i) {
    nodes += fmt::format(R"(, {{"name": "u.{}", "time": 1, "bytes": 0, "inputs": [0]}})", i);
  }
  const std::string head = R"({"format": "remat-1", "nodes": [)";
  const std::string flags = " --budget 9 --deadline 0.1";
  const Outcome five = run("--remat " + write("p.json", head + nodes + "]}") + flags);
  EXPECT_EQ(five.code, 0) << five.said;
  EXPECT_THAT(five.said, HasSubstr("5 nodes never run, as no required node needs them: "
                                   "u.1, u.2, u.3, u.4, ...\n"));
  const std::string one = R"({"time": 1, "bytes": 1}, {"time": 1, "bytes": 1})";
  EXPECT_THAT(run("--remat " + write("p.json", head + one + "]}") + flags).said,
              HasSubstr("1 node never runs, as no required node needs it: nodes[0]\n"));
  EXPECT_THAT(plan_toy(" --budget 50", "t.json").said, Not(HasSubstr("never run")));
}

TEST_F(PlanGraphTest, PrintsControlCharactersOfNamesAsEscapes) {
  const std::string name = R"("name": "\u001b[31m\nx")", escaped = R"(\x1b[31m\nx)";
  const std::string head = R"({"format": "remat-1", )" + name + R"(, "nodes": [{)" + name;
  const Outcome bad =
      run("--remat " + write("p.json", head + R"(, "time": 1, "bytes": 1, "inputs": [4]}]})") +
          " --budget 9");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.said, HasSubstr("nodes[0] (" + escaped + ")"));
  const Outcome planned =
      run("--remat " +
          write("p.json", head + R"(, "time": 1, "bytes": 1}, {"time": 1, "bytes": 1}]})") +
          " --budget 9");
  EXPECT_EQ(planned.code, 0) << planned.said;
  EXPECT_THAT(planned.said, HasSubstr(escaped + ": 2 nodes"));
  EXPECT_THAT(planned.said, HasSubstr("needs it: " + escaped + "\n"));
  const Outcome twice = run("--order " + write("g.json", "{\"nodes\": [{" + name + "}, {" +
                                                             name + "}], \"edges\": []}"));
  EXPECT_EQ(twice.code, 2);
  for (const Outcome& outcome : {bad, planned, twice}) {
    EXPECT_THAT(outcome.said, HasSubstr(escaped));
    EXPECT_THAT(outcome.said, Not(HasSubstr("\x1b")));
  }
}

TEST_F(PlanGraphTest, PlansRematerialisationOfAStepForSessions) {
  const std::string step = "--model resnet18 --batch 4 --image-size 64 ";
  ASSERT_EQ(run(step + "--write-remat " + file("step.json")).code, 0);
  const nlohmann::json problem = nlohmann::json::parse(read("step.json"));
  const auto budget = std::to_string(problem["budgets"][3]["bytes"].get<int64_t>());
  const Outcome made = run(step + "--budget " + budget + " --deadline 2 --save-schedule " +
                           file("schedule.json"));
  ASSERT_EQ(made.code, 0) << made.said;
  EXPECT_THAT(made.said, HasSubstr("computed again"));
  for (const char* line : {"none in this order", "none at all"}) {
    EXPECT_THAT(made.said, ContainsRegex(std::string("\n *") + line + " +[0-9.]+ +1.[0-9]+\n"));
  }
  nlohmann::json saved = nlohmann::json::parse(read("schedule.json"));
  EXPECT_GT(saved.at("any_order_bound_ns"), 0);
  EXPECT_LE(saved.at("any_order_bound_ns"), saved.at("time_bound_ns"));
  EXPECT_LE(saved.at("time_bound_ns"), saved.at("time_ns"));
  const Outcome shown = run("--show " + file("schedule.json") + " --budget " + budget);
  EXPECT_EQ(shown.code, 0) << shown.said;
  EXPECT_THAT(shown.said, ContainsRegex("\nbound +[0-9.]+ ms for this order, "));
  saved.erase("time_bound_ns");
  EXPECT_THAT(run("--show " + write("unbounded.json", saved.dump())).said,
              HasSubstr("\nbound         none known; plan_graph "));
  EXPECT_THAT(shown.said, HasSubstr("of them again"));
  const std::string waiting = " waiting for uploads and copies";
  EXPECT_THAT(made.said, HasSubstr(" ms" + waiting));
  EXPECT_THAT(shown.said, HasSubstr(waiting + "; 0.000 ms of copies"));
  EXPECT_THAT(made.said, HasSubstr("without uploads, copies or moves"));
  const Outcome none = run(step + "--budget 1MiB --method chen-budget");
  EXPECT_EQ(none.code, 3) << none.said;
  EXPECT_THAT(none.said, HasSubstr("no size of segments fits"));
  EXPECT_THAT(none.said, HasSubstr("schedules that compute again, and copy nothing:"));
  EXPECT_THAT(none.said, ContainsRegex("least budget|no budget below"));
  EXPECT_EQ(run(step + "--budget 80% --deadline 2").code, 0);
  EXPECT_EQ(run(step + "--budget 1GiB --method roam").code, 2);
  EXPECT_EQ(run(step + "--budget 0.0000001%").code, 2);
  for (const char* flags : {"--output x.json", "--svg x.svg", "--estimate", "--in-place"}) {
    EXPECT_THAT(run(step + "--budget 1GiB " + flags).said,
                ContainsRegex(" is for .*a step.* --budget"))
        << flags;
  }
  EXPECT_THAT(run(step + "--write-remat x.json --save-schedule y.json").said,
              HasSubstr("--save-schedule is for the plan of a step"));
  EXPECT_EQ(run(step + "--method chen").code, 2);
}

TEST_F(PlanGraphTest, PlansAStepWithTiersAsATrainingDoes) {
  const std::string step = "--model resnet18 --batch 32 --image-size 64 ";
  const Outcome made =
      run(step + "--budget 50% --tier 1GiB --nodes 1000000 --save-schedule " + file("s.json"));
  ASSERT_EQ(made.code, 0) << made.said;
  for (const char* line : {"without a limit", "planned", "no plan in this order", "no plan"}) {
    EXPECT_THAT(made.said, ContainsRegex(std::string("\n") + line + " .* %"));
  }
  const Outcome shown = run("--show " + file("s.json"));
  EXPECT_EQ(shown.code, 0) << shown.said;
  EXPECT_THAT(shown.said, HasSubstr("copies out"));
  EXPECT_THAT(shown.said, HasSubstr("without a limit")) << "bounds are saved";
  EXPECT_THAT(shown.said, HasSubstr(", load ")) << "of these releases, no bound for others";
  const Outcome none = run(step + "--budget 5% --tier 1GiB --nodes 100000");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.said, HasSubstr("found no plan within"));
  EXPECT_EQ(run(step + "--tier 1GiB").code, 2);
  for (const char* flags : {"--deadline 1", "--method chen", "--seed 2"}) {
    EXPECT_EQ(run(step + "--budget 50% --tier 1GiB " + flags).code, 2) << flags;
  }
}

TEST_F(PlanGraphTest, RematerialisationSaysTheLeastBudget) {
  const Outcome outcome = plan_toy("--budget 39", "s.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.said, HasSubstr("no schedule fits in 39 bytes"));
  EXPECT_THAT(outcome.said, HasSubstr("the least budget is 40 bytes"));
  EXPECT_FALSE(std::filesystem::exists(file("s.json")));
}

TEST_F(PlanGraphTest, RematerialisationExplainsBadFilesAndFlags) {
  const std::string toy = write("toy.json", kToy);
  EXPECT_EQ(run("--remat " + toy).code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget 0").code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget lots").code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget 40 --method roam").code, 2);
  EXPECT_EQ(run("--model resnet18 --method monet").code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget 40 --model resnet18").code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget 40 --output " + toy).code, 2);
  EXPECT_EQ(run("--remat " + toy + " --budget 60%").code, 2);
  EXPECT_EQ(run("--remat " + file("none.json") + " --budget 40").code, 2);
  const Outcome corrupt =
      run("--remat " + write("bad.json", R"({"format": "remat-1", "nodes": [{"time": 1,
                                                    "bytes": 1, "inputs": [5]}]})") +
          " --budget 40");
  EXPECT_EQ(corrupt.code, 2);
  EXPECT_THAT(corrupt.said, HasSubstr("bad.json"));
  EXPECT_THAT(corrupt.said, HasSubstr("nodes[0]"));
  EXPECT_EQ(run("--remat " + write("cut.json.gz", "\x1f\x8b\x08") + " --budget 40").code, 2);
}

TEST_F(PlanGraphTest, EstimatesAsMxnetDoes) {
  const Outcome outcome = run("--model alexnet --batch 4 --estimate");
  ASSERT_EQ(outcome.code, 0) << outcome.said;
  EXPECT_THAT(outcome.said, HasSubstr("forward only"));
  EXPECT_THAT(outcome.said, HasSubstr("in place and sharing"));
  // "<what>  <training>  <forward only>": in place there is less of each.
  const auto figures = [&](const std::string& what) {
    std::istringstream row(
        outcome.said.substr(outcome.said.find("\n" + what + " ") + what.size() + 1));
    std::pair<int64_t, int64_t> both;
    row >> both.first >> both.second;
    return both;
  };
  EXPECT_LT(figures("in place").first, figures("no sharing").first);
  EXPECT_LT(figures("in place").second, figures("no sharing").second);
  const std::string safe = "both, no operator waits: descendants";
  EXPECT_GT(figures(safe).first, figures("in place and sharing").first);
  EXPECT_LT(figures(safe).first, figures("no sharing").first);
  EXPECT_EQ(run("--model alexnet --batch 4 --in-place").code, 0);
}

TEST_F(PlanGraphTest, BadGraphsAndNamesAreExplained) {
  Outcome outcome = run("--model nosuch");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.said, HasSubstr("resnet50"));
  outcome = run(write("graph.json", "{\"format\": \"tidemark step graph\", \"version\": 7}"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.said, HasSubstr("version"));
  outcome = run("--batch 4");
  EXPECT_EQ(outcome.code, 2);
  outcome = run(file("graph.json") + " --model resnet18");
  EXPECT_EQ(outcome.code, 2);
}

}  // namespace
}  // namespace tidemark
