// Multi-head attention against PyTorch, from the same weights and inputs, forward and backward.
// The file and how it is made: scripts/make_golden.py.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/nn/attention.h"
#include "tests/support/golden.h"
#include "tests/support/machine.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

void check(const Json& golden, AttentionImplementation implementation) {
  SessionOptions options;
  options.threads = test_threads();
  options.seed = golden.at("seed").get<uint64_t>();
  Session session(options);
  const auto number = [&](const char* key) { return golden.at(key).get<int64_t>(); };
  MultiHeadAttentionOptions of;
  of.width = number("width");
  of.heads = number("heads");
  of.causal = golden.at("causal").get<bool>();
  of.dropout = golden.at("dropout").get<double>();
  of.fused = golden.at("fused").get<bool>();
  of.deviation = golden.at("deviation").get<double>();
  of.implementation = implementation;
  if (of.fused) of.output = "c_proj";
  ParameterInit init(options.seed);
  const MultiHeadAttention attention(of, init);

  const Shape shape{number("batch"), number("length"), of.width};
  const auto drawn = [&](int64_t i) {
    const auto index = static_cast<uint32_t>(number("inputs_index") + i);
    return from(draw_normal(options.seed, index, shape.elements(), 1), shape);
  };
  Tensor x = drawn(0);
  require_grad(x);
  Tensor keys;
  if (!golden.at("lengths").is_null()) {
    keys = from(golden.at("lengths").get<std::vector<int64_t>>(), {shape[0]});
  }
  const Tensor y = attention.forward(x, keys);
  backward(y, drawn(1));
  compare_samples(golden, "y", to_vector(y));
  compare_samples(golden, "gradient/x", to_vector(grad_of(x)));
  for (const NamedTensor& parameter : attention.parameters()) {
    compare_samples(golden, "gradient/" + parameter.name, to_vector(grad_of(parameter.tensor)));
  }
  EXPECT_EQ(golden.at("tensors").size(), 2 + attention.parameters().size());
}

TEST(AttentionGoldenTest, BothImplementationsAgreeWithPyTorch) {
  std::ifstream file(TIDEMARK_GOLDEN_DIR "/attention.json");
  ASSERT_TRUE(file);
  for (const Json& golden : Json::parse(file)) {
    for (const auto implementation :
         {AttentionImplementation::kMaterialised, AttentionImplementation::kMemoryEfficient}) {
      SCOPED_TRACE(golden.at("name").get<std::string>() + ", implementation " +
                   std::to_string(static_cast<int64_t>(implementation)));
      check(golden, implementation);
    }
  }
}

}  // namespace
}  // namespace tidemark::testing
