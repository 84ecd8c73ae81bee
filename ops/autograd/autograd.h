// Reverse-mode differentiation.
//
// While operators run, `record` links each differentiable call to the calls that made its
// inputs; backward() follows the links from the last call to the first. If several calls used a
// tensor, their gradients are summed in reverse program order, so the result does not depend on
// memory. A call's saved tensors are dropped as soon as its gradient has run, before its
// results are added to other gradients.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace tidemark {

// Computes the gradients of a call's inputs from those of its outputs. `grad_outputs[i]` is
// undefined where output i did not influence the result; the function may move from it. Leave
// `grad_inputs[i]` undefined where no gradient exists, or where `wanted[i]` is false; do no
// work for the latter.
using GradFn = std::function<void(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs,
                                  std::span<const bool> wanted)>;

// A tensor kept for backward. Do not write to it in place before then: `get` throws
// std::logic_error if it was written.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor);
  Tensor get() const;

 private:
  Tensor tensor_;
  uint32_t version_ = 0;
};

// Records that a call named `name` made `outputs` from `inputs`, if gradients are on and any
// input needs one. The node owns what `grad` captures. Capture Saved, which drops a tensor's
// autograd state; an output Tensor with that state would form a cycle.
void record(const char* name, std::initializer_list<Tensor> inputs, std::span<Tensor> outputs,
            GradFn grad);
// Whether record() would do anything. An operator uses this to skip outputs that only backward
// reads.
bool needs_grad(std::initializer_list<Tensor> inputs);

bool grad_enabled();
// Disables recording during its lifetime.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// Makes `tensor` a leaf whose gradient backward() collects.
void require_grad(Tensor& tensor);
bool requires_grad(const Tensor& tensor);
// A frozen leaf needs no gradient, in calls recorded from now on; any that it has is dropped.
// Applies to all handles of the leaf.
void freeze(const Tensor& leaf, bool frozen = true);
// Names a tensor in events and messages. If it is a leaf, its gradients are named "NAME.grad".
void name_tensor(const Tensor& tensor, std::string_view name);
// The gradient collected for a leaf; undefined if there is none yet.
Tensor grad_of(const Tensor& leaf);
void clear_grad(const Tensor& leaf);
// Replaces the gradient, for example by a copy that no other tensor shares, before writing to
// it.
void set_grad(const Tensor& leaf, const Tensor& gradient);

// Adds d(root)/d(leaf) to every leaf's gradient. `seed` is root's gradient, of root's type.
// Without `seed`, root must have one element and be float32. Notifies the session when the
// backward phase begins and ends.
void backward(const Tensor& root, const Tensor& seed = {});

}  // namespace tidemark
