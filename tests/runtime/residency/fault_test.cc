// Whatever fails, and wherever: a typed error at an operator boundary, no leak, and results
// that are equal to the bit when the program goes on.
#include <functional>
#include <random>
#include <stdexcept>

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"
#include "tests/support/faulty_arena.h"
#include "tests/support/sanitized.h"

namespace tidemark::testing {
namespace {

// A training program as a list of operations, each of which takes full effect or throws.
class Script {
 public:
  explicit Script(Session& session) : session_(session) {
    std::mt19937 random(17);
    std::vector<size_t> live;
    const auto add = [&](std::function<void()> operation) {
      steps_.back().push_back(operation);
    };
    const auto any = [&] { return live[random() % live.size()]; };
    const auto make = [&](std::vector<size_t> inputs) {
      const size_t out = slots_++;
      const uint32_t salt = static_cast<uint32_t>(random());
      const int64_t size = 1 + random() % 2, workspace = random() % 3 == 0 ? 1 : 0;
      add([=, this] {
        std::vector<Handle> handles;
        for (const size_t i : inputs) handles.push_back(values_[i]);
        values_[out] =
            toy_call(session_, handles, {{size * kUnitWords}}, salt, workspace * kUnitWords)[0];
      });
      live.push_back(out);
    };
    const auto upload = [&](Category category) {
      const size_t out = slots_++;
      const uint32_t salt = static_cast<uint32_t>(random());
      add([=, this] { values_[out] = toy_upload(session_, kUnitWords, salt, category); });
      return out;
    };
    steps_.emplace_back();
    const size_t parameter = upload(Category::kParameter);
    for (int step = 0; step < 2; ++step) {
      if (step > 0) steps_.emplace_back();
      live = {upload(Category::kData)};
      for (int i = 0; i < 14; ++i) {
        if (i == 7) add([this] { session_.residency().set_phase(Phase::kBackward); });
        make({any(), any(), parameter});
        if (i % 5 == 2) {
          const size_t target = any(), source = any();
          const uint32_t salt = static_cast<uint32_t>(random());
          if (target != source) {
            add([=, this] { toy_update(session_, {values_[target], values_[source]}, salt); });
          }
        }
        if (i % 6 == 5) {
          const size_t value = any();
          add([=, this] { hashes_.push_back(toy_hash(session_, values_[value])); });
        }
        if (live.size() > 6) {
          const auto gone = live.begin() + random() % 6;
          add([this, slot = *gone] { values_[slot] = {}; });
          live.erase(gone);
        }
      }
      const uint32_t salt = static_cast<uint32_t>(random());
      add([=, this, last = live.back()] {
        toy_update(session_, {values_[parameter], values_[last]}, salt);
      });
      for (const size_t slot : live) add([=, this] { values_[slot] = {}; });
      add([=, this] { hashes_.push_back(toy_hash(session_, values_[parameter])); });
    }
    values_.resize(slots_);
  }

