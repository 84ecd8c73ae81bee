#include "models/optim/clip.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "models/optim/optimizer.h"
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

// Which gradients go through one operator: small ones together, large ones alone. All of an
// operator are on the device at once, no more than the largest gradient takes by itself.
std::vector<std::vector<Tensor>> in_groups(std::vector<Tensor> gradients) {
  constexpr UpdateGroups kLimits;
  Bytes room{0};
  for (const Tensor& gradient : gradients) room = std::max(room, gradient.storage()->size());
  room = std::min(room, kLimits.most_of_group);
  std::vector<std::vector<Tensor>> groups;
  std::vector<Tensor> open;
  Bytes bytes{0};
  for (Tensor& gradient : gradients) {
    const Bytes size = gradient.storage()->size();
    if (gradient.storage()->bytes() > kLimits.most_of_parameter) {
      groups.push_back({std::move(gradient)});
      continue;
    }
    if (bytes + size > room || open.size() == kLimits.most_parameters) {
      if (!open.empty()) groups.push_back(std::exchange(open, {}));
      bytes = Bytes(0);
    }
    open.push_back(std::move(gradient));
    bytes += size;
  }
  if (!open.empty()) groups.push_back(std::move(open));
  return groups;
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
  const std::vector<std::vector<Tensor>> groups = in_groups(std::move(gradients));
  std::vector<Tensor> norms;
  norms.reserve(groups.size());
  for (const std::vector<Tensor>& group : groups) norms.push_back(norm(group));
  Tensor total = join_norms(norms);
  for (const std::vector<Tensor>& group : groups) clip_(group, total, max_norm);
  return total;
}

}  // namespace tidemark
