// Rows of a table: y[..., :] = table[ids[...], :].
//
// table (V, D) float32 or bfloat16, ids (...) int64 or int32 -> y (..., D) of the table's type.
// Saved for the gradient: ids.
//
// The gradient is dense: gtable[v, :] = sum of gy over the positions whose id is v, in
// ascending order. It is 0 for rows that no position names, and for row `padding_idx`, if given
// (negative: from the end). Partial sums are over runs that depend only on the shapes and ids.
//
// On the CPU, an id outside [0, V) makes the kernel throw: the next call that waits for the
// device throws DeviceError "[embedding] id 7 at position 3 is not in [0, 5)", and the session
// is unusable afterwards. On CUDA, where nothing waits for a kernel, that row of y is NaN and
// contributes no gradient. Neither reads or writes out of bounds.
//
// Source: torch.nn.functional.embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit, or padding_idx is not a row.
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
