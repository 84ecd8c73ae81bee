#include "examples/compare/page_server.h"

#include <gmock/gmock.h>
#include <httplib.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/core/errors.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::small;
using testing::wait_applied;

class PageServerTest : public ::testing::Test {
 protected:
  PageServerTest() {
    client_.set_default_headers({{"Origin", origin()}});
    testing::wait_steps(comparison_, 2);
  }

  static ComparisonOptions options() {
    ComparisonOptions options =
        small("sim:a100-80gb", {"none", "tide@40%", "delta:lru@40%"}, 0);
    options.rate = 100;
    return options;
  }
  std::string origin() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  Json get(const std::string& path, int status = 200) {
    const auto result = client_.Get(path);
    EXPECT_TRUE(result) << path;
    EXPECT_EQ(result->status, status) << path << ": " << result->body;
    return Json::parse(result->body, nullptr, false);
  }
  Json post(const std::string& body, int status, const httplib::Headers& headers = {},
            const std::string& type = "application/json") {
    const auto result = client_.Post("/api/commands", headers, body, type);
    EXPECT_TRUE(result) << body;
    EXPECT_EQ(result->status, status) << body << ": " << result->body;
    return Json::parse(result->body, nullptr, false);
  }

  Comparison comparison_{options()};
  PageServer server_{comparison_, 0};
  httplib::Client client_{"127.0.0.1", server_.port()};
};

TEST_F(PageServerTest, ServesThePageAndAllThatItAsksFor) {
  const auto page = client_.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->get_header_value("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"),
              HasSubstr("default-src 'self'"));
  for (const char* part : {"page.css", "d3.min.js", "charts.js", "page.js"}) {
    EXPECT_THAT(page->body, HasSubstr(part));
    const auto result = client_.Get(std::string("/") + part);
    ASSERT_TRUE(result) << part;
    EXPECT_EQ(result->status, 200) << part;
    EXPECT_GT(result->body.size(), 1000U) << part;
  }
  EXPECT_EQ(page->body.find("https://"), std::string::npos);  // nothing from elsewhere
}

TEST_F(PageServerTest, SnapshotsHaveWhatThePageDraws) {
  const Json now = get("/api/snapshot");
  EXPECT_EQ(now.at("lanes").size(), 3U);
  EXPECT_GT(now.at("minimum_budget_bytes"), 0);
  EXPECT_GT(now.at("reference_ms"), 0);
  const Json& tide = now.at("lanes").at(1);
  EXPECT_EQ(tide.at("policy"), "tide");
  EXPECT_GT(tide.at("curve").size(), 20U);
  EXPECT_LE(tide.at("peak_reserved_bytes"), tide.at("budget_bytes"));
  EXPECT_TRUE(tide.at("overhead").is_number());
  EXPECT_TRUE(tide.at("loss").is_null());
}

TEST_F(PageServerTest, AClientIsToldIfThereIsNothingNew) {
  wait_applied(comparison_, post(R"({"do":"pause"})", 202).at("number"));
  comparison_.stop();
  const Json now = get("/api/snapshot");
  const auto again = client_.Get("/api/snapshot?after=" + now.at("number").dump());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, 204);
}

TEST_F(PageServerTest, ALanesBlocksAndDecisions) {
  const Json lane = get("/api/lane/3");
  EXPECT_EQ(lane.at("name"), "delta:lru");
  ASSERT_GT(lane.at("blocks").size(), 50U);
  EXPECT_EQ(lane.at("blocks").at(0).size(), 11U);
  ASSERT_GT(lane.at("decisions").size(), 0U);
  const Json& decision = lane.at("decisions").at(0);
  for (const char* key : {"ms", "action", "reason", "operator", "bytes", "age_ms", "cost_ms"}) {
    EXPECT_TRUE(decision.contains(key)) << key;
  }
}

TEST_F(PageServerTest, ChoicesAreThePoliciesThatThereAre) {
  const Json choices = get("/api/choices");
  EXPECT_EQ(choices.at("policies").size(), policies().size() + 1);
  EXPECT_EQ(choices.at("filters").size(), 3U);
}

TEST_F(PageServerTest, CommandsAreCarriedOut) {
  const uint64_t switched =
      post(R"({"do":"switch","lane":3,"policy":"delta","filter":"greedy"})", 202).at("number");
  const uint64_t added =
      post(R"({"do":"add","policy":"dtr","budget":"60%"})", 202).at("number");
  const uint64_t budget = post(R"({"do":"budget","lane":2,"budget":"70%"})", 202).at("number");
  const uint64_t removed = post(R"({"do":"remove","lane":1})", 202).at("number");
  EXPECT_LT(switched, added);
  EXPECT_LT(added, budget);
  const auto now = wait_applied(comparison_, removed);
  ASSERT_EQ(now->lanes.size(), 3U);
  EXPECT_EQ(now->lanes[0]->budget, share_of(now->unmanaged_peak, 0.7));
  EXPECT_EQ(now->lanes[1]->spec.name(), "delta:greedy");
  EXPECT_EQ(now->lanes[2]->spec.name(), "dtr");
  post(R"({"do":"pause"})", 202);
  EXPECT_TRUE(comparison_.snapshot()->paused);
  post(R"({"do":"resume"})", 202);
  EXPECT_FALSE(comparison_.snapshot()->paused);
}

