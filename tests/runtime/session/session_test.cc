#include "runtime/session/session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/cost/cost_table.h"
#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "tests/support/sanitized.h"
#include "tests/support/toy_program.h"
#include "tests/support/usage_error.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

SessionOptions small() {
  SessionOptions options;
  options.threads = 1;
  options.budget = 64_KiB;
  options.host_limit = 64_KiB;
  return options;
}

TEST(Session, CurrentIsTheLatestOfThisThread) {
  EXPECT_THROW(Session::current(), UsageError);
  Session outer(small());
  EXPECT_EQ(&Session::current(), &outer);
  {
    Session inner(small());
    EXPECT_EQ(&Session::current(), &inner);
    outer.make_current();
    EXPECT_EQ(&Session::current(), &outer);
    inner.make_current();
    EXPECT_EQ(&Session::current(), &inner);
    std::thread([] { EXPECT_THROW(Session::current(), UsageError); }).join();
  }
  EXPECT_EQ(&Session::current(), &outer);
}

TEST(Session, OnesThatFailToOpenAreNotCurrent) {
  SessionOptions bad = small();
  bad.delta.filter = "none such";
  EXPECT_THROW(Session{bad}, UsageError);
  bad = small();
  bad.device = "tpu";
  EXPECT_THROW(Session{bad}, UsageError);
  bad = small();
  bad.policy = "delta";
  bad.delta.early_start = 2;
  EXPECT_THROW(Session{bad}, UsageError);
  bad = small();
  bad.disk_limit = 1_MiB;
  bad.disk_directory = "/there/is/no/such/folder";
  EXPECT_THROW(Session{bad}, DataError);
  EXPECT_THROW(Session::current(), UsageError);
}

