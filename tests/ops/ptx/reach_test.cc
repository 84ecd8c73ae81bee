// Kernels that no other test reaches, as they are for rows, windows or types that only large
// models have.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/conv/kernels.h"
#include "ops/elementwise/compare.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/pool/max_pool2d.h"
#include "ops/reduce/reduce.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/move_cuda.h"
#include "tests/support/ptx/library.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

// Rows longer than this take a block of 256 threads each.
constexpr int64_t kLong = 1500;

using ReachTest = SessionTest;

TEST_F(ReachTest, LargestOfLongRows) {
  std::vector<float> values(2 * kLong);
  std::iota(values.begin(), values.end(), 0.0F);
  values[7] = 1e6F;
  const Tensor x = from(values, {2, kLong});
  EXPECT_EQ(to_vector<int64_t>(argmax(x)), (std::vector<int64_t>{7, kLong - 1}));
  EXPECT_EQ(to_vector<int64_t>(accuracy_count(x, from<int64_t>({7, 3}, {2}))),
            (std::vector<int64_t>{1}));
}

TEST_F(ReachTest, SoftmaxOfLongRows) {
  const Tensor x = random_leaf({2, kLong}, 1);
  const Tensor y = softmax(x);
  backward(y, random_tensor({2, kLong}, 2));
  const auto p = to_vector(y), gradient = to_vector(grad_of(x));
  for (int64_t row = 0; row < 2; ++row) {
    const auto sum = [&](const std::vector<float>& v) {
      return std::accumulate(v.begin() + row * kLong, v.begin() + (row + 1) * kLong, 0.0);
    };
    EXPECT_NEAR(sum(p), 1, 1e-5);
    EXPECT_NEAR(sum(gradient), 0, 1e-6);
  }
}

TEST_F(ReachTest, CrossEntropyOfLongRowsInBFloat16) {
  Tensor narrow = cast(random_tensor({2, kLong}, 1), DType::kBFloat16);
  Tensor wide = cast(narrow, DType::kFloat32);
  for (Tensor* logits : {&narrow, &wide}) {
    require_grad(*logits);
    backward(cross_entropy(*logits, from<int64_t>({3, 1400}, {2})));
  }
  const auto actual = to_vector(cast(grad_of(narrow), DType::kFloat32));
  const auto expected = to_vector(grad_of(wide));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-3) << i;
}

TEST_F(ReachTest, LinearCrossEntropyOfLongRows) {
  const Tensor labels = from<int64_t>({3, 1400}, {2});
  std::vector<std::vector<float>> results;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    Tensor x = cast(cast(random_tensor({2, 4}, 1), DType::kBFloat16), dtype);
    const Tensor weight = cast(cast(random_tensor({kLong, 4}, 2), DType::kBFloat16), dtype);
    require_grad(x);
    const Tensor loss = linear_cross_entropy(x, weight, labels).loss;
    backward(loss);
    results.push_back(to_vector(loss));
    results.push_back(to_vector(cast(grad_of(x), DType::kFloat32)));
  }
  EXPECT_NEAR(results[0][0], results[2][0], 1e-5);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(results[1][i], results[3][i], 0.01) << i;
}

TEST_F(ReachTest, LayerNormOfLongOddRows) {
  constexpr int64_t kOdd = kLong + 1;
  const Tensor x = random_leaf({2, kOdd}, 1);
  const Tensor one = from(std::vector<float>(kOdd, 1), {kOdd});
  const Tensor y = layer_norm(x, one, from(std::vector<float>(kOdd), {kOdd}));
  backward(y, random_tensor({2, kOdd}, 2));
  const auto values = to_vector(y), gradient = to_vector(grad_of(x));
  EXPECT_NEAR(std::accumulate(values.begin(), values.begin() + kOdd, 0.0), 0, 1e-3);
  EXPECT_NEAR(std::inner_product(values.begin(), values.begin() + kOdd, values.begin(), 0.0),
              kOdd, 1e-1);
  EXPECT_NEAR(std::accumulate(gradient.begin(), gradient.begin() + kOdd, 0.0), 0, 1e-3);
}

// Rows of odd and even lengths, short and long, as far as their types are not tested elsewhere.
TEST_F(ReachTest, LayerNormInBFloat16) {
  for (const int64_t length : {33, 1504}) {
    std::vector<std::vector<float>> results;
    for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
      Tensor x = cast(cast(random_tensor({2, length}, 1), DType::kBFloat16), dtype);
      require_grad(x);
      const Tensor one = from(std::vector<float>(static_cast<size_t>(length), 1), {length});
      const Tensor y = layer_norm(x, one, one);
      backward(y, cast(cast(random_tensor({2, length}, 2), DType::kBFloat16), dtype));
      results.push_back(to_vector(cast(y, DType::kFloat32)));
      results.push_back(to_vector(cast(grad_of(x), DType::kFloat32)));
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_NEAR(results[0][i], results[2][i], 0.05);
      EXPECT_NEAR(results[1][i], results[3][i], 0.05);
    }
  }
}

