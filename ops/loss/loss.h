// Softmax and the losses built on it. Inputs are float32 or bfloat16; the computation is in
// float32. The outputs of softmax and log_softmax, and all gradients, have the input's type;
// losses are float32. Labels are int64 class numbers.
//
// A label outside [0, C) makes the loss and its row's gradient NaN; nothing is read or written
// out of bounds. Sums over a batch are in float64, in order. Throws UsageError for other types,
// or if shapes do not fit.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Both work over the last dimension, x (..., C) -> y (..., C).
// y = e^x / sum e^x; dx = y (g - sum g y).
Tensor softmax(const Tensor& x);
// y = x - log sum e^x, stable; dx = g - e^y sum g.
Tensor log_softmax(const Tensor& x);

// -mean over n of log_probs[n, labels[n]]; log_probs (N, C), labels (N) -> a scalar.
// d log_probs[n, labels[n]] = -g / N, 0 elsewhere.
Tensor nll_loss(const Tensor& log_probs, const Tensor& labels);

// nll_loss(log_softmax(logits), labels) as one operator. It creates no tensor of the logits'
// size and saves only two numbers per row besides them. d logits = (softmax(logits) -
// one_hot(labels)) g / N; a probability below 1.6e-38 is taken as 1.6e-38. If a projection
// makes the logits, linear_cross_entropy.h needs no memory for them either.
//
// Rows whose label is `ignore_index`, if given (any number; PyTorch's default is -100), count
// neither for the sum nor for N, and get no gradient. If no row counts, the loss and all
// gradients are 0 (PyTorch: NaN), so that a batch without masked words does no harm.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     std::optional<int64_t> ignore_index = std::nullopt);

extern const OpDef kSoftmax;
extern const OpDef kSoftmaxGrad;
extern const OpDef kLogSoftmax;
extern const OpDef kLogSoftmaxGrad;
extern const OpDef kNllLoss;
extern const OpDef kNllLossGrad;
extern const OpDef kCrossEntropy;      // logits, labels -> loss, sums of the rows (N, 2)
extern const OpDef kCrossEntropyGrad;  // g, logits, labels, sums -> d logits

}  // namespace tidemark
