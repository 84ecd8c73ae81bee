// Clipping of gradients by their norm.
//
// Threads: the session's issuing thread.
#pragma once

#include <span>

#include "models/nn/module.h"

namespace tidemark {

// Scales the gradients of `parameters` in place, each by min(1, max_norm / (norm + 1e-6)), so
// that their joint norm is at most `max_norm`. Returns the norm before scaling, a scalar on the
// device; undefined if no parameter has a gradient. Does not wait for the device: read the norm
// only if you need it.
//
// As in torch.nn.utils.clip_grad_norm_, a NaN norm makes the gradients NaN. Gradients may be
// float32 or bfloat16; the norm is float32. Small gradients of one type
// share operators, as their updates do (UpdateGroups, groups.h). The order of summation depends
// on the parameters alone, so every call uses the same order. Gradients that share memory, with
// each other or within themselves, first get memory of their own. All gradients are needed
// until the update has been issued. A scaled gradient cannot be recomputed; under a budget, it
// may be offloaded if there is a tier for it. Throws UsageError if max_norm is not above 0.
Tensor clip_grad_norm_(std::span<const NamedTensor> parameters, double max_norm);

}  // namespace tidemark
