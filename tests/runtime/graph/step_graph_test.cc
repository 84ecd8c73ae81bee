#include "runtime/graph/step_graph.h"

#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/graph/json.h"

namespace tidemark {
namespace {

using Kind = StepGraph::Kind;

// s0 data, s1 weight, s2 = conv(s0, s1), s3 = relu(s2), s1 written by sgd.
StepGraph small() {
  StepGraph g;
  g.storages = {{"upload", "data", Bytes(1024)},
                {"weight", "parameters", Bytes(512), true, true},
                {"conv", "activations", Bytes(2048)},
                {"relu", "activations", Bytes(2048)}};
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

std::string first_violation(const StepGraph& graph) {
  const auto found = graph_violations(graph, 1);
  return found.empty() ? "" : found.front();
}

TEST(StepGraph, TheSmallOneIsGood) {
  EXPECT_EQ(first_violation(small()), "");
  EXPECT_EQ(why_not_plannable(small()), "");
  // conv: data, weight, its output, and its workspace rounded up.
  EXPECT_EQ(program_order_peak(small()), Bytes(512 + 2048 + 2048));
  StepGraph wider = small();
  wider.ops[1].workspace = Bytes(4000);
  EXPECT_EQ(program_order_peak(wider), Bytes(1024 + 512 + 2048 + 4096));
}

TEST(StepGraph, ViolationsSayWhere) {
  const auto broken = [](auto change) {
    StepGraph graph = small();
    change(graph);
    return first_violation(graph);
  };
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[2].inputs[0].storage = 9; }),
            "op 2: there is no storage 9");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[2].inputs[0].storage = 0; }),
            "op 2: storage 0 is not there");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[2].outputs = {2}; }),
            "op 2: storage 2 is made twice");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[4].inputs[0].version = 1; }),
            "op 4: storage 3 has another version by then");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[4].released = {}; }),
            "storage 3 is never let go of and yet not there at the end");
  EXPECT_EQ(broken([](StepGraph& g) {
              g.ops[4].released = {3, 0};
            }),
            "op 4: storage 0 is let go of and was not there");
  EXPECT_EQ(broken([](StepGraph& g) { g.storages[2].size = Bytes(-1); }),
            "storage 2 has an impossible size");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[1].workspace = Bytes(INT64_MAX); }),
            "op 1: its workspace has an impossible size");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[2].may_overwrite = {1}; }),
            "op 2: nothing can be put where storage 1 lies");
  EXPECT_EQ(broken([](StepGraph& g) { g.ops[3].may_overwrite = {3}; }),
            "op 3: nothing can be put where storage 3 lies");
}

TEST(StepGraph, OnlyWhatMattersForMemoryTellsProgramsApart) {
  const auto same = [](auto change) {
    StepGraph graph = small();
    change(graph);
    EXPECT_EQ(signature_of(graph) == signature_of(small()), same_program(graph, small()));
    return same_program(graph, small());
  };
  EXPECT_TRUE(same([](StepGraph&) {}));
  EXPECT_TRUE(same([](StepGraph& g) { g.ops[1].cost = Nanos(1); }));
  EXPECT_FALSE(same([](StepGraph& g) { g.ops[1].signature = 1; }));
  EXPECT_FALSE(same([](StepGraph& g) { g.ops[1].workspace = Bytes(1); }));
  EXPECT_FALSE(same([](StepGraph& g) { g.ops[2].released = {}; }));
  EXPECT_FALSE(same([](StepGraph& g) { g.ops[2].may_overwrite = {}; }));
  EXPECT_FALSE(same([](StepGraph& g) { g.storages[3].size = Bytes(4096); }));
  EXPECT_FALSE(same([](StepGraph& g) { g.ops.pop_back(); }));
}

TEST(StepGraph, WhatCrossesTheStepsEndCannotBePlanned) {
  StepGraph stays = small();
  stays.storages[3].at_end = true;
  stays.ops[4].released = {};
  EXPECT_EQ(first_violation(stays), "");
  EXPECT_EQ(why_not_plannable(stays),
            "storage 3 (relu, activations) is made in this step and stays after it");
}

TEST(StepGraphJson, ThereAndBack) {
  EXPECT_EQ(graph_from_json(to_json(small()), "text"), small());
  EXPECT_EQ(graph_from_json(to_json(StepGraph()), "text"), StepGraph());
}

TEST(StepGraphJson, BadTextIsAnErrorWithThePlace) {
  const std::string good = to_json(small());
  const auto error = [](const std::string& text) -> std::string {
    try {
      graph_from_json(text, "step.json");
    } catch (const DataError& e) {
      return e.what();
    }
    return "none";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error(text.replace(at, from.size(), to));
  };
  EXPECT_NE(error("").find("not JSON"), std::string::npos);
  EXPECT_NE(error(good.substr(0, good.size() / 2)).find("not JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("format"), std::string::npos);
  EXPECT_NE(error(std::string(100000, '[')).find("deep"), std::string::npos);
  EXPECT_NE(with("\"version\": 1", "\"version\": 2").find("version"), std::string::npos);
  EXPECT_NE(with("\"size\":1024", "\"size\":1.5").find("storages[0].size"), std::string::npos);
  EXPECT_NE(with("\"size\":1024", "\"size\":99999999999999999999").find("storages[0].size"),
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
