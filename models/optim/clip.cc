#include "models/optim/clip.h"

#include <unordered_set>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/optimizer/optimizer.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

// A gradient that is written in place: its storage's alone, and gapless.
Tensor own_gradient(const Tensor& parameter, std::unordered_set<const Storage*>& seen) {
  Tensor gradient = grad_of(parameter);
  if (!gradient) return gradient;
  const bool alone = seen.insert(gradient.storage().get()).second;
  if (!alone || !gradient.meta().is_contiguous()) {
    gradient = dispatch1(kCopy, {gradient});
    set_grad(parameter, gradient);
  }
  return gradient;
}

}  // namespace

Tensor clip_grad_norm_(std::span<const NamedTensor> parameters, double max_norm) {
  const NoGrad no_grad;
  const ScopedCategory category(Session::current(), Category::kGradient);
  // All before the first is written: two may share memory.
  std::vector<Tensor> gradients;
  std::unordered_set<const Storage*> seen;
  for (const NamedTensor& parameter : parameters) {
    Tensor gradient = own_gradient(parameter.tensor, seen);
    if (gradient) gradients.push_back(std::move(gradient));
  }
  if (gradients.empty()) return {};
  Tensor total = norm(gradients);
  for (const Tensor& gradient : gradients) clip_(gradient, total, max_norm);
  return total;
}

}  // namespace tidemark
