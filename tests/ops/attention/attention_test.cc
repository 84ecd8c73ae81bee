#include "ops/attention/attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "ops/attention/kernels.h"
#include "ops/create/create.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/inplace.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

using enum AttentionImplementation;

struct AttentionCase {
  const char* name;
  int64_t batch, queries, keys, heads, depth;
  bool causal = false;
  double dropout = 0;
  enum { kAll, kLengths, kMask } filter = kAll;
  enum { kZero, kPacked, kAny } starts = kZero;
};

void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

// Tiles are of 64 queries and 128 keys, on GPUs of 64 or fewer; dropout's chunks of 64 keys.
const AttentionCase kAttentionCases[] = {
    {"one", 1, 1, 1, 1, 1},
    {"tiny", 2, 3, 5, 2, 4},
    {"one_query", 2, 1, 150, 3, 8},
    {"one_key", 2, 70, 1, 2, 8},
    {"whole_tiles", 1, 128, 256, 2, 64},
    {"whole_tiles_with_all", 2, 128, 128, 1, 64, true, 0.2, AttentionCase::kLengths},
    {"odd", 2, 67, 131, 3, 20},
    {"odd_depth", 2, 67, 131, 2, 33, true, 0.1},
    {"odd_depth_of_few", 1, 70, 75, 2, 7, false, 0.4, AttentionCase::kLengths},
    {"odd_depth_of_a_tile", 1, 130, 66, 1, 63, true, 0.2, AttentionCase::kMask,
     AttentionCase::kAny},
    {"odd_depth_above_a_tile", 2, 70, 75, 1, 65, true, 0.3, AttentionCase::kLengths},
    {"odd_and_deep", 1, 66, 130, 2, 127, false, 0.2, AttentionCase::kAll, AttentionCase::kAny},
    {"deep", 1, 33, 40, 1, 128},
    {"deepest", 1, 9, 12, 1, 200},
    {"causal", 2, 133, 133, 2, 16, true},
    {"causal_more_keys", 1, 20, 150, 2, 8, true},
    {"causal_more_queries", 1, 150, 20, 2, 8, true},
    {"lengths", 3, 70, 140, 2, 16, false, 0, AttentionCase::kLengths},
    {"mask", 3, 40, 140, 2, 16, false, 0, AttentionCase::kMask},
    {"dropout", 2, 67, 131, 2, 16, false, 0.3},
    {"everything", 3, 140, 140, 2, 24, true, 0.1, AttentionCase::kMask},
    {"everything_with_lengths", 3, 66, 200, 1, 32, true, 0.5, AttentionCase::kLengths},
    {"packed", 2, 300, 300, 2, 24, true, 0, AttentionCase::kAll, AttentionCase::kPacked},
    {"packed_and_deep", 2, 90, 90, 1, 128, true, 0.2, AttentionCase::kAll,
     AttentionCase::kPacked},
    {"packed_whole_tiles", 1, 256, 256, 1, 64, true, 0.2, AttentionCase::kAll,
     AttentionCase::kPacked},
    {"starts", 3, 140, 270, 2, 16, false, 0, AttentionCase::kAll, AttentionCase::kAny},
    {"starts_of_one_query", 3, 1, 270, 2, 16, false, 0, AttentionCase::kAll,
     AttentionCase::kAny},
    {"starts_more_queries", 2, 170, 70, 1, 33, true, 0, AttentionCase::kAll,
     AttentionCase::kAny},
    {"starts_and_everything", 3, 140, 140, 2, 24, true, 0.1, AttentionCase::kMask,
     AttentionCase::kAny},
    {"starts_and_lengths", 3, 66, 200, 1, 64, false, 0.5, AttentionCase::kLengths,
     AttentionCase::kAny},
};

// The keys that batch entry b has; entry 1 has none.
bool has_key(const AttentionCase& c, int64_t b, int64_t key) {
  if (c.filter == AttentionCase::kAll) return true;
  if (b == 1) return false;
  if (c.filter == AttentionCase::kLengths) return key < c.keys - 3 * b;
  return (key * 7 + b) % 3 != 0;
}

// The first key that a query sees. Packed sequences have 70 tokens, or 128 where tiles are
// whole. Otherwise some queries see nothing, and neighbours' starts lie far apart.
int64_t start_of(const AttentionCase& c, int64_t b, int64_t query) {
  const int64_t packed = c.queries % 128 == 0 ? 128 : 70;
  if (c.starts == AttentionCase::kZero) return 0;
  if (c.starts == AttentionCase::kPacked)
    return std::max<int64_t>(0, query - 10 * b) / packed * packed;
  if (query % 9 == 4) return query % 2 ? c.keys + 5 : std::numeric_limits<int32_t>::max();
  if (b == 2) return 150;  // no query of a tile sees the first tiles of keys
  return query % 5 == 1 ? -3 : query * 131 % c.keys;
}

Tensor starts_of(const AttentionCase& c) {
  if (c.starts == AttentionCase::kZero) return {};
  std::vector<int32_t> starts;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t i = 0; i < c.queries; ++i) {
      starts.push_back(static_cast<int32_t>(start_of(c, b, i)));
    }
  }
  return from(starts, {c.batch, c.queries});
}

