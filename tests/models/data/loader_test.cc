#include "models/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "models/data/random.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/forwarding_device.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {
namespace {

// Pixels tell index and epoch seed; labels are the index. Can fail, and can be held up.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  int64_t classes() const override { return size_; }
  Shape sample_shape() const override { return {1, 3, 1}; }
  std::string name() const override { return "numbers"; }
  std::string description() const override { return "numbers"; }
  Bytes resident_bytes() const override { return Bytes(0); }
  Bytes scratch_bytes() const override { return Bytes(100); }

  void read(int64_t index, uint64_t epoch_seed, std::span<float> pixels,
            int64_t& label) const override {
    ++reads;
    if (gate) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return open; });
    }
    {
      const std::lock_guard lock(mutex);
      if (failing.count(index) > 0) {
        throw DataError("numbers", index, "sample " + std::to_string(index));
      }
    }
    CounterRandom random(epoch_seed, RandomStream::kAugment, static_cast<uint64_t>(index));
    pixels[0] = static_cast<float>(index);
    pixels[1] = random.uniform();
    pixels[2] = random.uniform();
    label = index;
  }
  void fail(std::set<int64_t> samples) {
    const std::lock_guard lock(mutex);
    failing = std::move(samples);
  }
  void open_gate() {
    {
      const std::lock_guard lock(mutex);
      open = true;
    }
    changed.notify_all();
  }

  mutable std::atomic<int64_t> reads{0};
  bool gate = false;

 private:
  int64_t size_;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::set<int64_t> failing;
  bool open = false;
};

struct Copy {
  LoaderPosition position;
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  bool operator==(const Copy&) const = default;
};

Copy copy(const HostBatch& batch) {
  return {batch.position,
          {batch.pixels.get(), batch.pixels.get() + batch.shape.elements()},
          {batch.labels.get(), batch.labels.get() + batch.size}};
}

std::vector<Copy> read_epochs(Loader& loader, int epochs) {
  std::vector<Copy> all;
  for (int e = 0; e < epochs; ++e) {
    while (std::optional<HostBatch> batch = loader.next()) all.push_back(copy(*batch));
  }
  return all;
}

