#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/core/errors.h"
#include "tests/support/toy_program.h"

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
    ASSERT_TRUE(session.residency().release(*evicted, Reason::kNoRoom));
    ASSERT_TRUE(session.residency().release(*offloaded, Reason::kNoRoom));
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

// At the unmanaged peak nothing is released; below it things are.
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

// Without steps, as in a long evaluation, nothing may pile up.
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
