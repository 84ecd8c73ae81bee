// Tests the table that searches look steps up in, beside the step itself.
#include "runtime/schedule/step_table.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

using Kind = StepTrace::Kind;
using Numbers = std::vector<uint32_t>;

Numbers list(std::span<const uint32_t> numbers) { return {numbers.begin(), numbers.end()}; }

// s0 weight, s1 uploaded, call 0 s2 s3 = f(s0, s1), s4 uploaded, call 1 s5 = g(s3, s4),
// read s5, call 2 writes s0 and reads s5. s2 is held until the read.
StepTrace step() {
  StepTrace t;
  t.storages = {{.origin = "w",
                 .category = Category::kParameter,
                 .size = Bytes(1),
                 .at_start = true,
                 .at_end = true},
                {.origin = "upload", .category = Category::kData, .size = Bytes(2)},
                {.origin = "f", .size = Bytes(3)},
                {.origin = "f", .size = Bytes(4), .may_evict = false},
                {.origin = "upload", .category = Category::kData, .size = Bytes(5)},
                {.origin = "g", .size = Bytes(6), .at_end = true, .may_offload = false}};
  t.ops = {{.kind = Kind::kUpload, .name = "upload", .outputs = {1}},
           {.name = "f",
            .signature = 7,
            .inputs = {{0, 0, false}, {1, 0, false}},
            .outputs = {2, 3},
            .released = {1},
            .workspace = Bytes(8),
            .cost = Nanos(10)},
           {.kind = Kind::kUpload, .name = "upload", .outputs = {4}},
           {.name = "g",
            .inputs = {{3, 0, false}, {4, 0, false}},
            .outputs = {5},
            .released = {3, 4},
            .cost = Nanos(20)},
           {.kind = Kind::kRead, .name = "read", .inputs = {{5, 0, false}}, .released = {2}},
           {.name = "h", .inputs = {{0, 0, true}, {5, 0, false}}, .cost = Nanos(30)}};
  return t;
}

// What may be overwritten is, if it dies there and has the output's size.
TEST(StepTable, SaysWhatCanBeOverwritten) {
  StepTrace trace = step();
  trace.ops[3].may_overwrite = {4, 3};
  EXPECT_EQ(StepTable(trace).calls[1].overwrites, StepTable::kNone);
  trace.storages[3].size = trace.storages[5].size;
  EXPECT_EQ(StepTable(trace).calls[1].overwrites, 3U);
  trace.storages[4].size = trace.storages[5].size;
  EXPECT_EQ(StepTable(trace).calls[1].overwrites, 4U);
  trace.ops[3].released = {3};
  trace.ops[4].released = {2, 4};
  EXPECT_EQ(StepTable(trace).calls[1].overwrites, 3U);
}

TEST(StepTable, NumbersCallsAlone) {
  const StepTrace trace = step();
  ASSERT_TRUE(trace_violations(trace).empty()) << trace_violations(trace).front();
  const StepTable table(trace);
  ASSERT_EQ(table.calls.size(), 3U);
  EXPECT_EQ(table.calls[0].op, 1U);
  EXPECT_EQ(table.calls[1].op, 3U);
  EXPECT_EQ(table.calls[2].op, 5U);
  EXPECT_EQ(table.calls[0].signature, 7U);
  EXPECT_EQ(table.calls[0].workspace, Bytes(8));
  EXPECT_EQ(table.calls[2].begin, Nanos(30));
  EXPECT_EQ(table.duration, Nanos(60));
  EXPECT_EQ(list(table.inputs(0)), (Numbers{0, 1}));
  EXPECT_EQ(list(table.outputs(0)), (Numbers{2, 3}));
  EXPECT_EQ(list(table.inputs(2)), (Numbers{0, 5}));
  EXPECT_EQ(list(table.outputs(2)), (Numbers{}));
  EXPECT_EQ(list(table.written(1)), (Numbers{}));
  EXPECT_EQ(list(table.written(2)), (Numbers{0}));
}

TEST(StepTable, SaysWhenEachIsThere) {
  const StepTable table(step());
  const auto& items = table.items;
  EXPECT_TRUE(items[0].persistent && items[0].existed_before() && !items[0].may_evict)
      << "written";
  EXPECT_TRUE(items[0].lives_through() && !items[0].carried());
  EXPECT_EQ(items[0].uses, (Numbers{0, 2}));
  EXPECT_TRUE(items[1].uploaded && !items[1].existed_before() && !items[1].persistent);
  EXPECT_EQ(items[1].end, 1U);
  EXPECT_EQ(items[2].producer, 0U);
  EXPECT_EQ(items[2].uses, (Numbers{0}));
  EXPECT_EQ(items[2].end, 2U) << "held after its last use";
  EXPECT_FALSE(items[3].may_evict);
  EXPECT_EQ(items[4].begin, 1U) << "uploaded before call 1";
  EXPECT_EQ(items[4].producer, StepTable::kNone);
  EXPECT_EQ(items[5].end, 3U) << "never let go of";
  EXPECT_TRUE(items[5].may_evict && !items[5].may_offload && !items[5].persistent);
  EXPECT_TRUE(items[5].carried()) << "stays after the step";
}

}  // namespace
}  // namespace tidemark
