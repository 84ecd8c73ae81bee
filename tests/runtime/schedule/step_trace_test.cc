#include "runtime/schedule/step_trace.h"

#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/schedule/trace_json.h"
#include "tests/support/replaced.h"

namespace tidemark {
namespace {

using Kind = StepTrace::Kind;

// s0 data, s1 weight, s2 = conv(s0, s1), s3 = relu(s2), s1 written by sgd.
StepTrace small() {
  StepTrace g;
  g.storages = {{"upload", Category::kData, Bytes(1024)},
                {"weight", Category::kParameter, Bytes(512), true, true},
                {"conv", Category::kActivation, Bytes(2048)},
                {"relu", Category::kActivation, Bytes(2048)}};
  g.ops = {{.kind = Kind::kUpload, .name = "upload", .outputs = {0}},
           {.kind = Kind::kCall,
            .name = "conv",
            .signature = 0xfedcba9876543210,
            .inputs = {{0, 0, false}, {1, 0, false}},
            .outputs = {2},
            .released = {0},
            .workspace = Bytes(1000),
            .cost = Nanos(77)},
           {.kind = Kind::kCall,
            .name = "relu",
            .inputs = {{2, 0, false}},
            .outputs = {3},
            .may_overwrite = {2},
            .released = {2}},
           {.kind = Kind::kCall,
            .name = "sgd",
            .inputs = {{1, 0, true}, {3, 0, false}},
            .released = {}},
           {.kind = Kind::kRead, .name = "read", .inputs = {{3, 0, false}}, .released = {3}}};
  return g;
}

std::string first_violation(const StepTrace& graph) {
  const auto found = trace_violations(graph, 1);
  return found.empty() ? "" : found.front();
}

TEST(StepTrace, TheSmallOneIsGood) {
  EXPECT_EQ(first_violation(small()), "");
  EXPECT_EQ(why_not_plannable(small()), "");
  // conv: data, weight, its output, and its workspace rounded up.
  EXPECT_EQ(program_order_peak(small()), Bytes(512 + 2048 + 2048));
  StepTrace wider = small();
  wider.ops[1].workspace = Bytes(4000);
  EXPECT_EQ(program_order_peak(wider), Bytes(1024 + 512 + 2048 + 4096));
}

TEST(StepTrace, ViolationsSayWhere) {
  const auto broken = [](auto change) {
    StepTrace graph = small();
    change(graph);
    return first_violation(graph);
  };
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].inputs[0].storage = 9; }),
            "op 2: there is no storage 9");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].inputs[0].storage = 0; }),
            "op 2: storage 0 is not live");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].outputs = {2}; }),
            "op 2: storage 2 is produced twice");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[4].inputs[0].version = 1; }),
            "op 4: storage 3 has another version at that point");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[4].released = {}; }),
            "storage 3 is never released but is not live at the end");
  EXPECT_EQ(broken([](StepTrace& g) {
              g.ops[4].released = {3, 0};
            }),
            "op 4: storage 0 is released but was not live");
  EXPECT_EQ(broken([](StepTrace& g) { g.storages[2].size = Bytes(-1); }),
            "storage 2 has an impossible size");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[1].workspace = Bytes(INT64_MAX); }),
            "op 1: its workspace has an impossible size");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].may_overwrite = {1}; }),
            "op 2: no output can overwrite storage 1");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[3].may_overwrite = {3}; }),
            "op 3: no output can overwrite storage 3");
}

// relu may also run from the data, which the program has dropped by then.
StepTrace with_variant() {
  StepTrace g = small();
  g.ops[2].variants = {{.name = "conv_relu",
                        .signature = 7,
                        .inputs = {{2, 0, false}, {0, 0, false}},
                        .may_overwrite = {2},
                        .workspace = Bytes(512),
                        .cost = Nanos(99)}};
  return g;
}

TEST(StepTrace, VariantsMayReadWhatTheProgramHasDropped) {
  EXPECT_EQ(first_violation(with_variant()), "");
  const auto broken = [](auto change) {
    StepTrace graph = with_variant();
    change(graph);
    return first_violation(graph);
  };
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].inputs[1].storage = 9; }),
            "op 2: there is no storage 9");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].inputs[1].storage = 3; }),
            "op 2: storage 3 is not live");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].inputs[1].version = 1; }),
            "op 2: storage 0 has another version at that point");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].workspace = Bytes(-1); }),
            "op 2: its workspace has an impossible size");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].cost = Nanos(-1); }),
            "op 2: it has a negative cost");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].may_overwrite = {1}; }),
            "op 2: no output can overwrite storage 1");
  const std::string writes = ": only a call that writes nothing in place has variants";
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].inputs[0].written = true; }),
            "op 2: no output can overwrite storage 2");
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[2].variants[0].inputs[1].written = true; }),
            "op 2" + writes);
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[3].variants = {{.name = "other"}}; }),
            "op 3" + writes);
  EXPECT_EQ(broken([](StepTrace& g) { g.ops[0].variants = {{.name = "other"}}; }),
            "op 0" + writes);
}

TEST(StepTrace, VariantsDoNotTellProgramsApart) {
  EXPECT_TRUE(same_program(with_variant(), small()));
  EXPECT_EQ(signature_of(with_variant()), signature_of(small()));
  EXPECT_FALSE(with_variant() == small());
}

