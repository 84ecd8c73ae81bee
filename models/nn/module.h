// A part of a network: parameters, buffers and smaller parts, each under a name.
//
//   struct Head : Module {
//     explicit Head(ParameterInit& init) : fc(512, 10, init) { register_child("fc", fc); }
//     Tensor forward(const Tensor& x) { return fc.forward(x); }
//     Linear fc;
//   };
//
// Names are joined with dots ("layer1.0.conv1.weight"), as in PyTorch. Events, traces and
// messages use these names for tensors, and name operators by the module that called them:
// "layer1.0.conv1: conv2d". A module owns its tensors. It must not move, because its parent
// points to it.
//
// Parameters, their gradients and buffers are float32. forward may compute in bfloat16
// (compute_in): each layer then takes its input and its weights through working(), which
// converts both. The code of a network therefore need not mention types: its activations are
// bfloat16 from the first layer on.
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
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

  // This module's own tensors first, then its children's, each in the order of registration.
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> buffers() const;
  // The parameters that are not frozen: those that training changes.
  std::vector<NamedTensor> trained() const;
  int64_t parameter_elements() const;

  // Takes all present parameters out of training, or puts them back: frozen ones get no
  // gradient. Under a budget they are copied to a tier at most once, because nothing writes
  // them.
  void freeze(bool on = true);
  // Calls visit(name, part) for every part of this module, in order of registration, each
  // before its own parts. Names are as in parameters().
  void visit(const std::function<void(const std::string& name, Module& part)>& visit);

  // Switches to training mode, the initial mode, or to evaluation; applies to the children too.
  void train(bool on = true);
  bool training() const { return training_; }

  // Position in the network, from the top: "layer1.0.conv1"; "" for the top itself. The string
  // lives as long as the process.
  const char* path() const { return path_; }

  // Sets the type of activations, and of the weights that forward multiplies them by: float32,
  // the initial type, or bfloat16. Applies to the children too.
  void compute_in(DType dtype);
  DType compute_type() const { return compute_type_; }

 protected:
  // During its lifetime, operators are attributed to this module, or to the enclosing module if
  // this one is not a child of any. The layers in models/nn open a Scope in their forward; your
  // own forward needs `const Scope scope(*this);` only for operators that it calls itself.
  class Scope : public ScopedPath {
   public:
    explicit Scope(const Module& module)
        : ScopedPath(*module.path() ? module.path() : current_path()) {}
  };
  // Marks `tensor` as a leaf that gradients are collected for. The member `tensor` keeps the
  // mark.
  void register_parameter(std::string name, Tensor& tensor);
  void register_buffer(std::string name, const Tensor& tensor);
  // REQUIRES: `child` lives as long as this module.
  void register_child(std::string name, Module& child);
  // Converts a parameter, or a layer's input, to the type that forward computes in. Returns the
  // tensor itself if it already has that type, else a copy, which is cheap to recompute when
  // memory is short. Gradients are cast back, so parameters' gradients are float32.
  Tensor working(const Tensor& tensor) const;

 private:
  void move_to(std::string_view path);
  std::string path_of(const std::string& name) const;
  using List = std::vector<NamedTensor> Module::*;
  void visit(const std::string& prefix,
             const std::function<void(const std::string& name, Module& part)>& visit);
  void collect(List list, const std::string& prefix, std::vector<NamedTensor>& into) const;

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  const char* path_ = "";
  bool training_ = true;
  DType compute_type_ = DType::kFloat32;
};

}  // namespace tidemark
