// The projection of rows to a vocabulary and its cross entropy, as one operator that holds the
// logits of some 256 rows at a time.
//
// x (N, I), weight (V, I), labels (N) -> cross_entropy(linear(x, weight), labels), a scalar.
// The operator works through chunks of rows, so only one chunk's logits exist at a time, in its
// workspace (Hsu et al., "Liger Kernel", 2024; shapes alone decide a chunk's size). The loss is
// nearly always the root of backward: gradients for g = 1 are therefore computed from a chunk's
// logits while these are there, and kept; backward multiplies them by g. That takes three
// products, as without chunks. Nothing is computed for an input that needs no gradient.
//
// Gradients, with p the softmax of the logits: gx = d weight and gweight = d^T x, where d = (p
// - one_hot(labels)) g / N.
//
// Logits and losses are float32 for inputs of either type. With bfloat16, d is rounded to
// bfloat16 before the two products; gweight is summed over the chunks in float32 and rounded
// once. The result depends on threads only as far as matmul's does.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

struct LinearCrossEntropyOptions {
  std::optional<int64_t> ignore_index{};  // rows with this label do not count: loss.h
  // A float32 scalar. If given, the loss is `scale` times the sum over the rows that count,
  // instead of their mean (0 if none counts), so that the losses of micro-batches with
  // different counts add up to one mean. It gets no gradient.
  Tensor scale{};
};

struct LinearCrossEntropy {
  Tensor loss;     // a scalar, float32
  Tensor correct;  // a scalar, int64: rows that count whose largest logit is their label's
};

// x and weight are both float32 or both bfloat16; labels are int64. A label outside [0, V)
// makes the loss and the gradients that its row contributes to NaN. Throws UsageError if shapes
// or types do not fit, or if this processor does not support bfloat16.
LinearCrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                        const Tensor& labels,
                                        const LinearCrossEntropyOptions& options = {});

// x, weight, labels[, scale] -> loss, correct[, gx][, gweight (float32)]
extern const OpDef kLinearCrossEntropy;
// g, gx or gweight for g = 1 -> the same times g
extern const OpDef kLinearCrossEntropyGrad;

}  // namespace tidemark