TEST(StepTrace, OnlyWhatMattersForMemoryTellsProgramsApart) {
  const auto same = [](auto change) {
    StepTrace graph = small();
    change(graph);
    EXPECT_EQ(signature_of(graph) == signature_of(small()), same_program(graph, small()));
    return same_program(graph, small());
  };
  EXPECT_TRUE(same([](StepTrace&) {}));
  EXPECT_TRUE(same([](StepTrace& g) { g.ops[1].cost = Nanos(1); }));
  EXPECT_FALSE(same([](StepTrace& g) { g.ops[1].signature = 1; }));
  EXPECT_FALSE(same([](StepTrace& g) { g.ops[1].workspace = Bytes(1); }));
  EXPECT_FALSE(same([](StepTrace& g) { g.ops[2].released = {}; }));
  EXPECT_FALSE(same([](StepTrace& g) { g.ops[2].may_overwrite = {}; }));
  EXPECT_FALSE(same([](StepTrace& g) { g.storages[3].size = Bytes(4096); }));
  EXPECT_FALSE(same([](StepTrace& g) { g.ops.pop_back(); }));
}

TEST(StepTrace, WhatCrossesTheStepsEndCannotBePlanned) {
  StepTrace stays = small();
  stays.storages[3].at_end = true;
  stays.ops[4].released = {};
  EXPECT_EQ(first_violation(stays), "");
  EXPECT_EQ(why_not_plannable(stays),
            "storage 3 (relu, activations) is produced in this step and outlives it");
}

TEST(StepTraceJson, ThereAndBack) {
  EXPECT_EQ(trace_from_json(to_json(small()), "text"), small());
  EXPECT_EQ(trace_from_json(to_json(StepTrace()), "text"), StepTrace());
}

TEST(StepTraceJson, VariantsAreKept) {
  EXPECT_EQ(trace_from_json(to_json(with_variant()), "text"), with_variant());
}

TEST(StepTraceJson, NamesOutliveTheText) {
  const auto read_again = [] {
    const StepTrace read = trace_from_json(std::string(to_json(small())), "text");
    return StepTrace(read);
  };
  EXPECT_EQ(read_again(), small());
}

TEST(StepTraceJson, PinsAreKept) {
  StepTrace pinned = small();
  pinned.storages[1].may_evict = false;
  pinned.storages[2].may_offload = false;
  EXPECT_EQ(trace_from_json(to_json(pinned), "text"), pinned);
  EXPECT_FALSE(same_program(pinned, small()));
  EXPECT_NE(signature_of(pinned), signature_of(small()));
}

// Version 1 files did not say whether storages may be released.
TEST(StepTraceJson, EarlierFilesLoad) {
  const StepTrace read =
      trace_from_json(R"({"format": "tidemark step graph", "version": 1,
 "storages": [
  {"origin":"upload","category":"data","size":1024},
  {"origin":"weight","category":"parameters","size":512,"at_start":true,"at_end":true},
  {"origin":"conv","category":"activations","size":2048},
  {"origin":"relu","category":"activations","size":2048}],
 "ops": [
  {"kind":"upload","name":"upload","outputs":[0]},
  {"kind":"call","name":"conv","signature":"fedcba9876543210","inputs":[[0,0],[1,0]],)"
                      R"("outputs":[2],"released":[0],"workspace":1000,"cost_ns":77},
  {"kind":"call","name":"relu","inputs":[[2,0]],"outputs":[3],"may_overwrite":[2],"released":[2]},
  {"kind":"call","name":"sgd","inputs":[[1,0,"written"],[3,0]]},
  {"kind":"read","name":"read","inputs":[[3,0]],"released":[3]}]})",
                      "earlier.json");
  EXPECT_EQ(read, small());
}

TEST(StepTraceJson, BadTextIsAnErrorWithThePlace) {
  const std::string good = to_json(small());
  const auto error = [](const std::string& text) -> std::string {
    try {
      trace_from_json(text, "step.json");
    } catch (const DataError& e) {
      return e.what();
    }
    return "none";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    return error(testing::replaced(good, from, to));
  };
  EXPECT_NE(error("").find("not JSON"), std::string::npos);
  EXPECT_NE(error(good.substr(0, good.size() / 2)).find("not JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("format"), std::string::npos);
  EXPECT_NE(error(std::string(100000, '[')).find("deep"), std::string::npos);
  EXPECT_NE(with("\"version\": 1", "\"version\": 2").find("version"), std::string::npos);
  EXPECT_NE(with("\"size\":1024", "\"size\":1.5").find("storages[0].size"), std::string::npos);
  EXPECT_NE(with("\"size\":1024", "\"size\":99999999999999999999").find("storages[0].size"),
            std::string::npos);
  EXPECT_NE(
      with("\"size\":1024", "\"size\":4611686018427387904").find("storages[0].size: the sum"),
      std::string::npos);
  EXPECT_NE(with("\"data\"", "\"dates\"").find("storages[0].category: unknown category: dates"),
            std::string::npos);
  EXPECT_NE(with("[0,0]", "[0]").find("ops[1].inputs[0]"), std::string::npos);
  EXPECT_NE(with("[0,0]", "[-1,0]").find("ops[1].inputs[0]"), std::string::npos);
  EXPECT_NE(with("[0,0]", "[77,0]").find("there is no storage 77"), std::string::npos);
  EXPECT_NE(with("\"kind\":\"read\"", "\"kind\":\"write\"").find("ops[4].kind"),
            std::string::npos);
  EXPECT_NE(with("fedcba9876543210", "fedcba987654321g").find("ops[1].signature"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark
