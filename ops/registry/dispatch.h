// The one path of every operator: infer, price, execute under the session's memory management,
// remember how to do it again.
//
// Threads: the session's issuing thread.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/session/session.h"

namespace tidemark {

// Runs `op` in the current session (Session::current()) and gives its outputs, without touching
// autograd. Inputs may be views; undefined tensors are not allowed. Outputs get the category of
// the phase: activations in forward, gradients in backward. Throws UsageError (shapes, types,
// tensors of another session), OutOfMemory, DeviceError.
std::vector<Tensor> dispatch(const OpDef& op, std::span<const Tensor> inputs,
                             const Attrs& attrs = {}, const Scalars& scalars = {});
std::vector<Tensor> dispatch(const OpDef& op, std::initializer_list<Tensor> inputs,
                             const Attrs& attrs = {}, const Scalars& scalars = {});

// The only output of an operator that has one.
Tensor dispatch1(const OpDef& op, std::initializer_list<Tensor> inputs, const Attrs& attrs = {},
                 const Scalars& scalars = {});

}  // namespace tidemark