// The error that `change` of valid options leads to.
std::string refused(const std::function<void(SessionOptions&)>& change) {
  SessionOptions options = small();
  change(options);
  try {
    const Session session(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Session, OptionsThatMeanNothingAreRefusedByName) {
  constexpr Bytes kLargest(std::numeric_limits<int64_t>::max());
  const double nan = std::nan("");
  using Options = SessionOptions;
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> cases{
      {"threads", [](Options& o) { o.threads = -1; }},
      {"threads", [](Options& o) { o.threads = std::numeric_limits<int>::max(); }},
      {"budget", [](Options& o) { o.budget = Bytes(0); }},
      {"budget", [](Options& o) { o.budget = Bytes(-1); }},
      {"budget", [=](Options& o) { o.budget = kLargest; }},
      {"budget", [=](Options& o) { o.device = "sim:host", o.budget = kLargest; }},
      {"unmanaged_peak", [](Options& o) { o.unmanaged_peak = Bytes(-1); }},
      {"unmanaged_peak", [=](Options& o) { o.unmanaged_peak = kLargest; }},
      {"host_limit", [](Options& o) { o.host_limit = Bytes(-512); }},
      {"host_limit", [=](Options& o) { o.host_limit = kLargest; }},
      {"disk_limit", [](Options& o) { o.disk_limit = Bytes(-512); }},
      {"disk_limit", [=](Options& o) { o.disk_limit = kLargest; }},
      {"event_capacity", [](Options& o) { o.event_capacity = 0; }},
      {"event_capacity", [](Options& o) { o.event_capacity = size_t{1} << 62; }},
      {"policy", [](Options& o) { o.policy = "no such"; }},
      {"fallback_policy", [](Options& o) { o.fallback_policy = "no such"; }},
      {"fallback_policy", [](Options& o) { o.policy = "lru", o.fallback_policy = "no such"; }},
      {"delta.filter", [](Options& o) { o.policy = "lru", o.delta.filter = "no such"; }},
      {"delta.early_start", [=](Options& o) { o.delta.early_start = nan; }},
      {"delta.early_start", [](Options& o) { o.delta.early_start = -0.5; }},
      {"delta.prefetch", [](Options& o) { o.delta.prefetch = -1; }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [field, change] = cases[i];
    const std::string complaint = refused(change);
    EXPECT_EQ(complaint.rfind("[session] " + field + ": ", 0), 0U) << i << ": " << complaint;
  }
  EXPECT_EQ(refused([](Options&) {}), "not refused");
  EXPECT_EQ(refused([](Options& o) { o.policy = "none", o.threads = 0; }), "not refused");
}

uint64_t train(uint32_t seed) {
  Session session(small());
  const Handle parameter = toy_upload(session, 500, seed, Category::kParameter);
  for (uint32_t step = 0; step < 20; ++step) {
    session.step([&] {
      std::vector<Handle> chain{toy_upload(session, 900, seed + step)};
      for (uint32_t i = 0; i < 20; ++i) {
        chain.push_back(
            toy_call(session, {chain.back(), chain[i / 2], parameter}, {{1024}}, i)[0]);
      }
      for (uint32_t i = 20; i > 0; --i)
        chain.back() = toy_call(session, {chain[i], chain.back()}, {{512}}, i)[0];
      toy_update(session, {parameter, chain.back()}, step);
    });
  }
  EXPECT_LE(session.peak_reserved(), 64_KiB);
  return toy_hash(session, parameter);
}

TEST(Session, SeveralOnSeveralThreads) {
  const uint64_t first = train(1), second = train(2);
  uint64_t results[4] = {};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { results[i] = train(1 + i % 2); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], first);
  EXPECT_EQ(results[1], second);
  EXPECT_EQ(results[2], first);
  EXPECT_EQ(results[3], second);
}

TEST(Session, TensorsMayOutliveIt) {
  Handle resident, evicted, offloaded;
  Tensor tensor;
  {
    SessionOptions options = small();
    Session session(options);
    const Handle x = toy_upload(session, 100, 1);
    resident = toy_call(session, {x}, {{100}}, 1)[0];
    evicted = toy_call(session, {resident}, {{100}}, 2)[0];
    offloaded = toy_call(session, {evicted}, {{100}}, 3)[0];
    evicted->offload_pinned = true;
    offloaded->evict_pinned = true;
    ASSERT_TRUE(session.residency().transfers().release(*evicted, Reason::kNoSpace));
    ASSERT_TRUE(session.residency().transfers().release(*offloaded, Reason::kNoSpace));
    auto word = std::make_shared<int32_t>(7);
    tensor = session.upload(TensorMeta::contiguous(DType::kInt32, Shape{1}), Category::kData,
                            word.get(), word);
  }
  for (const Handle& handle : {resident, evicted, offloaded, tensor.storage()}) {
    EXPECT_EQ(handle->residence(), Residence::kLost);
    EXPECT_EQ(handle->owner(), nullptr);
  }
  Session other(small());
  EXPECT_THROW(toy_call(other, {resident}, {{100}}, 1), UsageError);
}

Tensor word_of(Session& session, int32_t value) {
  auto word = std::make_shared<int32_t>(value);
  return session.upload(TensorMeta::contiguous(DType::kInt32, Shape{1}), Category::kData,
                        word.get(), word);
}

TEST(Session, TensorsOfOthersAreRefused) {
  Session session(small()), other(small());
  const Tensor mine = word_of(session, 1), its = word_of(other, 2);
  Tensor orphan;
  {
    Session ended(small());
    orphan = word_of(ended, 3);
  }
  int32_t got = 0;
  EXPECT_TRUE(session.download(mine, &got));
  EXPECT_EQ(got, 1);
  for (const Tensor& foreign : {its, orphan, Tensor()}) {
    EXPECT_EQ(usage_error([&] { session.download(foreign, &got); }).rfind("[download] ", 0),
              0U);
  }
  EXPECT_NE(usage_error([&] { session.download(its, &got); }).find("another session"),
            std::string::npos);
  EXPECT_NE(usage_error([&] { session.download(orphan, &got); }).find("has ended"),
            std::string::npos);
  EXPECT_EQ(got, 1) << "nothing was read";
  Handle empty(other.residency().storages().create(8_B, Category::kData, "test"));
  const auto words = std::make_shared<int64_t>(0);
  EXPECT_NE(usage_error([&] { session.upload(*empty, words.get(), words); }).find("[upload] "),
            std::string::npos);
  EXPECT_TRUE(other.download(its, &got));
  EXPECT_EQ(got, 2);
  // A handle can be copied and dropped whatever happened to its session.
  const Tensor copy = orphan;
  orphan = {};
}

TEST(Session, StepsDoNotNest) {
  Session session(small());
  const Handle x = toy_upload(session, 100, 1);
  std::string complaint;
  const StepStats& stats = session.step([&] {
    complaint = usage_error([&] { session.step([] {}); });
    toy_call(session, {x}, {{100}}, 1);
  });
  EXPECT_EQ(complaint.rfind("[step] ", 0), 0U) << complaint;
  EXPECT_EQ(stats.operators, 1) << "the outer step goes on";
  EXPECT_THROW(session.step([&] { session.step([] {}); }), UsageError);
  EXPECT_EQ(session.step([&] { toy_call(session, {x}, {{100}}, 1); }).operators, 1);
}

TEST(Session, StaysOnItsThread) {
  Session session(small());
  const Tensor x = word_of(session, 5);
  std::vector<std::string> complaints;
  std::thread([&] {
    int32_t got = 0;
    complaints.push_back(usage_error([&] { session.step([] {}); }));
    complaints.push_back(usage_error([&] { session.download(x, &got); }));
    complaints.push_back(usage_error([&] { word_of(session, 1); }));
    complaints.push_back(usage_error([&] { session.make_current(); }));
  }).join();
  for (const std::string& complaint : complaints) {
    EXPECT_NE(complaint.find("thread"), std::string::npos) << complaint;
  }
  EXPECT_EQ(word_of(session, 1).storage()->id(), x.storage()->id() + 1)
      << "made none meanwhile";
  int32_t got = 0;
  EXPECT_TRUE(session.download(x, &got));
  EXPECT_EQ(got, 5);
}

// The child has no threads to wait for: it gets an error and does not hang.
TEST(Session, AfterForkTheChildIsTold) {
  auto session = std::make_unique<Session>(small());
  Tensor x = word_of(*session, 5);
  session->step([&] { toy_upload(*session, 100, 1); });
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a hang ends the child by a signal
    int32_t got = 0;
    int wrong = 0;
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { session->step([] {}); },
             [&] { session->download(x, &got); },
             [&] { word_of(*session, 1); },
             [&] { toy_call(*session, {x.storage()}, {{1}}, 1); },
         }) {
      if (usage_error(use).find("fork") == std::string::npos) ++wrong;
    }
    session.reset();
    x = {};
    if (!kThreadSanitizer) {  // it has no threads in a child
      // A session of its own works.
      Session own(small());
      const Tensor y = word_of(own, 6);
      if (!own.download(y, &got) || got != 6) wrong += 10;
    }
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  int32_t got = 0;
  EXPECT_TRUE(session->download(x, &got)) << "the parent goes on";
  EXPECT_EQ(got, 5);
}