TEST(Loader, GoesThroughEachEpochWithASmallerLastBatch) {
  Loader loader(std::make_shared<Numbers>(10), {.batch = 4});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    int64_t index = 0;
    for (int64_t b = 0; b < 3; ++b) {
      EXPECT_EQ(loader.position(), (LoaderPosition{epoch, b}));
      const std::optional<HostBatch> batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->position, (LoaderPosition{epoch, b}));
      EXPECT_EQ(batch->size, b < 2 ? 4 : 2);
      EXPECT_EQ(batch->shape, (Shape{batch->size, 1, 3, 1}));
      EXPECT_EQ(batch->bytes, Bytes(batch->size * (3 * 4 + 8)));
      for (int64_t i = 0; i < batch->size; ++i) {
        EXPECT_EQ(batch->labels[i], index);
        EXPECT_EQ(batch->pixels[i * 3], static_cast<float>(index++));
      }
    }
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, DropsTheSmallerLastBatchOnRequest) {
  Loader loader(std::make_shared<Numbers>(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_EQ(read_epochs(loader, 1).size(), 2u);
  EXPECT_EQ(
      Loader(std::make_shared<Numbers>(8), {.batch = 4, .drop_last = true}).batches_per_epoch(),
      2);
  EXPECT_EQ(Loader(std::make_shared<Numbers>(3), {.batch = 1000}).batches_per_epoch(), 1);
}

TEST(Loader, ShufflesEachEpochAnew) {
  Loader loader(std::make_shared<Numbers>(100), {.batch = 100, .shuffle = true, .seed = 3});
  std::vector<std::vector<int64_t>> orders;
  for (const Copy& batch : read_epochs(loader, 3)) orders.push_back(batch.labels);
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  for (std::vector<int64_t>& order : orders) {
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(Loader, ThreadsAndPrefetchChangeNothing) {
  std::vector<Copy> expected;
  for (int64_t threads : {1, 2, 3, 8}) {
    for (int64_t prefetch : {1, 2, 7}) {
      Loader loader(std::make_shared<Numbers>(53), {.batch = 8,
                                                    .shuffle = true,
                                                    .seed = 9,
                                                    .prefetch_batches = prefetch,
                                                    .threads = threads});
      const std::vector<Copy> got = read_epochs(loader, 4);
      if (expected.empty()) expected = got;
      ASSERT_EQ(got, expected) << threads << " threads, " << prefetch << " ahead";
    }
  }
  EXPECT_EQ(expected.size(), 28u);
  Loader other(std::make_shared<Numbers>(53), {.batch = 8, .shuffle = true, .seed = 10});
  EXPECT_NE(read_epochs(other, 4), expected);
}

TEST(Loader, ContinuesFromAnyPosition) {
  const auto data = std::make_shared<Numbers>(21);
  const LoaderOptions options{.batch = 4, .shuffle = true, .seed = 2, .threads = 2};
  Loader whole(data, options);
  const std::vector<Copy> expected = read_epochs(whole, 3);
  for (size_t i = 0; i < expected.size(); ++i) {
    Loader resumed(data, options);
    if (i % 2 == 0) resumed.next();  // also from where it has begun
    resumed.seek(expected[i].position);
    EXPECT_EQ(resumed.position(), expected[i].position);
    const int left = 3 - static_cast<int>(expected[i].position.epoch);
    EXPECT_EQ(
        read_epochs(resumed, left),
        std::vector<Copy>(expected.begin() + static_cast<std::ptrdiff_t>(i), expected.end()));
  }
  Loader at_end(data, options);
  at_end.seek({1, 6});
  EXPECT_FALSE(at_end.next());
  EXPECT_EQ(copy(*at_end.next()), expected[12]);
  EXPECT_THROW(at_end.seek({0, 7}), UsageError);
  EXPECT_THROW(at_end.seek({-1, 0}), UsageError);
}

TEST(Loader, ErrorsSurfaceAtTheirBatchAndCanBeTriedAgain) {
  for (int64_t threads : {1, 4}) {
    const auto data = std::make_shared<Numbers>(20);
    data->fail({9, 10, 17});
    Loader loader(data, {.batch = 4, .threads = threads});
    EXPECT_EQ(loader.next()->labels[0], 0);
    EXPECT_EQ(loader.next()->labels[0], 4);
    for (int again = 0; again < 2; ++again) {
      try {
        loader.next();
        FAIL() << "no error";
      } catch (const DataError& error) {
        EXPECT_EQ(error.offset(), 9) << "the first of the batch, whatever the threads";
      }
      EXPECT_EQ(loader.position(), (LoaderPosition{0, 2}));
    }
    loader.seek({0, 3});
    EXPECT_EQ(loader.next()->labels[0], 12);
    EXPECT_THROW(loader.next(), DataError);
    data->fail({});
    // What was read ahead before the repair may still be the failure.
    std::optional<HostBatch> batch;
    for (int tries = 0; tries < 2 && !batch; ++tries) {
      try {
        batch = loader.next();
      } catch (const DataError&) {
      }
    }
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->labels[0], 16);
  }
}

TEST(Loader, CanGoAtAnyMoment) {
  const auto data = std::make_shared<Numbers>(64);
  for (int64_t threads : {1, 3}) {
    for (int taken = 0; taken < 20; ++taken) {
      Loader loader(data, {.batch = 8, .prefetch_batches = 3, .threads = threads});
      for (int i = 0; i < taken; ++i) loader.next();
    }
  }
}

TEST(Loader, GoesWhileASampleIsBeingRead) {
  const auto data = std::make_shared<Numbers>(64);
  data->gate = true;
  auto loader = std::make_unique<Loader>(data, LoaderOptions{.batch = 64, .threads = 2});
  while (data->reads < 2) std::this_thread::yield();  // both threads are inside read()
  std::thread destroyer([&] { loader.reset(); });
  data->open_gate();
  destroyer.join();
  EXPECT_LE(data->reads, 64 * 3);
}

TEST(Loader, BatchesOutliveTheLoader) {
  std::optional<HostBatch> kept;
  {
    Loader loader(std::make_shared<Numbers>(10), {.batch = 5});
    loader.next();
    kept = loader.next();
  }
  EXPECT_EQ(copy(*kept).labels, (std::vector<int64_t>{5, 6, 7, 8, 9}));
  std::shared_ptr<int64_t[]> labels = kept->labels;
  kept.reset();
  EXPECT_EQ(labels[4], 9);
}

TEST(Loader, UsesAFixedSetOfBuffers) {
  const auto data = std::make_shared<Numbers>(30);
  Loader loader(data, {.batch = 2, .prefetch_batches = 2});
  std::set<float*> buffers;
  for (int64_t i = 0; i < 15; ++i) {
    const std::optional<HostBatch> batch = loader.next();
    buffers.insert(batch->pixels.get());
    // Never further ahead than the buffers allow.
    EXPECT_LE(data->reads, 2 * (i + 1 + 2));
  }
  EXPECT_LE(buffers.size(), 3u);
  for (float* buffer : buffers) EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 512, 0u);
  // Three buffers of 2 x 3 floats and 2 labels, each rounded to 512, all together to a page;
  // one thread's 100 bytes; two epochs' orders.
  EXPECT_EQ(loader.buffer_bytes(), Bytes(4096 + 100 + 2 * 30 * 8));
  EXPECT_EQ(Loader(data, {.batch = 2, .prefetch_batches = 4}).buffer_bytes(),
            Bytes(2 * 4096 + 100 + 2 * 30 * 8));
}

// What devices have adopted, in order, and what of it is there.
struct Adoptions {
  std::vector<std::string> log;
  int there = 0;
  std::weak_ptr<std::byte> memory;  // of the last
  Bytes size{0};
  Bytes prepared{0};
};

class AdoptingDevice final : public ForwardingDevice {
 public:
  AdoptingDevice(std::string name, std::shared_ptr<Adoptions> adoptions)
      : ForwardingDevice(make_device("sim:a100-80gb")),
        name_(std::move(name)),
        adoptions_(std::move(adoptions)) {}

  std::unique_ptr<MemoryRegion> adopt(std::shared_ptr<std::byte> memory, Bytes size) override {
    adoptions_->memory = memory;
    adoptions_->size = size;
    adoptions_->prepared = Bytes(0);
    return std::make_unique<Region>(name_, adoptions_);
  }

 private:
  // Does not hold the memory, so that who else does can be seen.
  class Region final : public MemoryRegion {
   public:
    Region(std::string name, std::shared_ptr<Adoptions> adoptions)
        : name_(std::move(name)), adoptions_(std::move(adoptions)), size_(adoptions_->size) {
      adoptions_->log.push_back(name_ + " adopts");
      ++adoptions_->there;
    }
    ~Region() override {
      EXPECT_FALSE(adoptions_->memory.expired()) << "the buffers went first";
      adoptions_->log.push_back(name_ + " lets go");
      --adoptions_->there;
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    std::byte* data() const override { return nullptr; }
    Bytes size() const override { return size_; }
    void prepare(Bytes begin, Bytes bytes) override {
      EXPECT_EQ(begin, Bytes(0));
      adoptions_->prepared = bytes;
    }

   private:
    const std::string name_;
    const std::shared_ptr<Adoptions> adoptions_;
    const Bytes size_;
  };

  const std::string name_;
  const std::shared_ptr<Adoptions> adoptions_;
};

TEST(LoaderPin, GivesTheDeviceAllBuffersAndNothingElse) {
  const auto adoptions = std::make_shared<Adoptions>();
  AdoptingDevice device("gpu", adoptions);
  // 700 samples of 3 floats: buffers of 8704 + 5632 bytes.
  Loader loader(std::make_shared<Numbers>(7000), {.batch = 700, .prefetch_batches = 2});
  loader.pin(device);
  EXPECT_EQ(adoptions->prepared, adoptions->size);
  EXPECT_EQ(adoptions->size, align_up(Bytes(3 * (8704 + 5632)), Bytes(4096)));
  EXPECT_EQ(loader.buffer_bytes(), adoptions->size + Bytes(100 + 2 * 7000 * 8));
  const std::byte* const begin = adoptions->memory.lock().get();
  const std::byte* const end = begin + adoptions->size.count();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 4096, 0u);
  std::set<float*> buffers;
  for (int i = 0; i < 9; ++i) {
    const std::optional<HostBatch> batch = loader.next();
    buffers.insert(batch->pixels.get());
    for (const void* each : {static_cast<const void*>(batch->pixels.get()),
                             static_cast<const void*>(batch->pixels.get() + 2100),
                             static_cast<const void*>(batch->labels.get()),
                             static_cast<const void*>(batch->labels.get() + 700)}) {
      EXPECT_GE(each, begin);
      EXPECT_LE(each, end);
    }
  }
  EXPECT_LE(buffers.size(), 3u);
}

TEST(LoaderPin, AnotherDeviceTakesThePlaceOfTheFirst) {
  const auto adoptions = std::make_shared<Adoptions>();
  {
    Loader loader(std::make_shared<Numbers>(30), {.batch = 2});
    auto first = std::make_unique<AdoptingDevice>("first", adoptions);
    AdoptingDevice second("second", adoptions);
    loader.pin(*first);
    const std::optional<HostBatch> batch = loader.next();
    first.reset();
    loader.pin(second);
    loader.pin(second);
    EXPECT_EQ(adoptions->there, 1);
    EXPECT_EQ(copy(*batch).labels, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(loader.next()->labels[0], 2);
  }
  EXPECT_THAT(adoptions->log,
              ::testing::ElementsAre("first adopts", "first lets go", "second adopts",
                                     "second lets go", "second adopts", "second lets go"));
}

TEST(LoaderPin, EndsWithTheLastBatch) {
  const auto adoptions = std::make_shared<Adoptions>();
  std::optional<HostBatch> kept;
  {
    AdoptingDevice device("gpu", adoptions);
    Loader loader(std::make_shared<Numbers>(10), {.batch = 5});
    loader.pin(device);
    kept = loader.next();
  }
  std::shared_ptr<int64_t[]> labels = kept->labels;
  kept.reset();
  EXPECT_EQ(adoptions->there, 1);
  EXPECT_EQ(labels[4], 4);
  labels.reset();
  EXPECT_EQ(adoptions->there, 0);
  EXPECT_TRUE(adoptions->memory.expired());
}

TEST(LoaderPin, BatchesGoToAGpuWithoutStaging) {
  const auto fake = std::make_shared<FakeCudaDriver>();
  CudaDeviceOptions options;
  options.pin_chunk = Bytes(8192);
  auto device = make_cuda_device_on(fake, "cuda:0", load_profile("h100-80gb"), options);
  const auto arena = device->map(MemoryKind::kDevice, Bytes(1 << 20));
  std::optional<HostBatch> kept;
  {
    Loader loader(std::make_shared<Numbers>(7000), {.batch = 700, .threads = 2});
    loader.pin(*device);
    EXPECT_EQ(fake->pinned(), align_up(Bytes(3 * (8704 + 5632)), Bytes(4096)));
    while (std::optional<HostBatch> batch = loader.next()) {
      const Bytes pixels(4 * 2100), labels(8 * 700);
      std::byte* const behind = arena->data() + (1 << 16);
      device->copy(StreamId::kReload,
                   {arena->data(), reinterpret_cast<std::byte*>(batch->pixels.get()), pixels});
      device->copy(StreamId::kReload,
                   {behind, reinterpret_cast<std::byte*>(batch->labels.get()), labels});
      device->synchronize_all();
      EXPECT_EQ(std::memcmp(arena->data(), batch->pixels.get(), 4 * 2100), 0);
      EXPECT_EQ(std::memcmp(behind, batch->labels.get(), 8 * 700), 0);
      kept = std::move(batch);
    }
  }
  EXPECT_EQ(fake->calls(DriverCall::kLaunchHostFunc), 0);
  EXPECT_GT(fake->pinned(), Bytes(0)) << "a batch is held";
  kept.reset();
  EXPECT_EQ(fake->pinned(), Bytes(0));
  device.reset();
  EXPECT_THAT(fake->violations(), ::testing::IsEmpty());
}

TEST(Loader, HoldingEveryBufferIsAnErrorNotAHang) {
  Loader loader(std::make_shared<Numbers>(30), {.batch = 2, .prefetch_batches = 2});
  std::vector<HostBatch> held;
  for (int i = 0; i < 3; ++i) held.push_back(*loader.next());
  EXPECT_THROW(loader.next(), UsageError);
  EXPECT_EQ(held[0].labels[1], 1) << "a held batch is not overwritten";
  held.erase(held.begin());
  EXPECT_EQ(loader.next()->labels[0], 6);
}

TEST(Loader, OneBatchEpochsWork) {
  for (int64_t threads : {1, 2}) {
    Loader loader(std::make_shared<Numbers>(3),
                  {.batch = 8, .shuffle = true, .prefetch_batches = 4, .threads = threads});
    const std::vector<Copy> all = read_epochs(loader, 20);
    ASSERT_EQ(all.size(), 20u);
    for (const Copy& batch : all)
      EXPECT_THAT(batch.labels, ::testing::UnorderedElementsAre(0, 1, 2));
  }
}

TEST(Loader, RefusesOptionsWithoutMeaning) {
  const auto data = std::make_shared<Numbers>(10);
  EXPECT_THROW(Loader(data, {.batch = 0}), UsageError);
  EXPECT_THROW(Loader(data, {.batch = 1, .prefetch_batches = 0}), UsageError);
  EXPECT_THROW(Loader(data, {.batch = 1, .threads = 0}), UsageError);
  EXPECT_THROW(Loader(data, {.batch = 11, .drop_last = true}), UsageError);
  EXPECT_THROW(Loader(std::make_shared<Numbers>(0), {.batch = 1}), UsageError);
}

TEST(CounterRandom, IsUniformAndStreamsDiffer) {
  CounterRandom random(1, RandomStream::kOrder, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_NE(CounterRandom(1, RandomStream::kOrder, 0).bits64(),
            CounterRandom(1, RandomStream::kAugment, 0).bits64());
  EXPECT_NE(CounterRandom(1, RandomStream::kOrder, 0).bits64(),
            CounterRandom(1, RandomStream::kOrder, 1).bits64());
  EXPECT_NE(CounterRandom(1, RandomStream::kOrder, 0).bits64(),
            CounterRandom(2, RandomStream::kOrder, 0).bits64());
}

}  // namespace
}  // namespace tidemark