Tensor keys_of(const AttentionCase& c) {
  if (c.filter == AttentionCase::kAll) return {};
  std::vector<int64_t> lengths;
  std::vector<uint8_t> mask;
  for (int64_t b = 0; b < c.batch; ++b) {
    lengths.push_back(b == 1 ? 0 : c.keys - 3 * b);
    for (int64_t key = 0; key < c.keys; ++key) mask.push_back(has_key(c, b, key));
  }
  return c.filter == AttentionCase::kLengths ? from(lengths, {c.batch})
                                             : from(mask, {c.batch, c.keys}, DType::kBool);
}

AttentionOptions options_of(const AttentionCase& c, AttentionImplementation implementation) {
  AttentionOptions options;
  options.keys = keys_of(c);
  options.starts = starts_of(c);
  options.causal = c.causal;
  options.dropout = c.dropout;
  options.implementation = implementation;
  return options;
}

// y and the gradients of q, k and v, by the definition, in float64.
struct Reference {
  std::vector<double> y, dq, dk, dv;
};

Reference define(const AttentionCase& c, const std::vector<float>& q,
                 const std::vector<float>& k, const std::vector<float>& v,
                 const std::vector<float>& g, uint64_t seed, uint64_t first_block) {
  Reference out{std::vector<double>(q.size()), std::vector<double>(q.size()),
                std::vector<double>(k.size()), std::vector<double>(k.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(c.depth));
  const attention::Dropout dropout(c.dropout, static_cast<int64_t>(seed),
                                   static_cast<double>(first_block), c.keys);
  const auto at = [&](int64_t rows, int64_t b, int64_t h, int64_t t) {
    return static_cast<size_t>(((b * rows + t) * c.heads + h) * c.depth);
  };
  const auto depth = static_cast<size_t>(c.depth);
  const auto dot = [&](const auto& a, size_t i, const auto& b, size_t j) {
    double sum = 0;
    for (size_t d = 0; d < depth; ++d) sum += double{a[i + d]} * b[j + d];
    return sum;
  };
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < c.queries; ++i) {
        const size_t query = at(c.queries, b, h, i);
        std::vector<double> p(static_cast<size_t>(c.keys)), kept(p.size()), dp(p.size());
        double sum = 0, delta = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          if (!has_key(c, b, j) || (c.causal && j > i) || j < start_of(c, b, i)) continue;
          const auto n = static_cast<size_t>(j);
          p[n] = std::exp(dot(q, query, k, at(c.keys, b, h, j)) * scale);
          sum += p[n];
          kept[n] =
              dropout.active() ? dropout.multiplier((b * c.heads + h) * c.queries + i, j) : 1;
        }
        for (size_t j = 0; j < p.size(); ++j) {
          p[j] = sum > 0 ? p[j] / sum : 0;
          const size_t key = at(c.keys, b, h, static_cast<int64_t>(j));
          dp[j] = kept[j] * dot(g, query, v, key);
          delta += p[j] * dp[j];
          for (size_t d = 0; d < depth; ++d) {
            out.y[query + d] += kept[j] * p[j] * v[key + d];
            out.dv[key + d] += kept[j] * p[j] * g[query + d];
          }
        }
        for (size_t j = 0; j < p.size(); ++j) {
          const size_t key = at(c.keys, b, h, static_cast<int64_t>(j));
          const double ds = p[j] * (dp[j] - delta) * scale;
          for (size_t d = 0; d < depth; ++d) {
            out.dq[query + d] += ds * k[key + d];
            out.dk[key + d] += ds * q[query + d];
          }
        }
      }
    }
  }
  return out;
}

struct Operands {
  std::vector<float> q, k, v, g;
};

class AttentionCases : public SessionTest, public ::testing::WithParamInterface<AttentionCase> {
 protected:
  static Shape query_shape(const AttentionCase& c) {
    return {c.batch, c.queries, c.heads, c.depth};
  }
  static Shape key_shape(const AttentionCase& c) { return {c.batch, c.keys, c.heads, c.depth}; }

  static Operands operands_of(const AttentionCase& c) {
    const int64_t queries = query_shape(c).elements(), keys = key_shape(c).elements();
    return {random_values(queries, 1, -2, 2), random_values(keys, 2, -2, 2),
            random_values(keys, 3), random_values(queries, 4)};
  }
};

// What a call and its gradients give in the current session, and what they should.
struct Outcome {
  Tensor y, dq, dk, dv;
  Reference want;
};

Outcome attend(const AttentionCase& c, const Operands& values, const Shape& query_shape,
               const Shape& key_shape, AttentionImplementation implementation,
               DType dtype = DType::kFloat32) {
  Session& session = Session::current();
  session.reserve_random(5);  // calls do not depend on where in a block the stream stands
  const uint64_t start = session.reserve_random(0);
  const auto operand = [&](const std::vector<float>& x, const Shape& shape) {
    return cast(from(x, shape), dtype);
  };
  Tensor q = operand(values.q, query_shape), k = operand(values.k, key_shape),
         v = operand(values.v, key_shape);
  for (Tensor* leaf : {&q, &k, &v}) require_grad(*leaf);
  Outcome outcome;
  const Tensor y = scaled_dot_product_attention(q, k, v, options_of(c, implementation));
  backward(y, operand(values.g, query_shape));
  const NoGrad no_grad;
  outcome.y = cast(y, DType::kFloat32);
  outcome.dq = cast(grad_of(q), DType::kFloat32);
  outcome.dk = cast(grad_of(k), DType::kFloat32);
  outcome.dv = cast(grad_of(v), DType::kFloat32);
  outcome.want =
      define(c, values.q, values.k, values.v, values.g, session.seed(), (start + 3) / 4);
  return outcome;
}

