// Walks from the last call back to the first.
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>

#include "ops/autograd/accumulate.h"
#include "ops/autograd/autograd.h"
#include "ops/autograd/node.h"
#include "runtime/core/errors.h"
#include "runtime/core/names.h"
#include "runtime/residency/residency.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

void add_to(Tensor& sum, Tensor&& gradient) {
  sum = sum.defined() ? accumulate(sum, gradient) : std::move(gradient);
}

class PhaseScope {
 public:
  explicit PhaseScope(Residency& residency) : residency_(residency) {
    residency_.set_phase(Phase::kBackward);
  }
  ~PhaseScope() { residency_.set_phase(Phase::kUpdate); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Residency& residency_;
};

// Gradients under way, by call; calls in the reverse of program order.
class Walk {
 public:
  void send(const GradNode::Edge& edge, Tensor&& gradient) {
    GradNode& node = *edge.node;
    const ScopedPath path(node.path);
    if (node.leaf) {
      add_to(node.collected, std::move(gradient));
      node.name_collected();
      return;
    }
    auto [place, fresh] = waiting_.try_emplace(&node);
    if (fresh) {
      place->second.resize(node.outputs);
      queue_.emplace(node.sequence, edge.node);
    }
    add_to(place->second[edge.output], std::move(gradient));
  }

  void run() {
    while (!queue_.empty()) {
      const IntrusivePtr<GradNode> node = queue_.top().second;
      queue_.pop();
      auto gradients = waiting_.extract(node.get());
      step(*node, std::move(gradients.mapped()));
    }
  }

 private:
  using Entry = std::pair<uint64_t, IntrusivePtr<GradNode>>;
  struct Earlier {
    bool operator()(const Entry& a, const Entry& b) const { return a.first < b.first; }
  };

  void step(GradNode& node, std::vector<Tensor> grad_outputs) {
    const ScopedPath path(node.path);
    if (!node.grad) {
      throw UsageError("[backward] the gradient of " + std::string(node.name) +
                       " has already been computed; its saved tensors are gone");
    }
    const size_t count = node.inputs.size();
    const auto wanted = std::make_unique<bool[]>(count);
    for (size_t i = 0; i < count; ++i) wanted[i] = static_cast<bool>(node.inputs[i].node);
    std::vector<Tensor> grad_inputs(count);
    // What the gradient function saved is released with it, before its results are added to
    // others.
    std::exchange(node.grad, nullptr)(grad_outputs, grad_inputs, {wanted.get(), count});
    grad_outputs.clear();
    for (size_t i = 0; i < count; ++i) {
      if (wanted[i] && grad_inputs[i].defined())
        send(node.inputs[i], std::move(grad_inputs[i]));
    }
  }

  std::unordered_map<GradNode*, std::vector<Tensor>> waiting_;
  std::priority_queue<Entry, std::vector<Entry>, Earlier> queue_;
};

Tensor ones_like(Session& session, const Tensor& tensor) {
  auto one = std::make_shared<const float>(1.0F);
  return session.upload(TensorMeta::contiguous(DType::kFloat32, tensor.shape()),
                        Category::kGradient, one.get(), one, "backward");
}

}  // namespace

void backward(const Tensor& root, const Tensor& seed) {
  const GradState* state = grad_state(root);
  if (!state)
    throw UsageError("[backward] the tensor does not depend on anything that needs a gradient");
  if (!seed.defined() && root.elements() != 1) {
    throw UsageError("[backward] the tensor has shape " + root.shape().to_string() +
                     ", not one element; give its gradient");
  }
  const DType given = seed.defined() ? seed.dtype() : DType::kFloat32;
  if (given != root.dtype()) {
    throw UsageError("[backward] the tensor, of shape " + root.shape().to_string() + ", is " +
                     std::string(to_string(root.dtype())) + "; " +
                     (seed.defined() ? "its gradient is " + std::string(to_string(given))
                                     : std::string("give its gradient, or cast it")));
  }
  Session& session = Session::current();
  session.check_own(root, "backward");
  if (seed.defined()) session.check_own(seed, "backward");
  const NoGrad no_grad;
  const ScopedCategory gradients(session, Category::kGradient);
  const PhaseScope phase(session.residency());
  Walk walk;
  walk.send({state->node, state->output},
            seed.defined() ? Tensor(seed) : ones_like(session, root));
  walk.run();
}

}  // namespace tidemark
