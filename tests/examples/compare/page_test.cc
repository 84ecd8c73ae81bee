// The page in a browser without a screen: that it runs, and draws what there is.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "examples/compare/page_server.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string find_browser() {
  const char* path = std::getenv("PATH");
  std::string folder;
  std::istringstream folders(path ? path : "");
  while (std::getline(folders, folder, ':')) {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const fs::path program = fs::path(folder) / name;
      std::error_code error;
      if (fs::exists(program, error)) return program.string();
    }
  }
  return "";
}

int64_t count(const std::string& text, const std::string& what) {
  const std::regex pattern(what);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), {});
}

class PageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    browser_ = find_browser();
    if (browser_.empty())
      GTEST_SKIP() << "there is no chromium (scripts/setup.sh --dev has it)";
    std::string pattern = (fs::temp_directory_path() / "page_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // The document as it is after so long on the page's clock.
  std::string document(const std::string& url) const {
    const std::string command =
        "timeout 120 '" + browser_ +
        "' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync "
        "--window-size=1400,1600 --virtual-time-budget=6000 --user-data-dir='" +
        folder_.string() + "' --dump-dom '" + url + "' 2> '" + (folder_ / "log").string() + "'";
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return text;
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
    pclose(pipe);
    return text;
  }

  std::string browser_;
  fs::path folder_;
};

TEST_F(PageTest, DrawsLanesCurvesTensorsAndDecisions) {
  Comparison comparison(
      testing::small("sim:a100-80gb", {"none", "tide@40%", "delta:lru@40%"}, 6));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  const std::string page = document(server.url());
  EXPECT_THAT(page, ContainsRegex("data-drawn=\"[0-9]+\"")) << page.substr(0, 2000);
  EXPECT_EQ(count(page, "<path class=\"curve[^>]* d=\"M[0-9]"), 3);
  EXPECT_GT(count(page, "<path class=\"tensor\"[^>]* d=\"M[0-9]"), 50);
  EXPECT_GT(count(page, "<rect class=\"block\""), 50);
  EXPECT_EQ(count(page, "class=\"swatch\""), 3);
  EXPECT_EQ(count(page, "<button class=\"remove\""), 3);
  EXPECT_THAT(page, HasSubstr("finished"));
  EXPECT_THAT(page, HasSubstr("lane 2, tide"));
  const auto lane = comparison.snapshot()->lanes[1];
  EXPECT_THAT(page, HasSubstr(std::to_string(lane->picture.decisions_made) + " releases"));
  EXPECT_GT(count(page, "<td class=\"left\">(evict|offload|copy out|drop clean)</td>"), 0);
  EXPECT_EQ(count(page, "NaN"), 0);
}

TEST_F(PageTest, ShowsEqualLosses) {
  Comparison comparison(testing::small("cpu", {"none", "tide@40%"}, 2));
  comparison.wait_until([](const Snapshot& now) { return now.finished; });
  const PageServer server(comparison, 0);
  const std::string page = document(server.url());
  EXPECT_THAT(page, HasSubstr("losses equal to the bit (2 comparisons)"));
  EXPECT_THAT(page, ContainsRegex("class=\"bits\">[0-9a-f]{8}<"));
}

}  // namespace
}  // namespace tidemark::compare
