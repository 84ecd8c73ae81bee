// Reverse-mode differentiation.
//
// While operators run, `record` links each differentiable call to those that made its inputs;
// backward() walks the links from the last call to the first. Gradients of a tensor that
// several calls used are summed in the reverse of program order, so the result does not depend
// on memory. A call's saved tensors are dropped as soon as its gradient has run, before what
// it gave is added to other gradients.
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

// Gradients of a call's inputs from those of its outputs. `grad_outputs[i]` is undefined where
// output i did not influence the result, and may be taken; leave `grad_inputs[i]` undefined
// where there is none (or `wanted[i]` is false, for which no work should be done).
using GradFn = std::function<void(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs,
                                  std::span<const bool> wanted)>;

// A tensor kept for backward, which must not be written in place until then. `get` throws
// std::logic_error if it was.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor);
  Tensor get() const;

 private:
  Tensor tensor_;
  uint32_t version_ = 0;
};

// Marks `outputs` as made from `inputs` by a call named `name`, if gradients are on and any
// input needs one. `grad` keeps what it captures; capture Saved, never an output Tensor with
// its autograd state (a cycle): Saved drops that state.
void record(const char* name, std::initializer_list<Tensor> inputs, std::span<Tensor> outputs,
            GradFn grad);
// Whether record() would do anything: lets an operator skip outputs that only backward reads.
bool needs_grad(std::initializer_list<Tensor> inputs);

bool grad_enabled();
// No recording while it lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// Makes it a leaf whose gradient backward() collects.
void require_grad(Tensor& tensor);
bool requires_grad(const Tensor& tensor);
// What a tensor is called in events and messages, and, if it is a leaf, its gradients after it:
// "NAME.grad".
void name_tensor(const Tensor& tensor, std::string_view name);
// The collected gradient of a leaf; undefined if there is none yet.
Tensor grad_of(const Tensor& leaf);
void clear_grad(const Tensor& leaf);
// Puts another in its place: one that no other tensor shares, say, before writing to it.
void set_grad(const Tensor& leaf, const Tensor& gradient);

// Adds d(root)/d(leaf) to every leaf's gradient. `root` has one element, or `seed` gives its
// gradient, of the tensor's type; without one, the tensor is float32. Tells the session that
// the backward phase has begun, and its end.
void backward(const Tensor& root, const Tensor& seed = {});

}  // namespace tidemark