TEST_P(AttentionCases, BothImplementationsAgreeWithTheDefinition) {
  const AttentionCase& c = GetParam();
  for (const AttentionImplementation implementation : {kMaterialised, kMemoryEfficient}) {
    SCOPED_TRACE(implementation == kMaterialised ? "materialised" : "memory-efficient");
    const Outcome got = attend(c, operands_of(c), query_shape(c), key_shape(c), implementation);
    ASSERT_EQ(got.y.shape(), query_shape(c));
    expect_close(got.y, got.want.y, 2e-6);
    expect_close(got.dq, got.want.dq, 1e-5);
    expect_close(got.dk, got.want.dk, 1e-5);
    expect_close(got.dv, got.want.dv, 1e-5);
  }
}

// ||actual - expected|| / ||expected||; where zeros are expected, as if they were ones.
double distance(const Tensor& actual, const std::vector<double>& expected) {
  const std::vector<float> values = to_vector(actual);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += std::pow(values[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / (norm > 0 ? norm : static_cast<double>(values.size())));
}

// On GPUs that have them; numbers are rounded to ten bits of mantissa.
TEST_P(AttentionCases, AgreesWithTheDefinitionOnTensorCores) {
  const AttentionCase& c = GetParam();
  SessionOptions rounded = options();
  rounded.tf32 = true;
  Session session(rounded);
  const Outcome got = attend(c, operands_of(c), query_shape(c), key_shape(c), kMemoryEfficient);
  EXPECT_LT(distance(got.y, got.want.y), 1e-3);
  EXPECT_LT(distance(got.dq, got.want.dq), 2e-3);
  EXPECT_LT(distance(got.dk, got.want.dk), 2e-3);
  EXPECT_LT(distance(got.dv, got.want.dv), 1e-3);
}

// On GPUs with tensor cores; other kernels multiply in float32.
TEST_P(AttentionCases, AgreesWithTheDefinitionInBFloat16) {
  const AttentionCase& c = GetParam();
  Operands values = operands_of(c);
  for (std::vector<float>* x : {&values.q, &values.k, &values.v, &values.g}) {
    for (float& value : *x) value = float{BFloat16(value)};
  }
  const Outcome got =
      attend(c, values, query_shape(c), key_shape(c), kMemoryEfficient, DType::kBFloat16);
  EXPECT_LT(distance(got.y, got.want.y), 5e-3);
  EXPECT_LT(distance(got.dq, got.want.dq), 1e-2);
  EXPECT_LT(distance(got.dk, got.want.dk), 1e-2);
  EXPECT_LT(distance(got.dv, got.want.dv), 5e-3);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionCases, ::testing::ValuesIn(kAttentionCases),
                         [](const auto& test) { return std::string(test.param.name); });

using AttentionTest = SessionTest;

constexpr AttentionImplementation kBoth[] = {kMaterialised, kMemoryEfficient};

TEST_F(AttentionTest, GradientsAgreeWithFiniteDifferences) {
  for (const AttentionImplementation implementation : kBoth) {
    // Query 2 sees keys from 2 on; query 3 of the second entry sees none.
    for (const auto& [masked, starts] :
         {std::pair{false, Tensor()},
          {true, Tensor()},
          {true, from(std::vector<int32_t>{0, 1, 2, 2, 0, 0, 2, 5}, {2, 4})}}) {
      const Tensor mask =
          from(std::vector<uint8_t>{1, 0, 1, 1, 1, 1, 1, 1, 0, 0}, {2, 5}, DType::kBool);
      check_gradients(
          [&](std::vector<Tensor> in) {
            AttentionOptions options;
            options.implementation = implementation;
            options.scale = 0.7;
            options.causal = masked;
            if (masked) options.keys = mask;
            options.starts = starts;
            return scaled_dot_product_attention(in[0], in[1], in[2], options);
          },
          {{2, 4, 2, 3}, {2, 5, 2, 3}, {2, 5, 2, 3}});
    }
  }
}

TEST_F(AttentionTest, GradientsOfSharedHeadsAgreeWithFiniteDifferences) {
  for (const AttentionImplementation implementation : kBoth) {
    check_gradients(
        [&](std::vector<Tensor> in) {
          AttentionOptions options;
          options.implementation = implementation;
          options.causal = true;
          return scaled_dot_product_attention(in[0], in[1], in[2], options);
        },
        {{2, 4, 4, 3}, {2, 4, 2, 3}, {2, 4, 2, 3}});
  }
}

TEST_F(AttentionTest, HeadsOfQueriesShareThoseOfKeysInTurn) {
  const Shape query{2, 70, 6, 64}, key{2, 70, 2, 64};
  for (const bool tf32 : {false, true}) {
    SessionOptions session_options = options();
    session_options.tf32 = tf32;
    std::vector<std::vector<float>> results[2];
    for (const size_t repeated : {0u, 1u}) {
      Session session(session_options);
      AttentionOptions options;
      options.causal = true;
      options.dropout = 0.2;
      options.keys = from(std::vector<int64_t>{70, 55}, {2});
      std::vector<int32_t> starts(140);
      for (size_t i = 0; i < starts.size(); ++i) starts[i] = i % 70 < 30 ? 0 : 20;
      options.starts = from(starts, {2, 70});
      const Tensor q = random_leaf(query, 1), k = random_leaf(key, 2), v = random_leaf(key, 3);
      const auto heads_of = [&](const Tensor& x) {
        if (!repeated) return x;
        const Tensor first = narrow(x, 2, 0, 1), second = narrow(x, 2, 1, 1);
        return concat({first, first, first, second, second, second}, 2);
      };
      const Tensor y = scaled_dot_product_attention(q, heads_of(k), heads_of(v), options);
      backward(y, random_tensor(query, 4));
      for (const Tensor& x : {y, grad_of(q), grad_of(k), grad_of(v)}) {
        results[repeated].push_back(to_vector(x));
      }
    }
    // y and dq come from the same numbers; gradients of keys are added in another order.
    EXPECT_EQ(results[0][0], results[1][0]);
    EXPECT_EQ(results[0][1], results[1][1]);
    for (const size_t i : {2u, 3u}) {
      EXPECT_THAT(results[0][i],
                  ::testing::Pointwise(::testing::FloatNear(2e-5F), results[1][i]))
          << i;
    }
  }
  session_.make_current();
}

// The heads that share keys are then computed together on the CPU.
TEST_F(AttentionTest, OneQueryOfSharedHeadsGivesTheBitsOfHeadsOfItsOwn) {
  for (const int64_t depth : {64, 20}) {
    std::vector<float> results[2];
    for (const bool repeated : {false, true}) {
      Session session(options());
      const Tensor q = random_tensor({2, 1, 6, depth}, 1),
                   k = random_tensor({2, 150, 2, depth}, 2),
                   v = random_tensor({2, 150, 2, depth}, 3);
      const auto heads_of = [&](const Tensor& x) {
        const Tensor first = narrow(x, 2, 0, 1), second = narrow(x, 2, 1, 1);
        return repeated ? concat({first, first, first, second, second, second}, 2) : x;
      };
      AttentionOptions options;
      options.dropout = 0.3;
      options.keys = from(std::vector<int32_t>{130, 150}, {2});
      options.starts = from(std::vector<int32_t>{70, 7}, {2, 1});
      results[repeated] =
          to_vector(scaled_dot_product_attention(q, heads_of(k), heads_of(v), options));
    }
    EXPECT_TRUE(same_bits(results[0], results[1]));
  }
  session_.make_current();
}

TEST_F(AttentionTest, ImplementationsDropTheSameElements) {
  // With v the identity, y is the matrix of what dropout leaves.
  constexpr int64_t kKeys = 70;
  std::vector<float> identity(kKeys * kKeys);
  for (int64_t i = 0; i < kKeys; ++i) identity[static_cast<size_t>(i * (kKeys + 1))] = 1;
  const Tensor q = random_tensor({1, 40, 1, kKeys}, 1),
               k = random_tensor({1, kKeys, 1, kKeys}, 2);
  const Tensor v = from(identity, {1, kKeys, 1, kKeys});
  std::vector<float> kept[2];
  int64_t dropped = 0;
  for (const AttentionImplementation implementation : kBoth) {
    Session session(options());
    AttentionOptions options;
    options.dropout = 0.3;
    options.implementation = implementation;
    const auto here = [&](const Tensor& x) {
      session_.make_current();
      const std::vector<float> values = to_vector(x);
      session.make_current();
      return from(values, x.shape());
    };
    kept[static_cast<size_t>(implementation)] =
        to_vector(scaled_dot_product_attention(here(q), here(k), here(v), options));
  }
  session_.make_current();
  for (size_t i = 0; i < kept[0].size(); ++i) {
    ASSERT_EQ(kept[0][i] == 0, kept[1][i] == 0) << i;
    dropped += kept[0][i] == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(kept[0].size()), 0.3, 0.03);
}

TEST_F(AttentionTest, TakesViewsAndSharedHeads) {
  for (const bool tf32 : {false, true}) {
    SessionOptions session_options = options();
    session_options.tf32 = tf32;
    Session session(session_options);
    const Tensor qkv = random_tensor({2, 9, 3, 4, 8}, 1);
    const auto third = [&](int64_t i) { return squeeze(narrow(qkv, 2, i, 1), 2); };
    const Tensor one = narrow(third(1), 2, 0, 1);
    const Tensor shared = expand(one, {2, 9, 4, 8});
    const Tensor turned = transpose(random_tensor({2, 9, 8, 4}, 2), 2, 3);  // rows with gaps
    const Tensor odd = narrow(random_tensor({2, 9, 4, 11}, 3), 3, 1, 8);    // not on 16 bytes
    for (const AttentionImplementation implementation : kBoth) {
      AttentionOptions options;
      options.implementation = implementation;
      const auto expect_same = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        expect_close(scaled_dot_product_attention(q, k, v, options),
                     to_vector(scaled_dot_product_attention(contiguous(q), contiguous(k),
                                                            contiguous(v), options)));
      };
      expect_same(third(0), third(1), third(2));
      expect_same(turned, shared, third(2));
      expect_same(third(0), odd, third(2));
    }
  }
  session_.make_current();
}

