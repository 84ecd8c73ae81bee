// A differentiable call in the graph that backward() walks; private to autograd.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/autograd/autograd.h"
#include "runtime/core/intrusive_ptr.h"
#include "runtime/core/names.h"

namespace tidemark {

class GradNode final : public RefCounted {
 public:
  struct Edge {
    IntrusivePtr<GradNode> node;  // null: this input needs no gradient
    size_t output = 0;            // which of the node's outputs the input was
  };

  GradNode(const char* made_by, uint64_t when) : name(made_by), sequence(when) {}

  const char* name;  // the operator's name
  // The path (ScopedPath) of the call, which its gradients will use too; for a leaf, its own
  // name.
  const char* path = current_path();
  const char* gradient_name = nullptr;  // only for a named leaf
  uint64_t sequence;                    // program order
  size_t outputs = 1;
  std::vector<Edge> inputs;
  GradFn grad;  // empty once it has run
  bool leaf = false;
  bool frozen = false;  // only for a leaf: it needs no gradient for now
  Tensor collected;     // only for a leaf: its gradient so far
  void name_collected() const {
    if (collected && gradient_name) collected.storage()->name = gradient_name;
  }

 private:
  // A loop, not recursion: a chain of calls is as long as the program.
  void dispose() override;
};

// Autograd's record of how a tensor was made.
struct GradState final : RefCounted {
  GradState(IntrusivePtr<GradNode> made_by, size_t index)
      : node(std::move(made_by)), output(index) {}
  IntrusivePtr<GradNode> node;
  size_t output;
};

// Null if the tensor needs no gradient.
GradState* grad_state(const Tensor& tensor);

}  // namespace tidemark
