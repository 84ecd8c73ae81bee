#include <gmock/gmock.h>

#include "examples/compare/terminal_face.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small;
using testing::wait_applied;

std::string joined(const Canvas& canvas) {
  std::string text;
  for (const std::string& line : canvas.text()) text += line + "\n";
  return text;
}

TEST(Canvas, CutsOffWhatIsOutside) {
  Canvas canvas(5, 2);
  EXPECT_EQ(canvas.put(0, 3, "abc"), 6);
  canvas.put(0, -1, "xy");
  canvas.put(7, 0, "never");
  canvas.put_right(1, 5, "\u00e9nd");
  EXPECT_THAT(canvas.text(), ::testing::ElementsAre("y  ab", "  \u00e9nd"));
}

TEST(Canvas, EscapesNeverComeFromText) {
  Canvas canvas(10, 1);
  canvas.put(0, 0, "a\x1b[2Jb", {.bold = true});
  EXPECT_EQ(canvas.text()[0], "a [2Jb");
  EXPECT_THAT(canvas.ansi(true), Not(HasSubstr("\x1b[2J")));
}

TEST(Canvas, ColoursCanBeOff) {
  Canvas canvas(3, 1);
  canvas.put(0, 0, "abc", {.colour = 33, .bold = true});
  EXPECT_THAT(canvas.ansi(true), HasSubstr("\x1b[0;1;38;5;33mabc"));
  EXPECT_THAT(canvas.ansi(false), HasSubstr("\x1b[0;1mabc"));
}

TEST(DotChart, DrawsFromTheLowerLeft) {
  Canvas canvas(2, 2);
  DotChart chart(2, 2, true);
  chart.line(0, 0, 3, 7, '1', {});
  chart.draw(canvas, 0, 0);
  EXPECT_THAT(canvas.text(), ::testing::ElementsAre(" \u285c", "\u285c")) << joined(canvas);
}

class TerminalViewTest : public ::testing::Test {
 protected:
  TerminalViewTest() { testing::wait_steps(comparison_, 3); }
  static ComparisonOptions options() {
    return small("sim:a100-80gb", {"none", "tide@40%", "delta:lru@40%"}, 3);
  }
  Comparison comparison_{options()};
};