TEST_F(AttentionTest, LengthsAndMasksOfAllTypesSayTheSame) {
  const Tensor q = random_tensor({2, 3, 2, 4}, 1), k = random_tensor({2, 5, 2, 4}, 2);
  const auto with = [&](const Tensor& keys) {
    AttentionOptions options;
    options.keys = keys;
    return to_vector(scaled_dot_product_attention(q, k, k, options));
  };
  const std::vector<float> expected = with(from(std::vector<int64_t>{4, 1}, {2}));
  EXPECT_EQ(with(from(std::vector<int32_t>{4, 1}, {2})), expected);
  const std::vector<int64_t> mask{1, 1, 1, 1, 0, 1, 0, 0, 0, 0};
  const Shape shape{2, 5};
  EXPECT_EQ(with(from(mask, shape)), expected);
  EXPECT_EQ(with(from(std::vector<int32_t>(mask.begin(), mask.end()), shape)), expected);
  const std::vector<uint8_t> bytes(mask.begin(), mask.end());
  EXPECT_EQ(with(from(bytes, shape)), expected);
  EXPECT_EQ(with(from(bytes, shape, DType::kBool)), expected);
  // Longer than there are keys: all of them.
  EXPECT_EQ(with(from(std::vector<int64_t>{9, 5}, {2})), with({}));
}

