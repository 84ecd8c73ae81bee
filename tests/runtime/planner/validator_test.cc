#include "runtime/planner/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tidemark::planner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

//   offset
//   30 |       +---+  workspace of g
//   20 |   +-------+  b
//   10 |   |  a    |
//    0 +---+---+---+--> f g h         f: -> a, b   g: a -> c in place   h: b, c ->
//
struct Scene {
  Problem problem;
  Plan plan;
};

Scene scene() {
  Scene s;
  for (const char* name : {"a", "b", "c"}) {
    Storage storage;
    storage.name = name;
    storage.size = Bytes(10);
    s.problem.storages.push_back(storage);
  }
  Operator f, g, h;
  f.name = "f", f.outputs = {0, 1};
  g.name = "g", g.inputs = {0}, g.outputs = {2}, g.workspace = Bytes(10);
  h.name = "h", h.inputs = {1, 2};
  s.problem.operators = {f, g, h};
  s.problem.may_be_in_place = {{1, 0, 2}};
  s.plan.order = {0, 1, 2};
  s.plan.in_place = {{1, 0, 2}};
  s.plan.placements = {{0, kNone, 0, 2, Bytes(10), Offset(0)},
                       {1, kNone, 0, 3, Bytes(10), Offset(10)},
                       {2, kNone, 1, 3, Bytes(10), Offset(0)},
                       {kNone, 1, 1, 2, Bytes(10), Offset(20)}};
  s.plan.peak = s.plan.load = s.plan.bound = Bytes(30);
  return s;
}

TEST(ValidatorTest, AcceptsTheScene) {
  const Scene s = scene();
  EXPECT_THAT(violations(s.problem, s.plan), IsEmpty());
}

struct Spoiled {
  const char* name;
  std::function<void(Scene&)> spoil;
  const char* says;
};

class ValidatorSpoiledTest : public ::testing::TestWithParam<Spoiled> {};

TEST_P(ValidatorSpoiledTest, IsRefused) {
  Scene s = scene();
  GetParam().spoil(s);
  EXPECT_THAT(violations(s.problem, s.plan), Contains(HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    All, ValidatorSpoiledTest,
    ::testing::Values(
        Spoiled{"too_few", [](Scene& s) { s.plan.order.pop_back(); }, "has 2 of 3 operators"},
        Spoiled{"twice",
                [](Scene& s) {
                  s.plan.order = {0, 1, 1};
                },
                "runs twice"},
        Spoiled{"unknown",
                [](Scene& s) {
                  s.plan.order = {0, 1, 3};
                },
                "no such operator"},
        Spoiled{"reader_first",
                [](Scene& s) {
                  s.plan.order = {1, 0, 2};
                },
                "writes its input"},
        Spoiled{"control_edge", [](Scene& s) { s.problem.operators[1].after = {2}; },
                "control edge"},
        Spoiled{"no_place",
                [](Scene& s) { s.plan.placements.erase(s.plan.placements.begin()); },
                "has 0 placements"},
        Spoiled{"no_workspace", [](Scene& s) { s.plan.placements.pop_back(); },
                "has 0 placements"},
        Spoiled{"two_places",
                [](Scene& s) { s.plan.placements.push_back(s.plan.placements[1]); },
                "has 2 placements"},
        Spoiled{"of_nothing", [](Scene& s) { s.plan.placements[0].storage = 8; },
                "must name one"},
        Spoiled{"freed_early", [](Scene& s) { s.plan.placements[1].end = 2; },
                "is used outside"},
        Spoiled{"created_late", [](Scene& s) { s.plan.placements[1].begin = 1; },
                "is used outside"},
        Spoiled{"wrong_size", [](Scene& s) { s.plan.placements[1].size = Bytes(9); },
                "the wrong size"},
        Spoiled{"overlap", [](Scene& s) { s.plan.placements[1].offset = Offset(5); },
                "share bytes"},
        Spoiled{"overlap_workspace", [](Scene& s) { s.plan.placements[3].offset = Offset(15); },
                "share bytes"},
        Spoiled{"not_in_place", [](Scene& s) { s.plan.in_place.clear(); }, "share bytes"},
        Spoiled{"in_place_not_allowed", [](Scene& s) { s.problem.may_be_in_place.clear(); },
                "is not in the problem"},
        Spoiled{"in_place_used_later",
                [](Scene& s) {
                  s.problem.operators[2].inputs.push_back(0);
                  s.plan.placements[0].end = 3;
                },
                "used later"},
        Spoiled{"in_place_kept", [](Scene& s) { s.problem.storages[0].at_end = true; },
                "is used outside"},
        Spoiled{"in_place_twice",
                [](Scene& s) {
                  s.plan.in_place.push_back({1, 0, 2});
                },
                "reused twice"},
        Spoiled{"below_zero", [](Scene& s) { s.plan.placements[1].offset = Offset(-1); },
                "lies outside the arena"},
        Spoiled{"above_peak", [](Scene& s) { s.plan.placements[3].offset = Offset(21); },
                "lies outside the arena"},
        Spoiled{"past_the_end", [](Scene& s) { s.plan.placements[1].end = 4; },
                "lies outside the arena"},
        Spoiled{"peak", [](Scene& s) { s.plan.peak = Bytes(31); }, "the peak is 30"},
        Spoiled{"load", [](Scene& s) { s.plan.load = Bytes(29); }, "the load is 30"},
        Spoiled{"bound", [](Scene& s) { s.plan.bound = Bytes(31); }, "bound is above"},
        Spoiled{"budget", [](Scene& s) { s.problem.budget = Bytes(29); }, "above the budget"},
        Spoiled{"alias_outlives",
                [](Scene& s) {
                  // A view of b that h reads keeps b; here b is freed before.
                  Storage view;
                  view.name = "view", view.size = Bytes(5), view.alias_of = 1;
                  s.problem.storages.push_back(view);
                  s.problem.operators[1].outputs.push_back(3);
                  s.problem.operators[2].inputs = {2, 3};
                  s.plan.placements[1].end = 2;
                },
                "is used outside"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(LayoutViolationsTest, FindsEach) {
  const std::vector<Buffer> buffers = {{0, 2, Bytes(10)}, {1, 3, Bytes(10)}, {2, 4, Bytes(10)}};
  const auto check = [&](Offsets offsets, int64_t height) {
    return layout_violations(buffers, offsets, Bytes(height));
  };
  EXPECT_THAT(check({Offset(0), Offset(10), Offset(0)}, 20), IsEmpty());
  EXPECT_THAT(check({Offset(0), Offset(10)}, 20), Contains(HasSubstr("one offset per")));
  EXPECT_THAT(check({Offset(0), Offset(9), Offset(0)}, 19), Contains(HasSubstr("share bytes")));
  EXPECT_THAT(check({Offset(10), Offset(0), Offset(5)}, 20),
              Contains(HasSubstr("share bytes")));
  EXPECT_THAT(check({Offset(0), Offset(10), Offset(0)}, 21),
              Contains(HasSubstr("height is 20")));
  EXPECT_THAT(check({Offset(-1), Offset(10), Offset(0)}, 20), Contains(HasSubstr("outside")));
  EXPECT_THAT(check({Offset(0), Offset(11), Offset(0)}, 20), Contains(HasSubstr("outside")));
}

}  // namespace
}  // namespace tidemark::planner