TEST_F(TerminalViewTest, ShowsLanesCurvesAndDecisions) {
  const std::string text = joined(draw_view(*comparison_.snapshot(), {.selected = 3}, 140, 40));
  for (const char* part : {"without a budget", "1 none", ">3 delta:lru", "overhead",
                           "releases in the last step", "\xE2\xA1", "q quit"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(TerminalViewTest, FitsEveryWindow) {
  const auto now = comparison_.snapshot();
  for (int width = 1; width < 200; width += 7) {
    for (int height = 1; height < 70; height += 3) {
      const Canvas canvas = draw_view(*now, {.unicode = width % 2 == 0}, width, height);
      ASSERT_EQ(canvas.text().size(), static_cast<size_t>(height));
      for (const std::string& line : canvas.text()) ASSERT_LE(cells_of(line), width);
    }
  }
  const std::string narrow = joined(draw_view(*now, {}, 60, 30));
  EXPECT_THAT(narrow, HasSubstr("overhead"));
  EXPECT_THAT(narrow, Not(HasSubstr("waited")));
}

TEST_F(TerminalViewTest, WithoutUtf8ThereAreLettersOnly) {
  const Canvas canvas = draw_view(*comparison_.snapshot(), {.unicode = false}, 120, 40);
  for (const char c : joined(canvas)) ASSERT_GE(c, 0);
}

TEST_F(TerminalViewTest, NoiseAndWhatIsUnderWayAreCalledThat) {
  Snapshot now = *comparison_.snapshot();
  EXPECT_THAT(joined(draw_view(now, {}, 120, 30)), Not(HasSubstr("within noise")));
  // Measured, and neither faster nor slower: 32 % less in the only step that is far off.
  now.simulated = false;
  auto lane = std::make_shared<LaneView>(*now.lanes[1]);
  lane->recent.clear();
  now.reference_recent.clear();
  for (int64_t step = 0; step < 12; ++step) {
    now.reference_recent.push_back({step, Nanos(step == 0 ? 1470 : 1000 + step % 2)});
    lane->recent.push_back({step, Nanos(1000 + (step + 1) % 2)});
  }
  now.lanes[1] = lane;
  now.standings[2].phase = Phase::kPlanning;
  const std::string text = joined(draw_view(now, {}, 120, 30));
  EXPECT_THAT(text, HasSubstr("within noise"));
  EXPECT_THAT(text, HasSubstr("planning"));
}

TEST_F(TerminalViewTest, ColoursStayWithTheirLanes) {
  Snapshot now = *comparison_.snapshot();
  const std::string third = "\x1b[0;38;5;35m3 delta:lru";
  EXPECT_THAT(draw_view(now, {}, 120, 30).ansi(true), HasSubstr(third));
  now.lanes.erase(now.lanes.begin() + 1);
  now.standings.erase(now.standings.begin() + 1);
  EXPECT_THAT(draw_view(now, {}, 120, 30).ansi(true), HasSubstr(third));
}

TEST_F(TerminalViewTest, MismatchesAreLoud) {
  Snapshot now = *comparison_.snapshot();
  now.losses_compared = 4;
  now.losses_mismatched = 1;
  now.mismatches.push_back({7, "lane 2 (dtr)", "lane 1 (none)", 1.5F, 1.25F});
  EXPECT_THAT(joined(draw_view(now, {}, 100, 30)), HasSubstr("LOSSES DIFFER: 1 of 4"));
}

class KeysTest : public ::testing::Test {
 protected:
  static ComparisonOptions options() {
    ComparisonOptions options = small("sim:a100-80gb", {"none", "tide@40%"}, 0);
    options.paused = true;
    return options;
  }
  void type(const std::string& text) {
    for (const char c : text) keys_.press(c);
    keys_.press(Keys::kEnter);
  }
  Comparison comparison_{options()};
  Keys keys_{comparison_};
};

TEST_F(KeysTest, SwitchAddRemoveAndBudget) {
  keys_.press('2');
  keys_.press('s');
  EXPECT_THAT(keys_.state().prompt, HasSubstr("lane 2"));
  type("delta:lru");
  keys_.press('a');
  type("dtr@60%");
  keys_.press('b');
  type("70%");
  keys_.press('1');
  keys_.press('d');
  const auto now = wait_applied(comparison_, 4);
  ASSERT_EQ(now->lanes.size(), 2U);
  EXPECT_EQ(now->lanes[0]->spec.name(), "delta:lru");
  EXPECT_EQ(now->lanes[0]->budget, share_of(now->unmanaged_peak, 0.7));
  EXPECT_EQ(now->lanes[1]->spec.name(), "dtr");
}

TEST_F(KeysTest, MistakesStayOnTheScreenUntilTheNextKey) {
  keys_.press('2');
  keys_.press('b');
  type("1%");
  EXPECT_THAT(keys_.state().message, HasSubstr("budget"));
  keys_.press('s');
  EXPECT_EQ(keys_.state().message, "");
  type("best");
  EXPECT_THAT(keys_.state().message, HasSubstr("unknown policy 'best'"));
}

TEST_F(KeysTest, PauseSelectionEditingAndTheEnd) {
  keys_.press(' ');
  EXPECT_FALSE(comparison_.snapshot()->paused);
  keys_.press('p');
  EXPECT_TRUE(comparison_.snapshot()->paused);
  keys_.press(Keys::kDown);
  EXPECT_EQ(keys_.state().selected, 2);
  keys_.press(Keys::kDown);
  EXPECT_EQ(keys_.state().selected, 2);
  keys_.press(Keys::kUp);
  EXPECT_EQ(keys_.state().selected, 1);
  keys_.press('a');
  keys_.press('q');  // text now
  keys_.press(Keys::kBackspace);
  keys_.press('x');
  EXPECT_EQ(keys_.state().answer, "x");
  EXPECT_TRUE(keys_.press(Keys::kEscape));
  EXPECT_EQ(keys_.state().prompt, "");
  EXPECT_FALSE(keys_.press('q'));
  EXPECT_FALSE(keys_.press(3));  // Ctrl-C
}

}  // namespace
}  // namespace tidemark::compare