// Blocks of a kernel test start as not-a-number: outputs must be written in full.
TEST_F(AttentionTest, WhatIsSavedIsWhole) {
  constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 70, kKeys = 300;
  const Shape q{kBatch, kQueries, kHeads, 8}, k{kBatch, kKeys, kHeads, 8};
  const std::vector<int64_t> lengths{40, 0};
  Array keys{{kBatch}, std::vector<float>(2 * kBatch)};
  std::memcpy(keys.values.data(), lengths.data(), sizeof(int64_t) * kBatch);
  const std::vector<Array> inputs{Array::random(q, 1), Array::random(k, 2), Array::random(k, 3),
                                  keys};
  const std::vector<DType> dtypes{DType::kFloat32, DType::kFloat32, DType::kFloat32,
                                  DType::kInt64};
  const auto run = [&](AttentionImplementation implementation) {
    const attention::AttentionAttrs attrs{static_cast<int64_t>(implementation), 1, 0, 0.3, 0};
    return run_kernel(kAttention, inputs, attrs, 2, dtypes);
  };
  const KernelRun materialised = run(kMaterialised), efficient = run(kMemoryEfficient);
  ASSERT_EQ(materialised[1].shape, Shape({kBatch, kHeads, kQueries, kKeys}));
  ASSERT_EQ(efficient[1].shape, Shape({kBatch, kHeads, kQueries}));
  for (int64_t row = 0; row < kBatch * kHeads * kQueries; ++row) {
    const int64_t b = row / (kHeads * kQueries);
    const int64_t seen = std::min(lengths[static_cast<size_t>(b)], row % kQueries + 1);
    double sum = 0;
    for (int64_t key = 0; key < kKeys; ++key) {
      const float p = materialised[1][static_cast<size_t>(row * kKeys + key)];
      if (key < seen) {
        EXPECT_GT(p, 0);
      } else {
        ASSERT_EQ(p, 0) << "row " << row << ", key " << key;
      }
      sum += p;
    }
    EXPECT_NEAR(sum, seen > 0 ? 1 : 0, 1e-6);
    const float log_sum = efficient[1][static_cast<size_t>(row)];
    EXPECT_EQ(std::isinf(log_sum), seen == 0) << log_sum;
  }
}

TEST_F(AttentionTest, WhatIsSavedIsZeroWhereTilesAreSkipped) {
  const std::vector<int32_t> first{200, 299, 400};
  Array starts{{1, 3}, std::vector<float>(3)};
  std::memcpy(starts.values.data(), first.data(), sizeof(int32_t) * 3);
  const attention::AttentionAttrs attrs{static_cast<int64_t>(kMaterialised), 0, 0, 0.3, 0, 1};
  const KernelRun run =
      run_kernel(kAttention,
                 {Array::random({1, 3, 1, 8}, 1), Array::random({1, 300, 1, 8}, 2),
                  Array::random({1, 300, 1, 8}, 3), starts},
                 attrs, 1, {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kInt32});
  for (size_t i = 0; i < 3; ++i) {
    for (size_t key = 0; key < 300; ++key) {
      const float p = run[1][i * 300 + key];
      ASSERT_EQ(p > 0, static_cast<int32_t>(key) >= first[i]) << i << ", " << key;
      ASSERT_GE(p, 0);
    }
  }
}

struct Gradients {
  std::vector<float> y, dq, dk, dv;
};

// Attention over q, k and v of random numbers; g is the gradient of y.
Gradients attend_random(const Shape& shape, const std::vector<float>& g,
                        const AttentionOptions& options) {
  const Tensor q = random_leaf(shape, 1), k = random_leaf(shape, 2), v = random_leaf(shape, 3);
  const Tensor y = scaled_dot_product_attention(q, k, v, options);
  backward(y, from(g, shape));
  return {to_vector(y), to_vector(grad_of(q)), to_vector(grad_of(k)), to_vector(grad_of(v))};
}

