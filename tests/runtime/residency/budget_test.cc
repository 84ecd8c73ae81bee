// The smallest feasible budget, and what an OutOfMemory reports and leaves behind.
#include <algorithm>
#include <random>

#include "tests/runtime/residency/scene.h"
#include "tests/support/usage_error.h"

namespace tidemark::testing {
namespace {

using ::testing::TestWithParam;

// A small training program, and the largest aligned working set of its calls, without which no
// schedule can do.
struct Program {
  Bytes largest{0};
  std::vector<uint64_t> hashes;

  void run(Session& session, uint32_t seed) {
    std::mt19937 random(seed);
    const auto words = [&] { return int64_t{1} + static_cast<int64_t>(random() % 900); };
    std::vector<Handle> parameters;
    for (int i = 0; i < 3; ++i) {
      parameters.push_back(toy_upload(session, words(), random(), Category::kParameter));
    }
    for (int step = 0; step < 2; ++step) {
      session.step([&] {
        std::vector<Handle> live{toy_upload(session, words(), random())};
        note({live[0]}, 0);
        const auto any = [&] { return live[random() % live.size()]; };
        for (int i = 0; i < 24; ++i) {
          const std::vector<Handle> inputs{any(), any(), parameters[random() % 3]};
          const int64_t workspace = random() % 3 == 0 ? words() : 0;
          auto made = toy_call(session, inputs, {{words()}, {words()}}, random(), workspace);
          std::vector<Handle> operands = inputs;
          operands.insert(operands.end(), made.begin(), made.end());
          note(operands, workspace);
          live.insert(live.end(), made.begin(), made.end());
          if (live.size() > 8) live.erase(live.begin() + static_cast<int64_t>(random() % 8));
        }
        for (const Handle& parameter : parameters) {
          const Handle gradient = any();
          toy_update(session, {parameter, gradient}, random());
          note({parameter, gradient}, 0);
        }
        hashes.push_back(toy_hash(session, live.back()));
      });
    }
    for (const Handle& parameter : parameters) hashes.push_back(toy_hash(session, parameter));
  }

