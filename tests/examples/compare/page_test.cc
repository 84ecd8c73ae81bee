// The page in a browser without a screen: that it draws what there is, fits, and does what it
// is told.
#include <gmock/gmock.h>

#include <csignal>
#include <future>
#include <optional>

#include "examples/compare/page_server.h"
#include "tests/examples/compare/browser.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

using ::testing::AllOf;
using testing::Browser;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::small;

using Texts = std::vector<std::string>;

class PageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // a browser that has ended
    const std::string program = testing::find_browser();
    if (program.empty()) GTEST_SKIP() << "there is no chromium (scripts/setup.sh --dev has it)";
    browser_.emplace(program);
  }

  // Opens the page and waits until it has drawn a lane's details.
  void open_page(const PageServer& server, int width = 1400, int height = 1600) {
    browser_->open_page(server.url(), width, height);
    ASSERT_TRUE(browser_->wait_for("document.body.dataset.drawn !== undefined"));
  }
  int64_t count(const std::string& selector) {
    return browser_->evaluate("document.querySelectorAll(`" + selector + "`).length");
  }
  std::string text(const std::string& selector) {
    return browser_->evaluate("document.querySelector(`" + selector + "`).textContent");
  }
  Texts texts(const std::string& selector) {
    return browser_->evaluate("[...document.querySelectorAll(`" + selector +
                              "`)].map((e) => e.textContent)");
  }
  std::string body() { return browser_->evaluate("document.body.innerHTML"); }
  // A lane's row, history and curve have one colour each, of which there is the same.
  std::string colour(int lane) {
    const std::string id = std::to_string(lane);
    const auto of = [&](const std::string& selector, const char* property) -> std::string {
      return browser_->evaluate("getComputedStyle(document.querySelector(`" + selector +
                                "`))." + property);
    };
    const std::string row = of("tr[data-lane='" + id + "'] .swatch", "backgroundColor");
    EXPECT_EQ(of("#history [data-lane='" + id + "'] .swatch", "backgroundColor"), row);
    EXPECT_EQ(of("path.curve[data-lane='" + id + "']", "stroke"), row);
    return row;
  }
  // How far the document, and what scrolls within it, is wider than there is room for.
  int64_t overflow() {
    return browser_->evaluate(
        "Math.max(...[document.documentElement, ...document.querySelectorAll('.scroll')]"
        ".map((e) => e.scrollWidth - e.clientWidth))");
  }

  std::optional<Browser> browser_;
};

TEST_F(PageTest, DrawsLanesCurvesTensorsAndDecisions) {
  Comparison comparison(small("sim:a100-80gb", {"none", "tide@40%", "delta:lru@40%"}, 6));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  EXPECT_EQ(count("path.curve[d^=M]"), 3);
  EXPECT_GT(count("path.tensor[d^=M]"), 50);
  EXPECT_GT(count("rect.block"), 50);
  EXPECT_EQ(count("#lanes .swatch"), 3);
  EXPECT_EQ(count("#lanes button.remove"), 3);
  EXPECT_EQ(count("#history .time path[d^=M]"), 3);
  EXPECT_EQ(count("#history .loss"), 0);  // the simulator has none
  EXPECT_THAT(text("#status"), HasSubstr("finished"));
  EXPECT_THAT(texts(".selected"), ::testing::Each(HasSubstr("lane 2, tide")));
  const auto lane = comparison.snapshot()->lanes[1];
  EXPECT_THAT(text("#decisions-about"),
              HasSubstr(std::to_string(lane->picture.decisions_made) + " releases"));
  EXPECT_THAT(texts("#decisions td:nth-child(2)"),
              Contains(MatchesRegex("evict|offload|copy out|drop clean")));
  EXPECT_THAT(body(), ::testing::Not(HasSubstr("NaN")));
}