TEST(Session, TheBudgetIsRoundedDownToWholeBlocks) {
  SessionOptions options = small();
  options.budget = Bytes(2 * 512 + 511);
  Session session(options);
  EXPECT_EQ(session.arena().offsets().capacity(), Bytes(1024));
  const Handle x = toy_upload(session, 128, 1);
  EXPECT_THROW(toy_call(session, {x}, {{129}}, 1), OutOfMemory);
  toy_call(session, {x}, {{128}}, 1);
  EXPECT_EQ(session.peak_reserved(), Bytes(1024));
}

TEST(Session, ABudgetOfNothingIsOutOfMemoryFromTheStart) {
  SessionOptions options = small();
  options.budget = Bytes(511);
  Session session(options);
  EXPECT_THROW(toy_upload(session, 1, 1), OutOfMemory);
}

TEST(Session, WithoutABudgetItHasTheDevicesMemory) {
  SessionOptions options;
  options.device = "sim:v100-16gb";
  Session session(options);
  EXPECT_EQ(session.arena().offsets().capacity(),
            align_down(session.device().profile().memory));
  options.unmanaged_peak = Bytes(1000);
  Session known(options);
  EXPECT_EQ(known.arena().offsets().capacity(), Bytes(1024));
}

// At the unmanaged peak nothing is released; below it, something is.
TEST(Session, AtTheUnmanagedPeakNothingIsReleased) {
  const auto run = [](Session& session) {
    StepStats stats = session.step([&] {
      Handle x = toy_upload(session, 1000, 1);
      Handle a = toy_call(session, {x}, {{1000}}, 1)[0];
      const Handle spare = toy_call(session, {a}, {{1000}}, 7)[0];
      x = {};
      Handle b = toy_call(session, {a}, {{1000}}, 2)[0];
      const Handle c = toy_call(session, {a, b}, {{1000}}, 3, 400)[0];
      a = b = {};
      toy_call(session, {c}, {{1000}}, 4);
    });
    return stats.evictions + stats.offloads + stats.clean_drops;
  };
  SessionOptions options = small();
  options.policy = "none";
  Session unmanaged(options);
  EXPECT_EQ(run(unmanaged), 0);
  options.policy = "delta";
  options.unmanaged_peak = options.budget = unmanaged.peak_reserved();
  Session at_peak(options);
  EXPECT_EQ(run(at_peak), 0);
  EXPECT_EQ(at_peak.peak_reserved(), unmanaged.peak_reserved());
  options.budget = unmanaged.peak_reserved() - kAlignment;
  Session below(options);
  EXPECT_GT(run(below), 0);
}