 private:
  void note(std::vector<Handle> operands, int64_t workspace) {
    Bytes sum = align_up(Bytes(workspace * 4));
    for (size_t i = 0; i < operands.size(); ++i) {
      bool seen = false;
      for (size_t j = 0; j < i; ++j) seen = seen || operands[j].get() == operands[i].get();
      if (!seen) sum += operands[i]->size();
    }
    largest = std::max(largest, sum);
  }
};

SessionOptions ample_tiers(Bytes budget, const std::string& policy) {
  SceneOptions scene{.host = 1 << 14, .policy = policy};
  scene.delta = {};
  SessionOptions options = session_options(scene);
  options.budget = budget;
  return options;
}

class SmallestBudget : public TestWithParam<std::tuple<uint32_t, std::string>> {};

TEST_P(SmallestBudget, IsTheLargestWorkingSetOfOneCall) {
  const auto [seed, policy] = GetParam();
  Program ample;
  {
    SessionOptions options;
    options.threads = 1;
    options.budget = 16_MiB;
    options.policy = "none";
    Session session(options);
    ample.run(session, seed);
  }
  {
    Session session(ample_tiers(ample.largest, policy));
    Program smallest;
    smallest.run(session, seed);
    EXPECT_EQ(smallest.hashes, ample.hashes);
    EXPECT_LE(session.peak_reserved(), ample.largest);
  }
  Session session(ample_tiers(ample.largest - kAlignment, policy));
  Program too_large;
  EXPECT_THROW(too_large.run(session, seed), OutOfMemory);
  EXPECT_LE(session.peak_reserved(), ample.largest - kAlignment);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SmallestBudget,
                         ::testing::Combine(::testing::Range(1U, 9U),
                                            ::testing::Values("delta", "austere")));

TEST(OutOfMemory, SaysWhoAskedForWhatAndWhatWasThere) {
  Scene scene({.arena = 8});
  const Handle parameter = scene.data(2, Category::kParameter);
  const Handle x = scene.data(3);
  try {
    scene.call({parameter, x}, 2, 5);
    FAIL() << "10 units and a workspace of 5 do not fit into 8";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.requested(), units(5));
    EXPECT_EQ(error.budget(), units(8));
    for (const char* part :
         {"[toy]", "2.5 KiB", "4.0 KiB", "parameters: 1.0 KiB", "data: 1.5 KiB",
          "activations: 1.0 KiB", "largest hole", "from upload", "needed by the operator"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
    }
  }
  EXPECT_EQ(scene.count(EventKind::kOutOfMemory), 1);
  EXPECT_EQ(scene.used(), units(5)) << "what the call had taken is given back";
}

TEST(OutOfMemory, SizesThatReadAlikeAreExact) {
  Scene scene({.arena = 100'000});
  const Handle all = scene.data(97'952);  // 2048 units are left: 1.0 MiB
  const std::string text = message_of<OutOfMemory>([&] { scene.data(2049); });
  EXPECT_NE(text.find("asked for 1.0 MiB (1049088 bytes)"), std::string::npos) << text;
  EXPECT_NE(text.find("largest hole 1.0 MiB (1048576 bytes)"), std::string::npos) << text;
}

TEST(OutOfMemory, SaysWhyNothingCanBeReleased) {
  const auto message = [](const SceneOptions& options) {
    Scene scene(options);
    const Handle x = scene.data(4);
    return message_of<OutOfMemory>([&] { scene.data(4); });
  };
  EXPECT_NE(message({.arena = 6}).find("cannot be recomputed, and there is no tier"),
            std::string::npos);
  const std::string full = message({.arena = 6, .host = 2});
  EXPECT_NE(full.find("can be offloaded if a tier has space"), std::string::npos);
  EXPECT_NE(full.find("host tier: 0 B of 1.0 KiB used"), std::string::npos);
}

TEST(OutOfMemory, SaysWhenTheArenaIsEmpty) {
  Scene scene({.arena = 4});
  const std::string text = message_of<OutOfMemory>([&] { scene.data(5); });
  EXPECT_NE(text.find("no tensor is resident"), std::string::npos) << text;
  EXPECT_EQ(text.find("largest tensors:"), std::string::npos) << text;
}

TEST(OutOfMemory, LeavesEverythingUsable) {
  Scene scene({.arena = 8, .host = 4});
  const Handle x = scene.data(2);
  const Handle a = scene.call({x}, 2), b = scene.call({a, x}, 2);
  const uint64_t hash_a = scene.hash(a), hash_b = scene.hash(b);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(scene.call({a, b}, 3, 4), OutOfMemory);
    EXPECT_THROW(scene.data(9), OutOfMemory);
    EXPECT_EQ(scene.hash(a), hash_a);
    EXPECT_EQ(scene.hash(b), hash_b);
  }
  Scene ample;
  const Handle same_x = ample.data(2);
  const Handle same_a = ample.call({same_x}, 2), same_b = ample.call({same_a, same_x}, 2);
  const auto run = [](Session& session, const Handle& p, const Handle& q) {
    return toy_hash(session, toy_call(session, {p, q}, {{128}}, 99).front());
  };
  EXPECT_EQ(run(scene.session(), a, b), run(ample.session(), same_a, same_b));
}

TEST(OutOfMemory, AnUnmanagedSessionReleasesNothing) {
  SessionOptions options = session_options({.arena = 6, .host = 16});
  options.policy = "none";
  Session session(options);
  const Handle x = toy_upload(session, 4 * kUnitWords, 1);
  EXPECT_THROW(toy_upload(session, 4 * kUnitWords, 2), OutOfMemory);
  EXPECT_TRUE(resident(x));
}

}  // namespace
}  // namespace tidemark::testing