TEST_F(PageTest, KindsHaveColoursAndALegend) {
  Comparison comparison(small("sim:a100-80gb", {"tide@40%"}, 4));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  const Texts kinds = browser_->evaluate(
      "[...document.querySelectorAll('#kinds button')].map((b) => b.dataset.kind)");
  EXPECT_THAT(kinds, AllOf(Contains("activations"), Contains("parameters"),
                           Contains("gradients"), Contains("optimizer state")));
  // Each block has the colour that the legend gives to its kind, and no two kinds have the
  // same.
  EXPECT_EQ(browser_->evaluate(R"((() => {
    const legend = new Map([...document.querySelectorAll("#kinds button")].map((b) =>
        [b.dataset.kind, getComputedStyle(b.querySelector(".swatch")).backgroundColor]));
    const wrong = [...document.querySelectorAll("rect.block")].filter((r) =>
        getComputedStyle(r).fill !== legend.get(d3.select(r).datum().category));
    return [wrong.length, legend.size - new Set(legend.values()).size];
  })())"),
            Browser::Json::array({0, 0}));
  // One kind alone.
  browser_->evaluate("document.querySelector('[data-kind=parameters]').click()");
  EXPECT_EQ(browser_->evaluate(R"([...document.querySelectorAll("rect.block")].every((r) =>
      r.classList.contains("other-kind") ===
      (d3.select(r).datum().category !== "parameters")))"),
            true);
  EXPECT_GT(count("rect.block.other-kind"), 0);
}

TEST_F(PageTest, FitsWideAndNarrowWindows) {
  // Policies with long names, budgets with many digits.
  ComparisonOptions options = small(
      "cpu", {"none", "tide@40%", "delta:greedy@40%", "checkpoint@95%", "offload-only@40%"}, 3);
  Comparison comparison(options);
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  EXPECT_LE(overflow(), 0);
  for (const int width : {1200, 1000, 760, 400}) {
    browser_->resize(width, 900);
    ASSERT_TRUE(browser_->wait_for("innerWidth === " + std::to_string(width)));
    EXPECT_LE(browser_->evaluate("document.documentElement.scrollWidth").get<int>(), width);
    // The table of lanes fits as well; that of the releases scrolls on a telephone.
    EXPECT_LE(browser_
                  ->evaluate("(() => { const box = document.querySelector('#lanes')"
                             ".parentElement; return box.scrollWidth - box.clientWidth; })()")
                  .get<int>(),
              0)
        << width;
  }
}

TEST_F(PageTest, ShowsEqualLossesAndTheirHistory) {
  Comparison comparison(small("cpu", {"none", "tide@40%"}, 9));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  EXPECT_THAT(text("#losses"), HasSubstr("losses equal to the bit (9 comparisons)"));
  EXPECT_THAT(texts("#lanes .bits"), ::testing::Each(MatchesRegex("[0-9a-f]{8}")));
  EXPECT_EQ(count("#history .loss path[d^=M]"), 2);
  // One is what the other is compared with; of that one, a spread is shown.
  EXPECT_THAT(texts("#lanes td[data-label=overhead] .value"),
              ElementsAre("reference", MatchesRegex("within noise|[+-].* %")));
  EXPECT_THAT(texts("#lanes td[data-label=overhead] .more"),
              ElementsAre("", MatchesRegex(".* to .* %")));
}

TEST_F(PageTest, ZoomsAndBack) {
  Comparison comparison(small("sim:a100-80gb", {"tide@40%"}, 4));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  const auto domain = [&](const char* chart) {
    return browser_->evaluate(std::string(chart) + ".frame.x.domain().concat(" + chart +
                              ".frame.y.domain())");
  };
  const auto whole = domain("map"), whole_stack = domain("stack");
  browser_->evaluate(R"((() => {
    const box = document.querySelector("#map svg").getBoundingClientRect();
    const mouse = (target, type, x, y) => target.dispatchEvent(new MouseEvent(type,
        {bubbles: true, button: 0, clientX: box.left + x, clientY: box.top + y, view: window}));
    mouse(document.querySelector("#map svg"), "mousedown", 150, 60);
    mouse(window, "mousemove", 200, 100);
    mouse(window, "mouseup", 250, 160);
  })())");
  const auto part = domain("map");
  EXPECT_GT(part[0], whole[0]);
  EXPECT_LT(part[1], whole[1]);
  EXPECT_GT(part[2], whole[2]);
  EXPECT_LT(part[3], whole[3]);
  // The chart beside it shows the same time, and all of its bytes.
  const auto beside = domain("stack");
  EXPECT_EQ(beside[0], part[0]);
  EXPECT_EQ(beside[1], part[1]);
  EXPECT_EQ(beside[3], whole_stack[3]);
  browser_->evaluate("[...document.querySelectorAll('#map .zoom button')].at(-1).click()");
  EXPECT_EQ(domain("map"), whole);
  EXPECT_EQ(domain("stack"), whole_stack);
}