TEST(Session, PeaksAreTheSessionsAndTheSteps) {
  Session session(small());
  const auto step = [&](int64_t words) {
    return session.step([&] { toy_upload(session, words, 1); });
  };
  EXPECT_EQ(step(1024).peak_reserved, 4_KiB);
  EXPECT_EQ(step(128).peak_reserved, 512_B);
  EXPECT_EQ(session.peak_reserved(), 4_KiB);
  EXPECT_EQ(session.peak_live()[Category::kData], 4_KiB);
  EXPECT_EQ(session.peak_live().total(), 4_KiB);
}

TEST(Session, UploadsAndDownloadsViews) {
  Session session(small());
  auto values = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  const Tensor tensor = session.upload(TensorMeta::contiguous(DType::kInt32, Shape{2, 3}),
                                       Category::kData, values->data(), values);
  TensorMeta row = TensorMeta::contiguous(DType::kInt32, Shape{3});
  row.offset = 3;
  int32_t got[3] = {};
  EXPECT_TRUE(session.download(tensor.view(row), got));
  EXPECT_EQ(got[0], 4);
  EXPECT_EQ(got[2], 6);
  TensorMeta column = row;
  column.shape = Shape{2};
  column.strides = Shape{3};
  EXPECT_THROW(session.download(tensor.view(column), got), UsageError);
  EXPECT_THROW(session.download(Tensor(), got), UsageError);
  const Tensor nothing = session.upload(TensorMeta::contiguous(DType::kFloat32, Shape{0, 4}),
                                        Category::kData, nullptr, nullptr);
  EXPECT_TRUE(session.download(nothing, got));
}

// A session that may follow schedules has to hold uploads whole, as a schedule may defer them.
TEST(Session, UploadsInPiecesMayBePutOff) {
  SessionOptions options = small();
  options.budget = 16_MiB;
  Session session(options);
  session.plan_steps({.background = false});
  const TensorMeta meta = TensorMeta::contiguous(DType::kUInt8, Shape{(5 << 20) + 3});
  const auto source = [](Bytes offset, std::span<std::byte> piece) {
    for (size_t i = 0; i < piece.size(); ++i) {
      piece[i] = static_cast<std::byte>((offset.count() + static_cast<int64_t>(i)) % 251);
    }
  };
  Tensor late, now = session.upload_from(source, meta, Category::kData);
  for (int i = 0; i < 4; ++i) {
    session.step([&] { late = session.upload_from(source, meta, Category::kData); });
  }
  std::vector<uint8_t> expected(static_cast<size_t>(meta.bytes().count()));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<uint8_t>(i % 251);
  for (const Tensor& tensor : {now, late}) {
    std::vector<uint8_t> got;
    ASSERT_TRUE(session.download_to(
        [&](std::span<const std::byte> piece) {
          const auto* begin = reinterpret_cast<const uint8_t*>(piece.data());
          got.insert(got.end(), begin, begin + piece.size());
        },
        tensor));
    EXPECT_EQ(got, expected);
  }
  const Tensor nothing = session.upload_from(
      source, TensorMeta::contiguous(DType::kFloat32, Shape{0, 4}), Category::kData);
  EXPECT_EQ(nothing.elements(), 0);
}

