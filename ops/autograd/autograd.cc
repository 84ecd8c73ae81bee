#include "ops/autograd/autograd.h"

#include <memory>
#include <string>
#include <utility>

#include "ops/autograd/node.h"
#include "runtime/core/errors.h"
#include "runtime/core/names.h"

namespace tidemark {
namespace {

thread_local bool grad_is_on = true;
thread_local uint64_t next_sequence = 1;

// Also of a frozen leaf.
GradState* recorded_state(const Tensor& tensor) {
  return static_cast<GradState*>(tensor.autograd().get());
}

GradNode& leaf_node(const Tensor& tensor) {
  GradState* state = recorded_state(tensor);
  if (!state || !state->node->leaf) throw UsageError("[grad] the tensor is not a leaf");
  return *state->node;
}

}  // namespace

void GradNode::dispose() {
  thread_local std::vector<GradNode*> graveyard;
  thread_local bool burying = false;
  graveyard.push_back(this);
  if (burying) return;
  burying = true;
  while (!graveyard.empty()) {
    GradNode* next = graveyard.back();
    graveyard.pop_back();
    delete next;
  }
  burying = false;
}

GradState* grad_state(const Tensor& tensor) {
  GradState* state = recorded_state(tensor);
  return state && state->node->frozen ? nullptr : state;
}

Saved::Saved(const Tensor& tensor)
    : tensor_(tensor.defined() ? tensor.view(tensor.meta()) : Tensor()),
      version_(tensor.defined() ? tensor.storage()->version() : 0) {}

Tensor Saved::get() const {
  if (tensor_.defined() && tensor_.storage()->version() != version_) {
    throw std::logic_error("[backward] a tensor from " + std::string(tensor_.storage()->name) +
                           " that the gradient needs was written in place after it was saved");
  }
  return tensor_;
}

bool needs_grad(std::initializer_list<Tensor> inputs) {
  if (!grad_is_on) return false;
  for (const Tensor& input : inputs) {
    if (input.defined() && requires_grad(input)) return true;
  }
  return false;
}

void record(const char* name, std::initializer_list<Tensor> inputs, std::span<Tensor> outputs,
            GradFn grad) {
  if (!needs_grad(inputs)) return;
  auto node = make_intrusive<GradNode>(name, next_sequence++);
  node->outputs = outputs.size();
  node->grad = std::move(grad);
  for (const Tensor& input : inputs) {
    const GradState* state = input.defined() ? grad_state(input) : nullptr;
    node->inputs.push_back(state ? GradNode::Edge{state->node, state->output}
                                 : GradNode::Edge{});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].set_autograd(make_intrusive<GradState>(node, i));
  }
}

bool grad_enabled() { return grad_is_on; }
NoGrad::NoGrad() : before_(std::exchange(grad_is_on, false)) {}
NoGrad::~NoGrad() { grad_is_on = before_; }

void require_grad(Tensor& tensor) {
  auto node = make_intrusive<GradNode>("leaf", 0);
  node->leaf = true;
  tensor.set_autograd(make_intrusive<GradState>(std::move(node), 0));
}

bool requires_grad(const Tensor& tensor) { return grad_state(tensor) != nullptr; }
void freeze(const Tensor& leaf, bool frozen) {
  GradNode& node = leaf_node(leaf);
  node.frozen = frozen;
  if (frozen) node.collected = {};
}
Tensor grad_of(const Tensor& leaf) { return leaf_node(leaf).collected; }
void clear_grad(const Tensor& leaf) { leaf_node(leaf).collected = {}; }
void set_grad(const Tensor& leaf, const Tensor& gradient) {
  GradNode& node = leaf_node(leaf);
  node.collected = gradient;
  node.name_collected();
}

void name_tensor(const Tensor& tensor, std::string_view name) {
  const char* const known = intern(name);
  if (!*known) return;
  tensor.storage()->name = known;
  GradState* state = recorded_state(tensor);
  if (!state || !state->node->leaf) return;
  state->node->path = known;
  state->node->gradient_name = intern(std::string(name) + ".grad");
}

}  // namespace tidemark
