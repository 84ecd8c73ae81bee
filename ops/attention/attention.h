// Scaled dot-product attention: y = dropout(softmax(scale q k^T + mask)) v, for each head.
//
// q (B, Tq, H, D), k and v (B, Tk, H, D) -> y (B, Tq, H, D), contiguous. That is how the rows
// of a projection lie: q = reshape(linear(x, w), {B, T, H, D}) is a view, so is each third of a
// fused projection (split() in ops/view), and y, taken as (B, Tq, H D), is what the output
// projection reads. Nothing is copied or transposed in between; strides are free but for the
// last dimension's, which is 1 (other views are copied first). A head that is repeated by
// expand() is one that several queries share.
//
// Gradients, with P the probabilities, M the dropout's factors (0 or 1 / (1 - p)), g that of y:
//   dv = (M P)^T g,  dP = M (g v^T),  dS = P (dP - sum_d g y),  dq = scale dS k,  dk = scale
//   dS^T q.
//
// Implementations, of the same function up to rounding:
// - materialised: P (B, H, Tq, Tk) is an output, kept for backward.
// - memory-efficient: over tiles of keys, with the largest score and the sum so far of each
//   query (Rabe & Staats 2021; FlashAttention, Dao et al. 2022). No matrix of scores exists;
//   the log-sum-exp (B, H, Tq) is an output, from which backward makes P again, tile by tile.
// Both drop the same elements: which, is decided by (seed, offset, head, query, key) alone
// (dropout.h).
//
// A query that no key is left for gives zeros, and no gradient. Sums are in a fixed order that
// depends on shapes alone, not on threads.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

enum class AttentionImplementation : int64_t { kMaterialised, kMemoryEfficient };

struct AttentionOptions {
  // Which keys there are; undefined: all. Either how many of each batch entry, from the first
  // on: (B), int32 or int64; or which: (B, Tk), bool, uint8, int32 or int64, not 0.
  Tensor keys{};
  bool causal = false;            // query i sees keys 0 to i
  double dropout = 0;             // of probabilities, in [0, 1)
  std::optional<double> scale{};  // 1 / sqrt(D) unless given
  AttentionImplementation implementation = AttentionImplementation::kMemoryEfficient;
};

// q, k, v and y are float32, or all bfloat16; scores and sums are float32. Throws UsageError if
// shapes or types do not fit, or p is not in [0, 1).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

// Scalar 0: dropout's first block of numbers. `saved` is P, as q is, or the log-sum-exp,
// float32, +infinity for a query without keys.
extern const OpDef kAttention;      // q, k, v[, keys] -> y, saved
extern const OpDef kAttentionGrad;  // g, q, k, v, y, saved[, keys] -> dq, dk, dv

}  // namespace tidemark
