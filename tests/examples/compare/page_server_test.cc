#include "examples/compare/page_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "examples/compare/http_server.h"
#include "examples/compare/snapshot_json.h"
#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"
#include "tests/examples/compare/raw_client.h"
#include "tests/examples/compare/small_comparison.h"

namespace tidemark::compare {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::Answer;
using testing::ask;
using testing::ask_raw;
using testing::Connection;
using testing::request_of;
using testing::small;
using testing::wait_applied;

class PageServerTest : public ::testing::Test {
 protected:
  PageServerTest() { testing::wait_steps(comparison_, 2); }

  static ComparisonOptions options() {
    ComparisonOptions options =
        small("sim:a100-80gb", {"none", "tide@40%", "delta:lru@40%"}, 0);
    options.rate = 100;
    return options;
  }
  std::string origin() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  Json get(const std::string& path, int status = 200) {
    const Answer answer = ask(port(), "GET", path);
    EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }
  Json post(const std::string& body, int status, std::string headers = "") {
    if (headers.find("Origin:") == std::string::npos) headers += "Origin: " + origin() + "\r\n";
    const Answer answer = ask(port(), "POST", "/api/commands", headers, body);
    EXPECT_EQ(answer.status, status) << body << ": " << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }
  int port() const { return server_.port(); }

  Comparison comparison_{options()};
  PageServer server_{comparison_, 0};
};

TEST_F(PageServerTest, ServesThePageAndAllThatItAsksFor) {
  const Answer page = ask(port(), "GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("default-src 'self'"));
  for (const char* part : {"page.css", "d3.min.js", "charts.js", "page.js"}) {
    EXPECT_THAT(page.body, HasSubstr(part));
    const Answer answer = ask(port(), "GET", std::string("/") + part);
    EXPECT_EQ(answer.status, 200) << part;
    EXPECT_GT(answer.body.size(), 1000U) << part;
    EXPECT_EQ(answer.header("Content-Length"), std::to_string(answer.body.size())) << part;
  }
  EXPECT_EQ(page.body.find("https://"), std::string::npos);  // nothing from elsewhere
  const Answer head = ask(port(), "HEAD", "/");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), std::to_string(page.body.size()));
  EXPECT_EQ(head.body, "");
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
  EXPECT_TRUE(tide.at("overhead").at("median").is_number());
  EXPECT_TRUE(tide.at("overhead").at("exact"));
  EXPECT_GE(tide.at("series").size(), 2U);
  EXPECT_TRUE(tide.at("loss").is_null());
}

