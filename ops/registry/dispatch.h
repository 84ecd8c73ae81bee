// The single path that every operator takes: infer the outputs, estimate the cost, execute
// under the session's memory management, and record how to recompute.
//
// Threads: the session's issuing thread.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/session/session.h"

namespace tidemark {

// Runs `op` in the current session (Session::current()) and returns its outputs; does not touch
// autograd. Inputs may be views but must be defined. The phase decides the outputs' category:
// activations in forward, gradients in backward. Throws UsageError (shapes, types, tensors of
// another session), OutOfMemory, DeviceError.
std::vector<Tensor> dispatch(const OpDef& op, std::span<const Tensor> inputs,
                             const Attrs& attrs = {}, const Scalars& scalars = {});
std::vector<Tensor> dispatch(const OpDef& op, std::initializer_list<Tensor> inputs,
                             const Attrs& attrs = {}, const Scalars& scalars = {});

// Returns the output of an operator that has exactly one.
Tensor dispatch1(const OpDef& op, std::initializer_list<Tensor> inputs, const Attrs& attrs = {},
                 const Scalars& scalars = {});

}  // namespace tidemark