TEST_F(PageServerTest, ABudgetThatIsTooSmallIsRefusedWithTheNumber) {
  const Json answer = post(R"({"do":"budget","lane":2,"budget":"1KiB"})", 409);
  EXPECT_EQ(answer.at("minimum_budget_bytes"), comparison_.snapshot()->minimum.count());
  EXPECT_THAT(answer.at("error").get<std::string>(), HasSubstr("budget"));
}

TEST_F(PageServerTest, BadRequestsAreExplained) {
  for (const char* body : {"",
                           "nothing",
                           "[]",
                           "7",
                           "{}",
                           R"({"do":7})",
                           R"({"do":"fly"})",
                           R"({"do":"switch"})",
                           R"({"do":"switch","lane":2})",
                           R"({"do":"switch","lane":"2","policy":"tide"})",
                           R"({"do":"switch","lane":99,"policy":"tide"})",
                           R"({"do":"switch","lane":-1,"policy":"tide"})",
                           R"({"do":"switch","lane":2,"policy":"best"})",
                           R"({"do":"switch","lane":2,"policy":"tide","filter":"best"})",
                           R"({"do":"switch","lane":1e99,"policy":"tide"})",
                           R"({"do":"add"})",
                           R"({"do":"add","policy":"tide","budget":"much"})",
                           R"({"do":"remove"})",
                           R"({"do":"remove","lane":77})",
                           R"({"do":"budget"})",
                           R"({"do":"budget","budget":"-5"})",
                           "{\"do\":\"\xff\xfe\"}"}) {
    const Json answer = post(body, 400);
    EXPECT_TRUE(answer.contains("error")) << body;
  }
  EXPECT_TRUE(get("/api/lane/99", 404).contains("error"));
  EXPECT_TRUE(get("/api/lane/x", 404).contains("error"));
  EXPECT_TRUE(get("/nothing", 404).contains("error"));
  EXPECT_TRUE(get("/../CMakeLists.txt", 404).contains("error"));
  EXPECT_TRUE(get("/api/snapshot?after=x", 400).contains("error"));
  EXPECT_TRUE(get("/api/snapshot?after=99999999999999999999", 400).contains("error"));
  post(R"({"do":"pause"})", 415, {}, "text/plain");
  post(std::string(100000, ' '), 413);
  const auto removed = client_.Delete("/api/commands");
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->status, 405);
  EXPECT_FALSE(comparison_.snapshot()->paused);
}

TEST_F(PageServerTest, OtherPagesCannotSteerIt) {
  httplib::Client stranger("127.0.0.1", server_.port());
  const std::string body = R"({"do":"pause"})";
  const auto status = [&](const httplib::Headers& headers) {
    const auto result = stranger.Post("/api/commands", headers, body, "application/json");
    return result ? result->status : 0;
  };
  EXPECT_EQ(status({}), 403);  // no Origin
  EXPECT_EQ(status({{"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(status({{"Origin", "null"}}), 403);
  EXPECT_EQ(status({{"Origin", "http://127.0.0.1:1"}}), 403);
  // A name of the attacker's that leads here (DNS rebinding), though it is of one origin.
  EXPECT_EQ(status({{"Host", "evil.example"}, {"Origin", "http://evil.example"}}), 403);
  const auto read = stranger.Get("/api/snapshot", {{"Host", "evil.example"}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, 403);
  EXPECT_FALSE(comparison_.snapshot()->paused);
  const std::string local = "localhost:" + std::to_string(server_.port());
  EXPECT_EQ(status({{"Host", local}, {"Origin", "http://" + local}}), 202);
}

TEST_F(PageServerTest, AbsentHostsAreRefused) {
  const auto result = client_.Get("/api/snapshot", {{"Host", ""}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 403);
}

TEST_F(PageServerTest, SeveralClientsAtOnce) {
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  clients.reserve(3);
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      httplib::Client client("127.0.0.1", server_.port());
      for (int i = 0; i < 10; ++i) {
        const auto snapshot = client.Get("/api/snapshot");
        const auto lane = client.Get("/api/lane/2");
        const auto order = client.Post("/api/commands", {{"Origin", origin()}},
                                       c == 0 ? R"({"do":"switch","lane":3,"policy":"lru"})"
                                              : R"({"do":"switch","lane":3,"policy":"greedy"})",
                                       "application/json");
        if (snapshot && lane && order && snapshot->status == 200 && lane->status == 200 &&
            order->status == 202 && Json::accept(snapshot->body) && Json::accept(lane->body)) {
          ++good;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 30);
}

TEST_F(PageServerTest, APortInUseIsAnError) {
  try {
    const PageServer second(comparison_, server_.port());
    FAIL() << "two servers at one port";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--serve 0"));
  }
}

}  // namespace
}  // namespace tidemark::compare