// The host memory that uploads hold is bounded, so the host waits for them: by the model's
// time, whenever they are done in earnest.
TEST(Session, UploadsWaitAlikeOnTheSimulator) {
  SessionOptions options = small();
  options.costs = std::make_shared<const CostTable>();
  options.budget = 256_MiB;
  const std::vector<std::byte> values(4 << 20);
  const auto whole = TensorMeta::contiguous(DType::kUInt8, Shape{4 << 20});
  const auto in_pieces = TensorMeta::contiguous(DType::kUInt8, Shape{9 << 20});
  std::map<std::string, std::vector<Nanos>> times;
  for (const std::string device : {"cpu", "sim:host"}) {
    options.device = device;
    Session session(options);
    std::vector<Tensor> tensors;
    for (int i = 0; i < 12; ++i) {
      tensors.push_back(session.upload(whole, Category::kParameter, values.data(), nullptr));
      tensors.push_back(session.upload_from([](Bytes, std::span<std::byte>) {}, in_pieces,
                                            Category::kParameter));
      times[device].push_back(session.device().modelled_now());
    }
  }
  EXPECT_TRUE(times["cpu"] == times["sim:host"]);
  EXPECT_GT(times["cpu"].back(), Nanos(1'000'000));
}

TEST(Session, TheSimulatorHasNoValues) {
  SessionOptions options;
  options.device = "sim:a100-80gb";
  Session session(options);
  const Tensor tensor = session.upload(TensorMeta::contiguous(DType::kFloat32, Shape{8}),
                                       Category::kData, nullptr, nullptr);
  float got[8];
  EXPECT_FALSE(session.download(tensor, got));
}

TEST(Session, RandomNumbersAndCategories) {
  Session session(small());
  EXPECT_EQ(session.reserve_random(10), 0U);
  EXPECT_EQ(session.reserve_random(5), 10U);
  EXPECT_EQ(session.reserve_random(1), 15U);
  EXPECT_EQ(session.category(), Category::kActivation);
  {
    const ScopedCategory gradients(session, Category::kGradient);
    EXPECT_EQ(session.category(), Category::kGradient);
  }
  EXPECT_EQ(session.category(), Category::kActivation);
}

TEST(Session, AnExceptionEndsTheStepAndGoesOn) {
  Session session(small());
  EXPECT_THROW(session.step([] { throw std::runtime_error("no more"); }), std::runtime_error);
  const Handle x = toy_upload(session, 100, 1);
  const StepStats& stats = session.step([&] { toy_call(session, {x}, {{100}}, 1); });
  EXPECT_EQ(stats.operators, 1);
}

TEST(Session, StepMarksCountFromOne) {
  Session session(small());
  session.step([] {});
  EXPECT_THROW(session.step([] { throw std::runtime_error("no more"); }), std::runtime_error);
  session.step([] {});
  std::vector<std::pair<EventKind, uint32_t>> marks;
  session.events().for_each(
      [&](const EventRecord& event) { marks.emplace_back(event.kind, event.storage); });
  const std::vector<std::pair<EventKind, uint32_t>> expected{
      {EventKind::kStepBegin, 1}, {EventKind::kStepEnd, 1}, {EventKind::kStepBegin, 2},
      {EventKind::kStepBegin, 3}, {EventKind::kStepEnd, 3},
  };
  EXPECT_EQ(marks, expected);
}

// Without steps, as in a long evaluation, nothing may accumulate.
TEST(Session, RunsWithoutSteps) {
  SessionOptions options = small();
  options.device = "sim:a100-80gb";
  options.event_capacity = 100;
  Session session(options);
  const Handle x = toy_upload(session, 100, 1);
  for (uint32_t i = 0; i < 70'000; ++i) toy_call(session, {x}, {{100}}, i);
  EXPECT_EQ(session.arena().offsets().used(), 512_B);
  EXPECT_EQ(session.events().size(), 100U);
}

}  // namespace
}  // namespace tidemark::testing
