// In which order blocks take their work, seen in how much each of them computes. A GPU starts
// blocks by their number, so that long ones should have the small numbers.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/elementwise/compare.h"
#include "tests/support/ptx/library.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using ptx::Library;

using BlockOrderTest = SessionTest;

TEST_F(BlockOrderTest, CausalAttentionsLongestComeFirst) {
  constexpr int64_t kHeads = 2;
  struct Case {
    DType dtype;
    bool tf32;
    int64_t depth;
  };
  for (const auto& [dtype, tf32, depth] : {Case{DType::kBFloat16, false, 16},
                                           {DType::kBFloat16, false, 128},
                                           {DType::kFloat32, true, 16},
                                           {DType::kFloat32, true, 128},
                                           {DType::kFloat32, false, 16}}) {
    SessionOptions single = options();
    single.tf32 = tf32;
    Session session(single);
    std::vector<Tensor> x;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      x.push_back(cast(random_tensor({1, 192, kHeads, depth}, seed), dtype));
      if (seed < 4) require_grad(x.back());
    }
    session.device().synchronize_all();
    Library::shipped().take_counts();
    backward(scaled_dot_product_attention(
                 x[0], x[1], x[2],
                 {.causal = true, .implementation = AttentionImplementation::kMemoryEfficient}),
             x[3]);
    session.device().synchronize_all();
    int kernels = 0;
    for (const auto& [name, counts] : Library::shipped().take_counts()) {
      if (name.find("attention") == std::string::npos ||
          name.find("delta_kernel") != std::string::npos) {
        continue;
      }
      ++kernels;
      SCOPED_TRACE(name);
      const size_t tiles = counts.of_blocks.size() / kHeads;
      for (size_t head = 0; head < kHeads; ++head) {
        const auto of_head = std::span(counts.of_blocks).subspan(head * tiles, tiles);
        EXPECT_TRUE(std::is_sorted(of_head.rbegin(), of_head.rend()));
        EXPECT_GT(of_head.front(), 2 * of_head.back());
      }
    }
    EXPECT_EQ(kernels, 3);
  }
}

}  // namespace
}  // namespace tidemark::testing
