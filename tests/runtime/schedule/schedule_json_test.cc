// Schedules as files, and as pictures.
#include "runtime/schedule/schedule_json.h"

#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/schedule/schedule_svg.h"
#include "runtime/schedule/trace_json.h"
#include "tests/runtime/schedule/schedule_builder.h"
#include "tests/support/replaced.h"
#include "tests/support/trace_builder.h"

namespace tidemark::testing {
namespace {

using Do = Schedule::Do;

// s0 = f() in 2 units; g(s0); a foreign unit.
StepTrace small() {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 2);
  b.run({s0}, 50, 1);
  StepTrace t = b.trace();
  t.storages[0].name = "<layer> & \"one\"";
  return t;
}
Schedule small_schedule(const StepTrace& t) {
  ScheduleBuilder b(t);
  b.foreign(512, 0).run(0, {512}).evict(0).again(0, {0}, {1024}).move(0, 512);
  b.run(1, {units(2).count() + 512}).free(0);
  Schedule s = b.build();
  s.method = "by hand";
  s.peak_bound = units(2);
  return s;
}

TEST(ScheduleJson, OneLineForEachInstruction) {
  const StepTrace t = small();
  const std::string text = to_json(t, small_schedule(t));
  for (const char* line :
       {"\n  {\"do\":\"run\",\"op\":0,\"name\":\"call\",\"blocks\":[1,1]},\n",
        "\n  {\"do\":\"evict\",\"storage\":0,\"name\":\"<layer> & \\\"one\\\"\"},\n",
        "\n  {\"do\":\"run\",\"op\":0,\"name\":\"call\",\"again\":true,\"blocks\":[2,1]},\n",
        "\n  {\"storage\":1,\"name\":\"foreign\",\"size\":512,\"begin\":0,\"end\":6},\n",
        "\n  {\"name\":\"scratch\",\"size\":1048576,\"begin\":4,\"end\":5,\"at\":2097664}]}\n",
        "\"format\": \"tidemark schedule\""}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  }
  // A trace is no schedule, and a schedule is no trace.
  EXPECT_THROW(schedule_from_json(to_json(t), "file"), DataError);
  EXPECT_THROW(trace_from_json(text, "file"), DataError);
}

TEST(ScheduleJson, ReadsWhatItWrites) {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const StepTrace t = random_trace(random);
    Schedule s = RandomSchedule(t, random).run();
    for (Schedule::Block& block : s.blocks) block.at = Offset(static_cast<int64_t>(random()));
    s.placed = random() % 2 == 0;
    s.residents_apart = random() % 2 == 0;
    s.peak_bound = Bytes(static_cast<int64_t>(random()));
    s.moved = Bytes(static_cast<int64_t>(random()));
    s.shortfall = Bytes(static_cast<int64_t>(random() % 2));
    s.time = Nanos(static_cast<int64_t>(random()));
    s.recomputed = Nanos(static_cast<int64_t>(random()));
    s.ample_time = Nanos(static_cast<int64_t>(random()));
    s.time_bound = Nanos(static_cast<int64_t>(random()));
    s.any_order_bound = Nanos(static_cast<int64_t>(random()));
    s.method = i % 2 == 0 ? "" : "a \"method\"\n";
    if (i % 3 == 0) {  // an instruction without blocks may have any first block
      for (Schedule::Instruction& it : s.code) {
        if (it.blocks == 0) it.first_block = 0;
      }
    }
    const SavedSchedule read = schedule_from_json(to_json(t, s), "file");
    ASSERT_EQ(read.schedule, s) << "schedule " << i;
    ASSERT_EQ(read.trace, t);
  }
}

TEST(ScheduleJson, SaysWhatRunsInPlace) {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 2);
  const uint32_t s1 = b.call({s0}, 100, 2);
  b.last().may_overwrite = {s0};
  b.run({s1});
  const StepTrace t = b.trace();
  const Schedule s = ScheduleBuilder(t).run(0).run_over(1, s0).run(2).free(s1).build();
  const std::string text = to_json(t, s);
  EXPECT_NE(text.find("\"overwrites\":0"), std::string::npos) << text;
  EXPECT_EQ(schedule_from_json(text, "file").schedule, s);
  EXPECT_THROW(
      schedule_from_json(replaced(text, "\"overwrites\":0", "\"overwrites\":2"), "file"),
      DataError);
}

TEST(ScheduleJson, SaysWhichVariantRuns) {
  TraceBuilder b;
  const uint32_t s0 = b.call({}, 100, 2);
  const uint32_t s1 = b.call({s0}, 100, 2);
  b.last().variants = {{.name = "other", .inputs = {{s0}}, .workspace = Bytes(512)}};
  b.run({s1});
  const StepTrace t = b.trace();
  const Schedule s = ScheduleBuilder(t).run(0).run_variant(1, 1).run(2).free(s1).build();
  const std::string text = to_json(t, s);
  EXPECT_NE(text.find("\"variant\":1"), std::string::npos) << text;
  EXPECT_EQ(schedule_from_json(text, "file").schedule, s);
  EXPECT_THROW(schedule_from_json(replaced(text, "\"variant\":1", "\"variant\":2"), "file"),
               DataError);
}

