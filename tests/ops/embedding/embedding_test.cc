#include "ops/embedding/embedding.h"

#include <random>

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/compare.h"
#include "ops/registry/dispatch.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using EmbeddingTest = SessionTest;

// Mostly few ids, as in text.
std::vector<int64_t> draw_ids(int64_t count, int64_t rows) {
  std::mt19937 random(7);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t range = random() % 2 ? rows : std::min<int64_t>(rows, 3);
    ids.push_back(static_cast<int64_t>(random()) % range);
  }
  return ids;
}

struct Case {
  int64_t rows, width;
  Shape ids;
};

const Case kCases[] = {{5, 3, {4}},
                       {1, 1, {1}},
                       {2, 7, {3000}},
                       {7, 1, {2, 3}},
                       {300, 130, {5, 9}},
                       {70000, 2, {50}},
                       {10, 300, {700}},
                       {256, 5, {64}},
                       {4, 6, {0}},
                       {3, 4, {}},
                       {500, 20, {2, 3, 4, 100}},
                       {9, 1000, {33}},
                       {6, 1100, {5}},
                       {4, 0, {3}},
                       {2, 8, {1000}},
                       {30, 516, {290}}};

TEST_F(EmbeddingTest, AgreesWithPlainLoops) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::to_string(c.rows) + " x " + std::to_string(c.width) + ", ids " +
                 c.ids.to_string());
    const auto width = static_cast<size_t>(c.width);
    const std::vector<int64_t> ids = draw_ids(c.ids.elements(), c.rows);
    const std::vector<float> table = random_values(c.rows * c.width, 1);
    std::vector<float> y;
    for (int64_t id : ids) {
      const auto row = table.begin() + id * c.width;
      y.insert(y.end(), row, row + c.width);
    }
    Shape shape = c.ids;
    shape.push_back(c.width);
    const std::vector<float> gy = random_values(shape.elements(), 2);
    std::vector<double> gradient(table.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t k = 0; k < width; ++k) {
        gradient[static_cast<size_t>(ids[i]) * width + k] += gy[i * width + k];
      }
    }
    std::vector<float> first;
    for (const bool narrow_ids : {false, true}) {
      Tensor leaf = from(table, {c.rows, c.width});
      require_grad(leaf);
      const Tensor id_tensor = narrow_ids
                                   ? from(std::vector<int32_t>(ids.begin(), ids.end()), c.ids)
                                   : from(ids, c.ids);
      const Tensor out = embedding(leaf, id_tensor);
      ASSERT_EQ(out.shape(), shape);
      EXPECT_TRUE(same_bits(to_vector(out), y));
      backward(out, from(gy, shape));
      expect_close(grad_of(leaf), gradient, 2e-5);
      if (!narrow_ids) first = to_vector(grad_of(leaf));
      EXPECT_TRUE(same_bits(to_vector(grad_of(leaf)), first));
    }
  }
}

TEST_F(EmbeddingTest, Gradients) {
  const Tensor ids = from<int64_t>({2, 0, 2, 2, 3, 0}, {2, 3});
  check_gradients([&](std::vector<Tensor> x) { return embedding(x[0], ids); }, {{5, 4}});
  check_gradients(
      [&](std::vector<Tensor> x) {
        return transpose(embedding(transpose(x[0], 0, 1), transpose(ids, 0, 1)), 0, 2);
      },
      {{4, 5}});
}

// Rows are read in vectors only where they lie for that. Straight to the operator, as the
// function would copy the table.
TEST_F(EmbeddingTest, ATableThatIsNotAligned) {
  const NoGrad no_grad;
  const Tensor all = random_tensor({1 + 5 * 8}, 1);
  const Tensor table = reshape(narrow(all, 0, 1, 5 * 8), {5, 8});
  const Tensor ids = from<int64_t>({4, 0, 4}, {3});
  EXPECT_TRUE(same_bits(to_vector(dispatch1(kEmbedding, {table, ids})),
                        to_vector(embedding(table, ids))));
}

