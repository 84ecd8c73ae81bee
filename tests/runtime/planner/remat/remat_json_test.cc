// Reading problems: defaults, and each kind of corrupt file with its place.
#include "runtime/planner/io/remat_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"

namespace tidemark::planner {
namespace {

using ::testing::HasSubstr;

std::string with_nodes(const std::string& nodes, const std::string& more = "") {
  return R"({"format": "remat-1", "name": "t", "fixed_bytes": 0, )" + more + R"("nodes": [)" +
         nodes + "]}";
}

std::string error_of(const std::string& text) {
  try {
    parse_remat_problem(text, "t.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(RematJson, VariantsTakeAbsentKeysFromTheirNode) {
  const remat::Problem problem =
      parse_remat_problem(with_nodes(R"({"name": "a", "time": 2, "bytes": 3, "inputs": []},
                    {"name": "b", "time": 4, "bytes": 5, "workspace": 6, "inputs": [0],
                     "variants": [{}, {"time": 1, "overwrites": 0, "when": "again"},
                                  {"workspace": -1, "inputs": []}]},
                    {"bytes": 0, "rider_of": 1, "once": true, "adds_fixed": 7,
                     "variants": [{"time": 0.5, "with": [2, 0, 2]}]})"),
                          "t.json");
  ASSERT_EQ(problem.nodes.size(), 3U);
  const auto& variants = problem.nodes[1].variants;
  ASSERT_EQ(variants.size(), 3U);
  EXPECT_EQ(variants[0].time, 4);
  EXPECT_EQ(variants[1].workspace, 6);
  EXPECT_EQ(variants[1].overwrites, 0);
  EXPECT_EQ(variants[1].when, remat::When::kAgain);
  EXPECT_EQ(variants[2].workspace, -1);
  EXPECT_TRUE(variants[2].inputs.empty());
  EXPECT_EQ(problem.nodes[2].variants[0].with, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(problem.nodes[2].rider_of, 1);
  EXPECT_EQ(problem.nodes[2].adds_fixed, 7);
  EXPECT_TRUE(problem.nodes[2].once);
  EXPECT_DOUBLE_EQ(problem.base_time, 6);
}

TEST(RematJson, CorruptFilesAreExplainedWithTheirPlace) {
  const std::string a = R"({"name": "a", "time": 1, "bytes": 1, "inputs": []})";
  EXPECT_THAT(error_of("{"), HasSubstr("t.json"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("format"));
  EXPECT_THAT(error_of(R"({"format": "remat-2", "nodes": []})"), HasSubstr("format"));
  EXPECT_THAT(error_of(with_nodes("")), HasSubstr("no nodes"));
  EXPECT_THAT(error_of(R"({"format": "remat-1"})"), HasSubstr("no 'nodes'"));
  EXPECT_THAT(error_of(with_nodes("3")), HasSubstr("nodes[0]"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1})")), HasSubstr("nodes[0]: no 'bytes'"));
  EXPECT_THAT(error_of(with_nodes(R"({"bytes": 1})")), HasSubstr("nodes[0]: no 'time'"));
  EXPECT_THAT(error_of(with_nodes(a + R"(, {"time": 1, "bytes": 1.5})")),
              HasSubstr("nodes[1].bytes"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 99999999999999999999})")),
              HasSubstr("nodes[0].bytes"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": "1", "bytes": 1})")), HasSubstr("nodes[0].time"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "inputs": [0.5]})")),
              HasSubstr("nodes[0].inputs[0]"));
  EXPECT_THAT(error_of(with_nodes(a + R"(, {"time": 1, "bytes": 1, "variants": [{}, 4]})")),
              HasSubstr("nodes[1].variants[1]"));
  EXPECT_THAT(
      error_of(with_nodes(R"({"time": 1, "bytes": 1, "variants": [{"when": "never"}]})")),
      HasSubstr("nodes[0].variants[0].when"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "required": 1})")),
              HasSubstr("nodes[0].required"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("t.json"));
}

TEST(RematJson, ProblemsThatMakeNoSenseAreExplained) {
  EXPECT_THAT(error_of(with_nodes(R"({"name": "x", "time": 1, "bytes": 1, "inputs": [4]})")),
              HasSubstr("nodes[0] (x): inputs: there is no node 4"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "inputs": [0]})")),
              HasSubstr("cannot refer to itself"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "inputs": [1]},
                                     {"time": 1, "bytes": 1, "inputs": [0]})")),
              HasSubstr("no order computes its inputs"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": -1, "bytes": 1})", R"("base_time": 1, )")),
              HasSubstr("a negative time"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": -1})")),
              HasSubstr("a negative size"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 0, "bytes": 1})")),
              HasSubstr("no 'base_time', and the sum of all 'time', which it would be, is 0"));
  for (const char* base : {"0", "-1", "1e-320", "1e101"}) {
    EXPECT_THAT(error_of(with_nodes(R"({"time": 0, "bytes": 1})",
                                    R"("base_time": )" + std::string(base) + ", ")),
                HasSubstr("base_time must be positive"))
        << base;
  }
  // The largest variants' times count; together they overflow.
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "variants": [{}, {"time": 6e99}]},
                                     {"name": "x", "time": 6e99, "bytes": 1})",
                                  R"("base_time": 1, )")),
              HasSubstr("nodes[1] (x): the sum of the times is beyond 1e100"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1.7e308, "bytes": 1},
                                     {"time": 1.7e308, "bytes": 1})",
                                  R"("base_time": 1, )")),
              HasSubstr("the sum of the times is beyond 1e100"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 9000000000000000000})")),
              HasSubstr("too large"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "variants": []})")),
              HasSubstr("no variants"));
  EXPECT_THAT(error_of(with_nodes(R"({"time": 1, "bytes": 1, "variants": [{"with": [0]}]})")),
              HasSubstr("'with', but no 'rider_of'"));
}

TEST(RematJson, ScheduleIsWrittenAndRead) {
  remat::Schedule schedule;
  schedule.events = {{0, 0}, {1, 2}, {0, remat::Event::kFree}};
  schedule.peak = 7;
  schedule.time = 1.25;
  const std::string text = format_remat_schedule(schedule, {8, 1.0, 0.5});
  EXPECT_EQ(parse_remat_schedule(text, "s.json"), schedule.events);
  EXPECT_THAT(text, HasSubstr(R"("budget_bytes":8)"));
  EXPECT_EQ(parse_remat_schedule(R"({"schedule": [["compute", 4]]})", "s.json"),
            (std::vector<remat::Event>{{4, 0}}));
  EXPECT_THROW(parse_remat_schedule(R"({"schedule": [["run", 4]]})", "s.json"), DataError);
  EXPECT_THROW(parse_remat_schedule(R"({"schedule": [["free"]]})", "s.json"), DataError);
}

TEST(RematJson, BundledInstancesAreRead) {
  for (const char* name :
       {"toy.json", "resnet18_32.json.gz", "vgg16_32.json.gz", "bert-base_32.json.gz"}) {
    const std::string path = std::string(TIDEMARK_INSTANCES "/remat/") + name;
    EXPECT_GT(parse_remat_problem(read_text_file(path), path).nodes.size(), 5U) << name;
  }
}

}  // namespace
}  // namespace tidemark::planner