TEST_F(ReachTest, RmsNormInBFloat16) {
  for (const int64_t length : {int64_t{33}, kLong + 1, kLong + 4}) {
    std::vector<std::vector<float>> results;
    for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
      Tensor x = cast(cast(random_tensor({2, length}, 1), DType::kBFloat16), dtype);
      require_grad(x);
      const Tensor one = from(std::vector<float>(static_cast<size_t>(length), 1), {length});
      const Tensor y = rms_norm(x, one);
      backward(y, cast(cast(random_tensor({2, length}, 2), DType::kBFloat16), dtype));
      results.push_back(to_vector(cast(y, DType::kFloat32)));
      results.push_back(to_vector(cast(grad_of(x), DType::kFloat32)));
    }
    const auto first_row = results[2].begin();
    EXPECT_NEAR(std::inner_product(first_row, first_row + length, first_row, 0.0), length, 0.1);
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_NEAR(results[0][i], results[2][i], 0.05);
      EXPECT_NEAR(results[1][i], results[3][i], 0.05);
    }
  }
}

// Channels that vectors of four fit, and others.
TEST_F(ReachTest, BatchNormInBFloat16) {
  for (const int64_t channels : {8, 5}) {
    for (const Activation f :
         {Activation::kNone, Activation::kReLU, Activation::kReLU6, Activation::kSiLU}) {
      std::vector<std::vector<float>> results;
      for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
        const Shape shape{40, channels};
        Tensor x = cast(cast(random_tensor(shape, 1), DType::kBFloat16), dtype);
        require_grad(x);
        // The outputs are far from the kinks of ReLU and ReLU6.
        const auto all = static_cast<size_t>(channels);
        const Tensor gamma = from(std::vector<float>(all, 0.5F), {channels});
        const Tensor beta = from(std::vector<float>(all, 3), {channels});
        const Tensor y = batch_norm(x, gamma, beta, 1e-5, f).y;
        backward(y, cast(cast(random_tensor(shape, 2), DType::kBFloat16), dtype));
        results.push_back(to_vector(cast(y, DType::kFloat32)));
        results.push_back(to_vector(cast(grad_of(x), DType::kFloat32)));
      }
      for (size_t i = 0; i < results[0].size(); ++i) {
        EXPECT_NEAR(results[0][i], results[2][i], 0.05);
        EXPECT_NEAR(results[1][i], results[3][i], 0.05);
      }
    }
  }
}

TEST_F(ReachTest, SumsOfBFloat16) {
  const Tensor narrow = cast(random_tensor({300, 3, 5}, 1), DType::kBFloat16);
  const Tensor wide = cast(narrow, DType::kFloat32);
  const auto expect_equal = [](const Tensor& a, const Tensor& b) {
    const auto actual = to_vector(a), expected = to_vector(b);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-3);
  };
  expect_equal(sum(narrow, {2}), sum(wide, {2}));
  expect_equal(sum(narrow, {0, 2}), sum(wide, {0, 2}));
}

TEST_F(ReachTest, MaterialisedAttentionToManyKeys) {
  const Tensor q = random_tensor({1, 2, 1, 4}, 1), k = random_tensor({1, kLong, 1, 4}, 2);
  std::vector<std::vector<float>> results;
  for (const auto kind :
       {AttentionImplementation::kMaterialised, AttentionImplementation::kMemoryEfficient}) {
    results.push_back(
        to_vector(scaled_dot_product_attention(q, k, k, {.implementation = kind})));
  }
  for (size_t i = 0; i < results[0].size(); ++i)
    EXPECT_NEAR(results[0][i], results[1][i], 1e-4);
}

// A window of more than 256 cells, whose index does not fit into a byte.
TEST_F(ReachTest, MaxPoolOfALargeWindow) {
  constexpr int64_t kExtent = 17, kChannels = 4;
  const Tensor x = random_leaf({1, kExtent, kExtent, kChannels}, 1);
  const Tensor y = max_pool2d(x, {.window = {kExtent, kExtent}, .stride = {1, 1}});
  backward(y, from(std::vector<float>(kChannels, 2), {1, 1, 1, kChannels}));
  const auto values = to_vector(x), largest = to_vector(y), gradient = to_vector(grad_of(x));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_LE(values[i], largest[i % kChannels]);
    EXPECT_EQ(gradient[i], values[i] == largest[i % kChannels] ? 2 : 0);
  }
}