TEST_F(PageServerTest, WhatItSendsIsBounded) {
  // The page has 8 lanes at most; memory for 64 connections was reckoned with 1 MiB each.
  auto now = std::make_shared<Snapshot>(*comparison_.snapshot());
  LaneView lane = *now->lanes[1];
  for (int64_t step = 0; step < 100'000; ++step) lane.series.add(step, 1234.5678, 0.123456789);
  ASSERT_GT(lane.picture.curve.size(), 0U);
  lane.picture.curve =
      thin_out(std::vector<CurvePoint>(5000, lane.picture.curve[0]), kCurvePoints);
  const PlacedBlock block = lane.picture.blocks.at(0);
  lane.picture.blocks.assign(100'000, block);
  lane.picture.decisions.assign(kDecisionsKept, lane.picture.decisions.at(0));
  now->lanes.assign(kMaxLanes, std::make_shared<const LaneView>(lane));
  now->standings.assign(kMaxLanes, now->standings[1]);
  constexpr size_t kReckoned = size_t{1} << 20;
  EXPECT_LT(to_json(*now).dump().size(), kReckoned);
  EXPECT_LT(details_to_json(*now, *now->lanes[0]).dump().size(), kReckoned);
}

TEST_F(PageServerTest, AClientIsToldIfThereIsNothingNew) {
  wait_applied(comparison_, post(R"({"do":"pause"})", 202).at("number"));
  comparison_.stop();
  const Json now = get("/api/snapshot");
  get("/api/snapshot?after=" + now.at("number").dump(), 204);
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
  post(R"({"do":"pause"})", 415, "Content-Type: text/plain\r\n");
  EXPECT_EQ(ask(port(), "DELETE", "/api/commands").status, 405);
  EXPECT_EQ(ask(port(), "POST", "/", "Origin: " + origin() + "\r\n", "{}").status, 404);
  EXPECT_FALSE(comparison_.snapshot()->paused);
}

TEST_F(PageServerTest, OtherPagesCannotSteerIt) {
  const std::string body = R"({"do":"pause"})";
  const auto status = [&](const std::string& headers) {
    return ask(port(), "POST", "/api/commands", headers, body).status;
  };
  EXPECT_EQ(status(""), 403);  // no Origin
  EXPECT_EQ(status("Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("Origin: null\r\n"), 403);
  EXPECT_EQ(status("Origin: http://127.0.0.1:1\r\n"), 403);
  // A name of the attacker's that leads here (DNS rebinding), though it is of one origin.
  EXPECT_EQ(status("Host: evil.example\r\nOrigin: http://evil.example\r\n"), 403);
  // Two of them: neither counts.
  EXPECT_EQ(status("Origin: " + origin() + "\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot", "Host: evil.example\r\n").status, 403);
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot", "Host: \r\n").status, 403);
  EXPECT_EQ(ask_raw(port(), "GET /api/snapshot HTTP/1.1\r\n\r\n").status, 400);
  EXPECT_FALSE(comparison_.snapshot()->paused);
  const std::string local = "localhost:" + std::to_string(port());
  EXPECT_EQ(status("Host: " + local + "\r\nOrigin: http://" + local + "\r\n"), 202);
}

TEST_F(PageServerTest, SeveralClientsAtOnce) {
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  clients.reserve(3);
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 10; ++i) {
        const Answer snapshot = ask(port(), "GET", "/api/snapshot");
        const Answer lane = ask(port(), "GET", "/api/lane/2");
        const Answer order =
            ask(port(), "POST", "/api/commands", "Origin: " + origin() + "\r\n",
                c == 0 ? R"({"do":"switch","lane":3,"policy":"lru"})"
                       : R"({"do":"switch","lane":3,"policy":"greedy"})");
        if (snapshot.status == 200 && lane.status == 200 && order.status == 202 &&
            Json::accept(snapshot.body) && Json::accept(lane.body)) {
          ++good;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 30);
}

// --- what a decent client never sends ---

TEST_F(PageServerTest, IdleAndHalfOpenConnectionsDoNotStopIt) {
  std::vector<Connection> idle;
  const std::string request = request_of(port(), "GET", "/api/snapshot");
  for (size_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(idle.emplace_back(port()).connected()) << i;
    // Some never say a word; others stop in the middle of a line, of the headers, or of the
    // body.
    if (i % 4 == 1) idle.back().send(request.substr(0, 9));
    if (i % 4 == 2) idle.back().send(request.substr(0, request.size() - 2));
    if (i % 4 == 3) {
      idle.back().send(request_of(port(), "POST", "/api/commands",
                                  "Origin: " + origin() + "\r\nContent-Length: 20\r\n", "{"));
    }
    if (i % 20 == 0) {
      EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200) << i;
    }
  }
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
  // Nor can they stay.
  for (const Connection& connection : idle) {
    const Answer answer(connection.read_all());
    EXPECT_EQ(answer.status, 0);
  }
}

TEST_F(PageServerTest, BytesThatTrickleInMakeWayForOthers) {
  const Connection slow(port());
  ASSERT_TRUE(slow.send("G"));
  std::vector<Connection> others;
  for (size_t i = 0; i < HttpServer::kMaxConnections + 1; ++i) {
    ASSERT_TRUE(others.emplace_back(port()).send("G"));
    slow.send("E");
  }
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
  EXPECT_EQ(slow.read_all(), "");  // closed, though it never was idle
}

TEST_F(PageServerTest, AClientThatDoesNotReadDoesNotStopIt) {
  std::vector<Connection> deaf;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(deaf.emplace_back(port()).send(request_of(port(), "GET", "/d3.min.js")));
  }
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
}

TEST_F(PageServerTest, BodiesAreBoundedWhateverTheirLength) {
  const std::string own = "Origin: " + origin() + "\r\n";
  const auto status = [&](const std::string& headers, const std::string& body) {
    return ask(port(), "POST", "/api/commands", own + headers, body).status;
  };
  const std::string pause = R"({"do":"pause"})";
  EXPECT_EQ(status("", std::string(100'000, ' ')), 413);
  EXPECT_EQ(status("Content-Length: 99999999999999999999\r\n", pause), 413);
  EXPECT_EQ(status("Content-Length: -1\r\n", pause), 400);
  EXPECT_EQ(status("Content-Length: +14\r\n", pause), 400);
  EXPECT_EQ(status("Content-Length: 0x0e\r\n", pause), 400);
  EXPECT_EQ(status("Content-Length: \r\n", pause), 400);
  EXPECT_EQ(status("Content-Length: 14\r\nContent-Length: 2\r\n", pause), 400);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "e\r\n" + pause + "\r\n0\r\n\r\n"), 411);
  // No length at all: the body would end where the connection does.
  EXPECT_EQ(ask_raw(port(),
                    "POST /api/commands HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) +
                        "\r\n" + own + "Content-Type: application/json\r\n\r\n" + pause)
                .status,
            411);
  EXPECT_FALSE(comparison_.snapshot()->paused);
}

// Sends without end, and gives how much of it was taken.
size_t taken(const Connection& connection, const std::string& start, const std::string& again) {
  constexpr size_t kFarTooMuch = size_t{64} << 20;
  if (!connection.send(start)) return 0;
  size_t sent = 0;
  while (sent < kFarTooMuch && connection.send(again)) sent += again.size();
  return sent;
}

TEST_F(PageServerTest, WhatHasNoEndIsCutOff) {
  constexpr size_t kBuffers = size_t{16} << 20;  // the system's, of both ends
  const std::string start =
      "POST /api/commands HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) +
      "\r\nOrigin: " + origin() + "\r\n";
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += "X-" + std::to_string(i) + ": y\r\n";
  const std::string line(4096, 'z');
  EXPECT_LT(taken(Connection(port()), start + "Transfer-Encoding: chunked\r\n\r\n", chunk),
            kBuffers);
  EXPECT_LT(taken(Connection(port()), start + "Content-Length: -1\r\n\r\n", chunk), kBuffers);
  EXPECT_LT(taken(Connection(port()), start + "\r\n", chunk), kBuffers);
  EXPECT_LT(taken(Connection(port()), start, headers), kBuffers);
  EXPECT_LT(taken(Connection(port()), start + "X: ", line), kBuffers);
  EXPECT_LT(taken(Connection(port()), "", line), kBuffers);
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
}

TEST_F(PageServerTest, HeadersAreBounded) {
  const auto status = [&](const std::string& headers) {
    return ask(port(), "GET", "/api/snapshot", headers).status;
  };
  std::string many;
  for (int i = 0; i < 4000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(status(many), 431);
  EXPECT_EQ(status("X: " + std::string(40'000, 'y') + "\r\n"), 431);
  EXPECT_EQ(status("Cookie: " + std::string(6'000, 'y') + "\r\n"), 200);
  EXPECT_EQ(ask(port(), "GET", "/" + std::string(40'000, 'y')).status, 414);
  // Nobody gets more for asking many times over.
  std::string ranges = "0-";
  for (int i = 0; i < 1000; ++i) ranges += ",0-";
  const Answer once = ask(port(), "GET", "/d3.min.js");
  const Answer often = ask(port(), "GET", "/d3.min.js", "Range: bytes=" + ranges + "\r\n");
  EXPECT_EQ(often.body.size(), once.body.size());
}

TEST_F(PageServerTest, GarbageChangesNothingAndEndsTheConnection) {
  const std::string host = "Host: 127.0.0.1:" + std::to_string(port()) +
                           "\r\nOrigin: " + origin() + "\r\nConnection: close\r\n";
  using namespace std::string_literals;
  for (const std::string& request :
       {"\r\n\r\n"s, "GET\r\n\r\n"s, "GET /\r\n\r\n"s, "GET / HTTP/9.9\r\n" + host + "\r\n",
        "GET  / HTTP/1.1\r\n" + host + "\r\n", "GET / x HTTP/1.1\r\n" + host + "\r\n",
        "GET http://127.0.0.1/ HTTP/1.1\r\n" + host + "\r\n",
        "GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host + " folded: x\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host + "a b: x\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host + "a: \0\r\n\r\n"s,
        "GET / HTTP/1.1\r\n" + host + "a: x\rb: y\r\n\r\n", "GET / HTTP/1.1\n" + host + "\r\n",
        "\x16\x03\x01\x02\r\n\r\n"s}) {
    ask_raw(port(), request);  // ends: the server answers or closes
  }
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
  // A second request after the first one is never looked at.
  const Answer two =
      ask_raw(port(), request_of(port(), "GET", "/api/choices") +
                          request_of(port(), "POST", "/api/commands",
                                     "Origin: " + origin() + "\r\n", R"({"do":"pause"})") +
                          std::string(3000, '\x01'));
  EXPECT_EQ(two.status, 200);
  EXPECT_TRUE(Json::accept(two.body));
  EXPECT_FALSE(comparison_.snapshot()->paused);
  // A client that goes away in the middle.
  for (size_t n = 0; n < 60; n += 7) {
    Connection(port()).send(request_of(port(), "GET", "/d3.min.js").substr(0, n));
  }
  EXPECT_EQ(ask(port(), "GET", "/api/snapshot").status, 200);
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
