#include "runtime/telemetry/trace_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TraceWriterTest : public ::testing::Test {
 protected:
  TraceWriterTest()
      : directory_(fs::path(::testing::TempDir()) /
                   ("tidemark-trace-" + std::to_string(::getpid()))) {
    fs::create_directories(directory_);
  }
  ~TraceWriterTest() override { fs::remove_all(directory_); }

  std::string path() const { return (directory_ / "trace.json").string(); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  std::string contents() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json parsed() const { return Json::parse(contents()); }

  // Trace events of a phase: "X" complete, "i" instant, "C" counter, "M" metadata.
  static std::vector<Json> phase(const Json& trace, const std::string& ph) {
    std::vector<Json> result;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == ph) result.push_back(event);
    }
    return result;
  }

 private:
  fs::path directory_;
};

struct Make {
  EventKind kind;
  const char* name = "";
  int stream = 0;
  int64_t start_us = 0, end_us = 0;
  int64_t used = 0;
  uint32_t storage = 0;
};

void record(EventLog& log, const Make& make) {
  EventRecord event;
  event.kind = make.kind;
  event.name = event.op = make.name;
  event.stream = static_cast<uint8_t>(make.stream);
  event.used = Bytes(make.used);
  event.storage = make.storage;
  event.bytes = Bytes(4096);
  event.reason = Reason::kNoSpace;
  event.category = 1;
  event.expected = Nanos(make.kind == EventKind::kStepEnd ? 0 : 2500);
  const uint64_t tag = log.record(event);
  if (make.end_us > 0) {
    log.complete(tag, Nanos(make.start_us * 1000), Nanos(make.end_us * 1000));
  }
}

//   compute  | conv2d 10-30 | (evict) | relu 40-45 | conv2d recompute 50-70 |
//   offload       | conv2d offload 20-38 |
void record_step(EventLog& log) {
  record(log, {EventKind::kStepBegin, "", 0, 0, 0, 0, 7});
  record(log, {EventKind::kOperator, "conv2d", 0, 10, 30, 100});
  record(log, {EventKind::kOffload, "conv2d", 1, 20, 38, 60, 3});
  record(log, {EventKind::kEvict, "conv2d", 0, 0, 0, 20, 3});
  record(log, {EventKind::kOperator, "relu", 0, 40, 45, 80});
  record(log, {EventKind::kRecompute, "conv2d", 0, 50, 70, 80});
  record(log, {EventKind::kOperator, "lost", 0, 0, 0, 90});  // not completed
  record(log, {EventKind::kStepEnd, "", 0, 0, 0, 0, 7});
}

TEST_F(TraceWriterTest, WorkIsOnTheRowOfItsStream) {
  EventLog log;
  record_step(log);
  write_trace(log, path(), {.process = "resnet18", .categories = {"parameters", "gradients"}});
  const Json trace = parsed();
  const auto work = phase(trace, "X");
  ASSERT_EQ(work.size(), 5U);  // four pieces of work and a step
  EXPECT_EQ(work[0]["name"], "conv2d");
  EXPECT_EQ(work[0]["tid"], 0);
  EXPECT_EQ(work[0]["ts"], 10.0);
  EXPECT_EQ(work[0]["dur"], 20.0);
  EXPECT_EQ(work[1]["name"], "conv2d offload");
  EXPECT_EQ(work[1]["tid"], 1);
  EXPECT_EQ(work[1]["ts"], 20.0);
  EXPECT_EQ(work[1]["dur"], 18.0);
  EXPECT_EQ(work[1]["args"]["bytes"], 4096);
  EXPECT_EQ(work[1]["args"]["reason"], "no space");
  EXPECT_EQ(work[1]["args"]["category"], "gradients");
  EXPECT_EQ(work[1]["args"]["storage"], 3);
  EXPECT_EQ(work[1]["args"]["expected_us"], 2.5);
  EXPECT_EQ(work[2]["name"], "relu");
  EXPECT_EQ(work[3]["name"], "conv2d recompute");
  for (const Json& event : trace["traceEvents"]) EXPECT_NE(event["name"], "lost");

  std::vector<std::string> rows;
  for (const Json& event : phase(trace, "M")) {
    if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "resnet18");
    }
    if (event["name"] == "thread_name") rows.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(rows, ::testing::ElementsAre("compute", "offload", "reload", "policy", "steps"));
  EXPECT_EQ(trace["metadata"]["dropped_events"], 0);
}