// In each tile of queries, one sees all keys, so that no tile is skipped. Its own gradient is
// 0, so the keys' gradients do not notice.
TEST_F(AttentionTest, SkippedTilesGiveTheBitsOfMaskedOnes) {
  constexpr int64_t kTokens = 400, kHeads = 2, kDepth = 16, kRow = kHeads * kDepth;
  const Shape shape{1, kTokens, kHeads, kDepth};
  std::vector<float> g = random_values(shape.elements(), 4);
  for (int64_t i = 3; i < kTokens; i += 8) std::fill_n(g.begin() + i * kRow, kRow, 0.0F);
  for (const auto& [implementation, tf32, causal] : {std::tuple{kMaterialised, false, true},
                                                     {kMemoryEfficient, false, true},
                                                     {kMemoryEfficient, true, true},
                                                     {kMemoryEfficient, true, false}}) {
    SessionOptions session_options = options();
    session_options.tf32 = tf32;
    Gradients results[2];
    for (const bool skip : {false, true}) {
      Session session(session_options);
      std::vector<int32_t> starts;
      for (int32_t i = 0; i < kTokens; ++i) {
        starts.push_back(i % 8 == 3 && !skip ? 0 : i / 150 * 150);
      }
      AttentionOptions options;
      options.causal = causal;
      options.dropout = 0.2;
      options.implementation = implementation;
      options.starts = from(starts, {1, kTokens});
      Gradients& result = results[skip];
      result = attend_random(shape, g, options);
      for (int64_t i = 3; i < kTokens; i += 8) {  // these see more keys
        std::fill_n(result.y.begin() + i * kRow, kRow, 0.0F);
        std::fill_n(result.dq.begin() + i * kRow, kRow, 0.0F);
      }
    }
    EXPECT_TRUE(same_bits(results[0].y, results[1].y));
    EXPECT_TRUE(same_bits(results[0].dq, results[1].dq));
    EXPECT_EQ(results[0].dk, results[1].dk);
    EXPECT_EQ(results[0].dv, results[1].dv);
  }
  session_.make_current();
}

// Sequences that are packed into one row, against the same ones alone.
void expect_packed(const std::vector<int64_t>& lengths, AttentionImplementation implementation,
                   const std::function<void(const std::vector<float>& packed,
                                            const std::vector<float>& alone)>& expect) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const Shape shape{1, tokens, 2, 24};
  const Tensor q = random_leaf(shape, 1), k = random_leaf(shape, 2), v = random_leaf(shape, 3);
  const Tensor g = random_tensor(shape, 4);
  std::vector<int32_t> starts;
  for (int32_t start = 0; const int64_t length : lengths) {
    starts.insert(starts.end(), static_cast<size_t>(length), start);
    start += static_cast<int32_t>(length);
  }
  AttentionOptions options{.starts = from(starts, {1, tokens}), .causal = true};
  options.implementation = implementation;
  const Tensor y = scaled_dot_product_attention(q, k, v, options);
  backward(y, g);
  options.starts = {};
  for (int64_t start = 0; const int64_t length : lengths) {
    const auto part = [&](const Tensor& x) {
      const NoGrad no_grad;
      return contiguous(narrow(x, 1, start, length));
    };
    Tensor own[3] = {part(q), part(k), part(v)};
    for (Tensor& x : own) require_grad(x);
    const Tensor alone = scaled_dot_product_attention(own[0], own[1], own[2], options);
    backward(alone, part(g));
    expect(to_vector(part(y)), to_vector(alone));
    expect(to_vector(part(grad_of(q))), to_vector(grad_of(own[0])));
    expect(to_vector(part(grad_of(k))), to_vector(grad_of(own[1])));
    expect(to_vector(part(grad_of(v))), to_vector(grad_of(own[2])));
    start += length;
  }
}

TEST_F(AttentionTest, PackedSequencesGiveWhatTheyGiveAlone) {
  for (const bool tf32 : {false, true}) {
    SessionOptions session_options = options();
    session_options.tf32 = tf32;
    Session session(session_options);
    for (const AttentionImplementation implementation : kBoth) {
      SCOPED_TRACE(static_cast<int64_t>(implementation));
      const float rounding = tf32 ? 5e-3F : 1e-5F;
      expect_packed(
          {70, 1, 129, 40}, implementation, [&](const auto& packed, const auto& alone) {
            EXPECT_THAT(packed, ::testing::Pointwise(::testing::FloatNear(rounding), alone));
          });
      // On CUDA, how materialised attention shares out a row depends on its length.
      if (implementation == kMaterialised && device_under_test() != "cpu") continue;
      expect_packed({128, 256, 100}, implementation,
                    [](const auto& packed, const auto& alone) { EXPECT_EQ(packed, alone); });
    }
  }
  session_.make_current();
}

