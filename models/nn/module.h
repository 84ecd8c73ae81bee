// A part of a network: parameters, buffers and smaller parts, each under a name.
//
//   struct Head : Module {
//     explicit Head(ParameterInit& init) : fc(512, 10, init) { register_child("fc", fc); }
//     Tensor forward(const Tensor& x) { return fc.forward(x); }
//     Linear fc;
//   };
//
// Names are joined with dots ("layer1.0.conv1.weight"), as in PyTorch. Events, traces and
// messages call tensors so too, and operators by where they were called: "layer1.0.conv1:
// conv2d". A module owns its tensors; it stays where it was made, since its parent points at
// it.
//
// Parameters, their gradients and buffers are float32. What forward computes in may be bfloat16
// (compute_in): each layer then takes its input and its weights through working(), which is
// where the two meet. So networks are written without a thought of types: their activations are
// bfloat16 from the first layer on.
//
// Threads: the session's issuing thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/names.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// A handle to the same values, not a copy of them.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Own ones first, then those of the children, each in the order of registration.
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> buffers() const;
  // Number of trained values.
  int64_t parameter_elements() const;

  // Training mode, which a module starts in, or evaluation; of the children too.
  void train(bool on = true);
  bool training() const { return training_; }

  // Where it is in the network, from the top: "layer1.0.conv1"; "" for the top itself. Lives as
  // long as the process.
  const char* path() const { return path_; }

  // The type of activations, and of the weights that forward multiplies them by: float32, as at
  // first, or bfloat16; of the children too.
  void compute_in(DType dtype);
  DType compute_type() const { return compute_type_; }

 protected:
  // While it lives, operators are called from this module; from the one around it, if this one
  // is not a child of any. The layers of models/nn have it in their forward: a forward of your
  // own needs `const Scope scope(*this);` only for the operators that it calls itself.
  class Scope : public ScopedPath {
   public:
    explicit Scope(const Module& module)
        : ScopedPath(*module.path() ? module.path() : current_path()) {}
  };
  // Marks it as a leaf that gradients are collected for. The member `tensor` keeps that mark.
  void register_parameter(std::string name, Tensor& tensor);
  void register_buffer(std::string name, const Tensor& tensor);
  // REQUIRES: `child` lives as long as this module.
  void register_child(std::string name, Module& child);
  // A parameter, or what enters a layer, in the type that forward computes in: itself where it
  // has that type, else a copy, cheap to make again when memory is short. Gradients are cast
  // back, so that those of parameters are float32.
  Tensor working(const Tensor& tensor) const;

 private:
  void move_to(std::string_view path);
  std::string path_of(const std::string& name) const;
  using List = std::vector<NamedTensor> Module::*;
  void collect(List list, const std::string& prefix, std::vector<NamedTensor>& into) const;

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  const char* path_ = "";
  bool training_ = true;
  DType compute_type_ = DType::kFloat32;
};

}  // namespace tidemark