TEST_F(PageTest, AnEditIsPendingUntilItIsDone) {
  ComparisonOptions options = small("cpu", {"none", "tide@50%"}, 0);
  options.paused = true;
  auto go = testing::hold(options, /*starts=*/2);
  Comparison comparison(options);
  const auto let_go = std::move(go);  // also if the test ends early, before the comparison does
  comparison.wait_until(testing::has_started);
  comparison.submit({.what = Command::kResume, .lane = 0, .spec = {}, .budget = {}});
  testing::wait_steps(comparison, 1);
  const PageServer server(comparison, 0);
  open_page(server);
  const std::string row = "tr[data-lane='2'] ";
  const auto value = [&](const std::string& field) -> std::string {
    return browser_->evaluate("document.querySelector(`" + row + field + "`).value");
  };
  const auto change = [&](const std::string& field, const std::string& to) {
    browser_->evaluate("(() => { const e = document.querySelector(`" + row + field +
                       "`); e.value = '" + to +
                       "'; e.dispatchEvent(new Event('change')); })()");
  };
  EXPECT_EQ(text(row + ".state"), "running");
  change(".policy", "dtr");
  // It is held back: through several polls the choice stays, and is shown as under way.
  ASSERT_TRUE(browser_->wait_for("document.querySelector(`" + row +
                                 ".state`).textContent === 'preparing the change'"));
  EXPECT_EQ(value(".policy"), "dtr");
  EXPECT_EQ(count(row + ".policy.pending"), 1);
  EXPECT_EQ(count("tr.busy"), 1);
  EXPECT_EQ(comparison.snapshot()->lanes[1]->spec.policy, "tide");
  let_go->set_value();
  ASSERT_TRUE(browser_->wait_for("!document.querySelector('tr.busy')"));
  EXPECT_EQ(value(".policy"), "dtr");
  EXPECT_EQ(count(row + ".policy.pending"), 0);
  EXPECT_EQ(comparison.snapshot()->lanes[1]->spec.policy, "dtr");
  // What is refused springs back, with the reason.
  const std::string budget = value(".budget-field");
  change(".budget-field", "1%");
  ASSERT_TRUE(browser_->wait_for("document.querySelector('#answer.bad')"));
  EXPECT_THAT(text("#answer"), HasSubstr("Refused: "));
  EXPECT_EQ(value(".budget-field"), budget);
}

TEST_F(PageTest, ColoursStayWithTheirLanes) {
  ComparisonOptions options = small("sim:a100-80gb", {"none", "tide@40%", "dtr@60%"}, 0);
  options.rate = 20;
  Comparison comparison(options);
  testing::wait_steps(comparison, 2);
  const PageServer server(comparison, 0);
  open_page(server);
  const std::string first = colour(1), second = colour(2), third = colour(3);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  browser_->evaluate("document.querySelector(`tr[data-lane='1'] .remove`).click()");
  ASSERT_TRUE(browser_->wait_for("document.querySelectorAll('#lanes tbody tr').length === 2"));
  EXPECT_EQ(colour(2), second);
  EXPECT_EQ(colour(3), third);
  browser_->evaluate("document.querySelector('#add button').click()");
  ASSERT_TRUE(browser_->wait_for("document.querySelector(`path.curve[data-lane='4']`)"));
  EXPECT_EQ(colour(2), second);
  EXPECT_EQ(colour(3), third);
  EXPECT_EQ(colour(4), first);
}

TEST_F(PageTest, EverythingThatCanBeUsedHasAName) {
  Comparison comparison(small("sim:a100-80gb", {"none", "tide@40%"}, 3));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  open_page(server);
  EXPECT_EQ(browser_->evaluate(R"([...document.querySelectorAll(
      "button, select, input, svg")].filter((e) => !e.getAttribute("aria-label") &&
      !(e.labels && e.labels.length) && !(e.tagName === "BUTTON" && e.textContent.trim()))
      .map((e) => e.outerHTML.slice(0, 200)))"),
            Browser::Json::array());
  // Nothing comes from elsewhere.
  EXPECT_EQ(browser_->evaluate(R"(performance.getEntriesByType("resource").filter((e) =>
      !e.name.startsWith(location.origin + "/") && !e.name.startsWith("data:")).length)"),
            0);
}

}  // namespace
}  // namespace tidemark::compare