// Text is generated token by token: each step writes its keys and values into a cache, behind
// those of a prompt, and attends to all so far.
TEST_F(AttentionTest, OneQueryAfterAnotherWithACacheGivesCausalAttention) {
  constexpr int64_t kPrompt = 120, kTokens = 140, kSpace = 160;
  const Shape query{2, kTokens, 6, 32}, key{2, kTokens, 2, 32}, cache{2, kSpace, 2, 32};
  const NoGrad no_grad;
  const Tensor q = random_tensor(query, 1), k = random_tensor(key, 2),
               v = random_tensor(key, 3);
  const std::vector<float> expected =
      to_vector(scaled_dot_product_attention(q, k, v, {.causal = true}));
  const Tensor keys = zeros(cache), values = zeros(cache);
  const Tensor all_keys = zeros(cache), all_values = zeros(cache);
  copy_(narrow(all_keys, 1, 0, kTokens), k);
  copy_(narrow(all_values, 1, 0, kTokens), v);
  copy_(narrow(keys, 1, 0, kPrompt), narrow(k, 1, 0, kPrompt));
  copy_(narrow(values, 1, 0, kPrompt), narrow(v, 1, 0, kPrompt));
  std::vector<Tensor> rows, with_lengths;
  int64_t signatures = 0;
  for (int64_t t = kPrompt; t < kTokens; ++t) {
    copy_(narrow(keys, 1, t, 1), narrow(k, 1, t, 1));
    copy_(narrow(values, 1, t, 1), narrow(v, 1, t, 1));
    if (t == kPrompt) signatures = static_cast<int64_t>(session_.costs().size());
    rows.push_back(scaled_dot_product_attention(narrow(q, 1, t, 1), narrow(keys, 1, 0, t + 1),
                                                narrow(values, 1, 0, t + 1)));
    // The same with one signature for all steps.
    with_lengths.push_back(scaled_dot_product_attention(
        narrow(q, 1, t, 1), all_keys, all_values,
        {.keys = from(std::vector<int32_t>(2, static_cast<int32_t>(t) + 1), {2})}));
  }
  // One attention for each length, and one with lengths; no copy, although each writes
  // elsewhere.
  EXPECT_EQ(static_cast<int64_t>(session_.costs().size()) - signatures, kTokens - kPrompt + 1);
  const auto joined = [&](const std::vector<Tensor>& parts) {
    std::vector<float> all = expected;  // of the prompt
    constexpr size_t kRow = 6 * 32;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<float> part = to_vector(parts[i]);
      for (size_t b = 0; b < 2; ++b) {
        std::copy_n(part.begin() + b * kRow, kRow,
                    all.begin() + (b * kTokens + kPrompt + i) * kRow);
      }
    }
    return all;
  };
  // On the CPU, one query is computed as it is among others.
  const float rounding = device_under_test() == "cpu" ? 0 : 1e-5F;
  EXPECT_THAT(joined(rows), ::testing::Pointwise(::testing::FloatNear(rounding), expected));
  EXPECT_THAT(joined(with_lengths),
              ::testing::Pointwise(::testing::FloatNear(rounding), expected));
}

struct Result {
  std::vector<float> y, dq, dk, dv;
  int64_t recomputes = 0;
  Bytes peak{0};

  bool same_as(const Result& other) const {
    return same_bits(y, other.y) && same_bits(dq, other.dq) && same_bits(dk, other.dk) &&
           same_bits(dv, other.dv);
  }
};

// Layers of attention, dropout on, in a session of its own.
Result run_layers(AttentionImplementation implementation, int threads,
                  std::optional<Bytes> budget) {
  SessionOptions session_options;
  session_options.device = device_under_test();
  session_options.threads = threads;
  session_options.tf32 = false;
  session_options.budget = budget;
  if (budget) session_options.host_limit = Bytes(64 << 20);
  session_options.policy = budget ? "delta" : "none";
  Session session(session_options);
  Result result;
  const StepStats stats = session.step([&] {
    Tensor q = random_leaf({2, 70, 8, 16}, 1), k = random_leaf({2, 70, 8, 16}, 2),
           v = random_leaf({2, 70, 8, 16}, 3);
    AttentionOptions options;
    options.causal = true;
    options.dropout = 0.2;
    options.implementation = implementation;
    options.keys = from(std::vector<int64_t>{70, 50}, {2});
    options.starts = from(std::vector<int32_t>(140, 3), {2, 70});
    Tensor y = q;
    for (int layer = 0; layer < 6; ++layer) {
      y = scaled_dot_product_attention(y, k, v, options);
    }
    backward(y, random_tensor(y.shape(), 4));
    result.y = to_vector(y);
    result.dq = to_vector(grad_of(q));
    result.dk = to_vector(grad_of(k));
    result.dv = to_vector(grad_of(v));
  });
  result.recomputes = stats.recomputes;
  result.peak = session.peak_reserved();
  return result;
}

TEST_F(AttentionTest, ThreadsDoNotMatter) {
  for (const AttentionImplementation implementation : kBoth) {
    const Result one = run_layers(implementation, 1, std::nullopt);
    EXPECT_TRUE(run_layers(implementation, 2, std::nullopt).same_as(one));
    EXPECT_TRUE(run_layers(implementation, 7, std::nullopt).same_as(one));
  }
}

TEST_F(AttentionTest, BudgetsDoNotMatter) {
  for (const AttentionImplementation implementation : kBoth) {
    SCOPED_TRACE(static_cast<int64_t>(implementation));
    const Result ample = run_layers(implementation, 2, std::nullopt);
    const Result tight =
        run_layers(implementation, 2, align_down(Bytes(ample.peak.count() * 7 / 10)));
    EXPECT_GT(tight.recomputes, 0);
    EXPECT_TRUE(tight.same_as(ample));
  }
}

TEST_F(AttentionTest, MemoryEfficientNeedsLittleMemory) {
  constexpr int64_t kTokens = 2048, kHeads = 12;
  const Shape shape{1, kTokens, kHeads, 64};
  const Bytes tensor = size_of(DType::kFloat32) * shape.elements();
  const Bytes rows = size_of(DType::kFloat32) * (kHeads * kTokens);
  const auto peak = [&](AttentionImplementation implementation) {
    Session session({.device = "sim:a100-80gb", .policy = "none"});
    session.step([&] {
      Tensor leaf[3];
      for (Tensor& each : leaf) {
        each = session.upload(TensorMeta::contiguous(DType::kFloat32, shape), Category::kData,
                              nullptr, nullptr);
        require_grad(each);
      }
      AttentionOptions options;
      options.dropout = 0.1;
      options.implementation = implementation;
      const Tensor y = scaled_dot_product_attention(leaf[0], leaf[1], leaf[2], options);
      backward(y, session.upload(y.meta(), Category::kData, nullptr, nullptr));
    });
    return session.peak_live().total();
  };
  // q, k, v, y and the gradients of all four; what was saved; one number for each query.
  const Bytes efficient = 8 * tensor + rows + rows;
  EXPECT_EQ(peak(kMemoryEfficient), efficient);
  // The probabilities, and as much again for their gradient.
  EXPECT_EQ(peak(kMaterialised), 8 * tensor + 2 * (rows * kTokens) + rows);
  EXPECT_GT(peak(kMaterialised).count(), 8 * efficient.count());
  session_.make_current();
}