// No more positions than any device sums in float. Rows that vectors of four fit, lie one
// element on, or have other widths; more positions of an id than are loaded at once, and fewer.
TEST_F(EmbeddingTest, GradientsAddUpInTheOrderOfThePositions) {
  const NoGrad no_grad;
  constexpr int64_t kRows = 7, kCount = 101, kPadding = 5;
  const std::vector<int64_t> ids = draw_ids(kCount, kRows);
  const Tensor id_tensor = from(ids, {kCount});
  const EmbeddingGradAttrs attrs{kRows, kPadding};
  for (const int64_t width : {1, 6, 8, 516}) {
    for (const int64_t offset : {0, 1, 4}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        SCOPED_TRACE(std::to_string(width) + " columns, " + std::to_string(offset) +
                     " elements on, " + std::string(to_string(dtype)));
        const int64_t elements = kCount * width;
        const Tensor all = cast(random_tensor({offset + elements}, 1), dtype);
        const Tensor gy = reshape(narrow(all, 0, offset, elements), {kCount, width});
        const std::vector<float> values = to_vector(cast(gy, DType::kFloat32));
        std::vector<float> expected(static_cast<size_t>(kRows * width));
        for (size_t i = 0; i < values.size(); ++i) {
          const auto column = i % static_cast<size_t>(width);
          const int64_t id = ids[i / static_cast<size_t>(width)];
          if (id == kPadding) continue;
          expected[static_cast<size_t>(id * width) + column] += values[i];
        }
        const Tensor rounded = cast(from(expected, {kRows, width}), dtype);
        const Tensor actual = dispatch1(kEmbeddingGrad, {gy, id_tensor}, attrs);
        EXPECT_TRUE(same_bits(to_vector(cast(actual, DType::kFloat32)),
                              to_vector(cast(rounded, DType::kFloat32))));
      }
    }
  }
}

// Tied: the table's two gradients add up.
TEST_F(EmbeddingTest, OneTableUsedTwice) {
  const Tensor ids = from<int64_t>({1, 1, 0}, {3});
  check_gradients(
      [&](std::vector<Tensor> x) { return mul(embedding(x[0], ids), narrow(x[0], 0, 0, 3)); },
      {{4, 2}});
}

TEST_F(EmbeddingTest, ThePaddingRowHasNoGradient) {
  for (const int64_t padding : {int64_t{1}, int64_t{-2}}) {
    Tensor table = random_leaf({3, 2}, 1);
    const Tensor ids = from<int64_t>({1, 0, 1, 2, 0}, {5});
    const Tensor y = embedding(table, ids, padding);
    EXPECT_EQ(to_vector(y)[0], to_vector(table)[2]);
    backward(y, from(std::vector<float>(10, 1), {5, 2}));
    EXPECT_EQ(to_vector(grad_of(table)), (std::vector<float>{2, 2, 0, 0, 1, 1}));
  }
}

TEST_F(EmbeddingTest, ThreadsDoNotMatter) {
  const auto run = [] {
    Tensor table = random_leaf({1000, 65}, 1);
    const Tensor ids = from(draw_ids(20000, 1000), {20000});
    backward(embedding(table, ids), random_tensor({20000, 65}, 2));
    return to_vector(grad_of(table));
  };
  const std::vector<float> gradient = run();
  EXPECT_TRUE(same_bits(run(), gradient));
  SessionOptions single = options();
  single.threads = 1;
  Session other(single);
  EXPECT_TRUE(same_bits(run(), gradient));
}

TEST_F(EmbeddingTest, Errors) {
  const Tensor table = random_tensor({5, 3}, 1), ids = from<int64_t>({1}, {1});
  EXPECT_EQ(usage_error([&] { embedding(table, random_tensor({2}, 1)); }),
            "[embedding] ids of shape (2) are float32, not int64 or int32");
  EXPECT_EQ(usage_error([&] { embedding(random_tensor({5}, 1), ids); }),
            "[embedding] a table must be (V, D), not (5)");
  EXPECT_EQ(usage_error([&] { embedding(table, ids, 5); }),
            "[embedding] padding_idx 5 is not a row of a table of shape (5, 3)");
  EXPECT_NE(usage_error([&] { embedding(table, ids, -6); }), "");
}

// What the header says of each device's kernels; on the CPU device those of CUDA may be under
// test (tests/ops/cuda).
TEST_F(EmbeddingTest, IdsOutOfRange) {
  for (const int64_t bad : {int64_t{5}, int64_t{-1}, int64_t{1} << 40}) {
    Session session(options());
    Tensor table = random_leaf({5, 3}, 1);
    const Tensor y = embedding(table, from<int64_t>({0, 1, 2, bad}, {4}));
    std::vector<float> values(12);
    std::string message;
    try {
      session.download(y, values.data());
    } catch (const DeviceError& error) {
      message = error.what();
    }
    if (!message.empty()) {
      EXPECT_NE(message.find("[embedding] id " + std::to_string(bad) +
                             " at position 3 is not in [0, 5)"),
                std::string::npos)
          << message;
      continue;
    }
    EXPECT_FALSE(std::isnan(values[8]));
    EXPECT_TRUE(std::isnan(values[9]));
    backward(y, from(std::vector<float>(12, 1), {4, 3}));
    EXPECT_EQ(to_vector(grad_of(table))[14], 0);
    EXPECT_EQ(to_vector(grad_of(table))[0], 1);
  }
}

}  // namespace
}  // namespace tidemark::testing
