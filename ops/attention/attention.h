// Scaled dot-product attention: y = dropout(softmax(scale q k^T + mask)) v, for each head.
//
// q (B, Tq, H, D), k and v (B, Tk, H, D) -> y (B, Tq, H, D), contiguous. This is the layout of
// a projection's rows: q = reshape(linear(x, w), {B, T, H, D}) is a view, and so is each third
// of a fused projection (split() in ops/view). The output projection reads y as (B, Tq, H D).
// Nothing is copied or transposed in between. Strides are free except that the last dimension's
// must be 1 (other views are copied first). k and v may have fewer heads, a divisor of H: then
// H / heads adjacent heads of q share each (grouped-query attention, Ainslie et al. 2023).
// Backward makes their gradients for each of q's heads and adds those; materialised attention
// repeats the heads first.
//
// Gradients, with P the probabilities, M the dropout's factors (0 or 1 / (1 - p)), g that of y:
//   dv = (M P)^T g,  dP = M (g v^T),  dS = P (dP - sum_d g y),  dq = scale dS k,  dk = scale
//   dS^T q.
//
// The implementations compute the same function up to rounding:
// - materialised: P (B, H, Tq, Tk) is an output, kept for backward.
// - memory-efficient: iterates over tiles of keys, keeping each query's largest score and its
//   running sum (Rabe & Staats 2021; FlashAttention, Dao et al. 2022). No matrix of scores
//   exists; the log-sum-exp (B, H, Tq) is an output, from which backward recomputes P tile by
//   tile.
// Both drop the same elements: (seed, offset, head, query, key) alone decides which
// (dropout.h).
//
// A query with no keys left yields zeros and no gradient. Sums are taken in a fixed order that
// depends on shapes alone, not on threads. Skipping a tile gives the bits of masking it: its
// probabilities are zeros, and adding their products with finite numbers changes no sum.
//
// Without dropout, a sequence packed into a row gives the same bits as alone if it begins at a
// multiple of 128 tokens. Elsewhere, it is cut into other tiles, so sums are taken in another
// order and results agree up to rounding. The same holds everywhere for materialised attention
// on CUDA, which shares out a row of scores by the row's whole length. Dropout drops other
// elements, because their positions differ.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

enum class AttentionImplementation : int64_t { kMaterialised, kMemoryEfficient };

struct AttentionOptions {
  // Which keys exist; undefined: all. Either a count for each batch entry, from the first key
  // on, (B), int32 or int64; or a mask (B, Tk), nonzero where the key exists, bool, uint8,
  // int32 or int64.
  Tensor keys{};
  // The first key that each query sees, (B, Tq), int32; undefined: 0. With `causal`, sequences
  // that are packed into one row attend each to itself if the start of each token is where its
  // sequence begins. Tiles of keys before the first start among a tile's queries are skipped.
  Tensor starts{};
  bool causal = false;            // query i sees keys 0 to i
  double dropout = 0;             // of probabilities, in [0, 1)
  std::optional<double> scale{};  // 1 / sqrt(D) unless given
  AttentionImplementation implementation = AttentionImplementation::kMemoryEfficient;
};

// q, k, v and y are all float32 or all bfloat16; scores and sums are float32. Throws UsageError
// if shapes or types do not fit, or the dropout is not in [0, 1).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

// Scalar 0: the first block of random numbers for dropout. `saved` is P, in q's type, or the
// log-sum-exp: float32, +infinity for a query without keys.
extern const OpDef kAttention;  // q, k, v[, keys][, starts] -> y, saved
// g, q, k, v, y, saved[, keys][, starts] -> dq, dk, dv, H heads each
extern const OpDef kAttentionGrad;

}  // namespace tidemark
