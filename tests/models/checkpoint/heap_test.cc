// Host memory beside the arena: values come and go in pieces, so that a large tensor is never
// whole on the heap, whether it is made, summed, saved or loaded.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include "models/checkpoint/gguf.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/nn/parameter_init.h"
#include "models/optim/optimizer.h"
#include "runtime/session/session.h"
#include "tests/models/checkpoint/gguf_builder.h"
#include "tests/models/data/files.h"

namespace {

// What operator new has given out in this program. Relaxed: only sums are compared, between
// calls that wait for the work of other threads.
std::atomic<int64_t> heap_now{0}, heap_peak{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = heap_now.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = heap_peak.load(std::memory_order_relaxed);
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void freed(void* memory) {
  const auto size = memory ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
  heap_now.fetch_sub(size, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size)); }
void* operator new[](size_t size) { return counted(std::malloc(size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { freed(memory); }
void operator delete[](void* memory) noexcept { freed(memory); }
void operator delete(void* memory, size_t) noexcept { freed(memory); }
void operator delete[](void* memory, size_t) noexcept { freed(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { freed(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { freed(memory); }

namespace tidemark {
namespace {

using namespace tidemark::literals;
using testing::TempFolder;

// The most that was on the heap at once while `work` ran, beyond what was there before.
Bytes heap_of(const std::function<void()>& work) {
  const int64_t before = heap_now.load();
  heap_peak = before;
  work();
  return Bytes(heap_peak.load() - before);
}

struct Large : Module {
  explicit Large(uint64_t seed) : init(seed), weight(init.uniform({4096, 4096}, 1)) {
    register_parameter("weight", weight);
  }
  std::string checksum() const { return *tensors_checksum({parameters()}); }
  ParameterInit init;
  Tensor weight;
};

class HeapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Bytes whole = heap_of([] { std::vector<std::byte>(size_t{64} << 20); });
    ASSERT_GE(whole, 64_MiB) << "the heap is counted";
  }
  std::string path() const { return folder_.path() + "/file"; }

  static constexpr Bytes kMost = 8_MiB;  // the weight has 64 MiB
  TempFolder folder_;
  Session session_{{.device = "cpu", .threads = 1, .budget = 384_MiB}};
};

TEST_F(HeapTest, FirstValues) {
  ParameterInit init(1);
  const Shape shape{4096, 4096};
  EXPECT_LT(heap_of([&] { init.normal(shape, 1); }), kMost);
  EXPECT_LT(heap_of([&] { init.uniform(shape, 1); }), kMost);
  EXPECT_LT(heap_of([&] { init.constant(shape, 1); }), kMost);
  EXPECT_LT(heap_of([&] {
              for (int i = 0; i < 32; ++i) init.constant({1024, 512}, 1);  // 2 MiB each
            }),
            kMost)
      << "copies that nobody waits for do not pile up";
}

TEST_F(HeapTest, Weights) {
  const Large model(1);
  Large other(2);
  EXPECT_LT(heap_of([&] { EXPECT_NE(model.checksum(), other.checksum()); }), kMost);
  EXPECT_LT(heap_of([&] { save_weights(path(), model); }), kMost);
  EXPECT_LT(heap_of([&] {
              SafetensorsFile file(path());
              load_into(other, file);
            }),
            kMost);
  EXPECT_EQ(model.checksum(), other.checksum());
}

// In three tensors, none of which ends where a piece does.
TEST_F(HeapTest, WeightsInPartsAndHalves) {
  const int64_t rows = 4096 + 2;
  const Shape shape{rows, 4096}, part{rows / 3, 4096};
  const WeightNames names = [](const std::string&) -> std::vector<std::string> {
    return {"a", "b", "c"};
  };
  const std::vector<NamedTensor> saved{{"w", ParameterInit(1).uniform(shape, 1)}};
  const std::vector<NamedTensor> loaded{{"w", ParameterInit::buffer(shape, 0)}};
  EXPECT_LT(heap_of([&] { save_tensors(path(), saved, {}, names); }), kMost);
  EXPECT_LT(heap_of([&] {
              SafetensorsFile file(path());
              load_tensors(loaded, file, {.names = names});
            }),
            kMost);
  EXPECT_EQ(tensors_checksum({saved}), tensors_checksum({loaded}));

  // bfloat16 halves of floats whose lower halves are zero: loaded, they are those floats.
  std::vector<float> exact(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < exact.size(); ++i) exact[i] = static_cast<float>(i % 251);
  SafetensorsWriter writer(path(),
                           {{"a", DType::kBFloat16, part},
                            {"b", DType::kBFloat16, part},
                            {"c", DType::kBFloat16, part}},
                           {});
  std::vector<uint16_t> halves(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    halves[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(exact[i]) >> 16);
  }
  writer.write(std::as_bytes(std::span(halves)));
  writer.commit();
  EXPECT_LT(heap_of([&] {
              SafetensorsFile file(path());
              load_tensors(loaded, file, {.names = names});
            }),
            kMost);
  std::vector<float> got(exact.size());
  session_.download(loaded[0].tensor, got.data());
  EXPECT_EQ(got, exact);

  const std::vector<NamedTensor> short_ones{
      {"w", session_.upload_from([](Bytes, std::span<std::byte>) {},
                                 TensorMeta::contiguous(DType::kBFloat16, shape),
                                 Category::kParameter)}};
  EXPECT_LT(heap_of([&] {
              SafetensorsFile file(path());
              load_tensors(short_ones, file, {.names = names});
            }),
            kMost);
  std::vector<uint16_t> got_halves(exact.size());
  session_.download(short_ones[0].tensor, got_halves.data());
  EXPECT_EQ(got_halves, halves);
}

// Zeros, as a file without contents has them.
TEST_F(HeapTest, QuantizedWeights) {
  testing::GgufBuilder gguf;
  constexpr uint32_t kQ4K = 12;
  gguf.tensor("w", {4096, 4096}, kQ4K, 0);
  const testing::ByteVector header = gguf.bytes();
  const std::string file = folder_.write("gguf", header);
  std::filesystem::resize_file(file, header.size() + size_t{4096} * 4096 / 256 * 144);
  const std::vector<NamedTensor> loaded{{"w", ParameterInit::buffer({4096, 4096}, 1)}};
  const std::vector<NamedTensor> zeros{{"w", ParameterInit::buffer({4096, 4096}, 0)}};
  EXPECT_LT(heap_of([&] {
              GgufFile source(file);
              load_tensors(loaded, source);
            }),
            kMost);
  EXPECT_EQ(tensors_checksum({loaded}), tensors_checksum({zeros}));
}

TEST_F(HeapTest, TrainingStates) {
  Large model(1), other(2);
  const auto sgd = make_sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  EXPECT_LT(heap_of([&] { save_training_state(path(), model, *sgd, {}); }), kMost);
  const auto others = make_sgd(other.parameters(), {.lr = 0.1, .momentum = 0.9});
  EXPECT_LT(heap_of([&] { load_training_state(path(), other, *others); }), kMost);
  EXPECT_EQ(model.checksum(), other.checksum());
}

}  // namespace
}  // namespace tidemark