// cuDNN, which adds none, takes a GPU: the kernel that adds it is called by itself. Channels
// make packs, single elements, or one gapless run.
TEST_F(ReachTest, ConvolutionsAddTheirBias) {
  for (const Shape& shape : {Shape{2, 3, 3, 8}, Shape{2, 3, 3, 5}, Shape{1, 1, 1, 6}}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const int64_t channels = shape.back();
      const TensorMeta y = TensorMeta::contiguous(dtype, shape);
      const TensorMeta bias = TensorMeta::contiguous(DType::kFloat32, {channels});
      const std::vector<TensorMeta> in{y, y, bias}, out{y};
      std::vector<float> wide(static_cast<size_t>(shape.elements())), added;
      for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(i % 32);
      std::vector<BFloat16> narrow(wide.begin(), wide.end());
      for (int64_t c = 0; c < channels; ++c) added.push_back(static_cast<float>(c) - 3.5F);
      auto* const at = dtype == DType::kFloat32 ? reinterpret_cast<std::byte*>(wide.data())
                                                : reinterpret_cast<std::byte*>(narrow.data());
      ptx::GlobalMemory global;
      global.add(at, y.bytes().count(), true, "y");
      global.add(added.data(), bias.bytes().count(), false, "bias");
      const ptx::GlobalScope scope(global);
      const std::vector<std::byte*> inputs{nullptr, nullptr,
                                           reinterpret_cast<std::byte*>(added.data())};
      const std::vector<std::byte*> outputs{at};
      prepare_add_bias_cuda({in, out, {}})(
          {in, out, inputs, outputs, nullptr, {}, {}, nullptr});
      for (size_t i = 0; i < wide.size(); ++i) {
        const float sum = dtype == DType::kFloat32 ? wide[i] : float{narrow[i]};
        EXPECT_EQ(sum, static_cast<float>(i % 32) + added[i % added.size()]) << i;
      }
    }
  }
}

// What the moves since the last call read.
int64_t read_by_moves() {
  int64_t read = 0;
  for (const auto& [name, counts] : ptx::Library::shipped().take_counts()) {
    if (name.find("move_words") != std::string::npos) read += counts.read;
  }
  return read;
}

TEST_F(ReachTest, BlocksMoveOverThemselves) {
  constexpr int64_t kTile = 16 << 10, kTiles = 9, kBytes = kTiles * kTile - 5 * 16;
  std::vector<uint32_t> words(kMoveProgressBytes / 4);
  MoveProgress progress{words.data()};
  for (const int64_t far : {int64_t{16}, int64_t{1600}, kTile, kTile + 16, 4 * kTile, kBytes}) {
    for (const bool upwards : {false, true}) {
      std::vector<uint32_t> memory(static_cast<size_t>(kBytes + far) / 4);
      std::iota(memory.begin(), memory.end(), 0U);
      std::vector<uint32_t> expected = memory;
      const auto move = [&](std::vector<uint32_t>& m, const auto& f) {
        std::byte* const low = reinterpret_cast<std::byte*>(m.data());
        f(upwards ? low + far : low, upwards ? low : low + far);
      };
      move(expected, [](std::byte* to, std::byte* from) { std::memmove(to, from, kBytes); });
      ptx::GlobalMemory global;
      global.add(memory.data(), kBytes + far, true, "memory");
      global.add(words.data(), static_cast<int64_t>(kMoveProgressBytes), true, "progress");
      global.watch_races();
      const ptx::GlobalScope scope(global);
      (void)read_by_moves();
      move(memory, [&](std::byte* to, std::byte* from) {
        EXPECT_EQ(static_cast<int>(move_on_gpu(to, from, kBytes, progress, nullptr)), 0);
      });
      EXPECT_EQ(memory, expected) << far << upwards;
      // Each tile waits for those before it that it may overwrite, and for no others.
      const int64_t reach = (far + kTile - 1) / kTile;
      int64_t waits = 0;
      for (int64_t tile = 0; tile < kTiles; ++tile) waits += std::min(tile, reach);
      EXPECT_EQ(read_by_moves(), kBytes + 4 * waits) << far << upwards;
    }
  }
  EXPECT_NE(static_cast<int>(move_on_gpu(nullptr, nullptr, kMaxMove + 16, progress, nullptr)),
            0);
}

}  // namespace
}  // namespace tidemark::testing