  // `before(i)` runs before the i-th operation. After an error, `recover` runs and the program
  // continues with the operation that threw. Returns the number of errors.
  int run(
      const std::function<void()>& recover = [] {},
      const std::function<void(size_t)>& before = [](size_t) {}) {
    int errors = 0;
    for (const auto& operations : steps_) {
      for (size_t next = 0; next < operations.size();) {
        try {
          session_.step([&] {
            for (; next < operations.size(); ++next) {
              before(count_);
              operations[next]();
              ++count_;
            }
          });
        } catch (const Error&) {
          ++errors;
          recover();
          if (errors > 100) {
            ADD_FAILURE() << "the program does not get on";
            return errors;
          }
        }
      }
    }
    return errors;
  }
  size_t operations() const { return count_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  // Lets go of everything; anything that is left has leaked.
  void expect_no_leak() {
    values_.clear();
    try {
      session_.step([] {});
    } catch (const DeviceError&) {  // from work that nobody has waited for yet
      session_.step([] {});
    }
    EXPECT_EQ(session_.arena().offsets().used(), Bytes(0));
    EXPECT_EQ(session_.arena().live().total(), Bytes(0));
    for (const Tier* tier : {session_.host(), session_.disk()}) {
      if (tier) {
        EXPECT_EQ(tier->used(), Bytes(0)) << tier->name();
      }
    }
    EXPECT_LE(session_.peak_reserved(), session_.arena().offsets().capacity());
  }

 private:
  Session& session_;
  std::vector<std::vector<std::function<void()>>> steps_;
  std::vector<Handle> values_;
  std::vector<uint64_t> hashes_;
  size_t slots_ = 0;
  size_t count_ = 0;
};

std::vector<uint64_t> expected_hashes() {
  Scene scene;
  Script script(scene.session());
  EXPECT_EQ(script.run(), 0);
  return script.hashes();
}

struct FaultSetting {
  const char* name;
  SceneOptions scene;
};

// Tight settings, so that everything that the runtime can do happens.
std::vector<FaultSetting> settings() {
  SceneOptions both{.arena = 9, .host = 32};
  both.delta = {.early_start = 0.75, .prefetch = 2};
  SceneOptions scattered{.arena = 11, .host = 5};  // copies lie in several pieces
  SceneOptions offload{.arena = 8, .host = 64, .evict = false};
  offload.delta = {.early_start = 0.75, .prefetch = 2};
  SceneOptions disk{.arena = 8, .disk = 512, .evict = false};
  SceneOptions serial{.arena = 8, .host = 64, .evict = false, .overlap = false};
  SceneOptions austere{.arena = 8, .host = 64, .policy = "austere", .poison = false};
  return {{"both", both}, {"scattered", scattered}, {"offload", offload},
          {"disk", disk}, {"serial", serial},       {"austere", austere}};
}

class Fault : public ::testing::TestWithParam<FaultSetting> {};

TEST_P(Fault, AtEachAllocation) {
  const auto expected = expected_hashes();
  const SceneOptions& scene = GetParam().scene;
  for (const AllocationFault fault :
       {AllocationFault::kNoneOnce, AllocationFault::kNoneSince, AllocationFault::kThrowOnce}) {
    int failed = 0;
    for (int64_t k = 1;; ++k) {
      auto device = make_cpu_device({.threads = 1});
      auto arena =
          std::make_unique<FaultyArena>(*device, MemoryKind::kDevice, units(scene.arena));
      FaultyArena& faulty = *arena;
      Session session(session_options(scene), std::move(device), std::move(arena));
      Script script(session);
      faulty.fail(k, fault);
      const int errors = script.run([&] { faulty.heal(); });
      const bool reached = faulty.faults() > 0;
      faulty.heal();
      ASSERT_EQ(script.hashes(), expected) << "allocation " << k;
      ASSERT_LE(errors, 1);
      failed += errors;
      script.expect_no_leak();
      if (!reached) break;
    }
    // A single fault may cause no error: space is made, and the second try succeeds.
    if (fault != AllocationFault::kNoneOnce) {
      EXPECT_GT(failed, 0);
    }
  }
}

TEST_P(Fault, AtEachPieceOfWork) {
  const auto expected = expected_hashes();
  int failed = 0;
  for (const CallKind kind : {CallKind::kKernel, CallKind::kHostTask, CallKind::kCopy}) {
    for (const StreamId stream : kAllStreams) {
      for (const FaultTimes times : {FaultTimes::kOnce, FaultTimes::kAlways}) {
        for (int64_t n = 1;; n += times == FaultTimes::kOnce && !kSanitized ? 1 : 4) {
          Scene scene(GetParam().scene);
          Script script(scene.session());
          scene.device().fail(kind, stream, n, times);
          const int errors = script.run([&] { scene.device().heal(); });
          ASSERT_EQ(script.hashes(), expected) << to_string(stream) << " stream, call " << n;
          if (scene.device().faults() == 0) break;
          failed += errors;
          scene.device().heal();
          script.expect_no_leak();
        }
      }
    }
  }
  EXPECT_GT(failed, 0);
}

// Faults one after another, with slow copies.
TEST_P(Fault, Many) {
  const auto expected = expected_hashes();
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SceneOptions options = GetParam().scene;
    options.poison = false;
    Scene scene(options);
    scene.device().delay_copies(seed, Nanos(50'000));
    Script script(scene.session());
    std::mt19937 random(static_cast<uint32_t>(seed));
    script.run([] {},
               [&](size_t) {
                 const CallKind kind = random() % 2 == 0 ? CallKind::kCopy : CallKind::kKernel;
                 const auto stream = kAllStreams[random() % 3];
                 if (random() % 2 == 0) scene.device().fail(kind, stream, 1 + random() % 3);
               });
    EXPECT_EQ(script.hashes(), expected);
    scene.device().heal();
    script.expect_no_leak();
  }
}

// The program itself throws, at each operation.
TEST_P(Fault, InTheProgram) {
  struct Stop : Error {
    using Error::Error;
  };
  const auto expected = expected_hashes();
  for (size_t stop = 0;; stop += kSanitized ? 3 : 1) {
    Scene scene(GetParam().scene);
    Script script(scene.session());
    bool stopped = false;
    script.run([] {},
               [&](size_t i) {
                 if (i == stop && !std::exchange(stopped, true)) throw Stop("stop");
               });
    ASSERT_EQ(script.hashes(), expected) << "stopped at operation " << stop;
    script.expect_no_leak();
    if (!stopped) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Fault, ::testing::ValuesIn(settings()),
                         [](const auto& tested) { return tested.param.name; });

// An aborted step leaves what it had made to those who hold it, and nothing else.
TEST(AbortedStep, LeavesNothingBehind) {
  Scene scene({.arena = 32, .host = 32});
  const Handle parameter = scene.data(2, Category::kParameter);
  const uint64_t hash = scene.hash(parameter);
  const auto step = [&](bool give_up) {
    uint64_t result = 0;
    try {
      scene.session().step([&] {
        const Handle x = toy_upload(scene.session(), 512, 5);
        std::vector<Handle> chain{x};
        for (uint32_t i = 0; i < 10; ++i) {
          chain.push_back(toy_call(scene.session(), {chain.back(), parameter}, {{256}}, i)[0]);
          if (i % 3 == 0) {
            EXPECT_TRUE(scene.evict(chain.back()));
          }
        }
        if (give_up) throw std::runtime_error("enough");
        result = scene.hash(chain.back());
      });
    } catch (const std::runtime_error&) {
    }
    return result;
  };
  const uint64_t first = step(false);
  EXPECT_EQ(scene.used(), units(2));
  for (int i = 0; i < 3; ++i) {
    step(true);
    EXPECT_EQ(scene.used(), units(2));
  }
  EXPECT_EQ(step(false), first);
  EXPECT_EQ(scene.hash(parameter), hash);
}

// A call takes a block that a slow copy still reads, then finds that it does not fit. The next
// user of the block must still wait for the copy.
TEST(FailedCall, GivesItsBlocksBackWithWhoStillReadsThem) {
  for (uint64_t round = 0; round < 8; ++round) {
    Scene scene({.arena = 4, .host = 16, .evict = false, .poison = false});
    const Handle x = scene.data(4);
    const uint64_t hash = scene.hash(x);
    scene.device().delay_copies(round, Nanos(500'000));
    ASSERT_TRUE(scene.offload(x));
    EXPECT_THROW(scene.call({}, 4, 8), OutOfMemory);
    const Handle y = scene.data(4);
    scene.session().device().synchronize_all();
    EXPECT_EQ(scene.hash(x), hash);
  }
}

TEST(DeviceFailure, IsThrownAtAnOperatorBoundaryAndHealsByResuming) {
  Scene scene({.host = 8});
  const Handle x = scene.data();
  const uint64_t hash = scene.hash(x);
  scene.device().fail(CallKind::kCopy, StreamId::kOffload, 1, FaultTimes::kAlways);
  EXPECT_THROW(scene.session().step([&] {
    ASSERT_TRUE(scene.offload(x));
    scene.hash(x);
  }),
               DeviceError);
  EXPECT_THROW(scene.session().step([&] { scene.hash(x); }), DeviceError) << "it fails again";
  scene.device().heal();
  resume_all(scene.session().device());
  scene.session().step([&] { EXPECT_EQ(scene.hash(x), hash); });
}

// A failed read is tried again later, when its target may be gone.
TEST(DeviceFailure, AFailedReadDoesNotWriteLater) {
  Scene scene;
  const Handle x = scene.data(4);
  const uint64_t hash = scene.hash(x);
  std::vector<unsigned char> target(static_cast<size_t>(x->bytes().count()), 0xEE);
  scene.device().fail(CallKind::kCopy, StreamId::kOffload, 1);
  EXPECT_THROW(scene.session().step([&] {
    scene.residency().download(*x, Bytes(0), x->bytes(), copy_into(target.data()));
  }),
               DeviceError);
  scene.session().device().synchronize_all();
  EXPECT_EQ(target, std::vector<unsigned char>(target.size(), 0xEE));
  EXPECT_EQ(scene.hash(x), hash);
}

// A copy fails in the middle of an upload: the storage stays empty, and the next try fills it.
TEST(DeviceFailure, AFailedPieceFailsTheUpload) {
  Scene scene({.arena = 16 << 11});
  const Bytes size = 7_MiB;
  const Handle x(scene.residency().storages().create(size, Category::kParameter, "pieces"));
  uint8_t filler = 1;
  const auto source = [&](Bytes offset, std::span<std::byte> piece) {
    std::fill(piece.begin(), piece.end(),
              static_cast<std::byte>(filler + offset.count() / kHostPiece.count()));
  };
  scene.device().fail(CallKind::kCopy, StreamId::kReload, 2);
  const auto upload = [&] {
    scene.residency().upload(*x, source);
    scene.session().device().synchronize_all();
  };
  EXPECT_THROW(scene.session().step(upload), DeviceError);
  scene.session().device().synchronize_all();
  ASSERT_EQ(x->residence(), Residence::kEmpty);
  EXPECT_EQ(scene.used(), Bytes(0));
  filler = 101;
  scene.session().step(upload);
  std::vector<uint8_t> got(static_cast<size_t>(size.count()));
  ASSERT_TRUE(scene.residency().download(*x, Bytes(0), size, copy_into(got.data())));
  for (size_t at = 0; at < got.size(); at += 1 << 20) {
    EXPECT_EQ(got[at], filler + at / (2 << 20)) << at;
  }
}

// Work under way must not lose its memory: compute is busy for long when a copy fails, and the
// session is destroyed at once.
TEST(DeviceFailure, ASessionMayGoWhileItsDeviceHasFailed) {
  for (const StreamId stream : {StreamId::kOffload, StreamId::kReload}) {
    Scene scene({.arena = 1 << 12, .host = 1 << 12, .evict = false, .poison = false});
    const Handle x = scene.data(1 << 8), y = scene.data();
    ASSERT_TRUE(stream == StreamId::kOffload || scene.offload(y));
    scene.session().device().synchronize_all();
    scene.device().fail(CallKind::kCopy, stream, 1, FaultTimes::kAlways);
    for (int i = 0; i < 200; ++i) scene.call({x}, 1 << 8);
    if (stream == StreamId::kOffload) {
      EXPECT_TRUE(scene.offload(y));
    } else {
      EXPECT_TRUE(scene.residency().transfers().prefetch(*y));
    }
    EXPECT_THROW(scene.session().device().synchronize_all(), DeviceError);
  }
}

}  // namespace
}  // namespace tidemark::testing
