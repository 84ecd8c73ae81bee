#include "models/optim/clip.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "models/optim/groups.h"
#include "ops/autograd/autograd.h"
#include "ops/optimizer/optimizer.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

// The parameter's gradient, if it may be written in place: gapless, and alone in its storage.
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

// Groups gradients by operator: small ones of one type go through one together.
std::vector<std::vector<Tensor>> grouped(const std::vector<Tensor>& gradients) {
  constexpr UpdateGroups kLimits;
  std::vector<GroupMember> members;
  members.reserve(gradients.size());
  for (const Tensor& gradient : gradients) {
    const Storage& storage = *gradient.storage();
    members.push_back({storage.size(), storage.bytes() > kLimits.most_of_parameter});
  }
  std::vector<std::vector<Tensor>> groups;
  const auto may_join = [&](std::span<const size_t> open, size_t next) {
    return open.empty() || gradients[open.front()].dtype() == gradients[next].dtype();
  };
  for (const auto& group : in_groups(members, kLimits, may_join)) {
    std::vector<Tensor>& together = groups.emplace_back();
    together.reserve(group.size());
    for (const size_t i : group) together.push_back(gradients[i]);
  }
  return groups;
}

}  // namespace

Tensor clip_grad_norm_(std::span<const NamedTensor> parameters, double max_norm) {
  const NoGrad no_grad;
  const ScopedCategory category(Session::current(), Category::kGradient);
  // All gradients are checked before the first is written: two may share memory.
  std::vector<Tensor> gradients;
  std::unordered_set<const Storage*> seen;
  for (const NamedTensor& parameter : parameters) {
    Session::current().check_own(parameter.tensor, "clip_grad_norm_");
    Tensor gradient = own_gradient(parameter.tensor, seen);
    if (gradient) gradients.push_back(std::move(gradient));
  }
  if (gradients.empty()) return {};
  const std::vector<std::vector<Tensor>> groups = grouped(gradients);
  std::vector<Tensor> norms;
  norms.reserve(groups.size());
  for (const std::vector<Tensor>& group : groups) norms.push_back(norm(group));
  Tensor total = join_norms(norms);
  for (const std::vector<Tensor>& group : groups) clip_(group, total, max_norm);
  return total;
}

}  // namespace tidemark
