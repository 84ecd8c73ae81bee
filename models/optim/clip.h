// Clipping of gradients by their norm.
//
// Threads: the session's issuing thread.
#pragma once

#include <span>

#include "models/nn/module.h"

namespace tidemark {

// Scales the gradients of `parameters`, in place, so that the norm of all of them together is
// at most `max_norm`: each by min(1, max_norm / (norm + 1e-6)). Gives the norm before that, a
// scalar on the device; undefined if no parameter has a gradient. Nothing waits for the device:
// read the norm only if you need it.
//
// As torch.nn.utils.clip_grad_norm_: a norm that is no number makes the gradients so.
// Small gradients share operators, as their updates do (UpdateGroups, groups.h). The order
// of summation follows from the parameters, and is the same on every call. Gradients that share
// memory, with each other or with themselves, are given memory of their own first. All
// gradients are needed until the update has been issued, and one that has been scaled cannot be
// recomputed: under a budget it may be offloaded, where there is a tier for it. Throws
// UsageError if max_norm is not above 0.
Tensor clip_grad_norm_(std::span<const NamedTensor> parameters, double max_norm);

}  // namespace tidemark