TEST_F(TraceWriterTest, PlanningIsBetweenTheSteps) {
  EventLog log;
  record_step(log);
  log.record({.kind = EventKind::kStepBegin, .storage = 8});
  record(log, {EventKind::kOperator, "conv2d", 0, 70, 80, 100});
  log.record({.kind = EventKind::kStepEnd,
              .storage = 8,
              .expected = Nanos(200'000),
              .start = Nanos(300'000)});
  log.record({.kind = EventKind::kStepBegin, .storage = 9});
  record(log, {EventKind::kOperator, "conv2d", 0, 310, 330, 100});
  log.record({.kind = EventKind::kStepEnd, .storage = 9, .start = Nanos(331'000)});
  write_trace(log, path());
  std::vector<Json> marks;
  for (const Json& span : phase(parsed(), "X")) {
    if (span["cat"] == "step" || span["cat"] == "planning") marks.push_back(span);
  }
  ASSERT_EQ(marks.size(), 4U);
  EXPECT_EQ(marks[1]["ts"], 70.0);
  EXPECT_EQ(marks[1]["dur"], 10.0);
  EXPECT_EQ(marks[2]["name"], "planning");
  EXPECT_EQ(marks[2]["ts"], 100.0);
  EXPECT_EQ(marks[2]["dur"], 200.0);
  EXPECT_EQ(marks[3]["name"], "step 9");
  EXPECT_EQ(marks[3]["ts"], 300.0);
  EXPECT_EQ(marks[3]["dur"], 30.0);
}

TEST_F(TraceWriterTest, InstantsStandWhereTheComputeStreamStood) {
  EventLog log;
  record_step(log);
  write_trace(log, path());
  const Json trace = parsed();
  const auto instants = phase(trace, "i");
  ASSERT_EQ(instants.size(), 1U);
  EXPECT_EQ(instants[0]["name"], "evict");
  EXPECT_EQ(instants[0]["ts"], 30.0);
  EXPECT_EQ(instants[0]["args"]["operator"], "conv2d");
  EXPECT_EQ(instants[0]["args"]["category"], "1");  // no names were given
  const auto step = phase(trace, "X").back();
  EXPECT_EQ(step["name"], "step 7");
  EXPECT_EQ(step["tid"], 4);
  EXPECT_EQ(step["ts"], 0.0);
  EXPECT_EQ(step["dur"], 70.0);
}

TEST_F(TraceWriterTest, TheArenaIsACounterThatNeverGoesBackInTime) {
  EventLog log;
  record_step(log);
  write_trace(log, path());
  std::vector<std::pair<double, int64_t>> points;
  for (const Json& event : phase(parsed(), "C")) {
    EXPECT_EQ(event["name"], "arena");
    points.emplace_back(event["ts"], event["args"]["used"]);
  }
  EXPECT_THAT(points, ::testing::ElementsAre(std::pair(10.0, 100), std::pair(30.0, 60),
                                             std::pair(30.0, 20), std::pair(40.0, 80),
                                             std::pair(70.0, 90)));
}

TEST_F(TraceWriterTest, IsValidWhenEventsWereDropped) {
  EventLog log(3);
  record_step(log);
  write_trace(log, path());
  const Json trace = parsed();
  EXPECT_EQ(trace["metadata"]["dropped_events"], 5);
  ASSERT_EQ(phase(trace, "X").size(), 1U);  // the step's begin is gone, so it has no row
  EXPECT_EQ(phase(trace, "X")[0]["name"], "conv2d recompute");
}

TEST_F(TraceWriterTest, AnEmptyLogIsAValidTrace) {
  write_trace(EventLog(), path());
  EXPECT_TRUE(phase(parsed(), "X").empty());
}

TEST_F(TraceWriterTest, NamesAreEscaped) {
  EventLog log;
  record(log, {EventKind::kOperator, "a\"b\\\n\xff", 0, 1, 2});
  record(log, {EventKind::kReload, "", 9, 3, 4});  // a row without a name
  write_trace(log, path(), {.process = "the \"best\""});
  const auto work = phase(parsed(), "X");
  EXPECT_EQ(work[0]["name"], "a\"b\\\n\xef\xbf\xbd");
  EXPECT_EQ(work[1]["name"], "reload");
}

TEST_F(TraceWriterTest, StreamsStepByStep) {
  EventLog log(4);
  TraceWriter writer(path());
  for (uint64_t i = 0; i < 100; ++i) {
    record(log, {EventKind::kOperator, "relu", 0, static_cast<int64_t>(10 * i + 1),
                 static_cast<int64_t>(10 * i + 5)});
    writer.write(*log.find(i + 1));
  }
  EXPECT_FALSE(fs::exists(path()));
  writer.finish();
  EXPECT_EQ(phase(parsed(), "X").size(), 100U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(TraceWriterTest, AnUnfinishedTraceLeavesWhatWasThere) {
  std::ofstream(path()) << "before";
  { TraceWriter writer(path()); }
  EXPECT_EQ(contents(), "before");
  EXPECT_EQ(files(), 1U);
  write_trace(EventLog(), path());
  EXPECT_NE(contents(), "before");
}

TEST_F(TraceWriterTest, ALinkIsFollowedAlsoToNoFileYet) {
  const fs::path target = fs::path(path()).parent_path() / "target.json";
  fs::create_symlink("target.json", path());  // relative to the link's folder
  for (int i = 0; i < 2; ++i) {
    write_trace(EventLog(), path());
    EXPECT_TRUE(fs::is_symlink(path())) << i;
    EXPECT_TRUE(fs::is_regular_file(target)) << i;
    EXPECT_EQ(files(), 2U) << i;
  }
  fs::remove(path());
  fs::create_symlink(fs::path(path()).filename(), path());  // to itself
  EXPECT_THROW(write_trace(EventLog(), path()), DataError);
  EXPECT_TRUE(fs::is_symlink(path()));
}

TEST_F(TraceWriterTest, ADeviceIsWrittenToAndStaysOne) {
  fs::create_symlink("/dev/null", path());
  write_trace(EventLog(), path());
  EXPECT_TRUE(fs::is_character_file(path()));
  EXPECT_EQ(files(), 1U);
}

TEST_F(TraceWriterTest, AFileThatCannotBeWrittenIsSaid) {
  try {
    TraceWriter writer("/no/such/directory/trace.json");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "/no/such/directory/trace.json");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("No such file"));
  }
  // A folder blocks the rename.
  fs::create_directories(path() + "/x");
  EXPECT_THROW(write_trace(EventLog(), path()), DataError);
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace tidemark
