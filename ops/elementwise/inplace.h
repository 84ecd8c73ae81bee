// Operators that overwrite their first input, which may be a view, and return it.
//
// They are not differentiable, and the overwritten tensor cannot be recomputed; use them for
// parameters, optimizer state and buffers. With gradients on, a target or source that needs one
// throws UsageError; write to leaves under NoGrad. Do not overwrite a tensor that backward will
// still read: backward then throws. Source and target must not overlap, unless they are the
// same view.
//
// copy_(narrow(cache, 1, start, T), rows) writes rows into a cache (B, L, ...).
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

Tensor add_(const Tensor& target,
            const Tensor& source);            // float32; source broadcasts to target
Tensor mul_(const Tensor& target, double s);  // float32
Tensor copy_(const Tensor& target, const Tensor& source);  // any one type; source broadcasts
Tensor fill_(const Tensor& target, double value);          // any type

// Throws UsageError on behalf of operator `op` if gradients are on and a tensor needs one.
void require_no_grad(const char* op, std::initializer_list<Tensor> tensors);

extern const OpDef kAddInPlace;
extern const OpDef kMulInPlace;
extern const OpDef kCopyInPlace;
extern const OpDef kFillInPlace;

}  // namespace tidemark