TEST(ScheduleJson, SaysWhatIsWrongAndWhere) {
  const StepTrace t = small();
  const std::string good = to_json(t, small_schedule(t));
  const auto error = [](const std::string& text) -> std::string {
    try {
      schedule_from_json(text, "file.json");
    } catch (const DataError& e) {
      EXPECT_NE(std::string(e.what()).find("file.json"), std::string::npos);
      return e.what();
    }
    return "none";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    return error(replaced(good, from, to));
  };
  const struct {
    const char *from, *to, *says;
  } cases[] = {
      {"tidemark schedule", "tidemark", "not a schedule"},
      {"\"version\": 1", "\"version\": 2", "only version 1"},
      {"\"trace\"", "\"traces\"", "trace: not an object"},
      {"tidemark step graph", "tidemark", "not a step graph"},
      {"[0,0]", "[7,0]", "trace: op 1: there is no storage 7"},
      {"\"placed\": true", "\"placed\": 1", "placed: must be true or false"},
      {"\"code\"", "\"codes\"", "code: not a list"},
      {"\"do\":\"evict\"", "\"do\":\"lose\"", "code[1].do: no such instruction"},
      {"\"do\":\"evict\",\"storage\":0", "\"do\":\"evict\"", "code[1].storage: is missing"},
      {"\"do\":\"evict\",\"storage\":0", "\"do\":\"evict\",\"storage\":2",
       "code[1].storage: there are only"},
      {"\"do\":\"run\",\"op\":0", "\"do\":\"run\",\"op\":9", "code[0].op: there are only"},
      {"\"do\":\"run\",\"op\":0", "\"do\":\"run\",\"op\":-1", "code[0].op: not an unsigned"},
      {"\"blocks\":[1,1]", "\"blocks\":[1]", "code[0].blocks: must be [first, count]"},
      {"\"blocks\":[1,1]", "\"blocks\":[4,9]", "code[0].blocks: no such blocks"},
      {"\"blocks\":[1,1]", "\"blocks\":[4294967295,4294967295]", "code[0].blocks: no such"},
      {"\"storage\":1,", "\"storage\":2,", "blocks[0].storage: there are only"},
      {"\"storage\":1,", "", "blocks[0]: an initial block must belong to a storage"},
      {"\"begin\":0,\"end\":6", "\"begin\":0,\"end\":7", "blocks[0].end: the code has no such"},
      {"\"begin\":0,\"end\":6", "\"begin\":7,\"end\":6", "blocks[0].end: the code has no such"},
      {"\"size\":512,", "\"size\":-512,", "blocks[0].size: not a number of bytes"},
      {"\"size\":512,", "\"size\":1152921504606846976,",
       "blocks[0].size: the sum of the sizes"},
      {"\"initial_blocks\": 1", "\"initial_blocks\": 99", "initial_blocks: there are only"},
      {"\"at\":2097664", "\"at\":-1", "blocks[4].at: not a number of bytes"},
  };
  for (const auto& each : cases) {
    const std::string said = with(each.from, each.to);
    EXPECT_NE(said.find(each.says), std::string::npos) << each.says << "\n" << said;
  }
  EXPECT_EQ(error(good), "none");
  EXPECT_NE(error(std::string(100000, '[')).find("deep"), std::string::npos);
  for (size_t end = 0; end + 2 < good.size(); end += 7) {
    EXPECT_NE(error(good.substr(0, end)).find("not JSON"), std::string::npos) << end;
  }
}

// A file with bytes changed at random is refused or read as something else; nothing breaks.
TEST(ScheduleJson, DamagedFilesDoNoHarm) {
  std::mt19937 random(5);
  const StepTrace t = small();
  const std::string good = to_json(t, small_schedule(t));
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (int k = 0; k < 1 + i % 3; ++k) {
      text[random() % text.size()] = "0123456789[]{},:\"-x"[random() % 19];
    }
    try {
      const SavedSchedule read = schedule_from_json(text, "file");
      EXPECT_FALSE(to_json(read.trace, read.schedule).empty());
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 2000);
}

TEST(ScheduleSvg, DrawsBlocksAndMarksWithNamesThatAreSafe) {
  const StepTrace t = small();
  const std::string svg = draw_schedule(t, small_schedule(t), "a < b");
  for (const char* part : {"a &lt; b</text>", "s0 &lt;layer&gt; &amp; &quot;one&quot;: 2.0 MiB",
                           "by run op 0 call again", "<title>3: move s0", "<title>1: evict s0",
                           "s1 foreign: 512 B at 0, [0, 6), from the start", "scratch: 1.0 MiB",
                           ">activations</text>", ">workspace</text>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("<layer>"), std::string::npos);
  EXPECT_EQ(svg.find("copy in"), std::string::npos) << "marks that do not occur have no row";
  EXPECT_NE(draw_schedule(StepTrace(), Schedule(), "").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::testing
