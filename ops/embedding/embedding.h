// Rows of a table: y[..., :] = table[ids[...], :].
//
// table (V, D) float32 or bfloat16, ids (...) int64 or int32 -> y (..., D) of its type. Saved
// for the gradient: ids.
//
// Gradient, dense: gtable[v, :] = sum of gy over the positions where ids is v, in ascending
// order; 0 for rows that no position names, and for row `padding_idx`, where there is one
// (negative: from the end). Partial sums are over runs that the shapes and ids alone decide.
//
// An id outside [0, V), on the CPU: the kernel throws, so the next call that waits for the
// device throws DeviceError "[embedding] id 7 at position 3 is not in [0, 5)", and the session
// can do no more. On CUDA, where nobody waits for a kernel: that row of y is not-a-number, and
// no gradient comes from it. Nothing is read or written out of bounds on either.
//
// Source: torch.nn.functional.embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit, or padding_idx is no row.
Tensor embedding(const Tensor& table, const Tensor& ids,
                 std::optional<int64_t> padding_idx = std::nullopt);

struct EmbeddingGradAttrs {
  int64_t rows;         // V
  int64_t padding_idx;  // -1: none
};

extern const OpDef kEmbedding;      // table, ids -> y
extern const OpDef kEmbeddingGrad;  // gy, ids -> gtable

PreparedKernel prepare_embedding_cpu(const OpQuery& query);
PreparedKernel prepare_embedding_grad_cpu(const OpQuery& query);

}  // namespace tidemark