// Several heads of the queries share one of the keys. Each finds its part of the keys'
// gradients, and the parts are then added up: they count like any other tensor.
TEST_F(AttentionTest, PartsOfGradientsOfSharedHeadsCount) {
  constexpr int64_t kTokens = 200, kHeads = 6, kShared = 2, kDepth = 65;
  const Shape query{1, kTokens, kHeads, kDepth}, key{1, kTokens, kShared, kDepth};
  const auto peak = [&](const std::string& device, DType dtype, bool starts) {
    SessionOptions session_options = options();
    session_options.device = device;
    session_options.policy = "none";
    Session session(session_options);
    const auto upload = [&](DType type, const Shape& shape) {
      // Zeros, which are keys' starts as well as numbers.
      const auto zeros = std::make_shared<std::vector<std::byte>>(
          static_cast<size_t>((size_of(type) * shape.elements()).count()));
      return session.upload(TensorMeta::contiguous(type, shape), Category::kData, zeros->data(),
                            zeros);
    };
    session.step([&] {
      Tensor leaf[] = {upload(dtype, query), upload(dtype, key), upload(dtype, key)};
      for (Tensor& each : leaf) require_grad(each);
      AttentionOptions options{.causal = true, .dropout = 0.1};
      if (starts) options.starts = upload(DType::kInt32, {1, kTokens});
      const Tensor y = scaled_dot_product_attention(leaf[0], leaf[1], leaf[2], options);
      backward(y, upload(dtype, query));
    });
    return session.peak_live().total();
  };
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const auto bytes = [](DType type, const Shape& shape) {
      return align_up(size_of(type) * shape.elements());
    };
    const Bytes rows = bytes(DType::kFloat32, {kHeads, kTokens});
    for (const bool starts : {false, true}) {
      // q, y, g, dq, and the parts of dk and dv; k, v, and the first sum of parts; the
      // log-sum-exps.
      Bytes expected = 6 * bytes(dtype, query) + 3 * bytes(dtype, key) + rows;
      if (starts) expected += bytes(DType::kInt32, {kTokens});
      EXPECT_EQ(peak("sim:a100-80gb", dtype, starts), expected) << starts;
      if (device_under_test() != "cpu") {  // the CPU's kernels have workspaces of their own
        EXPECT_EQ(peak(device_under_test(), dtype, starts), expected) << starts;
      }
    }
  }
  session_.make_current();
}

TEST_F(AttentionTest, RefusesWhatDoesNotFit) {
  const Tensor q = random_tensor({2, 3, 2, 4}, 1), k = random_tensor({2, 5, 2, 4}, 2);
  const auto error = [&](const Tensor& queries, const Tensor& keys, const Tensor& values,
                         const AttentionOptions& options = {}) {
    return usage_error([&] { scaled_dot_product_attention(queries, keys, values, options); });
  };
  EXPECT_EQ(error(q, k, k), "");
  const auto refused = [](const std::string& message, const char* part) {
    return message.rfind("[attention] ", 0) == 0 && message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(refused(error(q, k, q), "(2, 3, 2, 4), (2, 5, 2, 4), (2, 3, 2, 4)"));
  EXPECT_TRUE(refused(error(q, random_tensor({2, 5, 1, 4}, 1), k), "(2, 5, 1, 4)"));
  const Tensor three = random_tensor({2, 5, 3, 4}, 1);
  EXPECT_TRUE(refused(error(q, three, three), "share"));
  EXPECT_TRUE(refused(error(reshape(q, {6, 8}), k, k), "(6, 8)"));
  EXPECT_TRUE(refused(error(q, from(std::vector<int64_t>(80), {2, 5, 2, 4}), k), "float32"));
  AttentionOptions options;
  options.dropout = 1;
  EXPECT_TRUE(refused(error(q, k, k, options), "[0, 1)"));
  options.dropout = 0;
  options.keys = from(std::vector<int64_t>{1, 2, 3}, {3});
  EXPECT_TRUE(refused(error(q, k, k, options), "(B, Tk)"));
  options.keys = from(std::vector<uint8_t>{1, 2}, {2});
  EXPECT_TRUE(refused(error(q, k, k, options), "int32 or int64"));
  options.keys = random_tensor({2, 5}, 1);
  EXPECT_TRUE(refused(error(q, k, k, options), "bool"));
  options.keys = {};
  options.starts = from(std::vector<int32_t>(10), {2, 5});
  EXPECT_TRUE(refused(error(q, k, k, options), "(B, Tq)"));
  options.starts = from(std::vector<int64_t>(6), {2, 3});
  EXPECT_TRUE(refused(error(q, k, k, options), "int32"));
}

}  // namespace
}  // namespace tidemark::testing
