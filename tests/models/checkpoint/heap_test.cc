// Host memory beside the arena: values come and go in pieces, so that a large tensor is never
// whole on the heap, whether it is made, summed, saved or loaded.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>

#include "models/checkpoint/gguf.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/nn/parameter_init.h"
#include "models/optim/optimizer.h"
#include "runtime/session/session.h"
#include "tests/models/checkpoint/gguf_builder.h"
#include "tests/models/data/files.h"
#include "tests/support/counted_heap.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;
using testing::heap_of;
using testing::TempFolder;

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
